"""What does not fit into the arrays of the kernels is refused, and what just fits is right."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support import process
from support.files import rank_lines, ranks

from bpe_automata import Budget, ByteDFA, Tokenizer, compile_regex, constrain
from bpe_automata._automata import dfa as byte_dfa
from bpe_automata._automata import sources
from bpe_automata._automata.dfa import BrokenAutomatonError
from bpe_automata._core import reader, sets, tables, token_actions
from bpe_automata._core.prefixed import prefixed
from bpe_automata._limits import untouched
from bpe_automata._token_automata import algebra
from bpe_automata._token_automata.automaton import TokenAutomaton
from bpe_automata._tokenizer import tokenizer as tokenizers
from bpe_automata._tokenizer.description import Prefix
from bpe_automata.banning import Ban
from bpe_automata.banning import _spellings as spellings
from bpe_automata.errors import BpeAutomataError, BudgetExceededError
from bpe_automata.testing import small_tokenizer


@pytest.mark.parametrize("n", [7, 100_000])
def test_untouched_arrays_are_zero_and_apart(n):
    found = untouched((n, np.bool_), ((n, 3), np.int16), (0, np.int32), (n, np.int64))
    assert [(a.shape, a.dtype.str[1:]) for a in found] == [
        *(((n,), "b1"), ((n, 3), "i2"), ((0,), "i4"), ((n,), "i8"))
    ]
    assert not any(a.any() for a in found)
    for k, array in enumerate(found, 1):
        array[:] = k
    assert [int(a.sum(dtype=np.int64)) for a in found] == [n, 6 * n, 0, 4 * n]


# Kernels do not check their indices: what goes wrong may end the process.
LONG_TOKEN = """
import sys
from bpe_automata import Tokenizer, constrain
t = Tokenizer.load(sys.argv[1], pattern=r"\\S+|\\s+", special_tokens={})
for method in ("lift", "canonical"):
    print(constrain(t, "hello|world", method).matcher().allowed_ids().tolist())
    matcher = constrain(t, "(a*|b)", method).matcher()
    allowed = matcher.allowed_ids().tolist()
    matcher.advance(256)
    print(allowed, matcher.is_accepting)
"""
DOUBLED_TOKEN = """
import sys
from bpe_automata import Tokenizer, constrain
t = Tokenizer.load(sys.argv[1])
for method in ("lift", "canonical"):
    allowed = constrain(t, "a*b", method).matcher().allowed_ids().tolist()
    print(allowed == [*range(2), *range(26, 26 + int(sys.argv[2]))])
"""


def output(code: str, *arguments: object) -> list[str]:
    return process(code, *arguments, timeout=3600).stdout.splitlines()


@pytest.mark.parametrize("n", [32_767, 32_768, 65_536, 200_000])
def test_a_token_of_any_length(n, tmp_path):
    path = tmp_path / "long.tiktoken"
    path.write_bytes(rank_lines(ranks([b"a" * n])))
    lines = ["[104, 119]", "[97, 98, 256] True"]
    assert output(LONG_TOKEN, path, n) == lines + lines


@pytest.mark.parametrize("doublings", [14, 15, 16, 18])
def test_a_token_that_is_made_by_doubling(doublings, tmp_path):
    """Derivation takes n log n steps: with n * n of them the longest of these would take hours."""
    vocabulary = {chr(97 + k): k for k in range(26)}
    merges = []
    for k in range(doublings):
        half = "a" * 2**k
        vocabulary[2 * half] = len(vocabulary)
        merges.append([half, half])
    model = {"type": "BPE", "vocab": vocabulary, "merges": merges, "byte_fallback": False}
    description = {"added_tokens": [], "model": model, "decoder": {"type": "Fuse"}}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(description))
    assert output(DOUBLED_TOKEN, path, doublings) == ["True", "True"]


def letters() -> Tokenizer:
    return small_tokenizer(["a", "1", "!", "a1"], [("a", "1")])


def test_as_many_states_as_keys_have_room_for():
    """`a11` through the last states of a large table."""
    n = tables.MOST_STATES
    trans, byte_class = np.zeros((n, 3), np.int32), np.zeros(256, np.uint8)
    byte_class[ord("a")], byte_class[ord("1")] = 1, 2
    trans[1, 1], trans[n - 1, 2], trans[n - 2, 2] = n - 1, n - 2, n - 3
    accepting = np.zeros(n, np.bool_)
    accepting[n - 3] = True
    constraint = constrain(letters(), ByteDFA(trans, byte_class, accepting, 1))
    assert constraint.matcher().allowed_ids().tolist() == [3]
    assert constraint.matcher().min_tokens_to_accept() == 2
    assert constraint.within(2).matcher().allowed_ids().tolist() == [3]
    with pytest.raises(BpeAutomataError, match="takes 2 ids"):
        constraint.within(1).matcher()
    more = np.zeros((n + 1, 3), np.int32)
    more[:n] = trans
    with pytest.raises(BudgetExceededError, match="states"):
        constrain(letters(), ByteDFA(more, byte_class, np.append(accepting, False), 1))


@pytest.mark.parametrize(
    ("module", "name", "limit", "resource"),
    [
        (tokenizers, "NUMBERS", 1, "bytes of all tokens"),
        (tables, "MOST_IDS", 1, "ids"),
        (reader, "MOST_STATES", 1, "states"),
        (sets, "MOST_SETS", 1, "hypothesis sets"),
    ],
)
def test_a_tokenizer_and_its_product(module, name, limit, resource, monkeypatch):
    monkeypatch.setattr(module, name, limit)
    with pytest.raises(
        BudgetExceededError, match=f"budget of {limit} {resource} exceeded: there are"
    ):
        constrain(letters(), "(a|1|!)*").matcher().allowed_ids()


def test_classes_of_tokens_as_one_number():
    keys = np.array([[2**30, 0, 1, 2**30], [0, 0, 0, -1]])
    assert len({*token_actions._packed(keys).tolist()}) == 2
    with pytest.raises(BudgetExceededError, match="token classes"):
        token_actions._packed(keys + np.array([[0, 1, 0, 0]]))


def test_tables_of_bytes(monkeypatch):
    table = np.zeros((2, 257), np.int32)
    with pytest.raises(BrokenAutomatonError, match="257 columns for 256 bytes"):
        ByteDFA(table, np.arange(256, dtype=np.uint16), np.zeros(2, np.bool_), 1)
    monkeypatch.setattr(byte_dfa, "NUMBERS", 5)
    with pytest.raises(BudgetExceededError, match="budget of 5 cells"):
        compile_regex("ab")
    monkeypatch.setattr(sources, "NUMBERS", 5)
    with pytest.raises(BudgetExceededError, match="budget of 4 bytes of all strings"):
        sources.from_strings(["abc", "de"])


def test_a_column_for_the_space_where_there_are_256():
    """Some of them are of no byte, and the space has that of the letter a."""
    trans, byte_class = np.zeros((3, 256), np.int32), np.arange(256, dtype=np.uint8)
    byte_class[0x20] = ord("a")
    trans[1, ord("a")] = 2
    dfa = ByteDFA(trans, byte_class, np.array([False, False, True]), 1)
    made = prefixed(dfa, Prefix.TEXT)
    for text in (b"", b"a", b" ", b"  ", b" a", b"a ", b"b"):
        state = made.dfa.walk(text, made.before)
        assert made.dfa.accepting[state] == dfa.accepts(text.removeprefix(b" "))
        assert made.dfa.accepts(text) == dfa.accepts(text)


def test_threads_of_banned_words(monkeypatch):
    monkeypatch.setattr(spellings, "NUMBERS", 2)
    with pytest.raises(BudgetExceededError, match="budget of 2 threads"):
        spellings.Spellings(letters(), Ban(["a1"]))


def test_transitions(monkeypatch):
    automaton = TokenAutomaton.from_transitions([(0, 3, 1), (0, 4, 1), (1, 3, 0)], 0, [1])
    monkeypatch.setattr(algebra, "NUMBERS", 3)
    with pytest.raises(BudgetExceededError, match="budget of 2 transitions"):
        automaton.minimised()


def test_a_budget_counts_what_can_be_numbered():
    most = Budget(max_states=10**12, max_bytes=10**15)
    assert (most.max_instructions, most.max_bytes) == (2**30 - 1, 2**33 - 4)
    assert compile_regex("a+", budget=most).accepts(b"aa")
