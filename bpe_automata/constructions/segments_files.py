"""What is known of a segment as one file of arrays, and back. See `storage`."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from bpe_automata.constructions import stored
from bpe_automata.constructions.relevance import Row
from bpe_automata.constructions.segments import At
from bpe_automata.constructions.segments_pieces import OVERHEAD, Closure, Known, Piece
from bpe_automata.kernels.bits import members, set_bits
from bpe_automata.storage import checked_load, store_arrays

_FOLDER = "segments"
_PLAIN = "plain"
_ARRAYS = ("accepting", "offsets", "symbols", "targets")


def write(key: bytes, known: Known) -> None:
    """Keep it on disk, if there is a place."""
    store_arrays(_FOLDER, key.hex(), stored.stamp(), _flattened(known))


def read(key: bytes) -> Known | None:
    """What `write` wrote; None if there is nothing, or other sources made it. Warns of a damaged
    file with a CorruptCacheWarning."""
    return checked_load(_FOLDER, key.hex(), stored.stamp(), _restored)


def _flattened(known: Known) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    plain: dict[str, Any] = {"rows": list(known.rows), "closures": [], "pieces": []}
    sides = [side for row in known.rows.values() for side in row]
    sparse = [members(side).astype(np.int32) for side in sides]
    # A set of few ids is shorter as a list.
    dense = [len(ids) > len(side) for ids, side in zip(sparse, sides, strict=True)]
    data = [s if d else i for d, s, i in zip(dense, sides, sparse, strict=True)]
    plain["n_words"] = len(sides[0]) if sides else 0
    arrays["rows.dense"] = np.array(dense, dtype=bool)
    arrays["rows.start"] = np.cumsum([0, *map(len, data)], dtype=np.int64)
    arrays["rows.data"] = np.concatenate([np.empty(0, dtype=np.int32), *data])
    for (at, common), closure in known.closures.items():
        plain["closures"].append([at, common, closure.n_inner, closure.exits])
    for k, (at, piece) in enumerate(known.pieces.items()):
        plain["pieces"].append([at, piece.exits])
        for name in _ARRAYS:
            arrays[f"pieces.{k}.{name}"] = getattr(piece, name)
    arrays[_PLAIN] = np.frombuffer(json.dumps(plain).encode(), dtype=np.uint8)
    return arrays


def _restored(arrays: dict[str, np.ndarray]) -> Known:
    plain, known = json.loads(arrays[_PLAIN].tobytes()), Known()
    sides = _sides(arrays, plain["n_words"])
    for at, free, bound in zip(plain["rows"], sides[::2], sides[1::2], strict=True):
        known.rows[_at(at)] = Row(free, bound)
        known.n_bytes += free.nbytes + bound.nbytes + OVERHEAD
    for at, common, n_inner, exits in plain["closures"]:
        closure = Closure(n_inner, tuple(map(_at, exits)))
        known.closures[_at(at), common] = closure
        known.n_bytes += closure.n_bytes
    for k, (at, exits) in enumerate(plain["pieces"]):
        # Copied, as all that is kept: else the file would stay open as long as the segment.
        parts = {name: arrays[f"pieces.{k}.{name}"].copy() for name in _ARRAYS}
        piece = Piece(exits=tuple(map(_at, exits)), **parts)
        known.pieces[_at(at)] = piece
        known.n_bytes += piece.n_bytes
    return known


def _sides(arrays: dict[str, np.ndarray], n_words: int) -> list[np.ndarray]:
    start, data, sides = arrays["rows.start"].tolist(), arrays["rows.data"], []
    for k, dense in enumerate(arrays["rows.dense"].tolist()):
        kept = data[start[k] : start[k + 1]]
        if dense:
            sides.append(kept.copy())
        else:
            side = np.zeros(n_words, dtype=np.int32)
            set_bits(side, kept.astype(np.int64))
            sides.append(side)
    return sides


def _at(plain: list[Any]) -> At:
    number, text, row, hypotheses = plain
    return At(number, text, row, tuple(map(tuple, hypotheses)))
