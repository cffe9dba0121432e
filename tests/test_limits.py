"""What does not fit into the arrays of the kernels is refused, and what just fits is right."""

from __future__ import annotations

import numpy as np
import pytest
from support.files import rank_lines, ranks

from bpe_automata import Budget, ByteDFA, Tokenizer, compile_regex, constrain
from bpe_automata.automata import dfa as byte_dfa
from bpe_automata.automata import sources
from bpe_automata.banning import Ban, Spellings
from bpe_automata.banning import _spellings as spellings
from bpe_automata.canonical import reader, sets, tables, token_actions
from bpe_automata.canonical.prefixed import prefixed
from bpe_automata.errors import BpeAutomataError, BudgetExceededError
from bpe_automata.testing import small_tokenizer
from bpe_automata.token_automata import algebra
from bpe_automata.token_automata.automaton import TokenAutomaton
from bpe_automata.tokenizer import tokenizer as tokenizers
from bpe_automata.tokenizer.description import Prefix


def ranked(n, folder):
    path = folder / "long.tiktoken"
    path.write_bytes(rank_lines(ranks([b"a" * n])))
    return Tokenizer.load(path, pattern=r"\S+|\s+", special_tokens={}), [97, 98, 256]


def doubled(n, folder):
    """Derivation takes n log n steps: with n * n of them the longest of these would take hours."""
    halves = ["a" * 2**k for k in range(n)]
    vocabulary = ["a", "b", *(2 * half for half in halves)]
    return small_tokenizer(vocabulary, [(half, half) for half in halves]), [*range(n + 2)]


@pytest.mark.parametrize(
    ("made", "n"),
    [
        *[(ranked, 65_536), (doubled, 14)],
        *(pytest.param(*case, marks=pytest.mark.long)
          for case in [(ranked, 200_000), (doubled, 16), (doubled, 18)]),
    ],
)  # fmt: skip
def test_a_token_of_any_length(made, n, tmp_path):
    """Kernels do not check their indices: what goes wrong may end the process."""
    tokenizer, allowed = made(n, tmp_path)
    for method in ("lift", "canonical"):
        matcher = constrain(tokenizer, "(a*|b)", method).matcher()
        assert matcher.allowed_ids().tolist() == allowed
        matcher.advance(allowed[-1])
        assert matcher.is_accepting


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


def _masked():
    constrain(letters(), "(a|1|!)*").matcher().allowed_ids()


def _minimised():
    listed = [(0, 3, 1), (0, 4, 1), (1, 3, 0)]
    TokenAutomaton.from_transitions(listed, 0, [1]).minimised()


@pytest.mark.parametrize(
    ("module", "name", "limit", "call", "said"),
    [
        (tokenizers, "NUMBERS", 1, _masked, "1 bytes of all tokens exceeded: there are"),
        (tables, "MOST_IDS", 1, _masked, "1 ids exceeded: there are"),
        (reader, "MOST_STATES", 1, _masked, "1 states exceeded: there are"),
        (sets, "MOST_SETS", 1, _masked, "1 hypothesis sets exceeded: there are"),
        (byte_dfa, "NUMBERS", 5, lambda: compile_regex("ab"), "5 cells"),
        (sources, "NUMBERS", 5, lambda: sources.from_strings(["abc", "de"]), "4 bytes of all"),
        (spellings, "NUMBERS", 2, lambda: Spellings(letters(), Ban(["a1"])), "2 threads"),
        (algebra, "NUMBERS", 3, _minimised, "2 transitions"),
    ],
)
def test_what_cannot_be_numbered_is_refused(module, name, limit, call, said, monkeypatch):
    monkeypatch.setattr(module, name, limit)
    with pytest.raises(BudgetExceededError, match=f"budget of {said}"):
        call()


def test_classes_of_tokens_as_one_number():
    keys = np.array([[2**30, 0, 1, 2**30], [0, 0, 0, -1]])
    assert len({*token_actions._packed(keys).tolist()}) == 2
    with pytest.raises(BudgetExceededError, match="token classes"):
        token_actions._packed(keys + np.array([[0, 1, 0, 0]]))


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


def test_a_budget_counts_what_can_be_numbered():
    most = Budget(max_states=10**12, max_bytes=10**15)
    assert (most.max_instructions, most.max_bytes) == (2**30 - 1, 2**33 - 4)
    assert compile_regex("a+", budget=most).accepts(b"aa")
