"""Segments that stand in many schemas, made beforehand for a tokenizer.

Each entry is a small schema in which a common value stands first, between and last in an object:
what is learnt from it is what any schema with the same value between the same delimiters needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.constructions import CartesianMerge, SegmentCache
from bpe_automata.constructions.segments_nodes import prepared
from bpe_automata.errors import EmptyLanguageError
from bpe_automata.schemas import compile_json_schema, compile_yaml_schema
from bpe_automata.tokenizer import Tokenizer

VALUES: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "string, not empty": {"type": "string", "minLength": 1},
    "string, up to 50": {"type": "string", "maxLength": 50},
    "string, up to 100": {"type": "string", "maxLength": 100},
    "integer": {"type": "integer"},
    "integer, from 0": {"type": "integer", "minimum": 0},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "null": {"type": "null"},
    "date": {"type": "string", "format": "date"},
    "uuid": {"type": "string", "format": "uuid"},
    "strings": {"type": "array", "items": {"type": "string"}},
}
"""Schemas of common values."""

_NAMES = ("id", "name", "Type")
_KEYS = ("id", "name", "type", "key", "value", "title", "date", "url", "text", "description")


def _object(names: tuple[str, ...], value: dict[str, Any], required: bool) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict.fromkeys(names, value),
        "required": list(names) if required else [],
        "additionalProperties": False,
    }


def languages() -> Iterator[tuple[str, ByteDFA]]:
    """(name, DFA) of each entry, in the compact and the spaced style of JSON, and in YAML."""
    entries = {name: _object(_NAMES, value, True) for name, value in VALUES.items()}
    entries["keys"] = _object(_KEYS, {"type": "boolean"}, True)
    entries["optional strings"] = _object(_NAMES, {"type": "string"}, False)
    for name, schema in entries.items():
        yield f"{name}, compact", compile_json_schema(schema)
        yield f"{name}, spaced", compile_json_schema(schema, whitespace="spaced")
        yield f"{name}, YAML", compile_yaml_schema(schema)


def precompute(tokenizer: Tokenizer, cache: SegmentCache) -> dict[str, int]:
    """Fill the cache; returns how many common nodes (see `segments_nodes`) each entry has, 0 where
    the tokenizer cannot spell it. `cache.save()` is left to the caller. Raises what
    `CartesianMerge` raises."""
    found = {}
    for name, dfa in languages():
        engine = CartesianMerge(tokenizer, dfa, tokenizer.eos_ids, segments=cache)
        try:
            found[name] = prepared(engine, engine.initial(), common=True)
        except EmptyLanguageError:
            found[name] = 0
    return found
