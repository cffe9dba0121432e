"""The disk cache of what is computed from a tokenizer: one file of arrays for each tokenizer.

The key is the tokenizer's own fingerprint, the libraries that answer for it, and `ALGORITHM`. The
file also has a stamp, the digest of this package's own sources: an entry that other code has made
is silently made again. A damaged entry is made again too, with a `CorruptCacheWarning`.

Values are frozen dataclasses and named tuples of arrays, of such values, and of plain things
(numbers, bytes, tuples of them). Arrays are stored as they are, what is plain as JSON. Nothing is
pickled: the types come from the annotations, not from the file.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from bpe_automata._core.geometry import Tables
from bpe_automata._core.token_actions import TokenActions, Unmade
from bpe_automata._core.vocabulary import Nodes
from bpe_automata._kernels.hashing import EMPTY
from bpe_automata._kernels.trie import Trie
from bpe_automata._storage import (
    CorruptFileError,
    arrays_path,
    cache_is_off,
    checked_load,
    store_arrays,
)
from bpe_automata._tokenizer.derivation import Derivation
from bpe_automata._tokenizer.pipeline import Pipeline
from bpe_automata._tokenizer.stored import FEWEST_IDS, digest_of_sources
from bpe_automata._tokenizer.tokenizer import Tokenizer

T = TypeVar("T")

ALGORITHM = 1
"""To be raised when the same tokenizer gets other arrays than before."""

_FOLDER = "automaton"
_MADE_BY = ("_kernels", "_tokenizer", "_core")
_PLAIN = "plain"


def cached(
    kind: type[T],
    tokenizer: Tokenizer,
    build: Callable[[], T],
    check: Callable[[T], None] = lambda _: None,
) -> T:
    """What `build` returns, a value of type `kind`: out of the cache if it is there and `check`
    raises no CorruptFileError for it.

    Two processes may do so at once; both build, and the file is whole at any time. Where the cache
    cannot be written nothing is kept.
    """
    if not is_kept(tokenizer):
        return build()
    found = fetched(kind, _FOLDER, cache_key(tokenizer), check)
    if found is not None:
        return found
    made = build()
    keep(made, _FOLDER, cache_key(tokenizer))
    return made


def is_kept(tokenizer: Tokenizer) -> bool:
    """Is what is made of a tokenizer worth keeping?"""
    return tokenizer.n_ids >= FEWEST_IDS and not cache_is_off()


def fetched(
    kind: type[T], folder: str, key: str, check: Callable[[T], None] = lambda _: None
) -> T | None:
    """What `keep` has put there; None if there is nothing, or other sources made it. Warns of a
    damaged file with a CorruptCacheWarning."""
    return checked_load(folder, key, _stamp(), lambda arrays: restored(kind, arrays, check))


def keep(value: object, folder: str, key: str) -> None:
    """Put a value into a folder of the cache."""
    store_arrays(folder, key, _stamp(), flattened(value))


def stamp() -> str:
    """Digest of the sources that make what is stored."""
    return _stamp()


def cache_key(tokenizer: Tokenizer) -> str:
    """Equal for two tokenizers only if their automata are."""
    libraries = {rule.library for rule in tokenizer.description.normalizers}
    engine = tokenizer.backend.engine.name
    parts = (tokenizer.fingerprint, tokenizer.backend.name, engine, *sorted(libraries))
    return "; ".join((f"algorithm {ALGORITHM}", *parts))


def cache_path(tokenizer: Tokenizer) -> Path:
    """The file that keeps the automaton of a tokenizer."""
    return arrays_path(_FOLDER, cache_key(tokenizer))


def _stamp() -> str:
    """Digest of the sources that make what is stored (where sources are not shipped, `ALGORITHM`
    alone must tell)."""
    return " ".join(map(digest_of_sources, _MADE_BY))


# ---------------------------------------------------------------- values as arrays


def flattened(value: object) -> dict[str, np.ndarray]:
    """A value as named arrays; a field's name is its path, as in `pipeline.text.next`."""
    arrays: dict[str, np.ndarray] = {}
    plain: dict[str, Any] = {}
    _flatten(type(value), value, "", arrays, plain)
    arrays[_PLAIN] = np.frombuffer(json.dumps(plain).encode(), dtype=np.uint8)
    return arrays


def _flatten(
    kind: Any, value: Any, name: str, arrays: dict[str, np.ndarray], plain: dict[str, Any]
) -> None:
    if kind is np.ndarray:
        arrays[name] = value
    elif fields := _fields(kind):
        for field, inner in fields:
            _flatten(inner, getattr(value, field), _path(name, field), arrays, plain)
    elif _holds_arrays(kind):
        plain[name] = len(value)
        arrays.update((_path(name, k), item) for k, item in enumerate(value))
    else:
        plain[name] = _plain(value)


def _plain(value: Any) -> Any:
    """Numbers stay, bytes become hexadecimal, everything with parts a list of them."""
    kind: Any = type(value)
    if fields := _fields(kind):
        return [_plain(getattr(value, field)) for field, _ in fields]
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.hex() if isinstance(value, bytes) else value


@lru_cache(maxsize=256)
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    """(name, type) of the fields of a dataclass or named tuple; none for any other type."""
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return tuple(get_type_hints(kind).items())
    return ()


def _holds_arrays(kind: Any) -> bool:
    return get_origin(kind) is tuple and get_args(kind)[0] is np.ndarray


def _path(name: str, field: object) -> str:
    return f"{name}.{field}" if name else str(field)


# ---------------------------------------------------------------- and back


def restored(
    kind: type[T], arrays: dict[str, np.ndarray], check: Callable[[T], None] = lambda _: None
) -> T:
    """The value of type `kind` that `flattened` made the arrays of. Raises KeyError and other
    errors where they are other arrays, and what `check` raises."""
    value: T = _restore(kind, "", arrays, json.loads(arrays[_PLAIN].tobytes()))
    check(value)
    return value


def _restore(kind: Any, name: str, arrays: dict[str, np.ndarray], plain: dict[str, Any]) -> Any:
    if kind is np.ndarray:
        return arrays[name]
    if fields := _fields(kind):
        return kind(*(_restore(k, _path(name, field), arrays, plain) for field, k in fields))
    if _holds_arrays(kind):
        return tuple(arrays[_path(name, k)] for k in range(plain[name]))
    return _from_plain(kind, plain[name])


def _from_plain(kind: Any, data: Any) -> Any:
    if not isinstance(data, list):
        return bytes.fromhex(data) if kind is bytes else data
    if fields := _fields(kind):
        return kind(*(_from_plain(k, item) for (_, k), item in zip(fields, data, strict=True)))
    inner = get_args(kind)  # of a tuple
    kinds = inner[:1] * len(data) if inner[-1] is Ellipsis else inner
    return tuple(map(_from_plain, kinds, data))


# ---------------------------------------------------------------- what is stored
#
# All that is computed from a tokenizer alone, as arrays. Kernels check nothing, and a wrong index
# would reach foreign memory, so `check_parts` compares each array that is read from the disk with
# its declaration before any kernel sees it.


@dataclass(frozen=True)
class Parts:
    """All that is computed from a tokenizer, as arrays: what the cache keeps. See the attributes of
    `CanonicalAutomaton`."""

    derivation: Derivation
    tables: Tables
    pipeline: Pipeline
    unmade: Unmade
    usable: np.ndarray
    trie: Trie
    actions: TokenActions
    nodes: Nodes


_WRITTEN = """
derivation.left i4 ids -1 ids | derivation.right i4 ids -1 ids | derivation.birth i4 ids -1 proper
derivation.reachable ? ids | derivation.proper i4 proper,3 0 ids
derivation.epoch i4 proper -1 2147483647
derivation.late ? proper | derivation.starts i4 ids+1 0 symbols+1 csr
derivation.symbols i4 symbols 0 ids | derivation.listed.slots i8 hashed hash
derivation.listed.values i4 hashed -1 made | derivation.listed.made i4 made 0 ids
derivation.listed.rank i4 made 0 2147483647
tables.slots i8 derived hash | tables.values i4 derived -1 rectangles
tables.rows.part i4 ids -1 ids | tables.rows.position i4 ids -1 rows
tables.rows.end i4 ids -1 rows+1 | tables.rows.order i4 rows 0 ids
tables.rows.by_part i4 ids+1 0 rectangles+1 csr
tables.rows.merges i4 rectangles 0 rectangles
tables.rows.low i4 rectangles 0 rows+1 | tables.rows.high i4 rectangles 0 rows+1
tables.columns.part i4 ids -1 ids | tables.columns.position i4 ids -1 columns
tables.columns.end i4 ids -1 columns+1 | tables.columns.order i4 columns 0 ids
tables.columns.by_part i4 ids+1 0 rectangles+1 csr
tables.columns.merges i4 rectangles 0 rectangles
tables.columns.low i4 rectangles 0 columns+1 | tables.columns.high i4 rectangles 0 columns+1
pipeline.alphabet.starts i4 intervals 0 1114112 | pipeline.alphabet.atoms i4 intervals -1 atoms
pipeline.alphabet.inside ? classes,atoms | pipeline.alphabet.utf8 i4 utf8,256 -1-atoms utf8
pipeline.coarse i4 atoms 0 coarse | pipeline.boundaries.ends ? hypotheses
pipeline.boundaries.follow ? 2,hypotheses,coarse,hypotheses
pipeline.text.next i4 texts,atoms -1 texts | pipeline.text.ends ? texts
pipeline.text.after_row i4 texts 0 after | pipeline.text.after i4 after,added -1 texts
pipeline.text.token_start i4 added+1 0 added_bytes+1 csr | pipeline.text.data u1 added_bytes
pipeline.text.ids i4 added 0 ids | pipeline.text.put ? texts
unmade.ids i4 unmade 0 ids | unmade.start i4 unmade+1 0 spelled+1 csr
unmade.spelled i4 spelled 0 ids | usable ? ids
trie.label u1 nodes | trie.depth i4 nodes 1 1+deepest | trie.skip i4 nodes 1 nodes+1
trie.token i4 nodes -1 ids | trie.first i4 257 0 nodes+1
trie.start i4 ids+1 0 bytes+1 csr | trie.data u1 bytes
actions.of_token i4 ids 0 token_classes | actions.text i4 ids -1 texts
actions.first i4 ids -1 atoms | nodes.token_class i4 nodes 0 token_classes
nodes.text i4 nodes -1 texts | nodes.first i4 nodes -1 atoms
"""
"""Of each array of `Parts`: type, shape (a name stands for one number throughout), least value and
what values are below; `csr`: ascending to the last; `hash`: a table with room, of a size 2^k."""

DECLARED = {
    name: rest
    for name, *rest in (line.split() for line in _WRITTEN.replace("|", "\n").splitlines() if line)
}


def check_parts(parts: Parts, n_ids: int) -> None:
    """Is this something that kernels can be given, who check nothing? Raises CorruptFileError."""
    arrays = flattened(parts)
    utf8, classes = parts.pipeline.alphabet.utf8, parts.actions.classes
    sizes = {"ids": n_ids, "deepest": int(parts.trie.deepest), "token_classes": len(classes)}
    sizes |= {"hypotheses": len(parts.pipeline.boundaries.hypotheses)}
    sizes |= {"atoms": int(parts.pipeline.alphabet.n_atoms), "utf8": len(utf8)}
    for name, (kind, shape, *_) in DECLARED.items():
        _check_shape(name, arrays[name], np.dtype(kind), shape.split(","), sizes)
    for name, (_, _, *values) in DECLARED.items():
        _check_values(name, arrays[name], values, sizes)
    trie, derivation = parts.trie, parts.derivation
    depth = np.concatenate([[0], trie.depth])
    made = np.flatnonzero(derivation.birth >= 0)
    halves = np.stack([derivation.left[made], derivation.right[made]])
    lengths = np.diff(derivation.starts)
    state, root = parts.pipeline.text.start, parts.pipeline.alphabet.fallback_root
    relations, n = parts.actions.relations, sizes["hypotheses"]
    sound = (
        (np.diff(depth) <= 1).all()
        and (trie.skip > np.arange(len(trie.skip))).all()
        and (np.diff(trie.first) >= 0).all()
        and derivation.listed.n_ids == n_ids
        and (halves >= 0).all()
        and (lengths[halves] < lengths[made]).all()
        and sizes["rectangles"] >= sizes["proper"]  # those of tied pairs come behind
        and 0 <= state < sizes["texts"]
        and 0 <= root < sizes["utf8"]
        and all(r.dtype == bool and r.shape in ((n, n), (2 * n, n)) for r in relations)
        and all(c.element < len(relations) and -2 < c.tail < len(utf8) for c in classes)
    )
    if not sound:
        raise CorruptFileError("its arrays do not go together")


def _check_shape(
    name: str,
    array: np.ndarray,
    kind: np.dtype[Any],
    shape: list[str],
    sizes: dict[str, int],
) -> None:
    if array.dtype != kind or array.ndim != len(shape):
        raise CorruptFileError(f"{name} is {array.dtype} of {array.ndim} axes")
    for size, said in zip(array.shape, shape, strict=True):
        stem, _, more = said.partition("+")
        expected = int(stem) if stem.isdigit() else sizes.setdefault(stem, size - int(more or 0))
        if size != expected + int(more or 0):
            raise CorruptFileError(f"{name} has the shape {array.shape}")


def _check_values(name: str, array: np.ndarray, values: list[str], sizes: dict[str, int]) -> None:
    if "hash" in values:
        free = bool((array == EMPTY).any())
        if array.size & (array.size - 1) or not free:
            raise CorruptFileError(f"{name} is no hash table")
    elif values and array.size:
        low, high = (_number(value, sizes) for value in values[:2])
        if int(array.min()) < low or int(array.max()) >= high:
            raise CorruptFileError(f"{name} has values that are not in {low} .. {high - 1}")
    if "csr" in values and ((np.diff(array) < 0).any() or array[0] or array[-1] != high - 1):
        raise CorruptFileError(f"{name} does not ascend from 0 to {high - 1}")


def _number(said: str, sizes: dict[str, int]) -> int:
    """`ids`, `ids+1`, `-1`, `-1-atoms`."""
    for name in sorted(sizes, key=len, reverse=True):
        said = said.replace(name, str(sizes[name]))
    return sum(int(part) for part in said.replace("-", "+-").split("+") if part)
