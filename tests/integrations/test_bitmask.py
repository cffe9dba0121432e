"""Packed masks on logits: the definition, and two ways that give the same bits."""

import importlib
import importlib.util

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support import examples

from bpe_automata.errors import ArgumentError, BufferShapeError
from bpe_automata.integrations.bitmask import MINUS_INFINITY, apply_bitmask, apply_torch

torch = importlib.import_module("torch") if importlib.util.find_spec("torch") else None
DEVICES = ["numpy", *["cpu"] * (torch is not None)]
DEVICES += ["cuda:0"] * (torch is not None and torch.cuda.is_available())
WIDTHS = [1, 31, 32, 33, 64, 70, 1030]
SIGNED = {2: np.int16, 4: np.int32, 8: np.int64}


@st.composite
def cases(draw):
    """(dtype, patterns [batch, V + 5], bits [m, words], rows or None for all). The patterns are any
    bits at all: NaN, infinities, subnormal numbers. Logits are the first V of them, and so not
    contiguous in memory, and rows or columns lie together."""
    dtype = draw(st.sampled_from(sorted(MINUS_INFINITY)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    batch, width = draw(st.integers(1, 4)), draw(st.sampled_from(WIDTHS))
    words = draw(st.sampled_from([1, max(1, width // 32), -(-width // 32), -(-width // 32) + 1]))
    kind = SIGNED[MINUS_INFINITY[dtype].itemsize]
    patterns = np.frombuffer(rng.bytes(batch * (width + 5) * kind().itemsize), dtype=kind)
    patterns = patterns.reshape(batch, width + 5).copy(order=draw(st.sampled_from("CF")))
    rows = draw(st.none() | st.lists(st.integers(0, batch - 1), max_size=4))
    bits = rng.integers(-(2**31), 2**31, (batch if rows is None else len(rows), words), np.int32)
    bits[rng.random(bits.shape) < 0.3] = draw(st.sampled_from([0, -1]))
    return dtype, patterns, bits, rows


def definition(dtype, patterns, bits, rows):
    """Each id without a bit has the pattern of -inf, in the rows that the bits are for."""
    found = patterns[:, :-5].copy()
    allowed = np.zeros((len(bits), max(found.shape[1], 32 * bits.shape[1])), bool)
    allowed[:, : 32 * bits.shape[1]] = np.unpackbits(bits.view(np.uint8), 1, bitorder="little")
    for mask, row in zip(allowed, range(len(bits)) if rows is None else rows, strict=True):
        found[row, ~mask[: found.shape[1]]] = MINUS_INFINITY[dtype].view(found.dtype)
    return found


def after(apply, device, dtype, patterns, bits, *rows):
    """What is in memory after a call. A tensor has the strides of the array, on a GPU too."""
    memory = patterns.copy(order="A")[:, :-5]
    if device == "numpy":
        apply(memory.view(dtype), bits, *rows)
        return memory
    plain = torch.from_numpy(memory)
    strided = torch.empty_strided(plain.shape, plain.stride(), dtype=plain.dtype, device=device)
    strided.copy_(plain)
    apply(strided.view(getattr(torch, dtype)), torch.from_numpy(bits), *rows)
    return strided.cpu().numpy()


def apply_rows(logits, bits, rows):
    apply_bitmask(logits, bits, **({} if rows is None else {"rows": rows}))


@pytest.mark.parametrize("device", DEVICES)
@given(case=cases())
@examples(25)
def test_logits_by_the_definition(device, case):
    """A row that is there twice in `rows` is refused."""
    *drawn, bits, rows = case
    assume(device != "numpy" or drawn[0] != "bfloat16")
    if rows and len(set(rows)) < len(rows):
        with pytest.raises(ArgumentError, match="a row is there twice"):
            after(apply_rows, device, *case)
        return
    expected = definition(*case)
    assert np.array_equal(after(apply_rows, device, *case), expected)
    if device != "numpy":
        targets = np.arange(len(bits)) if rows is None else np.array(rows, dtype=np.int64)
        assert np.array_equal(after(apply_torch, device, *drawn, bits, targets), expected)


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
