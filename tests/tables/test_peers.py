"""Peers: cases and exams are what they say, wrong engines are found out, and rows are summed up."""

from __future__ import annotations

import random
import re

import pytest

from bpe_automata import compile_regex, constrain
from bpe_automata._kernels.bits import members, packed
from bpe_automata.models import character_tokenizer
from bpe_automata.reference import lift_mask
from experiments.engines.interface import PeerError, ordinary
from experiments.engines.named import OURS, engine_of
from experiments.run.executors import FAILURE
from experiments.serving import peers
from experiments.serving.peers import CASES, exam
from experiments.serving.peers_child import Answers

SMALL = [name for name, case in CASES.items() if case.is_small]


@pytest.mark.parametrize("name", CASES)
def test_texts_are_inside_and_outside(name):
    case, dfa = CASES[name], compile_regex(CASES[name].regex)
    for text in case.inside:
        assert re.fullmatch(case.regex, text)
        assert dfa.accepts(text.encode())
    for text in case.outside:
        assert not re.fullmatch(case.regex, text)
        assert not dfa.accepts(text.encode())


@pytest.mark.parametrize("name", SMALL)
def test_small_languages_are_listed_whole(name):
    tokenizer = character_tokenizer("".join(CASES[name].inside))
    listed = constrain(tokenizer, CASES[name].regex).automaton().enumerate()
    assert {tokenizer.decode(ids) for ids in listed} == set(CASES[name].inside)


@pytest.fixture(scope="module")
def exams(smollm2_tokenizer):
    made = {}

    def of(name):
        if name not in made:
            made[name] = exam(smollm2_tokenizer, CASES[name], 12, random.Random(3))
        return made[name]

    return of


def one_spelling(tokenizer, text):
    lift = constrain(tokenizer, re.escape(text), "lift", added_tokens=False)
    return len(list(lift.automaton().enumerate())) == 1


@pytest.mark.parametrize("name", CASES)
def test_offers_spell_texts_of_the_language_as_the_tokenizer_does_not(
    exams, smollm2_tokenizer, name
):
    dfa, added = compile_regex(CASES[name].regex), smollm2_tokenizer.added_ids
    assert exams(name).offers or all(
        one_spelling(smollm2_tokenizer, text) for text in CASES[name].inside
    )
    for ids in exams(name).offers:
        text = smollm2_tokenizer.text_bytes(ids)
        assert dfa.accepts(text)
        assert smollm2_tokenizer.encode(text.decode()) != ids
        assert added.isdisjoint(ids)


@pytest.mark.parametrize("name", SMALL)
def test_masks_are_those_of_the_reference(exams, smollm2_tokenizer, name):
    """What may follow any ids, by trying every id; the tokenizer's own are among them."""
    dfa, made = compile_regex(CASES[name].regex), exams(name)
    plain = ordinary(smollm2_tokenizer)
    order = list(range(len(made.prefixes)))
    for k in order[:: max(1, len(order) // 2)]:
        state = dfa.walk(smollm2_tokenizer.text_bytes(made.prefixes[k]))
        tried = lift_mask(smollm2_tokenizer, dfa, state)
        assert {*members(made.possible[k]).tolist()} == tried & set(plain)
    assert len(made.canonical) == len(made.prefixes) > 0
    assert not (made.canonical & ~made.possible).any()
    assert made.canonical.any(axis=1).all()


def asked(engine, made, tokenizer, seconds=20.0):
    bits = packed(ordinary(tokenizer), tokenizer.n_ids)
    answers = Answers(engine, made, bits, tokenizer.eos_ids, 2, seconds)
    row = answers.compiled()
    return (
        row
        | answers.masks(answers.begin)
        | answers.admitted(answers.begin)
        | (answers.compared(answers.begin))
    )


@pytest.mark.parametrize("name", ["answer", "prefixes", "contraction", "words"])
@pytest.mark.parametrize("engine", OURS)
def test_engines_of_this_package_make_no_mistake(exams, smollm2_tokenizer, engine, name):
    if (engine, name) == ("explicit", "words"):
        pytest.skip("infinitely many texts, and too many transitions")
    row = asked(engine_of(engine, smollm2_tokenizer), exams(name), smollm2_tokenizer)
    assert (row["blocked"], row["completed"]) == ([], [])
    assert (row["missing"], row["impossible"], row["unreached"]) == (0, 0, 0)
    assert row["inside"] == len(exams(name).inside)
    assert row["offered"] == len(exams(name).offers)
    assert len(row["compile"]) == len(row["first"]) == 2
    inside = exams(name).inside
    assert len(row["warm"]) == sum(len(ids) + 1 for ids in inside)  # and the end of each
    new = {tuple(ids[:n]) for ids in inside for n in range(1, len(ids) + 1)}
    assert len(row["cold"]) == len(new)
    every = engine == "lift"
    assert row["admitted"] == (row["offered"] if every else 0)
    assert (row["other"] > 0) == (every and bool(row["places"]))


class Scripted:
    """An engine whose masks are what a function of the ids so far says."""

    def __init__(self, allowed, words):
        self._allowed, self._words = allowed, words

    def prepare(self, regex):
        return lambda: self.Session(self._allowed, self._words)

    class Session:
        def __init__(self, allowed, words):
            self._allowed, self._words, self._ids = allowed, words, []

        def mask(self, out):
            out[0] = packed(self._allowed(self._ids), 32 * self._words)

        def advance(self, token):
            self._ids.append(token)


def scripted(exams, tokenizer, allowed, name="answer", **given):
    engine = Scripted(allowed, (tokenizer.n_ids + 31) // 32)
    return asked(engine, exams(name), tokenizer, **given)


def test_an_engine_that_allows_everything_is_found_out(exams, smollm2_tokenizer):
    made, n = exams("answer"), smollm2_tokenizer.n_ids
    row = scripted(exams, smollm2_tokenizer, lambda ids: range(n))
    assert row["blocked"] == []
    assert row["completed"] == list(range(len(made.outside)))
    assert row["admitted"] == row["offered"] == len(made.offers)
    assert row["missing"] == 0
    plain = len(ordinary(smollm2_tokenizer))
    possible = sum(len(members(bits)) for bits in made.possible)
    assert row["impossible"] == plain * len(made.prefixes) - possible
    own = sum(len(members(bits)) for bits in made.canonical)
    assert row["other"] == possible - own


def test_an_engine_that_allows_nothing_is_found_out(exams, smollm2_tokenizer):
    made = exams("answer")
    row = scripted(exams, smollm2_tokenizer, lambda ids: [])
    assert row["blocked"] == list(range(len(made.inside)))
    assert (row["completed"], row["admitted"], row["other"], row["impossible"]) == ([], 0, 0, 0)
    assert row["unreached"] == sum(bool(ids) for ids in made.prefixes)
    assert row["missing"] == len(members(made.canonical[made.prefixes.index([])]))


@pytest.mark.parametrize("breaks", [True, False])
def test_an_engine_that_breaks_on_the_way_or_does_not_end_blocks(breaks, exams, smollm2_tokenizer):
    def allowed(ids):
        if ids and breaks:
            raise PeerError("broken")
        return {*range(smollm2_tokenizer.n_ids)} - {*smollm2_tokenizer.eos_ids}

    row = scripted(exams, smollm2_tokenizer, allowed)
    assert len(row["blocked"]) == row["inside"]
    assert row["completed"] == []


# ---------------------------------------------------------------- what is said of rows


def exam_row(**other):
    row = {"compile": [0.002], "first": [0.001], "cold": [1e-5, 3e-5], "warm": [2e-6]}
    row |= {"inside": 2, "blocked": [], "outside": 4, "completed": [], "offered": 7, "admitted": 0}
    row |= {"places": 3, "missing": 0, "impossible": 0, "other": 0, "unreached": 0, "peak_mb": 1.0}
    return row | other


def rows_of(engine, tokenizer="smollm2", **other):
    whose = {"engine": engine, "tokenizer": tokenizer}
    head = {"key": f"{engine} {tokenizer}", "ready": 1.0, "engine_mb": 2.0, "process_mb": 3.0}
    exam = {"key": f"{engine} {tokenizer} a", "constraint": "a", **exam_row(**other)}
    return [whose | head, whose | exam]


def exam_of(engine, constraint, **other):
    whose = {"engine": engine, "tokenizer": "smollm2", "constraint": constraint}
    return whose | {"key": f"{engine} smollm2 {constraint}"} | exam_row(**other)


def test_what_is_wrong_of_ours_is_wrong_and_what_is_of_others_is_a_number():
    rows = [
        *rows_of("canonical", admitted=1),
        *rows_of("lift", admitted=7, other=9, missing=2),
        *rows_of("outlines_core", admitted=5, blocked=[0], completed=[1]),
    ]
    made = peers.render(rows, {"peers": {"outlines_core": "0.2"}})
    assert made.wrong == ["canonical, smollm2: admitted 1", "lift, smollm2: missing 2"]
    assert made.facts["exact"] == []
    assert made.tables[1].rows[2][1:4] == ["1 of 2", "1 of 4", "5 of 7"]
    kept = peers.render([*rows_of("canonical"), *rows_of("lift", admitted=7)], {})
    assert kept.facts["exact"] == ["canonical"]
    assert kept.figures[0].headline.startswith("1 of 2 engines")


def test_medians_are_over_the_constraints_that_all_engines_answered():
    """The second constraint took the lift a second; glrmask refused it, so it does not count."""
    slow = {"compile": [1.0], "first": [1.0], "cold": [0.5], "warm": [0.5], "peak_mb": 99.0}
    refused = exam_of("glrmask", "b") | {FAILURE: "PeerError: no"}
    rows = [*rows_of("lift"), exam_of("lift", "b", **slow), *rows_of("glrmask"), refused]
    made = peers.render(rows, {})
    lift, glrmask = made.facts["asked"]
    assert lift["to_first_mask_ms"] == glrmask["to_first_mask_ms"] == pytest.approx(3)
    assert lift["cold_99_us"] == pytest.approx(30)
    assert lift["constraints"] == glrmask["constraints"] == 1
    assert lift["offered"] == 14  # what was admitted is of all that it answered
    silent = peers.render(
        [*rows_of("lift"), rows_of("glrmask")[0], exam_of("glrmask", "a") | refused], {}
    )
    assert [one["constraints"] for one in silent.facts["asked"]] == [1, 0]


def test_what_this_package_does_not_answer_is_wrong():
    """A written-out automaton may be too large; nothing of ours may crash."""
    rows = rows_of("lift")
    for engine, why in (
        ("canonical", "crashed: exit code 3"),
        ("lift", "BudgetExceededError: no"),
        ("explicit", "BudgetExceededError: no"),
        ("explicit", "crashed: exit code -11"),
        ("glrmask", "crashed: exit code 3"),
    ):
        rows.append(exam_of(engine, why[:3]) | {FAILURE: why})
    head = {"key": "lift gpt2", "engine": "lift", "tokenizer": "gpt2", FAILURE: "PeerError: no"}
    assert peers.render([*rows, head], {}).wrong == [
        "canonical smollm2 cra: crashed: exit code 3",
        "lift smollm2 Bud: BudgetExceededError: no",
        "explicit smollm2 cra: crashed: exit code -11",
        "lift gpt2: PeerError: no",
    ]
