"""The normalizer of a `tokenizer.json`: its steps, the prefix, and how spaces are written.

Llama's is `Sequence[Prepend("▁"), Replace(" " -> "▁")]`, Gemma's is the `Replace` alone. Decoding
undoes both, so they are not among the steps: the text of this package is the text with spaces.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from tokenizers import Regex, normalizers

from bpe_automata.errors import BrokenTokenizerError, UnsupportedTokenizerError
from bpe_automata.tokenizer.description import Normalization, Prefix
from bpe_automata.tokenizer.unicode_forms import FORMS, TOKENIZERS, sibling, tokenizers_form

Json = dict[str, Any]

_BY_CHARACTER = ("Lowercase", "Nmt", "StripAccents")
_REFUSED = {
    "Precompiled": "its table maps sequences of characters (a Darts trie), not modelled",
    "BertNormalizer": "it puts spaces around Chinese characters, not modelled; if it only "
    "lowercases or strips accents, write it as Sequence[NFD, Lowercase, StripAccents]",
    "ByteLevel": "it writes bytes as letters before the pretokenizer sees the text, not modelled; "
    "use the ByteLevel pretokenizer",
}
_SPACE_MARK = "▁"


@dataclass(frozen=True)
class Normalizer:
    """steps: in order, without those that do nothing, and without two Unicode forms in a row;
    prefix: NONE or PIECE; space: the character that is written for a space after all steps, None
    if spaces remain spaces."""

    steps: tuple[Normalization, ...] = ()
    prefix: Prefix = Prefix.NONE
    space: str | None = None


def read_normalizer(normalizer: Json | None) -> Normalizer:
    """The normalizer of this JSON. Raises UnsupportedTokenizerError if it is not modelled,
    BrokenTokenizerError if `tokenizers` would not read it."""
    flat = _flattened(normalizer)
    prepended = [_text(part, "prepend") for part in flat if part.get("type") == "Prepend"]
    rest = [part for part in flat if part.get("type") != "Prepend"]
    space = _space(rest)
    others = [part for part in rest if _written_space(part) is None]
    steps = _collapsed([step for part in others for step in _step(part)])
    if prepended:
        _check_prepend(prepended, space, steps)
    for step in steps:
        if step.kind == "replace" and (space or _SPACE_MARK) in step.content:
            raise UnsupportedTokenizerError(
                "normalizer Replace", step.content, "it writes what stands for a space in tokens"
            )
    return Normalizer(steps, Prefix.PIECE if prepended else Prefix.NONE, space)


def _flattened(normalizer: Json | None) -> list[Json]:
    if normalizer is None:
        return []
    if normalizer.get("type") != "Sequence":
        return [normalizer]
    return [part for inner in normalizer.get("normalizers") or [] for part in _flattened(inner)]


# ---------------------------------------------------------------- spaces and the prefix


def _space(parts: list[Json]) -> str | None:
    """The character written for a space, which must be the last step; None if there is none."""
    written = [_written_space(part) for part in parts]
    for number, space in enumerate(written):
        if space is not None and number + 1 < len(parts):
            raise UnsupportedTokenizerError(
                "normalizer Sequence",
                [parts[number], parts[number + 1]],
                "the second would see spaces as what the first writes for them; not modelled",
            )
    return written[-1] if written else None


def _written_space(part: Json) -> str | None:
    """The character that this step writes for every space, None for any other step."""
    if part.get("type") != "Replace" or _pattern(part)[1] != " ":
        return None
    content = _text(part, "content")
    return content if len(content) == 1 and content != " " else None


def _check_prepend(
    prepended: list[str], space: str | None, steps: tuple[Normalization, ...]
) -> None:
    if prepended != [space]:
        why = f"only {space!r}, which stands for a space, once" if space else "no space is replaced"
        raise UnsupportedTokenizerError("normalizer Prepend", "".join(prepended), why)
    if steps:
        raise UnsupportedTokenizerError(
            "normalizer Sequence", ["Prepend", steps[0].kind], "this pair is not modelled"
        )


# ---------------------------------------------------------------- steps


def _step(part: Json) -> list[Normalization]:
    """The step, or no step if it does nothing. Raises UnsupportedTokenizerError."""
    kind = str(part.get("type"))
    if kind.lower() in FORMS:
        return [tokenizers_form(kind.lower())]
    if kind in _BY_CHARACTER:
        return [_by_character(kind)]
    if kind == "Strip":
        return _strip(bool(part.get("strip_left")), bool(part.get("strip_right")))
    if kind == "Replace":
        return _replace(part)
    raise UnsupportedTokenizerError(
        "normalizer", kind, _REFUSED.get(kind, "this kind is not known")
    )


@cache
def _by_character(kind: str) -> Normalization:
    apply = getattr(normalizers, kind)().normalize_str
    return Normalization("characters", apply, TOKENIZERS, name=kind)


def _strip(left: bool, right: bool) -> list[Normalization]:
    apply = normalizers.Strip(left=left, right=right).normalize_str
    step = Normalization("strip", apply, TOKENIZERS, left=left, right=right)
    return [step] if left or right else []


def _replace(part: Json) -> list[Normalization]:
    kind, source = _pattern(part)
    content = _text(part, "content")
    return [] if kind == "literal" and source == content else [_replacing(kind, source, content)]


def _replacing(kind: str, source: str, content: str) -> Normalization:
    try:
        made = normalizers.Replace(Regex(source) if kind == "regex" else source, content)
    except Exception as error:  # the binding raises a bare Exception
        raise BrokenTokenizerError(f"the regex engine rejects {source!r}: {error}") from error
    apply = made.normalize_str
    return Normalization("replace", apply, TOKENIZERS, pattern=(kind, source), content=content)


def with_apply(step: Normalization) -> Normalization:
    """The step with its `apply`, which is determined by its other fields."""
    if step.kind in FORMS:
        return sibling(step, step.kind)
    if step.kind == "characters":
        return _by_character(step.name)
    if step.kind == "strip":
        return _strip(step.left, step.right)[0]
    return _replacing(*step.pattern, step.content)


def _pattern(part: Json) -> tuple[str, str]:
    pattern = part.get("pattern")
    if isinstance(pattern, dict) and isinstance(pattern.get("Regex"), str):
        return "regex", pattern["Regex"]
    if isinstance(pattern, dict) and isinstance(pattern.get("String"), str):
        return "literal", pattern["String"]
    raise UnsupportedTokenizerError("Replace.pattern", pattern, "neither a Regex nor a String")


def _text(part: Json, field: str) -> str:
    value = part.get(field)
    if not isinstance(value, str):
        raise BrokenTokenizerError(f"normalizer {part.get('type')}: {field} is {value!r}, no text")
    return value


def _collapsed(steps: list[Normalization]) -> tuple[Normalization, ...]:
    """The steps, with Unicode forms in a row replaced by their composition: a compatibility form
    if any of them is, composed if the last is."""
    collapsed: list[Normalization] = []
    for step in steps:
        if collapsed and step.kind in FORMS and collapsed[-1].kind in FORMS:
            compatible = "k" in step.kind + collapsed[-1].kind
            step = tokenizers_form(f"nf{'k' if compatible else ''}{step.kind[-1]}")
            collapsed.pop()
        collapsed.append(step)
    return tuple(collapsed)
