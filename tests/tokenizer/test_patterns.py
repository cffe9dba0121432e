"""Split patterns in both dialects: the pieces are those of the engines themselves."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from readers import DEPLOYED, SplitMachine, own_pieces, readings_of, tiktoken_pieces
from support import examples
from tokenizers import Regex, pre_tokenizers

from bpe_automata._core.canonical import canonical_automaton
from bpe_automata._tokenizer.description import SplitRule
from bpe_automata._tokenizer.engines import FancyRegex, Oniguruma
from bpe_automata._tokenizer.pattern import parse
from bpe_automata._tokenizer.pike import Program
from bpe_automata.errors import BudgetExceededError, UnsupportedTokenizerError
from bpe_automata.testing import ADVERSARIAL, small_tokenizer

ADVERSE = st.lists(st.sampled_from(ADVERSARIAL), max_size=14).map("".join)
SMALL = st.text(st.sampled_from("aaabbbcAB1 \n'é日"), max_size=9)
BEHAVIORS = ("isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous")


def patterns(dialect):
    """Random patterns with every quantifier, look, anchor and flag that is modelled."""
    text_start = (r"\A", "^") if dialect == "fancy-regex" else (r"\A",)
    classes = ("a", "b", "c", " ", r"\s", r"\S", r"\p{L}", r"\p{N}", r"[^\s\p{L}]", "[ab]", ".")
    loose = ("", "", "", "", "?", "*", "+", "??", "*?", "+?", "{2}", "{1,2}", "{,2}", "{1,2}?")
    tight = ("?+", "*+", "++", "{1,2}+", "{2}+", "{2,}+", "{2}?")
    character = st.sampled_from(classes)
    quantified = st.builds(str.__add__, character, st.sampled_from(loose + tight))
    look = st.builds("({}{})".format, st.sampled_from(("?=", "?!")), character)
    edge = st.sampled_from(("$", r"\z", *text_start))

    def grouped(inner):
        group = st.builds("({}{})".format, st.sampled_from(("?:", "?:", "?i:", "")), _any_of(inner))
        return st.builds(str.__add__, group, st.sampled_from(loose))

    piece = st.recursive(st.one_of(*[quantified] * 6, look, edge), grouped, max_leaves=6)
    dot = {"oniguruma": "(?m)", "fancy-regex": "(?s)"}[dialect]
    return st.builds(str.__add__, st.sampled_from(("", "", "", "(?i)", dot)), _any_of(piece))


def _any_of(piece):
    branch = st.lists(piece, min_size=1, max_size=3).map("".join)
    return st.lists(branch, min_size=1, max_size=3).map("|".join)


def machine_of(rule, engine):
    """The machine; the example is dropped where the pattern is refused."""
    try:
        return SplitMachine([rule], engine)
    except (UnsupportedTokenizerError, BudgetExceededError):
        assume(False)


def onig_split(pattern, behavior="isolated", invert=False):
    try:
        return pre_tokenizers.Split(Regex(pattern), behavior, invert)
    except Exception:  # Oniguruma rejects it, so no tokenizer has it
        assume(False)


def fancy():
    """The rule and the engine of a tokenizer of tiktoken, which drops text between matches."""
    pytest.importorskip("tiktoken", reason="tiktoken is missing: pip install tiktoken")
    return lambda pattern: SplitRule("regex", pattern, "removed", invert=True), FancyRegex()


@pytest.mark.parametrize("name", DEPLOYED)
def test_deployed_patterns_in_oniguruma(name):
    step = onig_split(DEPLOYED[name])
    machine = SplitMachine([SplitRule("regex", DEPLOYED[name], "isolated")], Oniguruma())

    @examples(60)
    @given(ADVERSE)
    def law(text):
        assert machine.readings(text) == readings_of(own_pieces(step, text), text)

    law()


@pytest.mark.parametrize("name", DEPLOYED)
def test_deployed_patterns_in_fancy_regex(name):
    rule, engine = fancy()
    machine = SplitMachine([rule(DEPLOYED[name])], engine)

    @examples(40)
    @given(ADVERSE)
    def law(text):
        pieces = tiktoken_pieces(DEPLOYED[name], text)
        assert machine.readings(text) == readings_of(pieces, text)

    law()


@examples(60)
@given(
    patterns("oniguruma"),
    st.sampled_from(BEHAVIORS),
    st.booleans(),
    st.lists(SMALL, min_size=1, max_size=8),
)
def test_random_patterns_in_oniguruma(pattern, behavior, invert, some):
    step = onig_split(pattern, behavior, invert)
    rule = SplitRule("regex", pattern, behavior.replace("_", ""), invert)
    machine = machine_of(rule, Oniguruma())
    for text in some:
        assert machine.readings(text) == readings_of(own_pieces(step, text), text)


@examples(30)
@given(patterns("fancy-regex"), st.lists(SMALL, min_size=1, max_size=5))
def test_random_patterns_in_fancy_regex(pattern, some):
    rule, engine = fancy()
    machine = machine_of(rule(pattern), engine)
    for text in some:
        assert machine.readings(text) == readings_of(tiktoken_pieces(pattern, text), text)


AHEAD = [
    r"\d{1,3}(?=(?:\d{3})*\b)",  # Cohere2's and Aya's
    "a+(?=ab)",
    "b|a{1,2}?(?=(?:ab|b)*c)",
    "a|(?:a|ab|b)+(?=b*a)",
    "(?:ab)*a?b(?=a*(?:b|$))",
    "[ab]{1,3}(?=(?:[ab]{2})*(?!b))",
    "c|[ab]+(?=cc|(?:ba)+b)",
]


@pytest.mark.parametrize("pattern", AHEAD)
@pytest.mark.parametrize("behavior", ["isolated", "contiguous", "merged_with_next"])
def test_looking_ahead_at_the_end_of_a_pattern(pattern, behavior):
    step = onig_split(pattern, behavior)
    rule = SplitRule("regex", pattern, behavior.replace("_", ""))
    machine = SplitMachine([rule], Oniguruma())
    rng = random.Random(pattern)
    letters = "1234٣a_ .é" if "d" in pattern else "aabbc"
    texts = ["".join(rng.choices(letters, k=rng.randrange(13))) for _ in range(400)]
    cut = [own_pieces(step, text) for text in texts]
    assert any(len(pieces) > 2 for pieces in cut)
    for text, pieces in zip(texts, cut, strict=True):
        assert machine.readings(text) == readings_of(pieces, text), text


@pytest.mark.parametrize("dialect", ["oniguruma", "fancy-regex"])
@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a{1,2}+a|a|b", "aaaab"),
        ("a{2}?b|a|b", "aabab"),
        ("a{2}+a|a", "aaaaa"),
        ("a{,2}b|a", "aaab"),
        (r"a$|a|\n", "a\na\n"),
        (r"a\z|a|\n", "a\na\na"),
        (r"\Aa+|a|b", "aabaa"),
        (r"a?+a|a", "aaa"),
        (r".+|\n", "a\r\nb\u2028c\n"),
        (r"\x41|\x{e9}|\u65e5|\s", "Aé日 "),
        (r"(?i)k+|(?-i:b)|B", "kKKbB"),
        (r"(?:ab)+?a|b|a", "ababab"),
    ],
)
def test_where_the_dialects_differ_each_is_followed(pattern, text, dialect):
    if dialect == "oniguruma":
        rule, engine = SplitRule("regex", pattern, "removed", invert=True), Oniguruma()
        pieces = own_pieces(onig_split(pattern, "removed", invert=True), text)
    else:
        build, engine = fancy()
        rule, pieces = build(pattern), tiktoken_pieces(pattern, text)
    assert SplitMachine([rule], engine).readings(text) == readings_of(pieces, text)


FOLDED = st.lists(st.sampled_from(("s", "t", "f", "i", "k", "[si]", "s+", "(?:f|ʼ)", "(?-i:s)")))
FOLDING = st.text(st.sampled_from("sStTfiIkKßẞſﬀﬁﬃﬅﬆʼ"), max_size=7)


@examples(60)
@given(FOLDED, st.lists(FOLDING, min_size=1, max_size=8))
def test_random_runs_without_regard_to_case(letters, some):
    pattern = f"(?i:{''.join(letters)})|."
    machine = machine_of(SplitRule("regex", pattern, "isolated"), Oniguruma())
    for text in some:
        pieces = own_pieces(onig_split(pattern), text)
        assert machine.readings(text) == readings_of(pieces, text)


@pytest.mark.parametrize("dialect", ["oniguruma", "fancy-regex"])
@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"\bx", r"escape \\b"),
        (r"x\Z", r"escape \\Z"),
        (r"\R", r"escape \\R"),
        (r"\X", r"escape \\X"),
        (r"\Ga", r"escape \\G"),
        (r"a\K", r"escape \\K"),
        (r"(a)\1", r"escape \\1"),
        ("(?<=a)b", "kind of group"),
        ("(?<n>a)", "kind of group"),
        ("(?>ab)", "kind of group"),
        ("(?x)a b", "flag 'x'"),
        ("a(?i)b", "flags are modelled at the beginning"),
        ("(?=ab)a", "one character"),
        ("a(?!ab)", "one character"),
        ("a(?=ab)|b", "one character"),
        ("(?:a(?=ab))+", "one character"),
        (r"\p{P}+(?=a+\b)", r"after anything but"),
        ("(?=a)?a", "repeated lookahead"),
        ("a**", "stacked"),
        ("a{2}{3}", "stacked"),
        ("(?:ab)++", "possessive"),
        ("(?:a?)*b", "endless repetition"),
        ("a{2,1}", "from more to fewer"),
        ("a{", "malformed"),
        ("a{1001}", "repetition over"),
        ("[]a]", r"'\]' at the beginning"),
        ("[a", r"missing '\]'"),
        ("a)", "unbalanced"),
        ("(a", r"missing '\)'"),
        (r"\x{110000}", "no character"),
    ],
)
def test_what_is_not_modelled_is_refused_by_name(pattern, why, dialect):
    with pytest.raises(UnsupportedTokenizerError, match=why):
        parse(pattern, dialect)


# ---------------------------------------------------------------- deep and long patterns


def nested(levels, begin, end, inside=""):
    return begin * levels + inside + end * levels + "|."


@pytest.mark.parametrize("inside", ["a", "", "[ab]c"])
def test_what_counts_write_out_is_bounded(inside):
    source = nested(40, "(?:", "){1000}", inside)
    with pytest.raises(UnsupportedTokenizerError, match="over 100,000 parts: use smaller counts"):
        Program(parse(source, "oniguruma"), source)


@pytest.mark.parametrize("calls", [0, 300, 700])
def test_a_pattern_is_read_or_refused_on_any_stack(calls):
    def below(left, pattern):
        if left:
            return below(left - 1, pattern)
        split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}
        made = small_tokenizer(["a", "b"], pretokenizer={**split, "invert": False})
        return canonical_automaton(made).accepts(made.encode("ab"))

    assert below(calls, nested(50, "(?:b|", ")+", "a"))
    with pytest.raises(UnsupportedTokenizerError, match="over 50 groups"):
        below(calls, nested(51, "(?:b|", ")+", "a"))
