"""Token tables in torch equal those in numpy, and their logits processor equals the matcher."""

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

from bpe_automata import constrain  # noqa: E402
from bpe_automata._decoding.matcher import Matcher  # noqa: E402
from bpe_automata._decoding.token_table import Listed, TokenTable  # noqa: E402
from bpe_automata.integrations.torch_table import TorchTable  # noqa: E402
from bpe_automata.integrations.transformers._processor import ConstraintLogitsProcessor  # noqa: E402
from bpe_automata.integrations.transformers._table_processor import TokenTableProcessor  # noqa: E402
from bpe_automata.testing import byte_level, byte_spelling, small_tokenizer  # noqa: E402


def finite(scores):
    return [row.isfinite().nonzero()[:, 0].tolist() for row in scores]


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


# ---------------------------------------------------------------- the logits processor


def rows_of(engine, rng, rows, length):
    """Ids of any kind, most of them allowed where they stand."""
    found = []
    for _ in range(rows):
        matcher, ids = Matcher(engine), []
        for _ in range(length):
            options = matcher.allowed_ids().tolist()
            token = rng.choice(options) if options else rng.randrange(engine.n_ids)
            if rng.random() < 0.1:
                token = rng.randrange(engine.n_ids + 2)
            if token in options:
                matcher.advance(token)
            ids.append(token)
        found.append(ids)
    return found


def allowed_after(engine, ids, fill):
    """By the matcher: a row that has ended, or read what it may not, reads `fill` alone."""
    matcher = Matcher(engine)
    for token in ids:
        if token not in matcher.allowed_ids():
            return fill
        matcher.advance(token)
    return matcher.allowed_ids().tolist() or fill


@ON
@given(listing=listings(), rng=st.randoms(use_true_random=False))
@examples(25)
def test_the_processor_equals_the_matcher_however_rows_are_reordered(device, listing, rng):
    """Step by step as beam search goes: any row may follow any row of its own prompt."""
    pad, prompts, beams, steps = listing.n_ids - 1, 2, 3, 5
    table = TokenTable.of(listing.automaton, listing.eos_ids, listing.n_ids)
    prompt = torch.zeros(prompts, 4, dtype=torch.long, device=device)
    processor = TokenTableProcessor(table, prompt, pad_id=pad)
    fill = sorted({*listing.eos_ids, pad})
    engine = Listed(listing.automaton, listing.eos_ids, listing.n_ids)
    final = rows_of(engine, rng, prompts * beams, steps)
    scores = torch.zeros(prompts * beams, listing.n_ids + 3, device=device)
    for step in range(steps + 1):
        for start in range(0, len(final), beams):
            own = final[start : start + beams]
            final[start : start + beams] = [rng.choice(own) for _ in own]
        ids = torch.tensor([[0] * 4 + row[:step] for row in final], device=device)
        masked = finite(processor(ids, scores))
        assert masked == [allowed_after(engine, row[:step], fill) for row in final]
        fresh = TokenTableProcessor(table, prompt, pad_id=pad)
        assert torch.equal(fresh.states(ids), processor.states(ids))


# ---------------------------------------------------------------- constraints written out


EOS = (11, 12)


@pytest.fixture(scope="module")
def tokenizer():
    vocabulary = ["a", "b", "c", "ab", "abc", "<", "|", "x", ">", *byte_spelling("é".encode())]
    merges = [("a", "b"), ("ab", "c")]
    return small_tokenizer(vocabulary, merges, byte_level(), ["<end>", "<stop>", "<|x|>"])


@pytest.mark.parametrize("method", ["canonical", "lift"])
@pytest.mark.parametrize("regex", [r"(abc){0,2}|ab|c<\|x\|>|é|bca<\|", "(a|bc)*é?", "ab"])
def test_a_constraint_written_out_masks_like_the_constraint(method, regex, tokenizer):
    """At every sequence of up to four ids, allowed or not."""
    constraint = constrain(tokenizer, regex, method=method, eos_ids=EOS)
    table = TokenTable.of(constraint.automaton(), EOS, tokenizer.n_ids)
    prompt = torch.tensor([[0]])
    ours = TokenTableProcessor(table, prompt, pad_id=1)
    theirs = ConstraintLogitsProcessor(constraint, prompt, prefix=False, pad_id=1)
    rng, rows = np.random.default_rng(5), torch.zeros(1, 1, dtype=torch.long)
    for _ in range(5):
        rows = rows[torch.from_numpy(rng.permutation(len(rows)))][:300]
        scores = torch.from_numpy(rng.normal(size=(len(rows), tokenizer.n_ids + 5)))
        assert torch.equal(ours(rows, scores), theirs(rows, scores))
        follow = torch.arange(tokenizer.n_ids).repeat(len(rows))
        rows = torch.column_stack((rows.repeat_interleave(tokenizer.n_ids, 0), follow))
        # Half of what goes on is allowed, so that the paths get long.
        read = ours(rows[:, :-1], torch.zeros(len(rows), tokenizer.n_ids)).isfinite()
        good = read.gather(1, follow[:, None])[:, 0]
        rows = torch.cat((rows[good], rows[~good][: int(good.sum())]))
