"""Packed masks on logits: the definition, and two ways that give the same bits."""

from __future__ import annotations

import importlib
import importlib.util

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from bpe_automata.errors import ArgumentError, BufferShapeError
from bpe_automata.integrations.bitmask import MINUS_INFINITY, apply_bitmask, apply_torch

torch = importlib.import_module("torch") if importlib.util.find_spec("torch") else None
GPU = torch is not None and torch.cuda.is_available()
WIDTHS = [1, 31, 32, 33, 64, 70, 1030]
NUMPY = ["float16", "float32", "float64"]


def unsigned(dtype):
    return MINUS_INFINITY[dtype].dtype


def by_hand(patterns, bits, pairs, minus_infinity):
    """The definition, id by id, on bit patterns [batch, V]."""
    found = patterns.copy()
    for target, source in pairs:
        for i in range(found.shape[1]):
            word = int(bits[source, i // 32]) if i // 32 < bits.shape[1] else 0
            if not word >> (i % 32) & 1:
                found[target, i] = minus_infinity
    return found


@st.composite
def cases(draw, dtypes):
    """(dtype, patterns [batch, V], bits [m, words], keyword arguments, pairs of rows). The patterns
    are any bits at all: NaN, infinities, subnormal numbers."""
    dtype = draw(st.sampled_from(dtypes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    batch, width = draw(st.integers(1, 4)), draw(st.sampled_from(WIDTHS))
    words = draw(st.sampled_from([1, max(1, width // 32), -(-width // 32), -(-width // 32) + 1]))
    patterns = np.frombuffer(rng.bytes(batch * width * 8), dtype=unsigned(dtype))
    patterns = patterns[: batch * width].reshape(batch, width).copy()
    kind = draw(st.sampled_from(["all", "rows"]))
    if kind == "all":
        chosen, m = {}, batch
        pairs = [(i, i) for i in range(batch)]
    else:
        listed = draw(st.lists(st.integers(0, batch - 1), max_size=4))
        m = len(listed)
        chosen, pairs = {"rows": listed}, [(row, k) for k, row in enumerate(listed)]
    bits = rng.integers(-(2**31), 2**31, (m, words), dtype=np.int32)
    bits[rng.random(bits.shape) < 0.3] = draw(st.sampled_from([0, -1]))
    return dtype, patterns, bits, chosen, pairs


def strided(array, how):
    """The same values in memory that is not contiguous."""
    if how == "plain":
        return array.copy()
    if how == "wide":
        memory = np.zeros((array.shape[0], array.shape[1] + 5), dtype=array.dtype)
        memory[:, : array.shape[1]] = array
        return memory[:, : array.shape[1]]
    return np.asfortranarray(array)


LAYOUTS = st.sampled_from(["plain", "wide", "turned"])


def check(case, found, logits, mask):
    """Mask, and compare `found()` with the definition. A row that is there twice in `rows` is
    refused, and nothing is masked."""
    dtype, patterns, bits, chosen, pairs = case
    if len(set(chosen.get("rows", []))) < len(chosen.get("rows", [])):
        with pytest.raises(ArgumentError, match="a row is there twice"):
            apply_bitmask(logits, mask, **chosen)
        assert np.array_equal(found(), patterns)
        return
    apply_bitmask(logits, mask, **chosen)
    assert np.array_equal(found(), by_hand(patterns, bits, pairs, MINUS_INFINITY[dtype]))


@given(cases(NUMPY), LAYOUTS)
@examples(40)
def test_numpy_logits_by_the_definition(case, layout):
    memory = strided(case[1], layout)
    check(case, lambda: memory, memory.view(case[0]), case[2])


def on_device(array, device):
    """A tensor with the strides of the array, on a GPU too."""
    plain = torch.from_numpy(array)
    strides = [step // array.itemsize for step in array.strides]
    memory = torch.empty_strided(array.shape, strides, dtype=plain.dtype, device=device)
    return memory.copy_(plain)


@pytest.mark.skipif(torch is None, reason="torch is missing")
@pytest.mark.parametrize("device", ["cpu", "cuda:0"] if GPU else ["cpu"])
@given(case=cases([*NUMPY, "bfloat16"]), layout=LAYOUTS)
@examples(30)
def test_torch_logits_by_the_definition(device, case, layout):
    dtype, patterns, bits, _, pairs = case
    signed = {2: np.int16, 4: np.int32, 8: np.int64}[patterns.dtype.itemsize]
    memory = on_device(strided(patterns, layout).view(signed), device)
    logits, mask = memory.view(getattr(torch, dtype)), torch.from_numpy(bits)
    check(case, lambda: memory.cpu().numpy().view(patterns.dtype), logits, mask)
    targets = np.array([target for target, _ in pairs], dtype=np.int64)
    if len(set(targets)) == len(targets):
        memory.copy_(torch.from_numpy(patterns.view(signed)))
        apply_torch(logits, mask, targets)
        wanted = by_hand(patterns, bits, pairs, MINUS_INFINITY[dtype])
        assert np.array_equal(memory.cpu().numpy().view(patterns.dtype), wanted)


@given(st.integers(1, 100), st.data())
@examples(20)
def test_the_packing_is_that_of_llguidance(width, data):
    """llguidance 1.9: also beyond the words nothing is allowed."""
    theirs = pytest.importorskip("llguidance.numpy")
    words = data.draw(st.integers(1, -(-width // 32)))
    rng = np.random.default_rng(width)
    bits = rng.integers(-(2**31), 2**31, (2, words), dtype=np.int32)
    ours, other = (np.zeros((2, width), dtype=np.float32) for _ in range(2))
    apply_bitmask(ours, bits)
    theirs.apply_token_bitmask_inplace(other, bits)
    assert np.array_equal(ours, other)


BITS = np.zeros((2, 1), dtype=np.int32)


@pytest.mark.parametrize(
    ("logits", "bits", "options", "error"),
    [
        (np.zeros((3, 9), np.float32), BITS, {}, "2 rows of the mask for 3 rows"),
        (np.zeros((2, 9), np.int32), BITS, {}, "logits are float16"),
        (np.zeros((2, 9), np.float32), BITS.astype(np.int64), {}, "a packed mask is int32"),
        (np.zeros((2, 9), np.float32), BITS == 0, {}, r"mask\(out, row\).*empty\(\(2, 1\)"),
        (np.zeros((2, 9, 1), np.float32), BITS, {}, "one or two dimensions"),
        (np.zeros((2, 9), np.float32), BITS, {"rows": [0, -1]}, "only 2 rows of the logits"),
        (np.zeros((2, 9), np.float32), BITS, {"rows": [0]}, "2 rows of the mask for 1"),
        ([[0.0]], BITS, {}, "numpy arrays or torch tensors"),
        (np.broadcast_to(np.float32(0), (2, 9)), BITS, {}, "cannot be written"),
    ],
)
def test_bad_shapes_are_typed_errors(logits, bits, options, error):
    before = np.array(logits)
    with pytest.raises(BufferShapeError, match=error):
        apply_bitmask(logits, bits, **options)
    assert np.array_equal(before, np.array(logits))
