"""The disk cache of what is computed from a tokenizer: a file of arrays for each kind of value.

The key is the kind, the tokenizer's own fingerprint, the libraries that the value depends on, and
`ALGORITHM`. The file also has a stamp, the digest of this package's own sources: an entry of other
sources is silently made again. A damaged entry is made again too, with a `CorruptCacheWarning`.

Values are frozen dataclasses and named tuples of arrays, of such values, and of plain values
(numbers, bytes, tuples of them). Arrays are stored as they are, plain values as JSON. Nothing is
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

from bpe_automata._storage import arrays_path, cache_is_off, checked_load, store_arrays
from bpe_automata.canonical.geometry import Tables
from bpe_automata.canonical.token_actions import TokenActions, Unmade
from bpe_automata.canonical.vocabulary import Nodes, Trie
from bpe_automata.tokenizer.derivation import Derivation
from bpe_automata.tokenizer.pipeline import Pipeline
from bpe_automata.tokenizer.stored import FEWEST_IDS, digest_of_sources
from bpe_automata.tokenizer.tokenizer import Tokenizer

T = TypeVar("T")

ALGORITHM = 2
"""To be raised when the same tokenizer gets other arrays than before."""

_FOLDER = "automaton"
_MADE_BY = ("_kernels", "tokenizer", "canonical")
_PLAIN = "plain"


def cached(kind: type[T], tokenizer: Tokenizer, build: Callable[[], T]) -> T:
    """The value of `build`, of type `kind`, from the cache if it is there. Warns of a damaged file
    with a CorruptCacheWarning.

    Two processes may do so at once; both build, and the file is whole at any time. If the cache
    cannot be written, nothing is stored.
    """
    if tokenizer.n_ids < FEWEST_IDS or cache_is_off():
        return build()
    key = cache_key(kind, tokenizer)
    found = checked_load(_FOLDER, key, _stamp(), lambda arrays: restored(kind, arrays))
    if found is None:
        found = build()
        store_arrays(_FOLDER, key, _stamp(), flattened(found))
    return found


def cache_key(kind: type[Any], tokenizer: Tokenizer) -> str:
    """The key of a value. It is equal for two tokenizers only if their values are."""
    libraries = {rule.library for rule in tokenizer.description.normalizers}
    engine = tokenizer.backend.engine.name
    parts = (tokenizer.fingerprint, tokenizer.backend.name, engine, *sorted(libraries))
    return "; ".join((f"algorithm {ALGORITHM}", kind.__name__, *parts))


def cache_path(kind: type[Any], tokenizer: Tokenizer) -> Path:
    """The file of a tokenizer's value of a kind."""
    return arrays_path(_FOLDER, cache_key(kind, tokenizer))


def _stamp() -> str:
    """Digest of the sources that make the values. (If sources are not shipped, only `ALGORITHM`
    tells versions from one another.)"""
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
    """A value for JSON: numbers stay, bytes become hexadecimal, anything with parts a list."""
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


def restored(kind: type[T], arrays: dict[str, np.ndarray]) -> T:
    """The value of type `kind` of which `flattened` made the arrays. Raises KeyError and other
    errors for other arrays."""
    value: T = _restore(kind, "", arrays, json.loads(arrays[_PLAIN].tobytes()))
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
