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
DEVICES = ["numpy", *["cpu"] * (torch is not None)]
DEVICES += ["cuda:0"] * (torch is not None and torch.cuda.is_available())
WIDTHS = [1, 31, 32, 33, 64, 70, 1030]
SIGNED = {2: np.int16, 4: np.int32, 8: np.int64}


def by_hand(patterns, bits, rows, minus_infinity):
    """The definition, id by id, on bit patterns [batch, V]; rows: that the rows of bits are for."""
    found = patterns.copy()
    for source, target in enumerate(rows):
        for i in range(found.shape[1]):
            word = int(bits[source, i // 32]) if i // 32 < bits.shape[1] else 0
            if not word >> (i % 32) & 1:
                found[target, i] = minus_infinity
    return found


@st.composite
def cases(draw):
    """(dtype, patterns [batch, V], bits [m, words], rows or None for all). The patterns are any
    bits at all: NaN, infinities, subnormal numbers; in memory that may not be contiguous."""
    dtype = draw(st.sampled_from(sorted(MINUS_INFINITY)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    batch, width = draw(st.integers(1, 4)), draw(st.sampled_from(WIDTHS))
    words = draw(st.sampled_from([1, max(1, width // 32), -(-width // 32), -(-width // 32) + 1]))
    kind = MINUS_INFINITY[dtype].dtype
    patterns = np.frombuffer(rng.bytes(batch * (width + 5) * kind.itemsize), dtype=kind)
    patterns = patterns.reshape(batch, width + 5).copy()[:, :width]
    if draw(st.booleans()):
        patterns = np.asfortranarray(patterns)
    rows = draw(st.none() | st.lists(st.integers(0, batch - 1), max_size=4))
    bits = rng.integers(-(2**31), 2**31, (batch if rows is None else len(rows), words), np.int32)
    bits[rng.random(bits.shape) < 0.3] = draw(st.sampled_from([0, -1]))
    return dtype, patterns, bits, rows


def on_device(array, device):
    """A tensor with the strides of the array, on a GPU too."""
    plain = torch.from_numpy(array)
    strides = [step // array.itemsize for step in array.strides]
    memory = torch.empty_strided(array.shape, strides, dtype=plain.dtype, device=device)
    return memory.copy_(plain)


@pytest.mark.parametrize("device", DEVICES)
@given(case=cases())
@examples(40)
def test_logits_by_the_definition(device, case):
    """A row that is there twice in `rows` is refused, and nothing is masked."""
    dtype, memory, bits, rows = case
    before, mask, chosen = memory.copy(), bits, {} if rows is None else {"rows": rows}
    if device == "numpy":
        dtype = dtype.replace("bfloat16", "float16")
        logits = memory.view(dtype)
    else:
        memory = on_device(memory.view(SIGNED[memory.itemsize]), device)
        logits, mask = memory.view(getattr(torch, dtype)), torch.from_numpy(bits)

    def found():
        kept = memory if device == "numpy" else memory.cpu().numpy()
        return kept.view(before.dtype)

    if rows and len(set(rows)) < len(rows):
        with pytest.raises(ArgumentError, match="a row is there twice"):
            apply_bitmask(logits, mask, **chosen)
        assert np.array_equal(found(), before)
        return
    targets = np.arange(len(bits)) if rows is None else np.array(rows, dtype=np.int64)
    expected = by_hand(before, bits, targets, MINUS_INFINITY[dtype])
    apply_bitmask(logits, mask, **chosen)
    assert np.array_equal(found(), expected)
    if device != "numpy":
        memory.copy_(torch.from_numpy(before.view(SIGNED[before.itemsize])))
        apply_torch(logits, mask, targets)
        assert np.array_equal(found(), expected)


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
