"""SentencePiece models: random small ones compared with sentencepiece, and refusals."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from support import examples
from support.files import NORMAL, UNUSED, USER, sentencepiece_proto

from bpe_automata.errors import BrokenTokenizerError, UnsupportedTokenizerError
from bpe_automata.reference import Encoder, bpe
from bpe_automata.tokenizer.source import Source
from bpe_automata.tokenizer.sources.implied_merges import leftmost_first, run_merges

pytest.importorskip("sentencepiece")
pytest.importorskip("google.protobuf")

from bpe_automata.tokenizer.sources.sentencepiece import read_sentencepiece


def model(pieces: list[Any], *, dummy: bool = True, fallback: bool = True) -> Any:
    return sentencepiece_proto(pieces, fallback, normalizer_spec__add_dummy_prefix=dummy)


def read(proto: Any) -> Source:
    return read_sentencepiece(proto.SerializeToString(), "random.model")


LETTERS = [("▁", -100.0, NORMAL), ("a", -101.0, NORMAL), ("b", -102.0, NORMAL)]
ALPHABET = "ab é日\x00😀"


@st.composite
def models(draw: st.DrawFn) -> Any:
    """Letters, random pieces of them with scores that are often equal and in no order, and some
    user-defined pieces."""
    text = st.text("ab▁", min_size=2, max_size=4)
    pieces = draw(st.lists(text, unique=True, max_size=10))
    scores = [float(draw(st.integers(-12, 0))) for _ in pieces]
    kinds = [draw(st.sampled_from([NORMAL] * 6 + [USER, UNUSED])) for _ in pieces]
    drawn = list(zip(pieces, scores, kinds, strict=True))
    return model(LETTERS + drawn, dummy=draw(st.booleans()), fallback=draw(st.booleans()))


@examples(200)
@given(models(), st.lists(st.text(ALPHABET, max_size=14), min_size=5, max_size=20))
def test_random_models_are_read_exactly_or_refused(proto: Any, checked: list[str]) -> None:
    try:
        source = read(proto)
    except UnsupportedTokenizerError:
        assume(False)
    encode = Encoder(source.description)
    for text in checked:
        ids = encode(text)
        if None not in ids:  # an unknown character, in a model without byte fallback
            assert ids == source.backend.encode(text)
        else:
            assert 0 in source.backend.encode(text)


# ---------------------------------------------------------------- refused


def test_broken_models() -> None:
    whole = model(LETTERS).SerializeToString()
    with pytest.raises(BrokenTokenizerError, match=r"broken\.model"):
        read_sentencepiece(b"\n\xff" + whole, "broken.model")
    with pytest.raises(BrokenTokenizerError, match=r"cut\.model"):
        read_sentencepiece(whole[:-3], "cut.model")
    with pytest.raises(BrokenTokenizerError, match="sentencepiece cannot load it"):
        read(model([*LETTERS, ("a", -5.0, NORMAL)]))
    with pytest.raises(BrokenTokenizerError, match="NaN"):
        read(model([*LETTERS, ("ab", float("nan"), NORMAL)]))


# ---------------------------------------------------------------- runs of one character


def slow_leftmost_first(n: int, lengths: set[int]) -> list[int]:
    parts = [1] * n
    while True:
        found = [at for at, (a, b) in enumerate(pairwise(parts)) if a + b in lengths]
        if not found:
            return parts
        parts[found[0] : found[0] + 2] = [parts[found[0]] + parts[found[0] + 1]]


@examples(100)
@example({*range(2, 17)})
@given(st.sets(st.integers(2, 20)))
def test_a_table_is_equal_or_there_is_none(longer: set[int]) -> None:
    lengths = {1, *longer}
    merges = run_merges(lengths)
    ranks = {pair: (rank, sum(pair)) for rank, pair in enumerate(merges or ())}
    assert merges is not None or lengths != {*range(1, 17)}
    for n in range(1, 90):
        result = slow_leftmost_first(n, lengths)
        assert leftmost_first(n, lengths) == result
        if merges is not None:
            assert bpe([1] * n, ranks) == result
