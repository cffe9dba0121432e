"""Floor 0: arrays in, arrays out. Every hot loop of the package, compiled by numba.

Kernels know nothing of tokenizers or regexes; the floors above give them their arrays. They are
cached on disk, so only the first run on a machine compiles.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.core import serialize, sigutils

from bpe_automata._budget import excuse, excused
from bpe_automata._kernels.linking import Compiler, Kept

F = TypeVar("F", bound=Callable[..., object])

# For each array that a kernel returns numba calls a function of Python; the handler of a signal may
# run there, and what it raises comes out as a SystemError. A function in C has no room for it.
serialize._numba_unpickle = lru_cache(maxsize=None)(serialize._numba_unpickle)


def kernel(function: F) -> F:
    """Compile without Python objects, releasing the GIL, cached on disk.

    Integers that are passed are widened to int64, so a kernel is compiled once, not once for each
    mixture of int32, int64 and constants that other kernels call it with. Private ones are called
    by kernels only, and have no entry for the interpreter.

    With $NUMBA_BOUNDSCHECK=1 every index is checked (`make test-bounds`), which is other code, and
    is kept as such: give it a $NUMBA_CACHE_DIR of its own, or each kind replaces the other there.
    """
    if numba.config.DISABLE_JIT:  # $NUMBA_DISABLE_JIT, to look into kernels with a debugger
        return function
    private = function.__name__.startswith("_")
    compiled: Any = numba.njit(
        function,
        nogil=True,
        no_cfunc_wrapper=True,
        no_cpython_wrapper=private,
        pipeline_class=Compiler,
    )
    compiled._cache = Kept(function)
    compiled._compilation_chain_init_hook = _nothing  # it looks for numba's plugins, for 30 ms
    compiled.compile = _at_no_cost(compiled.compile)
    return cast(F, compiled)


def _nothing() -> None: ...


def _at_no_cost(compile_: Callable[[Any], object]) -> Callable[[Any], object]:
    """Compiling, or loading what was compiled, is no work of the call in which it happens."""

    def widened(signature: Any) -> object:
        begun, before = time.thread_time_ns(), excused()
        try:
            return compile_(_widened(signature))
        finally:  # what it calls is compiled inside, and excused already
            excuse(time.thread_time_ns() - begun - (excused() - before))

    return widened


def _widened(signature: Sequence[types.Type]) -> tuple[types.Type, ...]:
    arguments, _ = sigutils.normalize_signature(signature)
    return tuple(map(_wide, arguments))


def _wide(argument: types.Type) -> types.Type:
    """Unsigned words stay what they are: they are hashes and bits, and meant to overflow."""
    plain = types.unliteral(argument)
    if isinstance(plain, types.Integer) and plain not in (types.uint64, types.uint32):
        return types.int64
    return plain
