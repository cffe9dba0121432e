"""Token tables in torch, as pure functions, against the same in numpy."""

from __future__ import annotations

import numpy as np
import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st
from listed_automata import listings

torch = pytest.importorskip("torch")

from small_tables import END, FORMS, ON, finite, hand_made  # noqa: E402

from bpe_automata.decoding import TokenTable  # noqa: E402
from bpe_automata.errors import (  # noqa: E402
    BufferShapeError,
    LogitsError,
    TokenOutOfRangeError,
)
from bpe_automata.integrations.torch_table import TorchTable  # noqa: E402


@ON
@FORMS
@given(listing=listings(), data=st.data())
@examples(50)
def test_torch_equals_numpy(device, dense, listing, data):
    """But for finished rows, which stay where they are while they read their ends."""
    table = TokenTable.of(listing.automaton, listing.eos_ids, listing.n_ids, dense=dense)
    ends = data.draw(st.none() | st.lists(st.integers(0, listing.n_ids - 1), max_size=2))
    there = TorchTable.of(table, device, ends)
    is_end = np.isin(np.arange(listing.n_ids), listing.eos_ids if ends is None else ends)
    rows = data.draw(st.integers(0, 9))
    numbers = data.draw(st.lists(st.integers(0, table.n_states), min_size=rows, max_size=rows))
    any_id = st.integers(-2, listing.n_ids + 2)
    ids = np.array(data.draw(st.lists(any_id, min_size=rows, max_size=rows)), dtype=np.int64)
    states = np.array(numbers, dtype=np.int64)
    at, tokens = torch.tensor(states, device=device), torch.tensor(ids, device=device)
    allowed = table.allowed(states) | (table.finished[states][:, None] & is_end)
    wide = data.draw(st.integers(0, 40))
    read = there.allowed(at, listing.n_ids + wide).cpu().numpy()
    assert np.array_equal(read, np.pad(allowed, ((0, 0), (0, wide))))
    known = (ids >= 0) & (ids < listing.n_ids)
    stays = table.finished[states] & known & is_end[np.where(known, ids, 0)]
    wanted = np.where(stays, states, table.step(states, ids))
    after = there.advance(at, tokens)
    assert after.cpu().numpy().tolist() == wanted.tolist()
    assert there.accepting[after].cpu().numpy().tolist() == table.accepting[wanted].tolist()
    order = torch.tensor(data.draw(st.permutations(range(rows))), dtype=torch.long, device=device)
    assert torch.equal(there.advance(at[order], tokens[order]), after[order])


@ON
@FORMS
def test_a_loop_carries_its_states(device, dense):
    """Two rows: 3 5 end, and 3 4 3 5 end; the first then waits, filled with its end."""
    table = TorchTable.of(hand_made(dense), device)
    states = table.begin(2)
    read = [[3, 3], [5, 4], [END, 3], [END, 5], [END, END]]
    for ids in read:
        scores = table.mask(states, torch.zeros(2, 12, device=device))
        for row, token in enumerate(ids):
            assert token in finite(scores)[row]
        states = table.advance(states, torch.tensor(ids, device=device))
    assert states.tolist() == [table.table.end] * 2
    assert table.accepting[states].all()
    assert finite(table.mask(states, torch.zeros(2, 12, device=device))) == [[END]] * 2


@FORMS
def test_nothing_waits_for_the_device(dense):
    """Tensors of the device "meta" have no values: whoever asks for one fails."""
    table = TorchTable.of(hand_made(dense), "meta")
    states = table.advance(table.begin(3), torch.zeros(3, dtype=torch.long, device="meta"))
    masked = table.mask(states, torch.zeros(3, 12, device="meta"), check=False)
    assert (states.shape, masked.shape) == ((3,), (3, 12))
    with pytest.raises((RuntimeError, NotImplementedError)):
        table.mask(states, masked)


@ON
@FORMS
def test_numbers_that_are_no_state_are_dead(device, dense):
    table = TorchTable.of(hand_made(dense), device)
    states = torch.tensor([-1, 0, 5, 99, 1], device=device)
    assert table.advance(states, torch.full((5,), 3, device=device)).tolist() == [0, 0, 0, 0, 2]
    assert finite(table.mask(states, torch.zeros(5, 10, device=device)))[:4] == [[END]] * 4


@ON
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_logits_that_are_allowed_are_left_as_they_were(device, dtype):
    table = TorchTable.of(hand_made(), device)
    logits = torch.randn(2, 10, generator=torch.Generator().manual_seed(1)).to(device, dtype)
    before = logits.clone()
    masked = table.mask(torch.tensor([1, 2], device=device), logits)
    assert torch.equal(logits, before)
    assert masked.dtype == dtype
    assert finite(masked) == [[3], [4, 5]]
    assert torch.equal(masked[masked.isfinite()], logits[[0, 1, 1], [3, 4, 5]])


@ON
@FORMS
@pytest.mark.parametrize(
    ("row", "match"),
    [
        ([0.0] * 3 + [torch.nan] + [0.0] * 6, "row 1: the logit of id 3, which is allowed, is nan"),
        ([0.0] * 3 + [torch.inf] + [0.0] * 6, "row 1: the logit of id 3, which is allowed, is inf"),
        ([-torch.inf] * 10, "row 1: every id that is allowed"),
        ([0.0] * 3 + [-torch.inf] + [0.0] * 6, "row 1: every id that is allowed"),
    ],
)
def test_logits_that_nothing_can_be_drawn_from(device, dense, row, match):
    table = TorchTable.of(hand_made(dense), device)
    logits = torch.tensor([[0.0] * 10, row], device=device)
    with pytest.raises(LogitsError, match=match):
        table.mask(table.begin(2), logits)
    unchecked = table.mask(table.begin(2), logits, check=False)
    assert finite(unchecked)[0] == [3]
    if torch.isneginf(logits).any():
        assert torch.equal(table.mask(table.begin(2), logits, beams=True), unchecked)
    else:
        with pytest.raises(LogitsError, match=match):
            table.mask(table.begin(2), logits, beams=True)


@ON
@FORMS
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_only_what_is_allowed_is_looked_at_and_finished_rows_need_no_mass(device, dense, value):
    table = TorchTable.of(hand_made(dense), device)
    logits = torch.full((2, 12), value, device=device)
    logits[0, 3] = 0.0
    logits[1, END] = -torch.inf
    states = torch.tensor([table.table.start, table.table.end], device=device)
    assert finite(table.mask(states, logits)) == [[3], []]


def test_shapes_that_do_not_fit():
    table = TorchTable.of(hand_made())
    start = table.begin(2)
    assert torch.isneginf(table.mask(start, torch.zeros(2, 14))[:, 10:]).all()
    for wrong in (torch.zeros(2, 9), torch.zeros(20), torch.zeros(2, 10, dtype=torch.int32)):
        with pytest.raises(LogitsError, match="10 ids"):
            table.mask(start, wrong)
    with pytest.raises(BufferShapeError, match="3 rows"):
        table.mask(start, torch.zeros(3, 10))
    with pytest.raises(BufferShapeError, match="9 columns"):
        table.allowed(start, 9)
    with pytest.raises(TokenOutOfRangeError, match="10"):
        TorchTable.of(hand_made(), ends=[10])


def test_ended_rows_without_anything_to_fill_them():
    table = TorchTable.of(hand_made(), ends=[])
    with pytest.raises(LogitsError, match="row 1 has ended"):
        table.mask(torch.tensor([1, 4]), torch.zeros(2, 10))
