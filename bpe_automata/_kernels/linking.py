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

import atexit
import hashlib
import logging
import os
import pickle
import re
import shutil
import tempfile
import warnings
import zlib
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from llvmlite import binding as llvm
from numba.core import compiler, config, event
from numba.core.caching import (
    CacheImpl,
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    _CacheLocator,
)
from numba.core.codegen import CodeLibrary, JITCodeLibrary
from numba.core.environment import Environment
from numba.core.runtime import _nrt_python
from numba.core.serialize import dumps

# When is a compiled kernel out of date? When its source has changed, or that of one it calls.
#
# numba looks at the file of the kernel alone, and would go on with the old code of the others. And
# where are they kept, if there is no place for them?
#
# Compiling takes long, so the first time in a process it is told, to the logger "bpe_automata" as a
# warning: Python shows those on stderr where nobody has said what to do with them, and a program
# that has said so decides itself (`logging.getLogger("bpe_automata").setLevel("ERROR")`).

_PACKAGE = __name__.rpartition(".")[0]
_HOW = ("__init__", "linking")  # how kernels are compiled
_IMPORT = re.compile(rf"^from {re.escape(_PACKAGE)}\.(\w+) import", re.MULTILINE)
_TOLD = (
    "compiling kernels, once on this machine: up to a minute now, one or two in all as others are "
    "needed; `bpe-automata warm` does it beforehand"
)


@cache
def stamp(module: str) -> str:
    """A digest of the sources of a module of kernels, of how kernels are compiled, and of all
    kernels that the module imports, be it through others."""
    source = (resources.files(_PACKAGE) / f"{module}.py").read_text(encoding="utf-8")
    called = {*_HOW, *_IMPORT.findall(source)} if module not in _HOW else set()
    parts = [source, *(stamp(name) for name in sorted(called))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


# ---------------------------------------------------------------- where they are kept


class KernelCacheWarning(UserWarning):
    """There is no folder to keep compiled kernels in, so each process compiles its own."""


class _ForThisProcess(_CacheLocator):  # type: ignore[misc]
    """The last place that numba looks for: a folder that goes with the process. Without it, numba
    would refuse to make a kernel at all."""

    def __init__(self, file: str) -> None:
        self._file = Path(file)

    @classmethod
    def from_function(cls, _function: object, file: str) -> _ForThisProcess | None:
        return cls(file) if file.startswith(str(Path(__file__).parent)) else None

    def get_cache_path(self) -> str:
        return _folder_of_this_process()

    def get_source_stamp(self) -> float:
        return 0.0  # `stamp` stands in its place

    def get_disambiguator(self) -> str:
        return self._file.stem


@cache
def _folder_of_this_process() -> str:
    warnings.warn(
        "compiled kernels cannot be kept: neither the folder of this package nor the user's cache "
        "can be written to. Each process compiles its own, which takes a minute; set "
        "NUMBA_CACHE_DIR to a folder that can be written to",
        KernelCacheWarning,
        stacklevel=2,
    )
    folder = tempfile.mkdtemp(prefix="bpe_automata_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


CacheImpl._locator_classes.append(_ForThisProcess)


# ---------------------------------------------------------------- that they are compiled


class _Compiling(event.Listener):  # type: ignore[misc]
    """Counts the kernels that are compiled, not those that are loaded from the disk."""

    count = 0

    def on_start(self, compiling: event.Event) -> None:
        function = getattr(compiling.data["dispatcher"], "py_func", None)
        if not (getattr(function, "__module__", None) or "").startswith(f"{_PACKAGE}."):
            return  # somebody else's
        if not self.count:
            logging.getLogger("bpe_automata").warning(_TOLD)
        self.count += 1

    def on_end(self, compiling: event.Event) -> None:
        """Nothing is told of the end."""


_compiling = _Compiling()
event.register("numba:compile", _compiling)


def compiled() -> int:
    """How many kernels this process has compiled so far; private ones count too."""
    return _compiling.count


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
