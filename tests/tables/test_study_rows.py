"""Rows of the study on a small random model: of enumerated answers, against sums over all
tokenizations, and of larger languages, against sums over all their texts."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from tiny import BruteForce, tiny_llama

from bpe_automata import compile_regex, constrain
from bpe_automata.errors import ArgumentError, BudgetExceededError
from experiments import models
from experiments.answers import asked
from experiments.answers.cases import CASES as CASES_OF_STUDY
from experiments.answers.cases import SHORT, StudyCase, chosen
from experiments.answers.methods import ChopLanguage, OutlinesIndex
from experiments.engines.peers import OutlinesCore
from experiments.study.distortion_study import artefact as distortion_study
from experiments.study.distortion_study.artefact import Config
from experiments.study.sampled import artefact as sampled
from experiments.study.sampled.artefact import Texts, features
from experiments.trie import Automaton

CASES = (
    StudyCase("a", "yes_no", "q", "plain", "space", "Answer:", (" yes", " no"), truth=(" no",)),
    StudyCase("b", "yes_no", "q", "plain", "no_space", "Answer: ", ("yes", "no"), truth=("no",)),
    StudyCase("c", "names", "c", "chat", "newline", "Who?", ("Ann", "Bob")),
    StudyCase("d", "names", "d", "plain", "space", "At", (), r" [ab]{1,3}\.", (" a.", " bb.")),
)
CONFIG = Config(models=("tiny",), temperatures=(0.7, 1.0), slack=1e-9, unread=1e-9, populations=40)
LARGE = CASES[3]
SAMPLED = sampled.Config(models=("tiny",), samples=96, dtype="float32")


@pytest.fixture(scope="module")
def loaded(smollm2_tokenizer):
    return tiny_llama(smollm2_tokenizer)


@pytest.fixture
def ready(loaded, monkeypatch):
    monkeypatch.setattr(models, "opened", lambda *_: loaded)
    asked.opened.cache_clear()
    yield
    asked.opened.cache_clear()


def free_distribution(loaded, prompt, answers, temperature):
    brute = BruteForce(loaded, prompt, temperature)
    mass = np.array([sum(map(brute.free, brute.tokenizations(a.encode()))) for a in answers])
    return mass / mass.sum()


def test_a_row_of_enumerated_answers_holds_the_distributions_at_each_temperature(ready, loaded):
    row = distortion_study.enumerated_row(CONFIG, "tiny", CASES[0])
    json.dumps(row, allow_nan=False)
    distortion_study.enumerated_row(CONFIG, "tiny", CASES[2])
    assert distortion_study.enumerated_row(CONFIG, "tiny", CASES[0]) == row, "whatever was before"
    for temperature in CONFIG.temperatures:
        free = free_distribution(loaded, "Answer:", CASES[0].answers, temperature)
        assert row["temperatures"][str(temperature)]["free"] == pytest.approx(free)
    assert row["healing"] is None
    assert row["draws_at"] == 1.0
    assert row["canonical_tokens"] == [1, 1]
    assert row["temperatures"]["1.0"]["p_right"] == row["temperatures"]["1.0"]["free"][1]
    for part in row["draws"]["canonical"]["smc"].values():
        assert sum(part["law"]) == pytest.approx(1)


def test_a_prompt_that_ends_inside_a_token_is_judged_without_its_end(ready, loaded):
    row = distortion_study.enumerated_row(CONFIG, "tiny", CASES[1])
    healed = free_distribution(loaded, "Answer:", (" yes", " no"), 0.7)
    assert row["temperatures"]["0.7"]["free"] == pytest.approx(healed)
    assert (row["healing"]["given_back"], row["healing"]["text"]) == (1, " ")


def test_a_budget_that_reaches_no_answer_is_an_error(ready):
    long = replace(CASES[2], answers=("Annabellina", "Bobberino"))
    with pytest.raises(BudgetExceededError, match="raise --most-nodes"):
        distortion_study.enumerated_row(replace(CONFIG, most_nodes=1), "tiny", long)


def test_ids_of_answers_that_the_search_left_open(ready, loaded):
    answers = (*(f" {letter}" for letter in "ABCDEFGH"), " Zarathustra")
    case = replace(CASES[0], answers=answers, truth=())
    row = distortion_study.enumerated_row(replace(CONFIG, slack=0.99, unread=100.0), "tiny", case)
    encode = loaded.tokenizer.encode
    ids = [len(encode("Answer:" + answer)) - len(encode("Answer:")) for answer in case.answers]
    assert row["canonical_tokens"] == ids
    assert max(ids) > 1


def test_an_engine_that_reaches_no_answer_is_absent_alone(ready, loaded, monkeypatch):
    """Of an index whose only path is a dead end."""
    (space,) = loaded.tokenizer.encode(" ")
    nowhere = Automaton(0, ({space: 1}, {})), True
    monkeypatch.setattr(OutlinesIndex, "__init__", lambda self, tokenizer, eos_ids: None)
    monkeypatch.setattr(OutlinesIndex, "automaton", lambda self, answers: nowhere)
    row = distortion_study.enumerated_row(CONFIG, "tiny", CASES[0])
    assert row["absent"] == {"outlines": "can write no answer, it has dead ends alone"}
    for at in row["temperatures"].values():
        assert list(at["methods"]) == ["lift", "canonical", "chop"]


def test_rows_of_another_outlines_core_are_not_gone_on_with(monkeypatch):
    monkeypatch.setattr(OutlinesCore, "version", classmethod(lambda _: "0.2.14"))
    for made in (distortion_study.inputs(CONFIG), sampled.inputs(SAMPLED)):
        assert made == {"peers": {"outlines_core": "0.2.14"}}


def test_a_model_of_an_unknown_name_is_asked_all_cases(ready, monkeypatch, loaded):
    mine = replace(loaded, name="mine", instruct=True)
    monkeypatch.setattr(models, "opened", lambda *_: mine)
    asked.opened.cache_clear()
    marked = loaded.tokenizer.decode(asked.opened("mine", "cpu", "f").prompt_ids(CASES[2]))
    assert marked == "<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\n"
    mine = replace(mine, instruct=False)
    asked.opened.cache_clear()
    row = distortion_study.enumerated_row(CONFIG, "mine", CASES[2])
    assert row["prompt_tokens"] == len(loaded.tokenizer.encode("Question: Who?\nAnswer:\n"))
    assert asked.model_row("mine", "cpu", "float32")["chat_format"] == "plain"


def test_cases_by_name_or_family():
    def names(*words):
        return [case.name for case in chosen(CASES, words)]

    assert names() == ["a", "b", "c", "d"]
    assert names("names", "b") == ["b", "c", "d"]
    with pytest.raises(ArgumentError, match="'cake'"):
        names("a", "cake")


@pytest.fixture(scope="module")
def measured(loaded):
    """Rows by case."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "opened", lambda *_: loaded)
        asked.opened.cache_clear()
        healed = replace(LARGE, name="h", prompt="At ", pattern=r"[ab]{1,2}\.", truth=("b.",))
        small = replace(SAMPLED, samples=16)
        yield {
            "d": sampled.sampled_row(SAMPLED, "tiny", LARGE),
            "h": sampled.sampled_row(small, "tiny", healed),
        }
        asked.opened.cache_clear()


@pytest.fixture(scope="module")
def brute(loaded):
    return BruteForce(loaded, "At")


TEXTS = [f" {''.join(body)}." for n in (1, 2, 3) for body in product("ab", repeat=n)]


@pytest.fixture(scope="module")
def spelled(brute):
    """By method, the id sequences of each text."""
    return {
        "lift": [brute.tokenizations(text.encode()) for text in TEXTS],
        "canonical": [[brute.canonical(text)] for text in TEXTS],
    }


@pytest.fixture(scope="module")
def free(brute, spelled):
    """The model's probability of each text, in all its tokenizations."""
    return np.array([sum(map(brute.free, paths)) for paths in spelled["lift"]])


def test_masses_are_estimated(measured, brute, spelled, free):
    row = measured["d"]
    json.dumps(row, allow_nan=False)
    own = sum(brute.free(path) for (path,) in spelled["canonical"])
    for method, mass in {"lift": free.sum(), "canonical": own}.items():
        for found in (row["methods"][method], row["smc"][method]):
            assert abs(found["log_z"] - np.log(mass)) < 5 * found["log_z_error"]
        assert row["methods"][method]["ended"] == SAMPLED.samples
    share = row["canonical_share"]
    assert abs(share["value"] - own / free.sum()) < 5 * share["error"]


@pytest.mark.parametrize("method", ["lift", "canonical"])
def test_right_answers_are_counted(measured, brute, spelled, method):
    distribution = brute.distribution(spelled[method])
    p = sum(distribution[TEXTS.index(text)] for text in LARGE.truth)
    count = measured["d"]["methods"][method]["right"]
    assert abs(count - 96 * p) < 5 * np.sqrt(96 * p * (1 - p))


def test_distributions_of_features_and_their_intervals(measured, brute, spelled, free):
    row = measured["d"]
    of_a = np.array([text[1] == "a" for text in TEXTS])
    exact = {"free": free @ of_a / free.sum()}
    exact |= {
        m: float(np.array(brute.distribution(spelled[m])) @ of_a) for m in ("lift", "canonical")
    }
    first = row["features"]["first"]
    assert first["values"] == ["a", "b", "(rest)"]
    assert first["free"][0] == pytest.approx(exact["free"], abs=0.15)
    for method in ("lift", "canonical"):
        assert first["laws"][method][0] == pytest.approx(exact[method], abs=0.12)
        at = first["tv"][method]
        assert at["value"] == pytest.approx(abs(exact[method] - exact["free"]), abs=0.2)
        assert at["low"] < at["value"] < at["high"]
        assert 0 < at["noise"] < at["high"] - at["value"]
    assert set(first["tv"]) >= {"chop", "canonical weighted", "lift SMC", "canonical SMC"}


def test_text_that_was_given_back_is_no_feature(measured):
    row = measured["h"]
    assert (row["healing"]["given_back"], row["healing"]["text"]) == (1, " ")
    assert set(row["features"]["length"]["values"]) == {"0-3", "(rest)"}
    assert row["methods"]["lift"]["right"] > 0


def test_ids_that_a_constraint_does_not_allow(smollm2_tokenizer):
    constraint = constrain(smollm2_tokenizer, r" yes\.", eos_ids=())
    ids = smollm2_tokenizer.encode(" yes.")
    assert sampled.follows(constraint, [], ids)
    split = [t for part in (" y", "es", ".") for t in smollm2_tokenizer.encode(part)]
    assert not sampled.follows(constraint, [], split)


def test_chop_appends_its_ids_and_leaves_the_rest_to_the_lift(smollm2_tokenizer):
    lift = constrain(smollm2_tokenizer, r" (yes|no), certainly\.", eos_ids=())
    prompt = smollm2_tokenizer.encode("So:")
    matcher, plain = ChopLanguage(lift).matcher(prompt), lift.matcher(prompt)

    def masked():
        bits = np.zeros((1, (lift.n_ids + 31) // 32), dtype=np.int32)
        matcher.copy().mask(bits)
        return np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little")).tolist()

    assert masked() == plain.allowed_ids().tolist()
    matcher.advance(smollm2_tokenizer.encode(" yes")[0])
    for token in smollm2_tokenizer.encode(", certainly."):
        assert masked() == [token]
        matcher.advance(token)
    assert masked() == []
    assert matcher.is_accepting


def test_values_that_are_hardly_seen_are_the_rest(rng):
    texts = Texts([b"aa"] * 30 + [b"b", b"c", b""], np.zeros(33))
    made = features(dict.fromkeys(("lift", "canonical"), texts), {}, np.ones(33, bool), (), rng)
    assert made["first"]["values"] == ["a", "(rest)"]
    assert made["first"]["free"] == pytest.approx([30 / 33, 3 / 33])
    assert set(made) == {"first", "length"}


def test_of_each_family_the_shortest_larger_language_is_asked():
    """Of those of over 10,000 texts: by the automaton of the bytes, which has no cycle."""
    sizes = {case: size_of(case.pattern) for case in CASES_OF_STUDY if not case.is_enumerated()}
    large = [case for case, (texts, _) in sizes.items() if texts > 10_000]
    shortest = {
        family: min((case for case in large if case.family == family), key=lambda c: sizes[c][1])
        for family in dict.fromkeys(case.family for case in large)
    }
    left_out = {"strings", "yes_no", "function_calls"}
    asked_for = {case.name for family, case in shortest.items() if family not in left_out}
    assert asked_for == set(SHORT)


def size_of(pattern):
    """(texts, bytes of the longest)."""
    dfa = compile_regex(pattern)
    wide = np.bincount(dfa.byte_class, minlength=dfa.n_classes)

    @cache
    def after(state):
        steps = [
            (n, after(to))
            for n, to in zip(wide.tolist(), dfa.trans[state].tolist(), strict=True)
            if to
        ]
        ends = [(int(dfa.accepting[state]), 0)]
        found = ends + [(n * texts, 1 + longest) for n, (texts, longest) in steps]
        return sum(texts for texts, _ in found), max(longest for _, longest in found)

    return after(dfa.start)
