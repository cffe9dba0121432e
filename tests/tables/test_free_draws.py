"""Free draws: what ids are a draw of, and what the test of fit finds."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import tiny_llama

from experiments.study.free_draws import artefact
from experiments.study.free_draws import report as free_draws
from experiments.study.free_draws.artefact import decided
from experiments.study.free_draws.report import OUTCOMES

PIECES = (b"a", b"b", b"ab", b"ba", b"aba", b"", b"<end>")
END = len(PIECES) - 1
TOKENIZER = SimpleNamespace(token_bytes=PIECES.__getitem__)
ANSWERS = (b"aa", b"ab", b"ba")


def of_all_continuations(ids):
    """The same from the definition: what becomes of ids of which the first `k` spell an answer, or
    go past one."""
    texts = [b"".join(PIECES[i] for i in ids[:k]) for k in range(len(ids) + 1)]
    for k, (before, text) in enumerate(itertools.pairwise(texts)):
        if ids[k] == END or not PIECES[ids[k]]:
            return "other", -1, (), k + 1
        for number, answer in enumerate(ANSWERS):
            if text == answer and k + 1 < len(ids):
                ended = ids[k + 1] == END
                return "complete" if ended else "goes on", number, tuple(ids[: k + 1]), k + 2
            if text == answer:
                return None
            if text.startswith(answer) and not before.startswith(answer):
                return "past", number, (), k + 1
        if not any(answer.startswith(text) for answer in ANSWERS):
            return "other", -1, (), k + 1
    return None


@given(st.lists(st.integers(0, END), max_size=5))
def test_a_draw_is_what_its_text_says(ids):
    found, expected = decided(ids, ANSWERS, TOKENIZER, (END,)), of_all_continuations(ids)
    assert (found and (found.outcome, found.answer, found.ids, found.read)) == expected


def test_every_draw_is_decided_with_one_id_more_than_the_longest_answer_has_bytes():
    for ids in itertools.product(range(len(PIECES)), repeat=3):
        assert decided(ids, ANSWERS, TOKENIZER, (END,)) is not None


EXACT = {"complete": [0.1, 0.05, 1e-4], "goes on": [0.3, 0.0, 1e-3], "past": [0.05, 0.02, 1e-5]}


def row_of(shares, draws, seed):
    """A row whose counts come from `shares`, and whose exact numbers are `EXACT`."""
    flat = [p for outcome in OUTCOMES for p in shares[outcome]]
    drawn = np.random.default_rng(seed).multinomial(draws, [*flat, 1 - sum(flat)])[:-1]
    counts = dict(zip(OUTCOMES, drawn.reshape(3, -1).tolist(), strict=True))
    mass = {t: sum(sum(EXACT[o]) for o in accepted) for t, accepted in free_draws.ACCEPTED.items()}
    exact = {
        "probability": EXACT,
        "log10_mass": {target: float(np.log10(p)) for target, p in mass.items()},
        "slack": dict.fromkeys(mass, 0.0),
        "canonical": 0.9,
        "tv": {},
    }
    return {
        "model": "m",
        "prompt": f"p{seed}",
        "draws": draws,
        "counts": counts,
        "canonical": 3,
        "read": 2 * draws,
        "exact": exact,
    }


def test_draws_from_the_exact_probabilities_fit():
    rows = pd.DataFrame([row_of(EXACT, 2000, seed) for seed in range(200)])
    each = [point["p"] for point in free_draws.points(rows)]
    assert free_draws.wrong(rows, {}) == []
    assert 0.4 < np.mean(each) < 0.6  # p is uniform where the numbers are right


@pytest.mark.parametrize(("outcome", "share"), [("past", 0.08), ("complete", 0.07)])
def test_draws_from_others_do_not(outcome, share):
    shares = EXACT | {outcome: [share, *EXACT[outcome][1:]]}
    (said,) = free_draws.wrong(pd.DataFrame([row_of(shares, 4000, seed) for seed in range(5)]), {})
    assert "do not fit" in said


def test_what_rejection_costs():
    """An answer of one id that is always written costs one id, and the end behind it another."""
    row = row_of(EXACT, 1000, 0)
    sure = {"complete": [1.0, 0.0, 0.0], "goes on": [0.0] * 3, "past": [0.0] * 3}
    row["exact"] |= {"probability": sure, "log10_mass": dict.fromkeys(free_draws.ACCEPTED, 0.0)}
    row["counts"] = {"complete": [1000, 0, 0], "goes on": [0] * 3, "past": [0] * 3}
    (point,) = free_draws.points(pd.DataFrame([row]))
    assert point["cost"] == {"sequence": 1, "prefix": 1, "complete": 2}
    row["exact"]["slack"] = {"sequence": 0, "prefix": 0, "complete": 1.0}
    (point,) = free_draws.points(pd.DataFrame([row]))
    assert point["cost"]["complete"] is None


def test_what_is_impossible_never_fits():
    """However rare outcomes are: none of them is counted together with others."""
    none = {"complete": [0.0] * 3, "goes on": [0.2, 0.05, 0.0], "past": [0.0] * 3}
    row = row_of(EXACT, 2000, 0)
    row["exact"] |= {"probability": none}
    row["counts"] = {"complete": [0] * 3, "goes on": [400, 100, 0], "past": [0] * 3}
    assert free_draws.fit(row) > 0.5
    assert free_draws.fit(row | {"counts": row["counts"] | {"past": [0, 1, 0]}}) == 0


def test_the_least_p_is_corrected_for_their_number():
    each = [{"p": 0.02}, *[{"p": 0.5}] * 9]
    assert free_draws.corrected(each) == pytest.approx(0.2)
    assert free_draws.corrected([{"p": 0.5}] * 10) == 1
    assert free_draws.corrected([]) is None


def test_draws_of_a_model_fit_its_exact_numbers(smollm2_tokenizer, monkeypatch):
    """End to end, on a small random model with likely answers, whose own config says otherwise of
    how to draw."""
    torch = pytest.importorskip("torch")
    loaded = tiny_llama(smollm2_tokenizer)
    model = loaded.model
    texts = (" yes", " no", " maybe", "yes")
    likely = {i for text in texts for i in smollm2_tokenizer.encode(text)} | {2}
    head = torch.full((smollm2_tokenizer.n_ids,), -8.0, dtype=torch.float64)
    head[sorted(likely)] = 1.0
    forward = model.lm_head.forward
    monkeypatch.setattr(model.lm_head, "forward", lambda states: forward(states) * 0.05 + head)
    model.generation_config.repetition_penalty = 5.0
    model.generation_config.min_p = 0.3
    monkeypatch.setattr(artefact.models, "opened", lambda *_: loaded)
    artefact.opened.cache_clear()
    chosen = artefact.Config(draws=4000, batch=500, least_mass=0.0)
    row = artefact.prompt_row("tiny", artefact.Case("tiny", "Is it?", texts), chosen)
    artefact.opened.cache_clear()
    assert row["exact"]["log10_mass"]["sequence"] > -1.5
    assert sum(row["counts"]["complete"]) > 20
    assert free_draws.fit(row) > 1e-3
