"""Masks are those that were recorded: a small part of the net, of which `python -m tests.net check`
checks all."""

from __future__ import annotations

import pytest

from bpe_automata.errors import MissingDependencyError
from net.__main__ import differences, read
from net.cases import SMOKE

SOME = (
    *("function call (linked)", "boolean", "e-mail", "JSON string", "word", "prose of 300"),
    *("random 1", "random 7", "random 9", "random 20", "random 40"),
)


@pytest.mark.parametrize("name", [SMOKE, "smollm2", "mistral-v3"])
def test_masks_are_as_they_were_recorded(name: str) -> None:
    net = read()
    assert set(SOME) <= set(net["regex"][name])
    try:
        assert list(differences(net, "regex", name, SOME)) == []
    except MissingDependencyError as error:
        pytest.skip(str(error))
