"""How compiled kernels are put together, kept on the disk, and loaded.

numba compiles a kernel together with everything that it calls, once more for each caller. Here a
kernel that is too large for LLVM to inline is compiled once: its callers know it by name, and what
is kept of them says which other files hold what they call. Small ones are copied into their
callers, as numba does it. The names of machine code are the same in every process, so it does not
matter which process compiled what.

Loading reads machine code alone: neither numba's tables for compiling nor LLVM's form of a kernel
are needed before something is compiled.

A wheel may hold kernels that were compiled when it was built (`make wheel`), for the processors of
the last ten years: SHIPPED. They are looked for after what this machine compiled itself.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import zlib
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from llvmlite import binding as llvm
from numba.core import compiler, config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.codegen import CodeLibrary, JITCodeLibrary
from numba.core.environment import Environment
from numba.core.runtime import _nrt_python
from numba.core.serialize import dumps

from bpe_automata.kernels.freshness import stamp

SHIPPED = Path(__file__).parent / "compiled"
SHIPPED_FOR = "x86-64-v3"
_NEEDED = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")  # what that has over x86-64-v2
_MOST_INLINED = 100
"""Instructions: LLVM inlines up to some 45, and more where arguments are constant."""


class Compiler(compiler.Compiler):  # type: ignore[misc]
    """numba numbers functions in the order in which a process compiles them, and the number is part
    of the name of the machine code. Those of kernels have unique names anyway."""

    def _compile_bytecode(self) -> Any:
        identity = self.state.func_id
        identity.unique_id, identity.unique_name = 0, f"{identity.func_qualname}$0"
        return super()._compile_bytecode()


class _Code(NamedTuple):
    """symbol: the name of a kernel's machine code; digest: of the sources that it comes from, and
    of all else that it depends on; file: that keeps it, its path
    where it is one that was shipped."""

    symbol: str
    digest: str
    file: str


class _StaleError(Exception):
    """What a kernel calls comes from other sources by now, or a file is damaged."""


_GARBLED = (
    *(pickle.UnpicklingError, EOFError, ValueError, TypeError, LookupError, AttributeError),
    *(ImportError, OverflowError, MemoryError),
)
"""What unpickling raises for a file that is damaged, or of another kind."""


_known: dict[str, _Code] = {}
"""By symbol, the machine code that this process has loaded, or made and kept."""

_environments: list[Environment] = []
"""Machine code has their addresses."""

_by_name: set[str] = set()
"""The symbols that callers call by name."""


# ---------------------------------------------------------------- what is on the disk


class Kept(FunctionCache):  # type: ignore[misc]
    """The compiled forms of one kernel on the disk."""

    def __init__(self, function: Any) -> None:
        """Looks for no place yet: most kernels are never called."""
        self._py_func, self._name = function, repr(function)
        self.enable()

    @cached_property
    def _impl(self) -> Any:
        return CompileResultCacheImpl(self._py_func)

    @cached_property
    def _cache_path(self) -> str:
        return self._impl.locator.get_cache_path()

    @cached_property
    def _cache_file(self) -> Any:
        checked = " checked" if config.BOUNDSCHECK else ""
        source = stamp(self._py_func.__module__.rpartition(".")[2])
        return IndexDataCacheFile(self._cache_path, self._impl.filename_base, source + checked)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        if not self._enabled:
            return None
        key = self._index_key(sig, target_context.codegen())
        found = self._loaded(self._cache_path, self._cache_file, key, target_context)
        if found is None and _shipped_runs_here():
            index = IndexDataCacheFile(
                str(SHIPPED), self._impl.filename_base, self._cache_file._source_stamp
            )
            key = sig, (key[1][0], SHIPPED_FOR, ""), key[2]
            found = self._loaded(str(SHIPPED), index, key, target_context)
        return found

    def _loaded(self, folder: str, index: Any, key: Any, target_context: Any) -> Any:
        codegen, sig = target_context.codegen(), key[0]
        added: list[Environment] = []
        try:
            file = index._load_index().get(key)
            if file is None:
                return None
            rest = _add_code(codegen, folder, file, None, added)
        except (OSError, _StaleError, *_GARBLED):
            return None
        finally:
            codegen._engine.finalize_object()
            for environment in added:
                codegen.set_env(environment.env_name, environment)
        found = _rebuilt(target_context, *pickle.loads(rest))
        return found if found.signature.args == tuple(sig) else None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Unlike numba's own it does not get the context ready for compiling."""
        _make_runtime_known()
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def _save_overload(self, sig: Any, data: Any) -> None:
        large = _link_by_name_if_large(data)
        module = data.library._final_module
        declared = {function.name for function in module.functions if function.is_declaration}
        lost = (declared & _by_name) - _known.keys()
        if lost or not self._enabled or not self._impl.check_cachable(data):
            return
        self._impl.locator.ensure_cache_path()
        key = self._index_key(sig, data.codegen)
        symbol = data.fndesc.mangled_name
        told = (self._cache_file._source_stamp, self._cache_file._version, *key[1:], symbol)
        digest = hashlib.sha256(repr(told).encode()).hexdigest()
        needed = [_known[name] for name in sorted(declared & _known.keys())]
        try:
            self._cache_file._load_index()
        except _GARBLED:
            self._cache_file.flush()  # a damaged index would be read again before it is written
        self._cache_file.save(key, _reduced(data, digest, needed, large))
        _known[symbol] = _Code(symbol, digest, self._cache_file._load_index()[key])


def _reduced(compiled: Any, digest: str, needed: list[_Code], large: bool) -> tuple[int, bytes]:
    """What is kept of a kernel, after its CRC-32: its symbol and digest; what its code calls by
    name; the code; numba's environments, by name; and, pickled, what only who calls it needs."""
    (_, _, (code, bitcode)), described, own, signature, *_, others = compiled._reduce()
    environments = [(e.env_name, e.globals["__name__"], e.consts) for e in (own, *others)]
    rest = dumps((described, own, signature, None if large else bitcode))
    kept = described.mangled_name, digest, needed, code, dumps(environments), rest
    data = pickle.dumps(kept, pickle.HIGHEST_PROTOCOL)
    return zlib.crc32(data), data


def _add_code(
    codegen: Any, folder: str, file: str, wanted: _Code | None, added: list[Environment]
) -> bytes:
    """Load what a file keeps, and what that calls by name. `added`: environments that are to be
    made known. Raises OSError, _StaleError."""
    with open(os.path.join(folder, file), "rb") as opened:
        checksum, data = pickle.load(opened)
    if zlib.crc32(data) != checksum:
        raise _StaleError
    symbol, digest, needed, code, own, rest = pickle.loads(data)
    if wanted is not None and (symbol, digest) != wanted[:2]:
        raise _StaleError
    if symbol not in _known:
        for each in needed:
            if each.symbol not in _known:
                _add_code(codegen, folder, each.file, each, added)
        codegen._engine._ee.add_object_file(llvm.ObjectFileRef.from_data(code))
        path = os.path.join(folder, file) if folder == str(SHIPPED) else file
        _known[symbol] = _Code(symbol, digest, path)
        added.extend(_environment(*each) for each in pickle.loads(own))
    return rest


def _environment(name: str, module: str, constants: list[Any]) -> Environment:
    """What machine code of that name finds its constants in. numba's own way imports the module."""
    known = Environment._memo.get(name)
    if known is None:
        known = Environment._memo[name] = Environment({"__name__": module})
        known.env_name, known.consts[:] = name, constants
    _environments.append(known)
    return known


@cache
def _shipped_runs_here() -> bool:
    """Are there such kernels, and does this processor know all their instructions?"""
    features = llvm.get_host_cpu_features() if SHIPPED.is_dir() else {}
    return all(features.get(name, False) for name in _NEEDED)


@cache
def _make_runtime_known() -> None:
    """What machine code calls of numba's runtime. (What numba compiles for it beside is only put
    into what is compiled.)"""
    for name, address in _nrt_python.c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


# ---------------------------------------------------------------- what callers see of it


def _link_by_name_if_large(compiled: Any) -> bool:
    """What callers copy of a large kernel is nothing."""
    library = compiled.library
    blocks = library.get_function(compiled.fndesc.mangled_name).blocks
    large = sum(1 for block in blocks for _ in block.instructions) > _MOST_INLINED
    if large:
        library._shared_module = _empty_module(library)
        _by_name.add(compiled.fndesc.mangled_name)
    return large


def _empty_module(library: Any) -> Any:
    return llvm.parse_assembly(str(library.codegen._create_empty_module(library.name)))


def _rebuilt(
    context: Any, described: Any, environment: Any, signature: Any, bitcode: bytes | None
) -> Any:
    """The compiled kernel, ready to be called."""
    codegen = context.codegen()
    names = (described.mangled_name, described.llvm_cpython_wrapper_name, described.env_name)
    codegen._engine._defined_symbols.update(names)
    library = _Loaded(codegen, described.mangled_name, bitcode)
    return compiler.compile_result(
        target_context=context,
        typing_context=context.typing_context,
        library=library,
        environment=environment,
        entry_point=context.get_executable(library, described, environment),
        fndesc=described,
        signature=signature,
        objectmode=False,
        lifted=(),
        typing_error=None,
        reload_init=[],
        referenced_envs=(),
    )


class _Loaded(JITCodeLibrary):  # type: ignore[misc]
    """Machine code that is loaded. LLVM's form is read when a caller is compiled."""

    _finalized = True

    def __init__(self, codegen: Any, name: str, bitcode: bytes | None) -> None:
        CodeLibrary.__init__(self, codegen, name)
        self._bitcode, self._shared_module = bitcode, None

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            known = self._bitcode
            self._shared_module = llvm.parse_bitcode(known) if known else _empty_module(self)
        return self._shared_module
