"""The pretokenizer of a `tokenizer.json` as split rules on the text.

As in `tokenizers`, each step of a sequence splits the pieces of the step before. Where a step
rewrites the text (`Metaspace` writes `▁` for each space, and may prepend one; `ByteLevel` writes a
character for each byte), the rules after it are translated back, or refused where they can tell the
rewritten text from the original.

`Digits` after `ByteLevel` (as in Falcon) takes some bytes inside of characters for digits: `²` is
how the byte B2 is written, so `ò`, C3 B2, is two pieces. Boundaries inside characters are not
modelled. They do not matter if no token contains one (`split_bytes`), as BPE then never merges
across it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import tokenizers

from bpe_automata._budget import with_room
from bpe_automata.errors import BrokenTokenizerError, UnsupportedTokenizerError
from bpe_automata.tokenizer.alphabet import engine_class
from bpe_automata.tokenizer.description import Prefix, SplitRule
from bpe_automata.tokenizer.engines import Oniguruma
from bpe_automata.tokenizer.pattern import parse
from bpe_automata.tokenizer.pike import Program
from bpe_automata.tokenizer.sources.json_vocabulary import byte_to_char
from bpe_automata.tokenizer.sources.published import GPT2

Json = dict[str, Any]


SPLIT_SPACES = SplitRule("literal", " ", "mergedwithnext")
"""`Metaspace(split=True)`: every space begins a pretoken."""

_SCHEMES = {
    "always": Prefix.PIECE_UNLESS_SPACE,
    "first": Prefix.FIRST_UNLESS_SPACE,
    "never": Prefix.NONE,
}


@dataclass(frozen=True)
class Pretokenizer:
    """splitters: in order; byte_level: pretokens are UTF-8 bytes; prefix: the space that is
    prepended; space: the character that the vocabulary writes for a space, None if spaces remain
    spaces (no ids spell a text that contains that character itself); split_bytes: bytes with a
    boundary between them and all others; individually: also between each other."""

    splitters: tuple[SplitRule, ...] = ()
    byte_level: bool = False
    prefix: Prefix = Prefix.NONE
    space: str | None = None
    split_bytes: frozenset[int] = frozenset()
    individually: bool = False

    def check_split_bytes(self, tokens: Iterable[bytes | None], ignore_merges: bool) -> None:
        """Refuse a vocabulary for which boundaries inside characters matter. Raises
        UnsupportedTokenizerError."""
        if not self.split_bytes:
            return
        parts = bytes(self.split_bytes)
        for token in filter(None, tokens):
            inside = len(token) - len(token.translate(None, parts))
            if inside and len(token) > 1 and (self.individually or inside < len(token)):
                raise UnsupportedTokenizerError(
                    "pretokenizer",
                    "Digits after ByteLevel",
                    f"it splits between the bytes of the token {token!r}",
                )
        if ignore_merges:
            raise UnsupportedTokenizerError(
                "pretokenizer",
                "Digits after ByteLevel",
                "with ignore_merges a part of a character may be looked up whole",
            )


def read_pretokenizer(pretokenizer: Json | None, space: str | None = None) -> Pretokenizer:
    """The pretokenizer of this JSON. `space`: the character that the normalizer, which runs before,
    writes for every space (by a Replace of " " by "▁"), None if it writes none.

    Raises UnsupportedTokenizerError if it is not modelled exactly, BrokenTokenizerError if
    `tokenizers` does not load it.
    """
    if pretokenizer is None:
        return Pretokenizer(space=space)
    result = Pretokenizer(space=space)
    for number, step in enumerate(_flattened(_as_loaded(pretokenizer))):
        if result.byte_level:
            result = _after_byte_level(result, step)
        else:
            result = _followed_by(result, step, first=number == 0)
    return result


def _as_loaded(pretokenizer: Json) -> Json:
    """The pretokenizer as the library reads it, with all defaults and obsolete fields resolved."""
    blank = json.loads(tokenizers.Tokenizer(tokenizers.models.BPE()).to_str())
    try:
        loaded = tokenizers.Tokenizer.from_str(json.dumps(blank | {"pre_tokenizer": pretokenizer}))
    except Exception as error:  # the binding raises a bare Exception
        raise BrokenTokenizerError(
            f"tokenizers {tokenizers.__version__} does not load the pretokenizer {pretokenizer!r}: "
            f"{error}"
        ) from error
    step: Json = json.loads(loaded.to_str())["pre_tokenizer"]
    return step


def _flattened(step: Json) -> list[Json]:
    if step["type"] != "Sequence":
        return [step]
    return [part for inner in step["pretokenizers"] for part in _flattened(inner)]


def _followed_by(before: Pretokenizer, step: Json, first: bool) -> Pretokenizer:
    if step["type"] == "Metaspace":
        return _metaspace(before, step, first)
    if step["type"] == "ByteLevel":
        return _byte_level(before, step, first)
    rules = _rules(step)
    if before.space is not None:
        rules = [rule for r in rules for rule in _for_original(r, before.space, step)]
    return replace(before, splitters=(*before.splitters, *rules))


# ---------------------------------------------------------------- steps that rewrite the text


def _metaspace(before: Pretokenizer, step: Json, first: bool) -> Pretokenizer:
    space, prefix = step["replacement"], _SCHEMES[step["prepend_scheme"]]
    if before.space not in (None, space):
        raise UnsupportedTokenizerError(
            "Metaspace", step, f"the text's spaces are already written as {before.space!r}"
        )
    _refuse_late_prefix(step, prefix, first)
    rules = [SPLIT_SPACES] if step["split"] else []
    return replace(
        before,
        splitters=(*before.splitters, *rules),
        prefix=prefix if first else before.prefix,
        space=None if space == " " else space,
    )


def _byte_level(before: Pretokenizer, step: Json, first: bool) -> Pretokenizer:
    if before.space is not None or before.prefix != Prefix.NONE:
        raise UnsupportedTokenizerError(
            "ByteLevel", step, f"it comes after spaces were written as {before.space or ' '!r}"
        )
    prefix = Prefix.SPACE_FIRST if step["add_prefix_space"] else Prefix.NONE
    _refuse_late_prefix(step, prefix, first)
    rules = [SplitRule("regex", GPT2, "isolated")] if step["use_regex"] else []
    return Pretokenizer((*before.splitters, *rules), byte_level=True, prefix=prefix)


def _after_byte_level(before: Pretokenizer, step: Json) -> Pretokenizer:
    """A step that sees the characters that are written for bytes."""
    if step["type"] == "Digits":
        seen = {b for b, c in enumerate(byte_to_char()) if any(_members("digits", "", c))}
        rule = SplitRule(
            "regex", "[0-9]", "isolated" if step["individual_digits"] else "contiguous"
        )
        return replace(
            before,
            splitters=(*before.splitters, rule),
            split_bytes=before.split_bytes | frozenset(seen.difference(range(0x80))),
            individually=before.individually or step["individual_digits"],
        )
    if step["type"] == "Split" and _reads_ascii(rule := _split(step)):
        return replace(before, splitters=(*before.splitters, rule))
    raise UnsupportedTokenizerError(
        "pretokenizer", step, "it comes after ByteLevel, and would see mapped bytes"
    )


def _reads_ascii(rule: SplitRule) -> bool:
    """Does the rule test visible ASCII characters only, which ByteLevel does not change?"""
    if rule.kind == "literal":
        return all("!" <= c <= "~" for c in rule.pattern)
    classes = (engine_class(Oniguruma(), *each) for each in _classes(rule))
    return r"\A" not in rule.pattern and all(
        ranges.min(initial=0x21) >= 0x21 and ranges.max(initial=0) <= 0x7F for ranges in classes
    )


def _refuse_late_prefix(step: Json, prefix: Prefix, first: bool) -> None:
    if prefix != Prefix.NONE and not first:
        raise UnsupportedTokenizerError(
            "pretokenizer", step, "it puts a space before each piece of the step before it"
        )


def _for_original(rule: SplitRule, space: str, step: Json) -> list[SplitRule]:
    """The rule for the text in which spaces are not yet replaced by `space`."""
    if rule.kind == "literal":
        if " " not in rule.pattern:
            return [replace(rule, pattern=rule.pattern.replace(space, " "))]
        if rule.invert and rule.behavior == "removed":
            raise UnsupportedTokenizerError("Split", step, "no space is left, so all is removed")
        return []  # no space is left, so nothing is split
    if not all(_treats_alike(kind, pattern, space) for kind, pattern in _classes(rule)):
        raise UnsupportedTokenizerError(
            "pretokenizer", step, f"it sees {space!r} where the text has a space"
        )
    return [rule]


def _classes(rule: SplitRule) -> list[tuple[str, str]]:
    if rule.kind != "regex":
        return [(rule.kind, rule.pattern)]
    dialect = Oniguruma().dialect
    return with_room(lambda: Program(parse(rule.pattern, dialect), rule.pattern).classes)


def _treats_alike(kind: str, pattern: str, space: str) -> bool:
    """Are a space and `space` both in the class, or neither?"""
    return any(_members(kind, pattern, " ")) == any(_members(kind, pattern, space))


def _members(kind: str, pattern: str, text: str) -> Iterator[tuple[int, int]]:
    return Oniguruma().members(kind, pattern, text)


# ---------------------------------------------------------------- steps that only split


def _rules(step: Json) -> list[SplitRule]:
    match step["type"]:
        case "Digits":
            behavior = "isolated" if step["individual_digits"] else "contiguous"
            return [SplitRule("digits", "", behavior)]
        case "Punctuation":
            return [SplitRule("punctuation", "", step["behavior"].lower())]
        case "WhitespaceSplit":
            return [SplitRule("whitespace", "", "removed")]
        case "Whitespace":
            return [
                SplitRule("word_whitespace", "", "removed"),
                SplitRule("word", "", "contiguous"),
            ]
        case "BertPreTokenizer":
            return [
                SplitRule("bert_whitespace", "", "removed"),
                SplitRule("bert_punctuation", "", "isolated"),
            ]
        case "CharDelimiterSplit":
            return [SplitRule("literal", step["delimiter"], "removed")]
        case "FixedLength" if step["length"] > 0:
            return [SplitRule("regex", rf"[\s\S]{{1,{step['length']}}}", "isolated")]
        case "Split":
            return [_split(step)]
    raise UnsupportedTokenizerError("pretokenizer", step, "this kind is not modelled")


def _split(step: Json) -> SplitRule:
    ((kind, pattern),) = step["pattern"].items()
    name = "regex" if kind == "Regex" else "literal"
    return SplitRule(name, pattern, step["behavior"].lower(), step["invert"])
