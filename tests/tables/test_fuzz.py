"""The fuzzer runs, and finds a matcher that goes back by too few ids."""

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from bpe_automata import Matcher
from experiments.fuzz import SETTINGS, Matchers

SOME = settings(SETTINGS, max_examples=10, derandomize=True)
MANY = settings(SOME, max_examples=300, phases=[Phase.generate])


def test_it_finds_nothing():
    run_state_machine_as_test(Matchers, settings=SOME)


def test_it_finds_a_rollback_that_does_nothing(monkeypatch):
    monkeypatch.setattr(Matcher, "rollback", lambda self, n=1: None)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Matchers, settings=MANY)
