"""Free draws: what ids are a draw of, and what the test of fit finds."""

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.artefacts import free_draws
from experiments.artefacts.free_draws import OUTCOMES, decided

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
            return "other", -1, ids[: k + 1]
        for number, answer in enumerate(ANSWERS):
            if text.startswith(answer) and not before.startswith(answer):
                return "exact" if text == answer else "past", number, ids[: k + 1]
        if not any(answer.startswith(text) for answer in ANSWERS):
            return "other", -1, ids[: k + 1]
    return None


@given(st.lists(st.integers(0, END), max_size=5))
def test_a_draw_is_what_its_text_says(ids):
    assert decided(ids, ANSWERS, TOKENIZER, (END,)) == of_all_continuations(ids)


EXACT = {"exact": [0.4, 0.05, 1e-3], "past": [0.05, 0.02, 1e-5]}


def row_of(shares, draws, seed):
    """A row whose counts come from `shares`, and whose exact numbers are `EXACT`."""
    flat = [p for outcome in OUTCOMES for p in shares[outcome]]
    drawn = np.random.default_rng(seed).multinomial(draws, [*flat, 1 - sum(flat)])[:-1]
    counts = drawn.reshape(len(OUTCOMES), -1).tolist()
    found = {f"{o} drawn": of for o, of in zip(OUTCOMES, counts, strict=True)}
    row = {"source": "m", "prompt": f"p{seed}", "draws": draws, "read": 2 * draws}
    return row | EXACT | found


def test_draws_from_the_exact_probabilities_fit():
    rows = pd.DataFrame([row_of(EXACT, 2000, seed) for seed in range(30)])
    each = free_draws.points(rows)["p"]
    assert free_draws.corrected(free_draws.points(rows.head(5))) > 1e-3
    assert 0.35 < np.mean(each) < 0.65  # p is uniform where the numbers are right


@pytest.mark.parametrize(("outcome", "share"), [("past", 0.08), ("exact", 0.37)])
def test_draws_from_others_do_not(outcome, share):
    shares = EXACT | {outcome: [share, *EXACT[outcome][1:]]}
    rows = pd.DataFrame([row_of(shares, 4000, seed) for seed in range(5)])
    assert free_draws.corrected(free_draws.points(rows)) < 1e-3
