"""Normalizers of `tokenizers`, Unicode forms included: the filters accept exactly the texts that a
normalizer does not change.
"""

from __future__ import annotations

import itertools
import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples
from tokenizers import Regex, Tokenizer, models, normalizers
from tokenizers.normalizers import Lowercase, Nmt, Replace, Strip, StripAccents

from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.description import Normalization
from bpe_automata.tokenizer.engines import Oniguruma
from bpe_automata.tokenizer.filter_table import TableFilter, classes_of, product
from bpe_automata.tokenizer.normalizer_filters import filters_of
from bpe_automata.tokenizer.probing import Composing, composing
from bpe_automata.tokenizer.sources.json_normalizer import read_normalizer
from bpe_automata.tokenizer.unicode_forms import FORMS, form_filters, python_form, tokenizers_form

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


class Reader:
    """Do all of these filters accept a text?"""

    def __init__(self, filters: tuple[TableFilter, ...]) -> None:
        self.filters = filters
        self.columns = [_columns(made) for made in filters]

    def accepts(self, text: str) -> bool:
        pairs = zip(self.filters, self.columns, strict=True)
        return all(_accepts(made, columns, text) for made, columns in pairs)


def _columns(made: TableFilter) -> np.ndarray:
    columns = np.full(0x110000, -1)
    for number, ranges in enumerate(made.classes):
        for low, high in ranges:
            assert (columns[low:high] == -1).all(), "two classes overlap"
            columns[low:high] = number
    return columns


def _accepts(made: TableFilter, columns: np.ndarray, text: str) -> bool:
    state = 0
    for character in text:
        state = int(made.table[state, columns[ord(character)]])
        if state < 0:
            return False
    return bool(made.accepting[state])


def representatives(made: TableFilter) -> list[str]:
    """A character of each class, and one of none."""
    columns = _columns(made)
    firsts = np.unique(columns, return_index=True)[1]
    return [chr(first) for first in firsts.tolist()]


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
@examples(30)
def test_filters_and_their_product_accept_what_the_sequence_leaves(steps, texts) -> None:
    whole = normalizers.Sequence(steps)
    try:
        each = reader(*steps)
    except UnsupportedTokenizerError:
        return
    for text in texts:
        once = whole.normalize_str(text)
        for candidate in (text, once, whole.normalize_str(once)):
            expected = whole.normalize_str(candidate) == candidate
            assert each.accepts(candidate) == by_product(each.filters, candidate) == expected


def by_product(filters: tuple[TableFilter, ...], text: str) -> bool:
    """Over the characters of one text."""
    points = np.array(list(map(ord, text)), dtype=np.int64)
    together, state = product(filters, classes_of(filters, points)), 0
    for place in range(len(text)):
        state = state if state < 0 else int(together.next[state, place])
    return state >= 0 and bool(together.ends[state])


@pytest.mark.parametrize("k", range(len(REPLACEMENTS)))
def test_each_replacement_on_all_short_texts(k: int) -> None:
    step = Replace(*REPLACEMENTS[k])
    try:
        accepts = reader(step).accepts
    except UnsupportedTokenizerError:
        return
    for n in range(5):
        for text in map("".join, itertools.product("abx `", repeat=n)):
            assert accepts(text) == (step.normalize_str(text) == text), text


@pytest.mark.parametrize("step", [Lowercase(), Nmt(), StripAccents(), Strip()], ids=str)
def test_every_character_by_itself_in_a_step(step) -> None:
    accepts = reader(step).accepts
    for code in [*range(0x3100), *range(0xA000, 0xAC00), *range(0xE000, 0x12000)]:
        assert accepts(chr(code)) == (step.normalize_str(chr(code)) == chr(code)), hex(code)


# ---------------------------------------------------------------- Unicode forms

ENGINES = {"tokenizers": tokenizers_form, "python": python_form}
FORMS_OF_ENGINES = [pytest.param(make, form, id=f"{name}-{form}") for name, make in ENGINES.items()
         for form in FORMS]  # fmt: skip
by_form = pytest.mark.parametrize(("make", "form"), FORMS_OF_ENGINES)

HANGUL = [chr(c) for c in (0x1100, 0x1112, 0x115F, 0x1161, 0x1175, 0x1176, 0x11A7, 0x11A8, 0x11C2,
                           0x11C3, 0xAC00, 0xAC01, 0xAC1C, 0xD7A3)]  # fmt: skip
INDIC = [chr(c) for c in (0x9C7, 0x9BE, 0x9D7, 0x9CB, 0xDD9, 0xDCF, 0xDCA, 0xDDC, 0xDDD, 0xBC6,
                          0xBBE, 0xB92, 0xBD7, 0xCC6, 0xCC2, 0xCD5, 0xCCA, 0x93C, 0x915, 0x958,
                          0x1025, 0x102E, 0x1B05, 0x1B35,
                          0x16D63, 0x16D67, 0x16D68, 0x16D69)]  # fmt: skip


@cache
def known(make, form: str) -> tuple[Normalization, Reader]:
    """The form and a reader of its filters."""
    return make(form), Reader(form_filters(make(form)))


@cache
def facts(make) -> Composing:
    return composing(make("nfc").apply, make("nfd").apply)


def seconds(make) -> list[str]:
    """Characters that compose with one before them."""
    return sorted({second for parts in facts(make).composes.values() for second in parts})


def check(step: Normalization, reader: Reader, text: str) -> None:
    assert reader.accepts(text) == (step.apply(text) == text), ascii(text)


@by_form
def test_every_character_by_itself(make, form: str) -> None:
    step, reader = known(make, form)
    alive = np.ones(0x110000, dtype=bool)
    for made, columns in zip(reader.filters, reader.columns, strict=True):
        alive &= made.table[0][columns] != -1
    expected = [step.apply(chr(c)) == chr(c) for c in range(0xD800)]
    expected += [step.apply(chr(c)) == chr(c) for c in range(0xE000, 0x110000)]
    found = np.concatenate([alive[:0xD800], alive[0xE000:]])
    assert np.flatnonzero(found != np.array(expected)).tolist() == []


@by_form
def test_one_character_of_each_class_before_each_mark(make, form: str) -> None:
    step, reader = known(make, form)
    before = {c for made in reader.filters for c in representatives(made)}
    for first, mark in itertools.product(sorted(before), [*facts(make).order, *seconds(make)]):
        check(step, reader, first + mark)


@by_form
def test_every_composition_alone_and_with_a_mark_between(make, form: str) -> None:
    step, reader = known(make, form)
    between = ["", "\u0334", "\u0323", "\u0301", "\u0345", "a"]
    for first, parts in facts(make).composes.items():
        if "\uac00" <= first <= "\ud7a3" or "\u1100" <= first < "\u1112":
            continue  # Hangul has its own test
        for second, mark in itertools.product(parts, between):
            check(step, reader, first + mark + second)
            check(step, reader, parts[second] + mark + second)


@by_form
@given(data=st.data())
@examples(100)
def test_random_texts_of_characters_that_matter(make, form: str, data) -> None:
    step, reader = known(make, form)
    of = facts(make)
    pools = [list(of.order), seconds(make), list(of.composes), list(of.decomposed),
             sorted(of.unstable), HANGUL, INDIC, list("aes \u0334")]  # fmt: skip
    letters = st.sampled_from(pools).flatmap(st.sampled_from)
    text = "".join(data.draw(st.lists(letters, max_size=7)))
    check(step, reader, text)
    check(step, reader, step.apply(text))
