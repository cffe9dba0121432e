"""The filters of the Unicode forms accept exactly the texts that the forms do not change."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st
from readers import Reader, representatives

from bpe_automata.errors import BrokenTokenizerError, UnsupportedTokenizerError
from bpe_automata.storage import CorruptCacheWarning, cache_folder
from bpe_automata.tokenizer.description import Normalization
from bpe_automata.tokenizer.probing import SEPARATOR, Composing, apply_to_all, composing
from bpe_automata.tokenizer.unicode_forms import (
    FORMS,
    form_filters,
    python_form,
    tokenizers_form,
)

ENGINES = {"tokenizers": tokenizers_form, "python": python_form}
CASES = [pytest.param(make, form, id=f"{name}-{form}") for name, make in ENGINES.items()
         for form in FORMS]  # fmt: skip
by_form = pytest.mark.parametrize(("make", "form"), CASES)

HANGUL = [chr(c) for c in (0x1100, 0x1112, 0x115F, 0x1161, 0x1175, 0x1176, 0x11A7, 0x11A8, 0x11C2,
                           0x11C3, 0xAC00, 0xAC01, 0xAC1C, 0xD7A3)]  # fmt: skip
INDIC = [chr(c) for c in (0x9C7, 0x9BE, 0x9D7, 0x9CB, 0xDD9, 0xDCF, 0xDCA, 0xDDC, 0xDDD, 0xBC6,
                          0xBBE, 0xB92, 0xBD7, 0xCC6, 0xCC2, 0xCD5, 0xCCA, 0x93C, 0x915, 0x958,
                          0x1025, 0x102E, 0x1B05, 0x1B35,
                          0x16D63, 0x16D67, 0x16D68, 0x16D69)]  # fmt: skip

_known: dict[tuple[str, str], tuple[Normalization, Reader]] = {}
_facts: dict[str, Composing] = {}


def known(make, form: str) -> tuple[Normalization, Reader]:
    """The form and a reader of its filters, made once."""
    key = (make.__name__, form)
    if key not in _known:
        _known[key] = make(form), Reader(form_filters(make(form)))
    return _known[key]


def facts(make) -> Composing:
    if make.__name__ not in _facts:
        _facts[make.__name__] = composing(make("nfc").apply, make("nfd").apply)
    return _facts[make.__name__]


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
    for first, mark in product(sorted(before), [*facts(make).order, *seconds(make)]):
        check(step, reader, first + mark)


@by_form
def test_every_composition_alone_and_with_a_mark_between(make, form: str) -> None:
    step, reader = known(make, form)
    between = ["", "\u0334", "\u0323", "\u0301", "\u0345", "a"]
    for first, parts in facts(make).composes.items():
        if "\uac00" <= first <= "\ud7a3" or "\u1100" <= first < "\u1112":
            continue  # Hangul has its own test
        for second, mark in product(parts, between):
            check(step, reader, first + mark + second)
            check(step, reader, parts[second] + mark + second)


@by_form
@pytest.mark.parametrize("letters", [HANGUL, INDIC], ids=["hangul", "indic"])
def test_three_letters_of_scripts_whose_vowels_compose(make, form: str, letters) -> None:
    step, reader = known(make, form)
    for text in product(letters, repeat=3):
        check(step, reader, "".join(text))


@by_form
@pytest.mark.parametrize(
    "text",
    [
        "",
        "\u0301",  # a mark without a starter
        "\u0301\u0323",
        "\u1e61\u0323",  # s with dot above, then dot below: becomes one character
        "\u1e63\u0307",
        "s\u0323\u0302\u0307",  # the circumflex blocks the dot above
        "\u01d6\u031b",  # u with diaeresis and macron, then horn: becomes three characters
        "\u00e9\u0334",
        "a\u0334\u0301",
        "\u0344",  # decomposes to two marks
        "\u0f71\u0f72",
        "\u0958",  # excluded from composition
        "\u0915\u093c",
        "\u09c7\u0301\u09be",
        "\u212b\ufb01",
    ],
    ids=ascii,
)
def test_known_difficulties(make, form: str, text: str) -> None:
    check(*known(make, form), text)


@by_form
@given(data=st.data())
@examples(150)
def test_random_texts_of_characters_that_matter(make, form: str, data) -> None:
    step, reader = known(make, form)
    of = facts(make)
    pools = [list(of.order), seconds(make), list(of.composes), list(of.decomposed),
             sorted(of.unstable), HANGUL, INDIC, list("aes \u0334")]  # fmt: skip
    letters = st.sampled_from(pools).flatmap(st.sampled_from)
    text = "".join(data.draw(st.lists(letters, max_size=7)))
    check(step, reader, text)
    check(step, reader, step.apply(text))


@by_form
def test_filters_are_small(make, form: str) -> None:
    _, reader = known(make, form)
    sizes = [len(made.table) for made in reader.filters]
    assert len(sizes) == (1 if form.endswith("d") else 2)
    assert max(sizes) < 300


@pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)
def test_forms_keep_full_decompositions(make) -> None:
    """What `fixed_points` relies on: NFD(NFC(c d)) = NFD(c d)."""
    compose, decompose = make("nfc").apply, make("nfd").apply
    firsts = list(facts(make).composes)[:200]
    for first, second in product(firsts, seconds(make)):
        assert decompose(compose(first + second)) == decompose(first + second)


def test_kept_on_disk_and_made_again_if_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(tmp_path))
    made = form_filters(python_form("nfc"))
    files = sorted(cache_folder("filter").iterdir())
    assert len(files) == 2
    for first, second in zip(made, form_filters(python_form("nfc")), strict=True):
        assert_equal(first, second)
    files[0].write_bytes(b"no array")
    files[1].write_bytes(files[1].read_bytes()[:-8])
    with pytest.warns(CorruptCacheWarning) as told:
        again = form_filters(python_form("nfc"))
    assert len(told) == 2
    for first, second in zip(made, again, strict=True):
        assert_equal(first, second)


def assert_equal(first, second) -> None:
    assert np.array_equal(first.table, second.table)
    assert np.array_equal(first.accepting, second.accepting)
    for ranges, others in zip(first.classes, second.classes, strict=True):
        assert np.array_equal(ranges, others)


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(UnsupportedTokenizerError, match="NFC 'icu 70'"):
        form_filters(replace(python_form("nfc"), library="icu 70"))


def test_a_normalizer_that_changes_the_separator_is_told() -> None:
    with pytest.raises(BrokenTokenizerError, match="private-use"):
        apply_to_all(lambda text: text.replace(SEPARATOR, ""), ["a", "b"])
