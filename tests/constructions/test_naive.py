"""The naive engine (every token tried with a partial match of `regex`) has the lift's masks at each
prefix; and where the package is wrong about partial matches."""

from __future__ import annotations

import re

import pytest
import regex
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata import compile_regex, constrain
from bpe_automata.constructions import Lift
from bpe_automata.decoding.constraint import rebuilt
from bpe_automata.errors import (
    ArgumentError,
    EmptyLanguageError,
    TokenOutOfRangeError,
    UnsupportedFeatureError,
    UnsupportedRegexError,
    UnsupportedTokenizerError,
)
from bpe_automata.kernels.bits import members
from bpe_automata.models import NGramModel, character_tokenizer
from bpe_automata.reference import Naive, naive_constraint
from bpe_automata.reference.naive import _characters
from bpe_automata.sampling import decode
from bpe_automata.testing import (
    byte_level,
    byte_spelling,
    cyclic_regexes,
    finite_regexes,
    small_tokenizer,
)

PIECES = ("a", "b", "ab", "é", "1", "日")
# Classes too, but all of them hold characters that the vocabulary below spells.
CLASSES = (".", "[^a]", r"\d", "[ab]", "(?i:B)", "[^日é]", r"\S")
FRAGMENTS = [b"ab", b"ba", b"a\xc3", b"\xa9b", b"\xe6\x97", b"\x97\xa5", b"\xa5a", b"\xc3\xa9\xe6"]


def byte_tokenizer(texts=PIECES, fragments=FRAGMENTS):
    """Every byte of the texts, and pieces that end or begin inside a character."""
    single = sorted({bytes([byte]) for text in texts for byte in text.encode()})
    spelled = [byte_spelling(token) for token in [*single, *fragments]]
    return small_tokenizer(spelled, [], byte_level(), ["<end>", "1a"])


TOKENIZER = byte_tokenizer()
SMALLER = byte_tokenizer(PIECES[:-1], FRAGMENTS[:4])  # a lone byte of `日` takes 4,096 matches
END = TOKENIZER.n_ids - 2


def different(naive, lift, depth, limit=150):
    """The first text after which the masks, or acceptance, differ; None if there is none."""
    stack, seen = [(naive.initial(), lift.initial(), 0)], set()
    while stack and len(seen) < limit:
        text, state, length = stack.pop(0)
        allowed = members(naive.mask(text)).tolist()
        if allowed != members(lift.mask(state)).tolist():
            return text
        if naive.accepting(text) != lift.accepting(state):
            return text
        assert allowed == [i for i in range(lift.n_ids) if naive.allows(text, i)]
        assert naive.dfa_state(text) == lift.dfa_state(state)
        for token in allowed:
            after = naive.step(text, token)
            if token not in naive.eos_ids and after not in seen and length < depth:
                seen.add(after)
                stack.append((after, lift.step(state, token), length + 1))
    return None


def patterns(pieces, classes):
    plain = st.one_of(cyclic_regexes(pieces), finite_regexes(pieces))
    classed = st.tuples(plain, st.sampled_from(classes), plain)
    return st.one_of(plain, classed.map(lambda three: "({}){}({})".format(*three)))


@examples(40)
@given(patterns(PIECES[:-1], CLASSES[:-2]))
def test_the_masks_are_those_of_the_lift(pattern):
    end = SMALLER.n_ids - 2
    lift = Lift(SMALLER, compile_regex(pattern), (end,))
    assert different(Naive(SMALLER, pattern, (end,)), lift, depth=4) is None


@examples(3)
@given(patterns(PIECES, CLASSES))
def test_also_inside_longer_characters(pattern):
    lift = Lift(TOKENIZER, compile_regex(pattern), (END,))
    assert different(Naive(TOKENIZER, pattern, (END,)), lift, depth=4, limit=40) is None


@pytest.mark.long
@pytest.mark.parametrize("pattern", ["a🎉|b", "[^🎉]🎉", r"(🎉|🎊){2}x", r"\S{2}"])
def test_characters_of_four_bytes(pattern):
    tokenizer = byte_tokenizer(("a", "b", "x", "🎉", "🎊"), [b"\x9f\x8e", b"a\xf0", b"\xf0\x9f"])
    naive = Naive(tokenizer, pattern)
    assert different(naive, Lift(tokenizer, naive.dfa), depth=3, limit=40) is None


def test_half_a_character():
    tokenizer = byte_tokenizer(("a", "é", "è"), [])
    e9, a, half = tokenizer.encode("é")[1], tokenizer.encode("a")[0], tokenizer.encode("é")[0]
    naive = Naive(tokenizer, "aé|è")
    assert members(naive.mask(b"")).tolist() == sorted([a, half])
    assert members(naive.mask(b"a")).tolist() == [half]
    assert members(naive.mask(b"a\xc3")).tolist() == [e9]
    assert e9 not in members(naive.mask(b"\xc3"))
    assert not naive.accepting(b"a\xc3")
    assert naive.accepting("aé".encode())


BEGINNINGS = [
    *(b"\xc3", b"\xdf", b"\xe0", b"\xe6\x97", b"\xed", b"\xef\xbf", b"\xf0\x9f", b"\xf0\x80"),
    *(b"\xf4\x8f\xbf", b"\xf4", b"\xc0", b"\x80", b"\xf5", b"\xe6a", b"\xc3\xa9", b"\xff"),
]


def test_the_characters_that_bytes_begin():
    longer = {beginning: [] for beginning in BEGINNINGS}
    for code in range(0x80, 0x110000):
        if not 0xD800 <= code < 0xE000:
            spelled = chr(code).encode()
            for length in range(1, len(spelled)):
                if spelled[:length] in longer:
                    longer[spelled[:length]].append(chr(code))
    for beginning in BEGINNINGS:
        assert list(_characters(beginning)) == longer[beginning]


def test_it_decodes_like_the_lift():
    tokenizer = character_tokenizer("abcd ")
    model = NGramModel.train(tokenizer, ["a bad cab", "dad"], order=3)
    naive = naive_constraint(tokenizer, "[abcd]{2,4} (cab|dad)")
    lift = constrain(tokenizer, "[abcd]{2,4} (cab|dad)", method="lift")
    for seed in range(5):
        assert decode(model, naive, seed=seed) == decode(model, lift, seed=seed)


def test_it_is_not_rebuilt_as_another_engine():
    """Healing and bans would answer for the lift where the naive engine was asked for."""
    tokenizer = character_tokenizer("ab")
    naive = naive_constraint(tokenizer, "a(b|c)|bc")
    for constraint in (naive, naive.within(3)):
        with pytest.raises(UnsupportedFeatureError, match="engine Naive"):
            rebuilt(constraint, compile_regex("ab"))


@pytest.mark.parametrize("method", ["lift", "canonical"])
def test_a_budget_is_rebuilt(method):
    constraint = constrain(character_tokenizer("ab"), "a+", method)
    longest = {}
    for name, old in (("plain", constraint), ("within", constraint.within(4).within(2))):
        matcher = rebuilt(old, compile_regex("b+")).matcher()
        while matcher.allows(1) and len(matcher.ids) < 9:
            matcher.advance(1)
        longest[name] = len(matcher.ids)
    assert longest == {"plain": 9, "within": 2}


# ---------------------------------------------------------------- where it may not be trusted


def goes_on(pattern, text):
    return regex.fullmatch(pattern, text, partial=True) is not None


@pytest.mark.parametrize(
    ("lazy", "text"), [("a+?b", "ac"), ("a*?b", "ac"), ("[bc]a??c", "bb"), ("a{1,2}?c", "aaa")]
)
def test_regex_is_wrong_after_a_lazy_repetition(lazy, text):
    """It says that some text beginning so matches; none does, and without the `?` it knows."""
    assert goes_on(lazy, text), "regex has been repaired: laziness need not be refused any more"
    assert not goes_on(re.sub(r"(?<=[*+?}])\?", "", lazy), text)
    dfa = compile_regex(lazy)
    assert dfa.walk(text.encode(), dfa.start) == 0
    with pytest.raises(UnsupportedRegexError, match="lazy"):
        Naive(TOKENIZER, lazy)


@pytest.mark.parametrize("nested", ["(x(a+?)y|b)", "(?i:a*?)b", "((a??b){2})*"])
def test_laziness_is_found_where_it_hides(nested):
    with pytest.raises(UnsupportedRegexError, match="lazy"):
        Naive(TOKENIZER, nested)


def test_regex_does_not_know_parts_that_match_nothing():
    assert goes_on(r"a|b[^\s\S]", "b")
    naive, lift = Naive(TOKENIZER, r"a|b[^\s\S]"), constrain(TOKENIZER, r"a|b[^\s\S]", "lift")
    assert different(naive, lift.engine, depth=2) == b""


def test_it_does_not_know_the_vocabulary():
    """`ac` has no `c` to be spelled with: the lift knows, a partial match cannot."""
    tokenizer = character_tokenizer("ab")
    naive, lift = Naive(tokenizer, "a(b|c)|bc"), Lift(tokenizer, compile_regex("a(b|c)|bc"))
    assert members(naive.mask(b"")).tolist() == [0, 1]
    assert members(lift.mask(lift.initial())).tolist() == [0]


def test_its_language_is_that_of_regex():
    """U+00B2 is alphanumeric to `re`, no word character to `regex`."""
    tokenizer = character_tokenizer("a²")
    assert re.fullmatch(r"\w", "²")
    assert not regex.fullmatch(r"\w", "²")
    naive = Naive(tokenizer, r"\w")
    assert members(naive.mask(b"")).tolist() == [0]
    assert members(Lift(tokenizer, naive.dfa).mask(naive.dfa.start)).tolist() == [0, 1]


def test_what_is_refused():
    with pytest.raises(EmptyLanguageError):
        Naive(TOKENIZER, r"[^\s\S]")
    with pytest.raises(UnsupportedRegexError):
        Naive(TOKENIZER, "a(?=b)b")
    with pytest.raises(TokenOutOfRangeError):
        Naive(TOKENIZER, "a").initial([99])
    with pytest.raises(ArgumentError, match="prompt id"):
        Naive(TOKENIZER, "a").initial("a")
    for wrong in (999, -1):
        with pytest.raises(TokenOutOfRangeError, match="end-of-sequence id"):
            naive_constraint(TOKENIZER, "a", (wrong,))
    with pytest.raises(ArgumentError, match="end-of-sequence id"):
        naive_constraint(TOKENIZER, "a", (0.5,))
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    steps = [{"type": "Prepend", "prepend": "▁"}, replace]
    spaced = small_tokenizer(["▁", "a"], normalizer={"type": "Sequence", "normalizers": steps})
    with pytest.raises(UnsupportedTokenizerError, match="prefix"):
        Naive(spaced, "a")
