"""The pretokenizer of a `tokenizer.json` to split rules."""

from __future__ import annotations

from typing import Any

from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.description import SplitRule

Json = dict[str, Any]

GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""What `ByteLevel(use_regex=True)` splits by. Source: the GPT-2 tokenizer."""


def read_pretokenizer(pretokenizer: Json | None) -> tuple[tuple[SplitRule, ...], bool]:
    """(the split rules in order, does it end in ByteLevel). Raises UnsupportedTokenizerError."""
    rules: list[SplitRule] = []
    byte_level = False
    for step in _flattened(pretokenizer):
        if byte_level:
            raise UnsupportedTokenizerError(
                "pretokenizer", step, "it comes after ByteLevel, and would see mapped bytes"
            )
        byte_level = step.get("type") == "ByteLevel"
        rules.extend(_rules(step))
    return tuple(rules), byte_level


def _flattened(step: Json | None) -> list[Json]:
    if step is None:
        return []
    if step.get("type") != "Sequence":
        return [step]
    return [part for inner in step.get("pretokenizers") or [] for part in _flattened(inner)]


def _rules(step: Json) -> list[SplitRule]:
    kind = step.get("type")
    if kind == "ByteLevel":
        return _byte_level(step)
    if kind == "Digits":
        behavior = "isolated" if step.get("individual_digits") else "contiguous"
        return [SplitRule("digits", "", behavior)]
    if kind == "Split":
        return [_split(step)]
    raise UnsupportedTokenizerError("pretokenizer", step, "this kind is not modelled yet")


def _byte_level(step: Json) -> list[SplitRule]:
    if step.get("add_prefix_space"):
        raise UnsupportedTokenizerError(
            "ByteLevel.add_prefix_space", True, "it changes the text; not modelled yet"
        )
    if step.get("use_regex", True):
        return [SplitRule("regex", GPT2_PATTERN, "isolated")]
    return []


def _split(step: Json) -> SplitRule:
    pattern = step.get("pattern")
    behavior = str(step.get("behavior", "")).lower()
    invert = bool(step.get("invert"))
    if isinstance(pattern, dict) and isinstance(pattern.get("Regex"), str):
        return SplitRule("regex", pattern["Regex"], behavior, invert)
    if isinstance(pattern, dict) and isinstance(pattern.get("String"), str):
        return SplitRule("literal", pattern["String"], behavior, invert)
    raise UnsupportedTokenizerError("Split.pattern", pattern, "neither a Regex nor a String")
