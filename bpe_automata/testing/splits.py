"""Random pretokenizers out of those that are modelled, as parts of a `tokenizer.json`."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from bpe_automata.errors import BudgetExceededError, TokenizerError
from bpe_automata.testing.written import Json, byte_level, sequence, small_tokenizer, split
from bpe_automata.tokenizer.pipeline import compile_pipeline
from bpe_automata.tokenizer.read_pretokenizer import GPT2_PATTERN

BEHAVIORS = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PATTERNS: tuple[str, ...] = (
    GPT2_PATTERN,
    LLAMA3_PATTERN,
    *(r"\s+(?!\S)|\s+", r" ?\p{L}+", r"\p{N}{1,2}", r"[^\s]+|\s", r"\s*[\r\n]+|\s+", r".", r"a"),
    *(r"ab|b", r"a+?b", r"[ab]+(?=b)", r"(?:ab|a)(?!c)", r"b*a|ba+(?!\s)", r"(?i:ab?)", "c?b{2}"),
)
"""What deployed tokenizers split by, and small patterns that backtrack, leave gaps, look ahead."""

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
    """The engine loads it, it cannot match the empty string, and its hypotheses are few."""
    try:
        tokenizer = small_tokenizer("abc1 \n'é日", pretokenizer=split({"Regex": pattern}))
        compile_pipeline(tokenizer.description, tokenizer.backend.engine)
    except (TokenizerError, BudgetExceededError):
        return False
    return True


def pretokenizers(byte_alphabet: bool = True) -> st.SearchStrategy[Json | None]:
    """Up to two splitters, with ByteLevel at the end if asked for; None for nothing at all."""
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
