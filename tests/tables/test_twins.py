"""Twins: their text, other ids that spell it, and what is said of the numbers."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import TABLE

from experiments.shared.losses import id_losses
from experiments.study.twins import artefact, report, text
from experiments.study.twins.report import DROPOUT, LIFTED, NEAR, PLAIN

torch = pytest.importorskip("torch")

FEW, IDS = artefact.SMOKE.files, artefact.SMOKE.ids


@pytest.fixture(scope="module")
def read() -> text.Corpus:
    return text.corpus(FEW, IDS)


# ---------------------------------------------------------------- text


def test_a_file_is_held_out_by_its_path_alone_and_never_read(read):
    paths = [file.path for file in text.files(FEW)]
    assert paths == sorted(set(paths))
    held_out = {path for path in paths if text.is_held_out(path)}
    assert set(read.held_out) == held_out
    assert 0 < len(held_out) < len(paths) / 3
    seen = b"".join(
        read.tokenizer.token_bytes(token) for token in read.speller.own_of(read.training)
    )
    others = [file.text for file in text.files(FEW) if file.path not in held_out]
    assert seen.decode() == "".join(part + text.END for part in others)


def test_one_path_in_so_many_is_held_out():
    share = np.mean([text.is_held_out(f"package/module{k}.py") for k in range(6000)])
    assert share == pytest.approx(1 / text.HELD_OUT_EVERY, rel=0.15)


def test_the_text_and_its_tokenizer_are_the_same_each_time(read):
    text.corpus.cache_clear()
    text.files.cache_clear()
    again = text.corpus(FEW, IDS)
    assert again.tokenizer.to_json() == read.tokenizer.to_json()
    assert again.training == read.training
    assert again.held_out == read.held_out


def test_without_dropout_the_ids_are_the_tokenizers(read):
    rng = random.Random(1)
    texts = {file.path: file.text for file in text.files(FEW)}
    for path, pretokens in read.held_out.items():
        ids = list(read.speller.spelled(pretokens, 0.0, rng))
        assert ids == read.tokenizer.encode(texts[path])
        assert ids == list(read.speller.own_of(pretokens))


@given(st.floats(0.01, 1), st.integers(0, 2**32 - 1))
def test_ids_with_dropout_spell_the_same_text(read, dropout, seed):
    pretokens = next(iter(read.held_out.values()))[:60]
    ids = list(read.speller.spelled(pretokens, dropout, random.Random(seed)))
    own = list(read.speller.own_of(pretokens))
    assert read.tokenizer.text_bytes(ids) == read.tokenizer.text_bytes(own)
    assert ids == list(read.speller.spelled(pretokens, dropout, random.Random(seed)))
    if dropout == 1:
        assert len(ids) == len(read.tokenizer.text_bytes(own))


def test_each_possible_merge_is_left_out_with_that_probability():
    """`true` is t r u e, in three merges one after the other: of n texts so many get so far."""
    speller, rng = text.Speller(TABLE), random.Random(2)
    n, dropout = 4000, 0.3
    drawn = Counter(len(speller.drawn("true", dropout, rng)) for _ in range(n))
    kept = 1 - dropout
    expected = {1: kept**3, 2: kept**2 * dropout, 3: kept * dropout, 4: dropout}
    assert {k: drawn[k] / n for k in expected} == pytest.approx(expected, abs=0.03)


def test_twins_of_a_seed_read_from_the_same_places(read):
    """In both arms the windows spell the same text, as far as both go."""
    chosen = artefact.SMOKE
    twins = [artefact.Twin(chosen, arm, 0, None) for arm in (PLAIN, DROPOUT)]
    plain, dropout = (list(artefact.batches(read, twin)) for twin in twins)
    assert len(plain) == chosen.steps
    for one, other in zip(np.concatenate(plain), np.concatenate(dropout), strict=True):
        assert len(one) == len(other) == chosen.context + 1
        texts = [read.tokenizer.text_bytes(ids.tolist()) for ids in (one, other)]
        assert texts[0].startswith(texts[1])
    assert plain == list(artefact.batches(read, twins[0]))
    other_seed = artefact.Twin(chosen, PLAIN, 1, None)
    assert plain != list(artefact.batches(read, other_seed))


# ---------------------------------------------------------------- questions


def test_a_cut_token_spells_the_word_in_two_ids_that_are_not_canonical(read):
    found = list(islice(text.cut_tokens(read, 5, 20, random.Random(3)), 20))
    spelled = read.tokenizer.text_bytes
    for before, token, parts, after in found:
        assert len(parts) == 2
        assert spelled(parts) == spelled([token])
        assert len(spelled([token]).strip()) >= 2
        assert len(before) >= 5
        assert len(after) == 20
        whole = spelled((*before, token)).decode()
        assert read.tokenizer.encode(whole) == [*before, token]


def test_contexts_are_followed_by_one_of_their_answers(read):
    held_out = [file.text for file in text.files(FEW) if text.is_held_out(file.path)]
    found = text.contexts(FEW, read.tokenizer, 3, 40, 0)
    assert found == text.contexts(FEW, read.tokenizer, 3, 40, 0)
    assert max(Counter(one.name for one in found).values()) <= 3
    for _, prompt, answers in found:
        assert 0 < len(read.tokenizer.encode(prompt)) <= 40
        assert any(prompt + answer in whole for answer in answers for whole in held_out)


@pytest.mark.parametrize("name", text.QUESTIONS)
def test_languages_are_small(name):
    answers = text.QUESTIONS[name].answers
    assert 4 <= len(set(answers)) == len(answers) <= 12


def test_losses_of_ids_are_those_of_the_model(tiny_model, naive_log_prob):
    asked = [((1, 2, 3), (4, 5)), ((6,), (7, 0, 1))]
    found = id_losses(tiny_model, asked)
    for (before, after), nats in zip(asked, found, strict=True):
        assert len(nats) == len(after)
        assert nats.sum() == pytest.approx(-naive_log_prob(list(before), after), abs=1e-5)


# ---------------------------------------------------------------- what is said


def row(arm, seed, **found):
    return {"key": f"{arm} {seed} {next(iter(found))}", "arm": arm, "seed": seed, **found}


def cuts(arm, seed, *near):
    return row(arm, seed, cuts=[["", value, value / 10] for value in near])


def test_twins_are_compared_seed_by_seed_and_item_by_item():
    rows = pd.DataFrame(
        [
            cuts(PLAIN, 0, 1.0, 2.0),
            cuts(PLAIN, 1, 3.0, 4.0),
            cuts(DROPOUT, 0, 0.5, 1.0),
            cuts(DROPOUT, 1, 1.5, 2.0),
            cuts(DROPOUT, 2, 100.0, 100.0),  # has no twin
        ]
    )
    found = report.compared(rows)[NEAR]
    assert found["items"] == 2
    assert found["seeds"] == {PLAIN: [1.5, 3.5], DROPOUT: [0.75, 1.75]}
    assert found[PLAIN][0] == pytest.approx(2.5)
    value, low, high = found["difference"]
    assert value == pytest.approx(-1.25)
    # Seeds and items are drawn again: the ends are those of one seed and one item.
    assert (low, high) == (pytest.approx(-2.0), pytest.approx(-0.5))


def test_of_contexts_only_those_count_that_are_exact_under_every_twin():
    def asked(arm, lift, *slacks):
        other = {"canonical": 0.0, "rest": 0.0, "outside": 0.0}
        return row(arm, 0, answers=[{"lift": lift, "slack": slack, **other} for slack in slacks])

    rows = pd.DataFrame([asked(PLAIN, 0.2, 0.0, 0.0, 0.5), asked(DROPOUT, 0.3, 0.0, 0.5, 0.0)])
    assert report.compared(rows)[LIFTED]["items"] == 1


def test_texts_after_one_prompt_count_as_one_item():
    rows = pd.DataFrame(
        [
            row(arm, 0, texts=[[0, 10, 0, 0], [0, 10, 2, 1], [1, 10, 1, 1], [1, 0, 0, 0]])
            for arm in (PLAIN, DROPOUT)
        ]
    )
    found = report.compared(rows)
    assert found[report.OFF]["items"] == 2
    assert found[report.OFF][PLAIN][0] == pytest.approx(50)
    assert found[report.JOINTS][PLAIN][0] == pytest.approx(1000 * (0 + 0.2 + 0.1 + 0) / 4)


def told(plain, difference):
    dropout = [one + other for one, other in zip(plain, difference, strict=True)]
    return {PLAIN: plain, DROPOUT: dropout, "difference": difference}


@pytest.mark.parametrize(
    ("plain", "difference", "said"),
    [
        ([0.2, 0.1, 0.3], [-0.15, -0.2, -0.1], "falls by 75%"),
        ([0.2, 0.1, 0.3], [-0.3, -0.4, -0.1], "falls by 100%"),
        ([0.2, 0.1, 0.3], [0.1, 0.05, 0.2], "grows by 50%"),
        ([0.2, 0.1, 0.3], [-0.1, -0.2, 0.1], "does not clearly change"),
        ([0.2, -0.1, 0.3], [-0.15, -0.2, -0.1], "is not clear of 0 in the plain twins"),
    ],
)
def test_the_verdict_goes_with_the_intervals(plain, difference, said):
    found = told(plain, difference)
    assert report.verdict(found).startswith(said)
    assert said in report.headline({"measures": {NEAR: found}})


def test_the_headline_is_of_the_numbers():
    measures = {
        NEAR: told([0.2, 0.1, 0.3], [-0.15, -0.2, -0.1]),
        LIFTED: told([0.1, 0.05, 0.2], [0.05, 0.01, 0.1]),
    }
    near, lift = report.headline({"measures": measures}).split("\n")
    assert "cut token falls by 75% (0.200 : 0.050)" in near
    assert "lift grows by 50% (0.100 : 0.150)" in lift


def test_the_report_says_nothing_of_a_part_of_the_measures():
    found = told([0.2, 0.1, 0.3], [-0.15, -0.2, -0.1])
    assert report.readme({}) == ""
    assert report.readme({"measures": {NEAR: found}}) == ""
    found |= {"items": 5, "seeds": {PLAIN: [1, 2, 3]}}
    measures = dict.fromkeys(report.MEASURES, found)
    first = {PLAIN: 1.5, DROPOUT: 0.5}
    said = report.readme({"measures": measures, "first": first, "drawn": {}})
    assert "the means of 3 pairs" in said
    assert "over 5 contexts" in said
    assert "the extra loss after a cut token falls by 75%" in said
