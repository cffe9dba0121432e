"""A small table by hand, and the devices and forms on which tables are tried."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from bpe_automata.decoding import TokenTable  # noqa: E402

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=needs_gpu)]
ON = pytest.mark.parametrize("device", DEVICES)
FORMS = pytest.mark.parametrize("dense", [True, False], ids=["dense", "csr"])
END = 7
PATH = [("a", 3, "b"), ("b", 4, "a"), ("b", 5, "c")]  # (3 4)* 3 5


def hand_made(dense=True):
    return TokenTable.from_transitions(PATH, "a", n_ids=10, eos_ids=[END], dense=dense)


def finite(scores):
    return [row.isfinite().nonzero()[:, 0].tolist() for row in scores]
