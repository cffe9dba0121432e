"""Split patterns in both dialects, and every pretokenizer of `tokenizers`: of a text exactly one
reading survives, whose pieces are those of the libraries themselves; or the step is refused."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
import tokenizers
from hypothesis import assume, given
from hypothesis import strategies as st
from support import examples
from support.sources import CL100K
from support.steps import BEHAVIORS, DEPLOYED, metaspace, prefixed

from bpe_automata.canonical.canonical import canonical_automaton
from bpe_automata.errors import BudgetExceededError, UnsupportedTokenizerError
from bpe_automata.reference import readings
from bpe_automata.testing import byte_level, sequence, small_tokenizer, split, texts
from bpe_automata.tokenizer.description import Prefix, SplitRule
from bpe_automata.tokenizer.engines import FancyRegex, Oniguruma
from bpe_automata.tokenizer.pattern import parse
from bpe_automata.tokenizer.pike import Program
from bpe_automata.tokenizer.pipeline import compile_pipeline
from bpe_automata.tokenizer.sources.json_pretokenizer import Pretokenizer, read_pretokenizer
from bpe_automata.tokenizer.sources.json_vocabulary import byte_to_char, char_to_byte

TIKTOKEN_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
PUBLISHED = {**dict(DEPLOYED), "gpt2 of tiktoken": TIKTOKEN_GPT2, "cl100k": CL100K}
EVERY_BYTE = small_tokenizer(byte_to_char(), (), byte_level()).description


def readings_by(rules, engine):
    """A function that gives the readings of a text by these rules: their boundaries, as character
    indexes, 0 included. The example is dropped where a rule is refused."""
    try:
        pipeline = compile_pipeline(replace(EVERY_BYTE, splitters=tuple(rules)), engine)
    except (UnsupportedTokenizerError, BudgetExceededError):
        assume(False)
    return lambda text: readings(pipeline, text)


def readings_of(pieces: list[str], text: str) -> list[tuple[int, ...]]:
    """What there must be of `text`, whose pieces these are: nothing if some text is lost."""
    if "".join(pieces) != text:
        return []
    lengths = [len(piece) for piece in pieces]
    return [tuple(sum(lengths[:k]) for k in range(len(lengths)))]


def own_pieces(pretokenizer, text: str) -> list[str]:
    """What a pretokenizer of `tokenizers` that only splits makes of `text`."""
    return [text[start:end] for _, (start, end) in pretokenizer.pre_tokenize_str(text)]


def tiktoken_pieces(pattern: str, text: str) -> list[str]:
    """What `tiktoken` splits `text` into. It does not say; but a piece that is in the vocabulary
    becomes one token, so the vocabulary holds every part of the text."""
    import tiktoken

    data = text.encode()
    parts = {data[i:j] for i in range(len(data)) for j in range(i + 1, len(data) + 1)}
    ranks = {part: k for k, part in enumerate(sorted(parts | {bytes([b]) for b in range(256)}))}
    encoding = tiktoken.Encoding("parts", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    ids = encoding.encode_ordinary(text)
    return [encoding.decode_single_token_bytes(i).decode() for i in ids]


SMALL = st.text(st.sampled_from("aaabbbcAB1 \n'é日"), max_size=9)


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


def both(dialect, pattern, behavior="Isolated", invert=False):
    """Our readings, and the library's pieces. tiktoken drops the text between matches."""
    if dialect == "fancy-regex":
        pytest.importorskip("tiktoken", reason="tiktoken is missing: pip install tiktoken")
        rule = SplitRule("regex", pattern, "removed", invert=True)
        return readings_by([rule], FancyRegex()), lambda text: tiktoken_pieces(pattern, text)
    try:
        step = backend(split({"Regex": pattern}, behavior, invert))
    except Exception:  # Oniguruma rejects it, so no tokenizer has it
        assume(False)
    rule = SplitRule("regex", pattern, behavior.lower(), invert)
    return readings_by([rule], Oniguruma()), lambda text: own_pieces(step, text)


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("dialect", ["oniguruma", "fancy-regex"])
def test_deployed_patterns(dialect, name):
    read, pieces = both(dialect, PUBLISHED[name])

    @examples(50)
    @given(texts())
    def law(text):
        assert read(text) == readings_of(pieces(text), text)

    law()


OPTIONS = st.tuples(st.sampled_from(BEHAVIORS), st.booleans())


@pytest.mark.parametrize("dialect", ["oniguruma", "fancy-regex"])
@examples(25)
@given(st.data(), OPTIONS, st.lists(SMALL, min_size=1, max_size=8))
def test_random_patterns(dialect, data, options, some):
    """Priorities, lazy and nested repetition, lookahead: as the regex engine backtracks."""
    read, pieces = both(dialect, data.draw(patterns(dialect)), *options)
    for text in some:
        assert read(text) == readings_of(pieces(text), text)


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
@pytest.mark.parametrize("behavior", ["Isolated", "Contiguous", "MergedWithNext"])
def test_looking_ahead_at_the_end_of_a_pattern(pattern, behavior):
    read, pieces = both("oniguruma", pattern, behavior)
    rng = random.Random(pattern)
    letters = "1234٣a_ .é" if "d" in pattern else "aabbc"
    some = ["".join(rng.choices(letters, k=rng.randrange(13))) for _ in range(400)]
    assert any(len(pieces(text)) > 2 for text in some)
    for text in some:
        assert read(text) == readings_of(pieces(text), text), text


@pytest.mark.parametrize("dialect", ["oniguruma", "fancy-regex"])
@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a{1,2}+a|a|b", "aaaab"),
        ("a{2}?b|a|b", "aabab"),
        ("a{2}+a|a", "aaaaa"),
        (r"(?:ab)+?a|b|a", "ababab"),
        (r"a$|a|\n", "a\na\n"),
        (r".+|\n", "a\r\nb\u2028c\n"),
        (r"\x41|\x{e9}|\u65e5|\s", "Aé日 "),
        (r"(?i)k+|(?-i:b)|B", "kKKbB"),
    ],
)
def test_where_the_dialects_differ_each_is_followed(pattern, text, dialect):
    read, pieces = both(dialect, pattern, "Removed", True)
    assert read(text) == readings_of(pieces(text), text)


FOLDED = st.lists(st.sampled_from(("s", "t", "f", "i", "k", "[si]", "s+", "(?:f|ʼ)", "(?-i:s)")))
FOLDING = st.text(st.sampled_from("sStTfiIkKßẞſﬀﬁﬃﬅﬆʼ"), max_size=7)


@examples(60)
@given(FOLDED, st.lists(FOLDING, min_size=1, max_size=8))
def test_random_runs_without_regard_to_case(letters, some):
    read, pieces = both("oniguruma", f"(?i:{''.join(letters)})|.")
    for text in some:
        assert read(text) == readings_of(pieces(text), text)


@pytest.mark.parametrize("dialect", ["oniguruma", "fancy-regex"])
@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"x\Z", r"escape \\Z"),
        (r"\R", r"escape \\R"),
        (r"\X", r"escape \\X"),
        (r"\Ga", r"escape \\G"),
        (r"a\K", r"escape \\K"),
        ("(?<n>a)", "kind of group"),
        ("(?x)a b", "flag 'x'"),
        ("a(?i)b", "flags are modelled at the beginning"),
        ("(?=ab)a", "one character"),
        ("(?:a(?=ab))+", "one character"),
        (r"\p{P}+(?=a+\b)", r"after anything but"),
        ("(?=a)?a", "repeated lookahead"),
        ("a**", "stacked"),
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


# ---------------------------------------------------------------- pretokenizers

TEXTS = st.one_of(
    texts(),
    st.lists(st.sampled_from((*"ab1.,¿_ \n\t", "  ", "٣", "日", "\u3000", "é")), max_size=12).map(
        "".join
    ),
    st.text(max_size=10),
)


def digits(individual=True):
    return {"type": "Digits", "individual_digits": individual}


def backend(pretokenizer):
    blank = json.loads(tokenizers.Tokenizer(tokenizers.models.BPE()).to_str())
    whole = json.dumps(blank | {"pre_tokenizer": pretokenizer})
    return tokenizers.Tokenizer.from_str(whole).pre_tokenizer


def read_back(own, read: Pretokenizer, text: str) -> list[str]:
    """The pieces as text: mapped bytes and written spaces are read back."""
    pieces = [piece for piece, _ in own.pre_tokenize_str(text) if piece]
    if read.byte_level:
        whole = [piece.translate(char_to_byte()).encode("latin-1") for piece in pieces]
        return [piece.decode() for piece in whole]
    return [piece.replace(read.space, " ") for piece in pieces] if read.space else pieces


def seen(read: Pretokenizer, text: str) -> str:
    """The text that the splitters see: perhaps a space before it."""
    if not text or text[0] == " " or read.prefix == Prefix.NONE:
        return text
    return " " + text


STEPS = (
    *(digits(), digits(False), {"type": "Whitespace"}, {"type": "WhitespaceSplit"}),
    *({"type": "BertPreTokenizer"}, {"type": "FixedLength", "length": 2}),
    *({"type": "CharDelimiterSplit", "delimiter": d} for d in "a "),
    *({"type": "Punctuation", "behavior": b} for b in BEHAVIORS),
    *(
        metaspace(scheme, divide)
        for scheme in ("always", "first", "never")
        for divide in (True, False)
    ),
    *(split({"String": s}, b) for s in (" ", "▁", "a▁", ".") for b in BEHAVIORS[:4]),
    *(split({"Regex": p}) for p in (r"\p{N}{1,3}", r"\s+(?!\S)|\s+", "[ab]++", "a+?b|a$")),
    *(byte_level(True), prefixed(False), prefixed()),
)


@examples(150)
@given(
    st.lists(st.sampled_from(STEPS), min_size=1, max_size=3),
    st.lists(TEXTS, min_size=1, max_size=6),
)
def test_random_sequences_have_their_own_pieces_or_are_refused(steps, some):
    try:
        read = read_pretokenizer(sequence(*steps))
    except UnsupportedTokenizerError:
        assume(False)
    reads, own = readings_by(read.splitters, Oniguruma()), backend(sequence(*steps))
    for text in some:
        if not read.space or read.space not in text:  # no ids spell such a text
            whole = seen(read, text)
            assert reads(whole) == readings_of(read_back(own, read, text), whole)


@examples(60)
@given(st.sampled_from(STEPS[:-3]), st.text(st.sampled_from("ab 1.\n"), max_size=10))
def test_after_a_normalizer_that_writes_spaces(step, text):
    """`space`: the pretokenizer runs on text whose spaces are already written as ▁."""
    try:
        read = read_pretokenizer(step, space="▁")
    except UnsupportedTokenizerError:
        assume(False)
    pieces, whole = backend(step).pre_tokenize_str(text.replace(" ", "▁")), seen(read, text)
    expected = readings_of([piece.replace("▁", " ") for piece, _ in pieces], whole)
    assert readings_by(read.splitters, Oniguruma())(whole) == expected


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
