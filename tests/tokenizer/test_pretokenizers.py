"""Every pretokenizer of `tokenizers`: its own pieces, or refused by name."""

from __future__ import annotations

import json

import tokenizers
from hypothesis import assume, given
from hypothesis import strategies as st
from readers import SplitMachine, readings_of
from support import examples
from support.steps import metaspace, prefixed

from bpe_automata._tokenizer.description import Prefix
from bpe_automata._tokenizer.engines import Oniguruma
from bpe_automata._tokenizer.sources.json_pretokenizer import Pretokenizer, read_pretokenizer
from bpe_automata._tokenizer.sources.json_vocabulary import char_to_byte
from bpe_automata.errors import BudgetExceededError, UnsupportedTokenizerError
from bpe_automata.testing import ADVERSARIAL, byte_level, sequence, split

BEHAVIORS = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
TEXTS = st.one_of(
    st.lists(st.sampled_from(ADVERSARIAL), max_size=14).map("".join),
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


def own_pieces(own, read: Pretokenizer, text: str) -> list[str]:
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


def check(pretokenizer, text, machine=None):
    read = read_pretokenizer(pretokenizer)
    assume(not read.space or read.space not in text)  # no ids spell such a text
    machine = machine or SplitMachine(read.splitters, Oniguruma())
    own, whole = backend(pretokenizer), seen(read, text)
    pieces = own_pieces(own, read, text) if own else [text] * bool(text)
    assert machine.readings(whole) == readings_of(pieces, whole)


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
@given(st.lists(st.sampled_from(STEPS), max_size=3), st.lists(TEXTS, min_size=1, max_size=6))
def test_random_sequences_have_their_own_pieces_or_are_refused(steps, some):
    try:
        machine = SplitMachine(read_pretokenizer(sequence(*steps)).splitters, Oniguruma())
    except (UnsupportedTokenizerError, BudgetExceededError):
        assume(False)
    for text in some:
        if "▁" not in text:
            check(sequence(*steps), text, machine)


@examples(60)
@given(st.sampled_from(STEPS[:-3]), st.text(st.sampled_from("ab▁ 1.\n"), max_size=10))
def test_after_a_normalizer_that_writes_spaces(step, text):
    """`space`: the pretokenizer runs on text whose spaces are already written as ▁."""
    try:
        read = read_pretokenizer(step, space="▁")
        machine = SplitMachine(read.splitters, Oniguruma())
    except UnsupportedTokenizerError:
        assume(False)
    text = text.replace("▁", " ")
    pieces = backend(step).pre_tokenize_str(text.replace(" ", "▁"))
    whole = seen(read, text)
    expected = readings_of([piece.replace("▁", " ") for piece, _ in pieces], whole)
    assert machine.readings(whole) == expected
