"""DirectMerge for a complete tokenizer, pretokenizer included.

    L(direct_merged(tokenizer, dfa)) = { encode(w) : w in L(dfa) }

The merges are replayed on marked text, then the marks are erased. This shares with the fast
construction the compiled pipeline (boundary hypotheses, text automaton, UTF-8 table, prefix) and
the derivations, which say what tokens no merge makes, and give the order of improper tables; both
have tests of their own. It shares no pairs, rectangles, token classes, hypothesis sets or
relevance.

Source: Tran-Thien 2024 for DirectMerge; marked text is ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.canonical.geometry import Geometry
from bpe_automata.canonical.prefixed import prefixed
from bpe_automata.errors import ImproperMergeTableError
from bpe_automata.reference._bpe import base_symbols, merge_ranks
from bpe_automata.reference._direct_merge import Merge, direct_merge
from bpe_automata.reference._token_dfa import TokenDFA
from bpe_automata.token_automata.automaton import TokenAutomaton
from bpe_automata.tokenizer.alphabet import is_utf8
from bpe_automata.tokenizer.derivation import derive
from bpe_automata.tokenizer.description import Description
from bpe_automata.tokenizer.pipeline import Pipeline, compile_pipeline
from bpe_automata.tokenizer.tokenizer import Tokenizer


def direct_merged(
    tokenizer: Tokenizer, dfa: ByteDFA, eos_ids: tuple[int, ...] = ()
) -> TokenAutomaton:
    """The canonical automaton of a language, minimal. `eos_ids` are never text. Raises
    UnsupportedTokenizerError, ImproperMergeTableError, BudgetExceededError."""
    marked = MarkedText(tokenizer, dfa, eos_ids)
    merged = direct_merge(token_dfa(marked.automaton()), merges_in_order(tokenizer.description))
    erased = (
        (source, marked.id_of(symbol), target) for source, symbol, target in merged.transitions()
    )
    return TokenAutomaton.from_transitions(
        erased,
        merged.start,
        merged.accepting,
        range(tokenizer.n_ids),
        tokenizer.spellings,
        determinise=True,
    ).minimised()


def merges_in_order(description: Description) -> list[Merge]:
    """The merges in the order of the table, where the last listing of a pair counts, as for
    encoders; for an improper table the derivations, each right after its parts, which is when
    encoders carry it out. Raises ImproperMergeTableError where encoders have no such order: see
    `canonical.geometry`."""
    derivation = derive(description)
    if len(np.unique(derivation.epoch)) < len(derivation.epoch):
        if not Geometry(derivation).ordered:
            raise ImproperMergeTableError(
                "some merges are carried out in an order that depends on the position in the text, "
                "so they cannot be replayed one after the other; use the canonical automaton"
            )
        return [(left, right, made) for left, right, made in derivation.proper.tolist()]
    by_rank = sorted(merge_ranks(description).items(), key=lambda item: item[1][0])
    return [(left, right, made) for (left, right), (_, made) in by_rank]


def symbol_dfa(description: Description, dfa: ByteDFA) -> TokenDFA:
    """BPE alone: the language as sequences of base symbols, without prefix, splitting, byte
    fallback or added tokens."""
    transitions = [
        (state, symbol, target)
        for state in range(1, dfa.n_states)
        for data, symbol in description.base.items()
        if (target := dfa.walk(data, state))
    ]
    return TokenDFA.of(transitions, dfa.start, np.flatnonzero(dfa.accepting).tolist())


def token_dfa(automaton: TokenAutomaton) -> TokenDFA:
    """The same automaton in a form that can be changed."""
    accepting = [state for state in automaton.states() if automaton.accepting[state]]
    return TokenDFA.of(automaton.transitions(), automaton.start, accepting)


def explicit(dfa: TokenDFA, spellings: Sequence[bytes] | None = None) -> TokenAutomaton:
    """The same automaton in a form that can be compared, counted and drawn. `spellings`: the bytes
    of each token."""
    states = [dfa.start, *sorted(dfa.states() - {dfa.start}, key=str)]
    return TokenAutomaton.from_transitions(
        dfa.transitions(), dfa.start, dfa.accepting, None, spellings, states=states
    )


# Marked text: the text with its pretoken boundaries written out, as one automaton over base
# symbols.
#
#     { # s1 s2 ... # ... : s1 s2 ... the base symbols of w, # before each pretoken,  w in L(dfa) }
#
# A merge never mentions #, so it cannot cross a boundary. Added tokens are symbols of their own as
# well, since an ordinary token may have the same id; and so are the tokens that are only ever whole
# pretokens (`ignore_merges`). A state holds one state of each automaton that describes `encode`:
# of the regex, the text automaton, the UTF-8 automaton and one hypothesis of where boundaries are.
# Of several hypotheses one is guessed; a wrong one dies out.

OFF, WHOLE, ROOT = -1, -2, 0
BEGINNING = 0


class State(NamedTuple):
    """q: regex state; text: of the text automaton; row: UTF-8 row, 0 between characters;
    hypothesis: number of a boundary hypothesis; marked: was # just read; piece: node in the trie
    of whole pieces, OFF outside it, WHOLE after a token that is a whole piece."""

    q: int
    text: int
    row: int
    hypothesis: int
    marked: bool
    piece: int


class Pieces:
    """The tokens that no merge makes, but that a pretoken with their text becomes
    (`ignore_merges`); and the trie of their base symbols, as such a pretoken has no other ids."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokens: dict[int, bytes] = {}
        self.children: list[dict[int, int]] = [{}]
        self.complete: set[int] = set()
        description = tokenizer.description
        if not description.ignore_merges:
            return
        for token in np.flatnonzero(~derive(description).reachable).tolist():
            data = description.tokens[token] or b""
            if data and token not in tokenizer.added_ids and is_utf8(data):
                self.tokens[token] = data
                self._insert(base_symbols(description, data) or [])

    def _insert(self, symbols: list[int]) -> None:
        node = ROOT
        for symbol in symbols:
            if symbol not in self.children[node]:
                self.children[node][symbol] = len(self.children)
                self.children.append({})
            node = self.children[node][symbol]
        self.complete.add(node)

    def after(self, piece: int, symbol: int) -> int:
        """The node after one more symbol."""
        return self.children[piece].get(symbol, OFF) if piece >= 0 else OFF


class MarkedText:
    """The marked texts of a byte automaton's language, for one tokenizer. `boundary`: the number of
    the symbol #, one more than the largest id; after it come those of the added tokens."""

    def __init__(self, tokenizer: Tokenizer, dfa: ByteDFA, eos_ids: tuple[int, ...] = ()) -> None:
        """Raises UnsupportedTokenizerError, BudgetExceededError."""
        self.tokenizer, self.boundary = tokenizer, tokenizer.n_ids
        description = tokenizer.description
        self._prefixed = prefixed(dfa, description.prefix)
        self._pipeline: Pipeline = tokenizer.derived(
            "pipeline", lambda t: compile_pipeline(t.description, t.backend.engine)
        )
        self._pieces = tokenizer.derived("pieces", Pieces)
        self._symbols = [(number, data) for data, number in description.base.items()]
        self._byte_tokens = [(n, bytes([byte])) for byte, n in description.byte_tokens.items()]
        text = self._pipeline.text
        self._added = [(k, int(i)) for k, i in enumerate(text.ids) if i not in eos_ids]
        self._n_symbols = self.boundary + 1 + len(text.ids)

    def automaton(self) -> TokenAutomaton:
        """Deterministic and trimmed."""
        start = State(self._prefixed.before, self._pipeline.text.start, 0, BEGINNING, False, OFF)
        found, order = {start}, [start]
        listed: list[tuple[State, int | None, State]] = []
        for state in order:  # grows while we go
            for symbol, after in self._steps(state):
                listed.append((state, symbol, after))
                if after not in found:
                    found.add(after)
                    order.append(after)
        accepting = [state for state in order if self._accepts(state)]
        return TokenAutomaton.from_transitions(
            listed, start, accepting, range(self._n_symbols), determinise=True
        ).trimmed()

    def id_of(self, symbol: int) -> int | None:
        """The token that a symbol stands for after the merges; None for #."""
        if symbol <= self.boundary:
            return None if symbol == self.boundary else symbol
        return int(self._pipeline.text.ids[symbol - self.boundary - 1])

    # ------------------------------------------------------------ one step

    def _accepts(self, state: State) -> bool:
        return bool(self._prefixed.dfa.accepting[state.q]) and self._ends(state)

    def _ends(self, state: State) -> bool:
        """Can the text, or the stretch before an added token, end here?"""
        ends = self._pipeline.boundaries.ends[state.hypothesis]
        return self._piece_ends(state) and bool(ends) and bool(self._pipeline.text.ends[state.text])

    def _piece_ends(self, state: State) -> bool:
        return state.row == 0 and not state.marked and state.piece not in self._pieces.complete

    def _steps(self, state: State) -> Iterator[tuple[int, State]]:
        yield from self._base_symbol(state)
        if state.row == 0 and state.marked:
            for token, data in self._pieces.tokens.items():
                for after in self._read(state, data):
                    yield token, after._replace(piece=WHOLE)
        if self._piece_ends(state):
            yield self.boundary, state._replace(marked=True, piece=ROOT)
            yield from self._added_token(state)

    def _base_symbol(self, state: State) -> Iterator[tuple[int, State]]:
        if state.piece == WHOLE:
            return
        fallback = self._pipeline.alphabet.fallback_root
        if state.row == 0 or not self._byte_tokens:
            yield from self._symbols_from(state, self._symbols)
        if state.row == 0:
            yield from self._symbols_from(state._replace(row=fallback), self._byte_tokens)
        elif state.row >= fallback:
            yield from self._symbols_from(state, self._byte_tokens)

    def _symbols_from(
        self, state: State, symbols: list[tuple[int, bytes]]
    ) -> Iterator[tuple[int, State]]:
        for symbol, data in symbols:
            piece = self._pieces.after(state.piece, symbol)
            for after in self._read(state, data):
                yield symbol, after._replace(piece=piece)

    def _read(self, state: State, data: bytes) -> list[State]:
        """All states after these bytes."""
        states = [state]
        for byte in data:
            states = [after for before in states for after in self._byte(before, byte)]
        return states

    def _byte(self, state: State, byte: int) -> Iterator[State]:
        entry = int(self._pipeline.alphabet.utf8[state.row, byte])
        q = self._prefixed.dfa.step(state.q, byte)
        if entry == -1 or q == 0:
            return
        if entry >= 0:
            yield state._replace(q=q, row=entry)
            return
        atom = -2 - entry
        text = int(self._pipeline.text.next[state.text, atom])
        if text >= 0:
            follow = self._pipeline.boundaries.follow[int(state.marked), state.hypothesis]
            for hypothesis in np.flatnonzero(follow[self._pipeline.coarse[atom]]).tolist():
                yield State(q, text, 0, hypothesis, False, state.piece)

    def _added_token(self, state: State) -> Iterator[tuple[int, State]]:
        text, where = self._pipeline.text, self._prefixed
        if not self._pipeline.boundaries.ends[state.hypothesis]:
            return
        for number, token in self._added:
            after = int(text.after[text.after_row[state.text], number])
            spelled = self.tokenizer.spellings[token]
            q = where.dfa.walk(spelled, int(where.added_from[state.q]))
            if after >= 0 and q:
                q = int(where.after_added[q])
                symbol = self.boundary + 1 + number
                yield symbol, State(q, after, 0, BEGINNING, False, OFF)
