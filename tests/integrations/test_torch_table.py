"""Token tables in torch equal those in numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples
from support.drawn import listings

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from hf_tiny import ON  # noqa: E402

from bpe_automata._decoding.token_table import TokenTable  # noqa: E402
from bpe_automata.integrations.torch_table import TorchTable  # noqa: E402


@ON
@given(listing=listings(), data=st.data())
@examples(50)
def test_torch_equals_numpy(device, listing, data):
    """But for finished rows, which stay where they are while they read their ends."""
    table = TokenTable.of(listing.automaton, listing.eos_ids, listing.n_ids)
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
