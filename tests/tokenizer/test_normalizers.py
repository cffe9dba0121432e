"""Normalizers of `tokenizers`: the filters accept exactly the texts that a normalizer does not
change.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st
from readers import Reader
from tokenizers import Regex, Tokenizer, models, normalizers
from tokenizers.normalizers import Lowercase, Nmt, Replace, Strip, StripAccents

from bpe_automata.errors import BrokenTokenizerError, UnsupportedTokenizerError
from bpe_automata.tokenizer.description import Prefix
from bpe_automata.tokenizer.engines import Oniguruma
from bpe_automata.tokenizer.filter_table import classes_of, product
from bpe_automata.tokenizer.normalizer_filters import filters_of
from bpe_automata.tokenizer.sources.json_normalizer import read_normalizer

LETTERS = [
    *'aabbxsABé`"0 7\t\n',
    "\u0301", "\u0327", "\u0345", "\u0334",  # marks, the last of the lowest class
    "É", "İ", "ı", "ǅ", "ß", "ẞ", "\u1fbc",  # letters with difficult cases
    "\u212b", "ﬁ", "Ａ", "\u2460",  # compatibility characters
    "\u00a0", "\u0085", "\u2028", "\u200b", "\ufeff", "\ufffd", "▁",  # spaces and the like
    "\u302e", "\U0001d165", "\u034f",  # marks that are not Mn, and one that is no mark to Unicode
    "\u09c7", "\u09be", "\u1e69",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(LETTERS), max_size=7).map("".join)


def to_json(normalizer) -> dict:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizer
    return json.loads(tokenizer.to_str())["normalizer"]


def read(*steps):
    return read_normalizer(to_json(normalizers.Sequence(list(steps))))


def reader(*steps) -> Reader:
    return Reader(filters_of(read(*steps).steps, Oniguruma()))


# ---------------------------------------------------------------- laws

REPLACEMENTS = [
    ("a", "bb"),
    ("bb", "a"),
    ("ab", "ba"),
    ("ab", "ab"),
    ("aa", "a"),
    ("``", '"'),
    ("é", "e"),
    ("A", ""),
    (Regex(r"\s+"), " "),
    (Regex(" {2,}"), " "),
    (Regex("[0-9]"), "0"),
    (Regex(r"\s+(?!\S)"), ""),
    (Regex("b+?x|bx"), "bx"),
    (Regex(r"\p{L}b*"), "ab"),
    (Regex("a|bab"), "ab"),
    (Regex("(?:ab)+"), "ab"),
    (Regex("[^a]b|b"), "b"),
]
SINGLE = [normalizers.NFC(), normalizers.NFD(), normalizers.NFKC(), normalizers.NFKD(),
          Lowercase(), StripAccents(), Nmt(), Strip(), Strip(left=False), Strip(right=False),
          Strip(left=False, right=False)]  # fmt: skip
STEPS = st.one_of(
    st.sampled_from(SINGLE), st.sampled_from(REPLACEMENTS).map(lambda pair: Replace(*pair))
)


@given(steps=st.lists(STEPS, max_size=4), texts=st.lists(TEXTS, min_size=20, max_size=40))
@examples(60)
def test_filters_accept_what_the_sequence_leaves(steps: list, texts: list[str]) -> None:
    whole = normalizers.Sequence(steps)
    try:
        accepts = reader(*steps).accepts
    except UnsupportedTokenizerError:
        return
    for text in texts:
        once = whole.normalize_str(text)
        for candidate in (text, once, whole.normalize_str(once)):
            assert accepts(candidate) == (whole.normalize_str(candidate) == candidate)


@given(steps=st.lists(st.sampled_from(SINGLE), max_size=3), texts=st.lists(TEXTS, max_size=30))
@examples(20)
def test_the_product_accepts_what_all_filters_accept(steps: list, texts: list[str]) -> None:
    try:
        filters = filters_of(read(*steps).steps, Oniguruma())
    except UnsupportedTokenizerError:
        return
    all_of_them = Reader(filters)
    for text in [*texts, *map(normalizers.Sequence(steps).normalize_str, texts)]:
        points = np.array(list(map(ord, text)), dtype=np.int64)
        together, state = product(filters, classes_of(filters, points)), 0
        for place in range(len(text)):
            state = state if state < 0 else int(together.next[state, place])
        assert all_of_them.accepts(text) == (state >= 0 and bool(together.ends[state]))


@pytest.mark.parametrize("step", SINGLE[:10], ids=lambda step: type(step).__name__)
@given(text=TEXTS)
@examples(150)
def test_each_kind_alone(step, text: str) -> None:
    accepts = _alone(step)
    for candidate in (text, step.normalize_str(text)):
        assert accepts(candidate) == (step.normalize_str(candidate) == candidate)


@pytest.mark.parametrize("pair", REPLACEMENTS[:13])
@given(text=st.text('ab xé"`A09\n', max_size=9))
@examples(150)
def test_each_replacement_alone(pair, text: str) -> None:
    step = Replace(*pair)
    accepts = _alone(step, pair)
    for candidate in (text, step.normalize_str(text)):
        assert accepts(candidate) == (step.normalize_str(candidate) == candidate)


_readers: dict[object, Reader] = {}


def _alone(step, key: object = None):
    key = key or (type(step).__name__, str(to_json(step)))
    if key not in _readers:
        _readers[key] = reader(step)
    return _readers[key].accepts


@pytest.mark.parametrize("step", [Lowercase(), Nmt(), StripAccents(), Strip()], ids=str)
def test_every_character_by_itself(step) -> None:
    accepts = reader(step).accepts
    for code in [*range(0x3100), *range(0xA000, 0xAC00), *range(0xE000, 0x12000)]:
        assert accepts(chr(code)) == (step.normalize_str(chr(code)) == chr(code)), hex(code)


@pytest.mark.parametrize("step", [Lowercase(), Nmt(), StripAccents()], ids=str)
@given(text=TEXTS | st.text())
@examples(200)
def test_these_act_on_each_character_by_itself(step, text: str) -> None:
    assert step.normalize_str(text) == "".join(map(step.normalize_str, text))


# ---------------------------------------------------------------- sequences in use, and refusals


@pytest.mark.parametrize(
    "steps",
    [
        [normalizers.NFD(), Lowercase(), StripAccents()],
        [normalizers.NFC(), Replace(Regex(r"\s+"), " "), Lowercase()],
        [Nmt(), normalizers.NFKC(), Replace(Regex(" {2,}"), " ")],
        [normalizers.NFKC(), Replace(Regex(r"\s+"), " "), Strip()],
        [Replace("``", '"'), Replace("''", '"'), normalizers.NFKD(), StripAccents(), Lowercase()],
        [Strip(), normalizers.NFC(), Lowercase()],
    ],
    ids=["bert", "clip", "sentencepiece", "spaces", "albert", "strip"],
)
@given(texts=st.lists(TEXTS, min_size=5, max_size=20))
@examples(40)
def test_sequences_in_use_are_accepted(steps: list, texts: list[str]) -> None:
    whole = normalizers.Sequence(steps)
    accepts = _alone(whole)
    for text in [*texts, *map(whole.normalize_str, texts)]:
        assert accepts(text) == (whole.normalize_str(text) == text)


def test_steps_that_undo_one_another_are_refused() -> None:
    apart = [normalizers.NFD(), Strip(), normalizers.NFC()]
    assert normalizers.Sequence(apart).normalize_str("é") == "é"
    with pytest.raises(UnsupportedTokenizerError, match=r"\['nfd', 'nfc'\].*not proved"):
        reader(*apart)
    there_and_back = [Replace("bb", "a"), Replace("a", "bb")]
    assert normalizers.Sequence(there_and_back).normalize_str("bb") == "bb"
    with pytest.raises(UnsupportedTokenizerError, match="Replace 'bb' -> 'a'"):
        reader(*there_and_back)


def test_matches_that_only_together_leave_the_text_are_refused() -> None:
    step = Replace(Regex("a|bab"), "ab")
    assert step.normalize_str("abab") == "abab"
    with pytest.raises(UnsupportedTokenizerError, match="shorter than what is written"):
        reader(step)


def test_forms_in_a_row_are_one() -> None:
    assert [step.kind for step in read(normalizers.NFD(), normalizers.NFC()).steps] == ["nfc"]
    assert [step.kind for step in read(normalizers.NFKD(), normalizers.NFC()).steps] == ["nfkc"]


def test_the_pattern_of_a_replacement_may_be_refused() -> None:
    for pattern in ("a*", r"(a)\1", "a$b(?<=c)"):
        with pytest.raises(UnsupportedTokenizerError, match="normalizer Replace"):
            reader(Replace(Regex(pattern), ""))
    with pytest.raises(UnsupportedTokenizerError, match="it is empty"):
        reader(Replace("", "x"))


# ---------------------------------------------------------------- reading


def test_nothing_to_do() -> None:
    for given_json in (None, {"type": "Sequence", "normalizers": []}, to_json(SINGLE[-1])):
        found = read_normalizer(given_json)
        assert (found.steps, found.prefix, found.space) == ((), Prefix.NONE, None)


def test_llama_and_gemma() -> None:
    llama = read(normalizers.Prepend("▁"), Replace(" ", "▁"))
    assert (llama.steps, llama.prefix, llama.space) == ((), Prefix.PIECE, "▁")
    gemma = read_normalizer(to_json(Replace(" ", "▁")))
    assert (gemma.steps, gemma.prefix, gemma.space) == ((), Prefix.NONE, "▁")
    nested = read(normalizers.Sequence([Lowercase()]), Replace(" ", "_"))
    assert ([step.kind for step in nested.steps], nested.space) == (["characters"], "_")


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([normalizers.Prepend("x")], "no space is replaced"),
        ([normalizers.Prepend("x"), Replace(" ", "▁")], "only '▁'"),
        ([normalizers.Prepend("▁"), Lowercase(), Replace(" ", "▁")], "this pair is not modelled"),
        ([Replace(" ", "▁"), Lowercase()], "the second would see spaces"),
        ([Replace(Regex(" {2,}"), "▁")], "stands for a space"),
        ([normalizers.BertNormalizer()], "Chinese"),
        ([normalizers.ByteLevel()], "bytes as letters"),
    ],
    ids=str,
)
def test_refused_by_name(steps: list, message: str) -> None:
    with pytest.raises(UnsupportedTokenizerError, match=message):
        read(*steps)


def test_precompiled_and_unknown_kinds_are_refused() -> None:
    for kind in ("Precompiled", "Surprise"):
        with pytest.raises(UnsupportedTokenizerError, match=kind):
            read_normalizer({"type": kind})


def test_broken_normalizers_are_told() -> None:
    with pytest.raises(BrokenTokenizerError, match="content is None"):
        read_normalizer({"type": "Replace", "pattern": {"String": "a"}})
    with pytest.raises(BrokenTokenizerError, match="rejects"):
        read_normalizer({"type": "Replace", "pattern": {"Regex": "("}, "content": ""})
