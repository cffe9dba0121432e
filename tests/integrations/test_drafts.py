"""Speculative drafts equal advancing one by one, and leave the matcher as it was."""

from __future__ import annotations

import numpy as np
import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st
from served import END, REGEXES, constraint, ids_of_mask, tokenizer

from bpe_automata.decoding.drafts import accept, checked_draft, draft_masks, tree_masks
from bpe_automata.errors import ArgumentError, BufferShapeError, DecodingError, TokenNotAllowedError

WORDS = (tokenizer().n_ids + 31) // 32


@st.composite
def places(draw):
    """(matcher, what it has read) somewhere in a language."""
    matcher = constraint(draw(st.sampled_from(REGEXES))).matcher()
    for _ in range(draw(st.integers(0, 4))):
        if matcher.is_finished:
            break
        matcher.advance(draw(st.sampled_from(matcher.allowed_ids().tolist())))
    return matcher


@st.composite
def drafts(draw, matcher):
    """Ids that are mostly allowed, some of them not, some out of range."""
    twin, ids = matcher.copy(), []
    for _ in range(draw(st.integers(0, 5))):
        allowed = twin.allowed_ids().tolist()
        anything = st.integers(-2, tokenizer().n_ids + 2)
        token = draw(st.sampled_from(allowed) | anything if allowed else anything)
        ids.append(token)
        if token in allowed:
            twin.advance(token)
    return ids


def one_by_one(matcher, ids):
    """(how many are allowed, the masks on the way), by the definition."""
    twin = matcher.copy()
    masks = [set(np.flatnonzero(twin.mask()).tolist())]
    for count, token in enumerate(ids):
        try:
            twin.advance(token)
        except DecodingError:
            return count, masks
        masks.append(set(np.flatnonzero(twin.mask()).tolist()))
    return len(ids), masks


@given(st.data())
@examples(150)
def test_a_draft_equals_advancing_one_by_one(data):
    matcher = data.draw(places())
    ids = data.draw(drafts(matcher))
    before = matcher.ids, matcher.is_finished, matcher.mask().tolist()
    count, expected = one_by_one(matcher, ids)
    assert checked_draft(matcher, ids) == count
    masks = draft_masks(matcher, ids)
    assert (masks.dtype, masks.shape) == (np.int32, (len(ids) + 1, WORDS))
    found = [ids_of_mask(row) for row in masks]
    assert found[: count + 1] == expected
    assert not any(found[count + 1 :])
    assert (matcher.ids, matcher.is_finished, matcher.mask().tolist()) == before


@given(st.data())
@examples(100)
def test_accept_reads_all_or_nothing(data):
    matcher = data.draw(places())
    ids = data.draw(drafts(matcher))
    count, _ = one_by_one(matcher, ids)
    n = data.draw(st.integers(0, len(ids)))
    before = matcher.ids
    if n <= count:
        accept(matcher, ids, n)
        assert matcher.ids == before + tuple(ids[:n])
    else:
        with pytest.raises(DecodingError):
            accept(matcher, ids, n)
        assert matcher.ids == before
        accept(matcher, ids, count)
        assert matcher.ids == before + tuple(ids[:count])


@given(st.data())
@examples(100)
def test_each_path_of_a_tree_is_a_chain(data):
    matcher = data.draw(places())
    ids, parents = [], []
    for node in range(data.draw(st.integers(0, 7))):
        parents.append(data.draw(st.integers(-1, node - 1)))
        ids.append(data.draw(st.integers(0, tokenizer().n_ids)))
        path = path_to(node, parents)
        chain = [ids[k] for k in path]
        _, masks = one_by_one(matcher, chain[:-1])
        if len(masks) == len(path) and masks[-1] and data.draw(st.booleans()):
            ids[node] = data.draw(st.sampled_from(sorted(masks[-1])))
    before = matcher.ids
    found = tree_masks(matcher, ids, parents)
    assert matcher.ids == before
    for node in range(len(ids)):
        chain = [ids[k] for k in path_to(node, parents)]
        count, masks = one_by_one(matcher, chain)
        assert found.allowed[node] == (count == len(chain))
        expected = masks[-1] if found.allowed[node] else set()
        assert ids_of_mask(found.masks[node + 1]) == expected


def path_to(node, parents):
    return [] if node < 0 else [*path_to(parents[node], parents), node]


def test_rows_after_a_refused_id_are_left_alone_in_a_given_array():
    matcher = constraint("abab").matcher()
    ab, wrong = tokenizer().encode("ab")[0], tokenizer().encode("z")[0]
    out = np.full((4, WORDS + 1), 77, dtype=np.int32)
    assert draft_masks(matcher, [ab, wrong], out) is out
    assert [ids_of_mask(row) for row in out[:2]] == [{ab}, {ab}]
    assert (out[2:] == 77).all()


def test_an_end_of_sequence_in_a_draft_leaves_nothing():
    matcher = constraint("abab").matcher()
    ab = tokenizer().encode("ab")[0]
    masks = draft_masks(matcher, [ab, ab, END])
    assert [ids_of_mask(row) for row in masks] == [{ab}, {ab}, {END}, set()]
    assert checked_draft(matcher, [ab, ab, END, ab]) == 3
    accept(matcher, [ab, ab, END])
    assert matcher.is_finished


def test_bad_drafts_are_typed_errors_and_change_nothing():
    matcher = constraint("abab").matcher()
    ab = tokenizer().encode("ab")[0]
    for n in (-1, 3):
        with pytest.raises(ArgumentError, match=f"cannot accept {n} of 2"):
            accept(matcher, [ab, ab], n)
    with pytest.raises(TokenNotAllowedError):
        accept(matcher, [ab, END])
    for parents in ([0], [-2], [-1, 1], [], [-1, -1, -1]):
        with pytest.raises(ArgumentError, match="parent"):
            tree_masks(matcher, [ab] * max(1, len(parents) % 3), parents)
    for out in (np.zeros((1, WORDS), np.int32), np.zeros((2, WORDS - 1), np.int32)):
        with pytest.raises(BufferShapeError):
            draft_masks(matcher, [ab], out)
    assert matcher.ids == ()
