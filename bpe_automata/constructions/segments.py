"""Vegas segments: parts of a token automaton that do not depend on what surrounds them.

A *cut* is a DFA state at which every tokenization has a boundary, whatever the ids on its sides:

    there is no merge (u, v) where the last byte of u leads into the state and the first byte of v
    out of it, no added token is read across the state, and the state is not inside a character

A token that is read across a cut would be made by merges, one of which joins a part that ends at
the cut with one that begins there; there is no such merge. For the same reason no merge breaks a
pair of ids with their boundary there. What follows a cut depends on the boundary hypotheses, not on
the last id.

A *segment* is the DFA from the start, or from a cut, to the next cuts. Its token automaton, a
*part*, is made once for all languages that contain the segment, as it depends only on

    key = (bytes and added tokens from state to state, text state and hypotheses at the entry)

It ends in *exits*: cuts, with the text state and the hypotheses there, at which other parts begin.
Ids that lead only to exits from which nothing is accepted are dropped as the parts are joined:

    Segments(tokenizer).automaton(dfa) = constrain(tokenizer, dfa).automaton()      as languages

Source: the "Vegas configuration" of Tran-Thien 2024; cuts by bytes and hypotheses are ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from bpe_automata._budget import check
from bpe_automata._kernels.distance import NEVER
from bpe_automata.automata.linked import ByteAutomaton, explicit
from bpe_automata.canonical.canonical import (
    CanonicalAutomaton,
    CanonicalState,
    canonical_automaton,
)
from bpe_automata.canonical.prefixed import prefixed
from bpe_automata.errors import BudgetExceededError
from bpe_automata.token_automata.automaton import TokenAutomaton
from bpe_automata.tokenizer.tokenizer import AddedTokens, Tokenizer

_ADVICE = "the automaton is too large to list; raise max_edges, or ask an engine step by step"
_ROW, _ACCEPTING, _CUT, _ADDED = -1, -2, -3, 256  # in forms; added token i is the symbol 256 + i


class Part(NamedTuple):
    """table: the minimal automaton, with start 0; exit k is the accepting state that reads only
    n_ids + k. exits: for each the number of its cut in the form, and the canonical automaton's
    state there. n_made: how many transitions there were before minimising."""

    table: TokenAutomaton
    exits: list[tuple[int, CanonicalState]]
    n_made: int


class Segments:
    """Makes token automata of languages from parts, each of which is made once. Use one object for
    all languages with parts in common, in one thread.

    made, found: how many parts were made, and how many were found in the cache.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        eos_ids: Iterable[int] | None = None,
        added_tokens: AddedTokens = "plain",
    ) -> None:
        """The arguments are those of `constrain`. Raises what `canonical_automaton` raises."""
        eos = [*(tokenizer.eos_ids if eos_ids is None else eos_ids)]
        self.tokenizer, self.canonical = tokenizer, canonical_automaton(tokenizer)
        self.alphabet = np.setdiff1d(np.arange(tokenizer.n_ids), eos)
        self.ordinary = np.intersect1d(np.flatnonzero(self.canonical.usable), self.alphabet)
        as_text = tokenizer.added_as_text(added_tokens).difference(eos)
        self.added = np.array(sorted(as_text), dtype=np.int64)
        self.meetings = tokenizer.derived("meetings", lambda _: meetings(self.canonical))
        self.made = self.found = 0
        self._parts: dict[tuple[bytes, int, int], Part] = {}

    def automaton(self, dfa: ByteAutomaton, max_edges: int = 1_000_000) -> TokenAutomaton:
        """All canonical id sequences that spell a text of the language, without end-of-sequence.
        All states are relevant. Raises BudgetExceededError if a part before minimising, or all
        parts together, have more than `max_edges` transitions, and UnsupportedFeatureError for a
        linked automaton."""
        placed, n_ids, every = self.placed(dfa, max_edges), self.tokenizer.n_ids, []
        base = np.cumsum([0, *(part.table.n_states for part, _ in placed)])
        for k, (part, leads_to) in enumerate(placed):
            sources, symbols = part.table.sources(), part.table.symbols
            states, is_exit = np.arange(base[k], base[k + 1]), symbols >= n_ids
            states[sources[is_exit]] = base[leads_to][symbols[is_exit] - n_ids]
            edges = np.stack([base[k] + sources, symbols, states[part.table.targets]])
            every.append(edges[:, ~is_exit])
        accepting = np.concatenate([part.table.accepting for part, _ in placed])
        sources, symbols, targets = np.concatenate(every, axis=1)
        parts = accepting, sources, symbols, targets, self.alphabet, self.tokenizer.spellings
        return TokenAutomaton.from_edges(0, *parts).trimmed()

    def placed(
        self, dfa: ByteAutomaton, max_edges: int = 1_000_000
    ) -> list[tuple[Part, list[int]]]:
        """The parts of a language, from the start on, each with the numbers of those that its exits
        lead to. Raises what `automaton` raises."""
        language, begin = Language(dfa, self), self.canonical.start
        todo, n_edges = [(language.start, begin)], 0
        numbers = {(language.start, begin.text, begin.hypotheses): 0}
        found: list[tuple[Part, list[int]]] = []
        for q, state in todo:  # grows while we go
            order, form = language.form(q)
            key = form, state.text, state.hypotheses
            self.found += key in self._parts
            if key not in self._parts:
                self._parts[key] = self._made(language, order, state, max_edges)
                self.made += 1
            part, leads_to = self._parts[key], []
            n_edges += part.table.n_transitions
            _check_edges(max(n_edges, part.n_made), max_edges)
            for number, after in part.exits:
                at = order[number], after.text, after.hypotheses
                leads_to.append(numbers.setdefault(at, len(todo)))
                todo += [(order[number], after)] * (leads_to[-1] == len(todo))
            found.append((part, leads_to))
        return found

    def _made(
        self, language: Language, order: list[int], begin: CanonicalState, max_edges: int
    ) -> Part:
        """The product of a segment with the canonical automaton, minimised."""
        todo, exits = [(order[0], begin)], list[tuple[int, CanonicalState]]()
        numbers: dict[tuple[int, ...], int] = {(order[0], *begin): 0}
        edges, accepting = list[tuple[int, int, int]](), list[bool]()
        for source, (q, here) in enumerate(todo):  # grows while we go
            check()
            is_exit = source > 0 and bool(language.cut[q])
            accepting.append(is_exit or (language.accepting[q] and self.canonical.ends(here)))
            if is_exit:
                edges.append((source, self.tokenizer.n_ids + len(exits), source))
                exits.append((order.index(q), here))
                continue
            for token, target in language.reads(q):
                if (after := self.canonical.step(here, token)) is not None:
                    # A cut is one state, whatever the last id was.
                    at = (target, *after[:2]) if language.cut[target] else (target, *after)
                    edges.append((source, token, numbers.setdefault(at, len(todo))))
                    todo += [(target, after)] * (edges[-1][2] == len(todo))
            _check_edges(len(edges), max_edges)
        columns = np.array(edges, dtype=np.int64).reshape(-1, 3).T
        made = TokenAutomaton.from_edges(0, np.array(accepting), *columns)
        return Part(made.minimised(), exits, len(edges))


class Language:
    """A byte DFA, read by the ids of a tokenizer. start: the state at which a text begins;
    accepting, cut: bool [n]."""

    def __init__(self, dfa: ByteAutomaton, given: Segments) -> None:
        prefix = given.tokenizer.description.prefix
        self._given, self._prefixed = given, prefixed(explicit(dfa, "segments"), prefix)
        self._dfa = explicit(self._prefixed.dfa, "segments")
        self.start, self.accepting = self._prefixed.before, self._dfa.accepting
        self._live = self._dfa.far != NEVER
        self._reads: dict[int, list[tuple[int, int]]] = {}
        self._forms: dict[int, tuple[list[int], bytes]] = {}
        self._added: dict[int, list[tuple[int, int]]] = {}  # for each state that texts lead to
        self.cut = self._cuts(self._reached())

    def reads(self, q: int) -> list[tuple[int, int]]:
        """(id, state after it) of the ids whose bytes can be read."""
        if q not in self._reads:
            self._reads[q] = self._led(q, self._given.ordinary) + self._added[q]
        return self._reads[q]

    def _led(self, q: int, ids: np.ndarray) -> list[tuple[int, int]]:
        """(id, state after it) of those among `ids` whose bytes can be read."""
        trie, after = self._given.canonical.trie, np.full(len(ids), q)
        first, lengths = trie.start[ids], np.diff(trie.start)[ids]
        longer = np.arange(len(ids))
        for k in range(int(lengths.max(initial=0))):
            longer = longer[(lengths[longer] > k) & (after[longer] > 0)]
            columns = self._dfa.byte_class[trie.data[first[longer] + k]]
            after[longer] = self._dfa.trans[after[longer], columns]
        good = self._live[after] & (lengths > 0)
        return list(zip(ids[good].tolist(), after[good].tolist(), strict=True))

    def _bytes(self, q: int) -> list[tuple[int, int]]:
        """(byte, state after it)."""
        live = self._dfa.live_bytes(q)
        after = self._dfa.trans[q][self._dfa.byte_class[live]]
        return list(zip(live.tolist(), after.tolist(), strict=True))

    def _reached(self) -> list[int]:
        """The states that texts lead to."""
        seen = {self.start}
        for q in (todo := [self.start]):  # grows while we go
            check()
            led = self._led(int(self._prefixed.added_from[q]), self._given.added)
            self._added[q] = [(token, int(self._prefixed.after_added[to])) for token, to in led]
            after = {to for _, to in self._bytes(q) + self._added[q]} - seen
            seen |= after
            todo += after
        return todo

    def _cuts(self, reached: list[int]) -> np.ndarray:
        dfa, cut = self._dfa, np.zeros(len(self._live), dtype=bool)
        into = np.zeros(dfa.trans.shape, dtype=np.float32)
        into[dfa.trans[reached], np.arange(dfa.n_classes)] = 1
        merged = np.zeros((dfa.n_classes, dfa.n_classes), dtype=np.float32)
        before, after = np.nonzero(self._given.meetings)
        merged[dfa.byte_class[before], dfa.byte_class[after]] = 1
        goes = self._live[dfa.trans]
        joined = ((into @ merged > 0) & goes).any(axis=1)
        inside = goes[:, dfa.byte_class[0x80:0xC0]].any(axis=1)  # of a character
        cut[reached] = ~(joined | inside)[reached]
        for q, added in self._added.items():
            for token, _ in added:
                spelled = self._given.tokenizer.spellings[token]
                begin = int(self._prefixed.added_from[q])
                cut[[dfa.walk(spelled[:k], begin) for k in range(1, len(spelled))]] = False
        return cut

    def form(self, begin: int) -> tuple[list[int], bytes]:
        """(the states from `begin` to the next cuts, numbered breadth-first; the form of this
        segment, as bytes). Segments with equal forms are isomorphic, and equal segments of minimal
        DFAs have equal forms."""
        if begin not in self._forms:
            numbers, form = {begin: 0}, list[int]()
            for q in (order := [begin]):  # grows while we go
                check()
                form += [_ROW, *[_CUT] * bool(self.cut[q])]
                if self.cut[q] and q != begin:
                    continue
                added = [(_ADDED + token, to) for token, to in self._added[q]]
                for symbol, to in self._bytes(q) + added:
                    form += [symbol, numbers.setdefault(to, len(order))]
                    order += [to] * (form[-1] == len(order))
                form += [_ACCEPTING] * bool(self.accepting[q])
            self._forms[begin] = order, np.array(form, dtype=np.int32).tobytes()
        return self._forms[begin]


def meetings(canonical: CanonicalAutomaton) -> np.ndarray:
    """bool [256, 256]: does a merge join a part that ends in the first byte with a part that begins
    with the second one? Tokens that no merge makes (`ignore_merges`) count as if a merge joined any
    two neighbouring bytes of them."""
    spelled, merged = canonical.tokenizer.spellings, np.zeros((256, 256), dtype=bool)
    for left, right, _ in canonical.derivation.proper.tolist():
        merged[spelled[left][-1], spelled[right][0]] = True
    for token in canonical.whole.tokens:
        data = np.frombuffer(spelled[token], dtype=np.uint8)
        merged[data[:-1], data[1:]] = True
    return merged


def _check_edges(n_edges: int, max_edges: int) -> None:
    if n_edges > max_edges:
        raise BudgetExceededError("edges", max_edges, _ADVICE)
