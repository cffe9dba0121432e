"""Small tokenizers, explicit ones and random ones, as the content of a `tokenizer.json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from hypothesis import strategies as st

from bpe_automata.canonical.canonical import canonical_automaton
from bpe_automata.errors import (
    BudgetExceededError,
    EncodingError,
    TokenizerError,
    UnsupportedTokenizerError,
)
from bpe_automata.tokenizer.pipeline import compile_pipeline
from bpe_automata.tokenizer.sources.json_vocabulary import byte_to_char
from bpe_automata.tokenizer.sources.published import GPT2, LLAMA3
from bpe_automata.tokenizer.tokenizer import Tokenizer

Json = dict[str, Any]


def byte_spelling(data: bytes) -> str:
    """The bytes as a ByteLevel tokenizer writes them."""
    return "".join(byte_to_char()[byte] for byte in data)


def byte_level(use_regex: bool = False) -> Json:
    """The ByteLevel pretokenizer, with or without the pattern of GPT-2."""
    options = {"add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}
    return {"type": "ByteLevel", **options}


def split(pattern: Json, behavior: str = "Isolated", invert: bool = False) -> Json:
    """A Split pretokenizer; `pattern`: {"Regex": ...} or {"String": ...}."""
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def sequence(*steps: Json) -> Json | None:
    """Several pretokenizers in order; None for no step at all."""
    return {"type": "Sequence", "pretokenizers": list(steps)} if steps else None


def matching_decoder(
    normalizer: Json | None, pretokenizer: Json | None, byte_fallback: bool = False
) -> Json:
    """The decoder that inverts this normalizer and pretokenizer."""
    steps = [*_steps(normalizer, "normalizers"), *_steps(pretokenizer, "pretokenizers")]
    kinds = {step["type"]: step for step in steps}
    if "ByteLevel" in kinds:
        return byte_level()
    decoders: list[Json] = []
    prepends, meta = "Prepend" in kinds, kinds.get("Metaspace")
    if meta is not None and meta.get("split", True):
        decoders.append(meta)
    elif meta is not None:
        space = {"String": meta["replacement"]}
        decoders.append({"type": "Replace", "pattern": space, "content": " "})
        prepends |= meta["prepend_scheme"] != "never"
    for step in steps:
        pattern = step.get("pattern") or {}
        if step["type"] == "Replace" and pattern.get("String") == " ":
            decoders.append({**step, "pattern": {"String": step["content"]}, "content": " "})
    if byte_fallback:
        decoders.append({"type": "ByteFallback"})
    decoders.append({"type": "Fuse"})
    if prepends:
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return {"type": "Sequence", "decoders": decoders}


def _steps(component: Json | None, field: str) -> list[Json]:
    if component is None:
        return []
    parts = component.get(field) if component.get("type") == "Sequence" else None
    return [component] if parts is None else [s for part in parts for s in _steps(part, field)]


def added_token(content: str, **flags: bool) -> Json:
    """An added token without its id; `flags`: those that are set."""
    unset = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return {"content": content, **unset, **flags}


def small_tokenizer(
    vocabulary: Sequence[str],
    merges: Sequence[tuple[str, str]] = (),
    pretokenizer: Json | None = None,
    added: Sequence[str | Json] = (),
    normalizer: Json | None = None,
    decoder: Json | None = None,
    **model: Any,
) -> Tokenizer:
    """A tokenizer. `vocabulary`: its tokens in order of their ids; `merges`: by rank, both as the
    file spells them; `added`: added tokens, or only their contents; `decoder`: `matching_decoder`
    by default; `model`: fields such as `ignore_merges`."""
    fallback = bool(model.get("byte_fallback"))
    decoder = decoder or matching_decoder(normalizer, pretokenizer, fallback)
    entries = [added_token(entry) if isinstance(entry, str) else entry for entry in added]
    contents = [entry["content"] for entry in entries]
    ids = {token: number for number, token in enumerate(dict.fromkeys([*vocabulary, *contents]))}
    numbered = [{"id": ids[entry["content"]], **entry} for entry in entries]
    return Tokenizer.from_json(
        {
            "version": "1.0",
            "added_tokens": sorted(numbered, key=lambda entry: int(entry["id"])),
            "normalizer": normalizer,
            "pre_tokenizer": pretokenizer,
            "post_processor": None,
            "decoder": decoder,
            "model": {
                "type": "BPE",
                "vocab": {token: ids[token] for token in vocabulary},
                "merges": [list(pair) for pair in merges],
                **model,
            },
        }
    )


# ---------------------------------------------------------------- random merge tables

LONGEST_TOKEN = 8


@dataclass(frozen=True)
class MergeTable:
    """`vocabulary`: tokens in order of their ids; `merges`: pairs of tokens in order of rank."""

    vocabulary: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]


@st.composite
def merge_tables(
    draw: st.DrawFn,
    symbols: tuple[str, ...] = ("a", "b", "c"),
    max_merges: int = 14,
    shuffled: bool = False,
) -> MergeTable:
    """A table over `symbols` (single characters). Each merge joins tokens that earlier merges made;
    some tokens are made by several merges, some by none. `shuffled`: the merges are in any order,
    some are listed more than once, and most tables are improper.
    """
    tokens = list(symbols)
    merges: dict[tuple[str, str], None] = {}
    for _ in range(draw(st.integers(0, max_merges))):
        left, right = draw(st.sampled_from(tokens)), draw(st.sampled_from(tokens))
        if len(left + right) > LONGEST_TOKEN:
            continue
        merges.setdefault((left, right))
        if left + right not in tokens:
            tokens.append(left + right)
    word = st.text(st.sampled_from(symbols), min_size=2, max_size=4)
    unmade = draw(st.lists(word, max_size=3))
    vocabulary = draw(st.permutations(list(dict.fromkeys([*tokens, *unmade]))))
    listed = tuple(merges)
    if shuffled and listed:
        repeated = draw(st.lists(st.sampled_from(listed), max_size=3))
        listed = tuple(draw(st.permutations([*listed, *repeated])))
    return MergeTable(tuple(vocabulary), listed)


# ---------------------------------------------------------------- random pretokenizers

BEHAVIORS = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
PATTERNS: tuple[str, ...] = (
    GPT2,
    LLAMA3,
    *(r"\s+(?!\S)|\s+", r" ?\p{L}+", r"\p{N}{1,2}", r"[^\s]+|\s", r"\s*[\r\n]+|\s+", r".", r"a"),
    *(r"ab|b", r"a+?b", r"[ab]+(?=b)", r"(?:ab|a)(?!c)", r"b*a|ba+(?!\s)", r"(?i:ab?)", "c?b{2}"),
)
"""Patterns of deployed tokenizers, and small ones that backtrack, leave gaps, look ahead."""

_CLASSES = ("a", "b", "c", " ", r"\s", r"\S", r"\p{L}", r"\p{N}", r"[^\s\p{L}]", r"[ab]", ".")
_QUANTIFIERS = ("", "", "", "?", "*", "+", "??", "*?", "+?", "{2}", "{1,2}", "{2,}")


def split_patterns() -> st.SearchStrategy[str]:
    """A pattern that is deployed somewhere, or a random one that is modelled."""
    character = st.sampled_from(_CLASSES)
    quantifier = st.sampled_from(_QUANTIFIERS)
    quantified = st.builds(str.__add__, character, quantifier)
    look = st.builds("({}{})".format, st.sampled_from(("?=", "?!")), character)

    def grouped(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.builds("(?:{}){}".format, _alternation(inner), quantifier)

    piece = st.recursive(st.one_of(quantified, quantified, look), grouped, max_leaves=6)
    return st.one_of(st.sampled_from(PATTERNS), _alternation(piece).filter(_is_modelled))


def _alternation(piece: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    branch = st.lists(piece, min_size=1, max_size=3).map("".join)
    return st.lists(branch, min_size=1, max_size=3).map("|".join)


@cache
def _is_modelled(pattern: str) -> bool:
    """Whether the engine accepts the pattern, it never matches the empty string, and it has few
    hypotheses."""
    try:
        tokenizer = small_tokenizer("abc1 \n'é日", pretokenizer=split({"Regex": pattern}))
        compile_pipeline(tokenizer.description, tokenizer.backend.engine)
    except (TokenizerError, BudgetExceededError):
        return False
    return True


def pretokenizers(byte_alphabet: bool = True) -> st.SearchStrategy[Json | None]:
    """Up to two splitters, followed by ByteLevel with `byte_alphabet`; None for no step at all."""
    splits = st.lists(st.one_of(_splits(), _splits(), _digits()), max_size=2)
    if not byte_alphabet:
        return splits.map(lambda steps: sequence(*steps))
    last = st.booleans().map(byte_level)
    return st.builds(lambda steps, end: sequence(*steps, end), splits, last)


def _splits() -> st.SearchStrategy[Json]:
    pattern = st.one_of(
        split_patterns().map(lambda source: {"Regex": source}),
        st.sampled_from(("a", "ab", " ", ".", "日")).map(lambda text: {"String": text}),
    )
    return st.builds(split, pattern, st.sampled_from(BEHAVIORS), st.booleans())


def _digits() -> st.SearchStrategy[Json]:
    return st.booleans().map(lambda each: {"type": "Digits", "individual_digits": each})


# ---------------------------------------------------------------- random tokenizers

CHARACTERS = ("a", "b", "c", " ", "1", "\n", "'", "s", "S", "é", "日", "本", "🎉")
ADDED = ("<|", "<|a|>", "a|>b", "|>", "ab", "b", "abc", "bca", " a", "日", "本1", "<", "xa", "ay")


@st.composite
def bpe_tokenizers(draw: st.DrawFn, max_merges: int = 14) -> Tokenizer:
    """A tokenizer with some 5 to 40 ids and everything that is modelled: the byte alphabet (some
    bytes missing) or characters, several splitters with every behaviour, added tokens that overlap,
    `ignore_merges` with tokens that no merge makes, merges out of order. The few that are refused
    (too many hypotheses of several splitters, tokens with missing bytes) are left out."""
    byte_alphabet = draw(st.booleans())
    characters = draw(st.lists(st.sampled_from(CHARACTERS), min_size=2, max_size=5, unique=True))
    if byte_alphabet:
        characters = list(dict.fromkeys(byte_spelling("".join(characters).encode())))
    if len(characters) > 3 and draw(st.booleans()):
        characters.pop(draw(st.integers(0, len(characters) - 1)))
    shuffled = draw(st.sampled_from((False, False, True)))
    table = draw(merge_tables(tuple(characters), max_merges, shuffled))
    pretokenizer = draw(pretokenizers(byte_alphabet))
    contents = draw(st.lists(st.sampled_from(ADDED), max_size=3, unique=True))
    added = [added_token(content, special=draw(st.booleans())) for content in contents]
    ignore = draw(st.booleans())
    try:
        tokenizer = small_tokenizer(
            table.vocabulary, table.merges, pretokenizer, added, ignore_merges=ignore
        )
        canonical_automaton(tokenizer)
    except (UnsupportedTokenizerError, BudgetExceededError, EncodingError):
        return draw(st.nothing())
    return tokenizer
