"""The arrays that the product kernels run on, and their growth."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np

from bpe_automata._automata.linked import LinkedDFA
from bpe_automata._budget import check
from bpe_automata._constructions.canonical import CanonicalAutomaton
from bpe_automata._constructions.collapsed import NOTHING, Regions
from bpe_automata._constructions.prefixed import PrefixedDfa
from bpe_automata._constructions.product_parts import (
    NOTHING_GIVEN_UP,
    SHOWN,
    Columns,
    Proofs,
    Proven,
    SetArrays,
    fixed_set_for,
    forbidden_sets_of,
    forget,
    fragments_of,
    give_up,
    reading_of,
    resized,
    with_room_for,
)
from bpe_automata._constructions.text_quotient import TextQuotient, text_for
from bpe_automata._kernels.collapsed import Collapsed
from bpe_automata._kernels.dead_sets import AGAIN, DONE, settle
from bpe_automata._kernels.edges import (
    MOST_STATE_PAIRS,
    MOST_TOKEN_CLASSES,
    Vocabulary,
    grouped_edges,
    intern_state_pairs,
)
from bpe_automata._kernels.fewest_tokens import NEVER
from bpe_automata._kernels.hashing import EMPTY, table_size, with_room
from bpe_automata._kernels.leading_ids import Tokens, add_witnessed
from bpe_automata._kernels.masks import readable_ids
from bpe_automata._kernels.product import (
    SET_BITS,
    Added,
    Dfa,
    Memo,
    Product,
    Sets,
    intern_state_pair,
)
from bpe_automata._kernels.references import Packed, packed
from bpe_automata._kernels.settled import Dead, Settled, add_settled, unsettled
from bpe_automata._kernels.shortest_texts import NOT_YET, Shortest, all_at_most, unsure
from bpe_automata._kernels.status import Certificates, statuses_of
from bpe_automata._kernels.trie import states_after, walk
from bpe_automata._kernels.watch import armed, called, watched
from bpe_automata._limits import NUMBERS, check_fits, untouched
from bpe_automata._sharing import Lock, cached, locked

T = TypeVar("T")

_SPARE_STATE_PAIRS = 1024
# Times as many: what a search has found is lost when there is no room for more.
_MORE_STATE_PAIRS = 4
_STATES_PER_SPARE_PAIR = 64
_SMALLER = "use smaller repeat counts, or split the language"
_ALIVE_ALONE = np.uint8(0b01010101)  # the bits of four that are ALIVE, see `known_at_end`
_ROOM = 4096
_ENOUGH = 1 << 16  # configurations that one call may find
_ROOM_OF_SETS = 8
# Llama-4, which has most, needs 306 and 137; most others need no more than the first number. All
# states have a bit for each that there is room for.
_FEW_CERTIFICATES, _MOST_CERTIFICATES, _COLUMNS = 192, 384, 160
_ALL_BYTES = np.ones(256, dtype=bool)


class ProductTables:
    """Kernel arguments for one DFA over one canonical automaton.

    `memo` grows by doubling when a kernel finds it full. Kernels that write into it run one at a
    time, under a lock of these tables alone: those of other products run beside them. A state pair,
    once it has a number, is what it is in every later `memo`, so it is read freely.
    """

    def __init__(
        self, canonical: CanonicalAutomaton, prefixed: PrefixedDfa, banned: set[int]
    ) -> None:
        """banned: ids of added tokens that may not be read as text. Raises BudgetExceededError."""
        self.canonical, self.lock = canonical, Lock()
        self._dfa = dfa = prefixed.dfa
        token_classes, texts = len(canonical.actions.classes), len(canonical.pipeline.text.next)
        # Deployed tokenizers have some hundreds of either.
        check_fits(
            "token classes",
            token_classes,
            MOST_TOKEN_CLASSES,
            "more than this tokenizer may have",
        )
        check_fits("state pairs", dfa.n_states * texts, MOST_STATE_PAIRS, _SMALLER)
        self._text = text = text_for(canonical, dfa)
        lock = canonical.tokenizer.lock
        self._regions = Regions(dfa, lock, canonical.trie, lambda: text.vocabularies)
        derived = canonical.tokenizer.derived
        self._set_arrays = derived("set arrays", lambda _: SetArrays(canonical))
        n_rows = len(canonical.pipeline.alphabet.utf8)
        self._proven = derived("proven", lambda _: Proven(n_rows))
        self._columns, self._proofs = self._set_arrays.current(), self._proven.begun()
        fragments = derived("fragments", lambda _: fragments_of(canonical))
        is_linked = isinstance(dfa, LinkedDFA)
        key = frozenset(banned), is_linked
        added = text.added.get(key)
        if added is None:
            added = text.added.setdefault(key, _added(canonical, text, banned, is_linked))
        plain = dfa.plain if isinstance(dfa, LinkedDFA) else np.zeros(dfa.n_states, np.bool_)
        before, after = prefixed.added_from, prefixed.after_added
        self._product = Product(
            dfa=Dfa(dfa.steps, dfa.accepting, before, after, plain),
            reading=derived("reading", lambda _: reading_of(canonical)),
            added=added,
            sets=Sets(*self._columns, *self._proofs[:2]),
            memo=_memo(
                dfa.n_states,
                canonical.pipeline.boundaries.n,
                max(_SPARE_STATE_PAIRS, dfa.n_states // _STATES_PER_SPARE_PAIR),
            ),
            fragments=fragments._replace(covers=self._proofs.covers),
            pairs=canonical.geometry.pairs,
            fixed_set=fixed_set_for(canonical, dfa),
            witnesses=self._proofs.witnesses,
            watch=armed(),
        )
        self._count(self.memo)
        self._proven.give_back(self._proofs)
        self.forbidden_sets = derived("forbidden sets", lambda _: forbidden_sets_of(canonical))
        self.settled = _settled(len(self.forbidden_sets.before.order))
        self._certificates = _no_certificates()
        self._known_rows: object = None
        n_words = canonical.geometry.n_words
        self._no_ids = derived("no ids", lambda _: np.zeros(2 * n_words, dtype=np.int32))

    @property
    def memo(self) -> Memo:
        """What is known so far."""
        return self._product.memo

    def state_pair(self, state: int, text: int) -> int:
        """The number of a state pair. `text`: a state of the text automaton."""
        text = int(self._text.same[text])
        if text == 0:
            return state
        return int(self.ask(intern_state_pair, state, text))

    def state_pair_after(self, state_pair: int, number: int, token: int) -> int:
        """The state pair that an id of BPE leads to from a configuration, -1: it cannot be read
        there."""
        dfa, memo, canonical = self._product.dfa, self.memo, self.canonical
        data = np.frombuffer(canonical.tokenizer.spellings[token], dtype=np.uint8)
        given = packed(dfa.steps), int(memo.state[state_pair]), data
        state = int(called(armed(), walk, *given))
        before, utf8_row = int(memo.text_state[state_pair]), canonical.sets.sets[number].utf8_row
        if before and utf8_row == 0 and canonical.actions.first[token] < 0:
            # The beginning of a character: see `_kernels.edges._text_at`.
            before = before if self._collapsed(state_pair, utf8_row)[1][data[0]] else 0
        text = canonical.text_after(before, number, token) if state else -1
        return -1 if text < 0 else self.state_pair(state, text)

    @locked
    def readable(self, state_pair: int, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(both, open) of `_kernels.masks`; a packed set, not to be written to, that `both` is
        mostly like where a collapsed vocabulary was used, or where the row is short."""
        free, bound = self.canonical.sets.successors(number)
        collapsed, alone = self._collapsed(state_pair, self.canonical.sets.sets[number].utf8_row)
        full, certificates, loop = collapsed.ids, _no_certificates(), b""
        if collapsed is not NOTHING:
            loop = self._regions.loop(int(self.memo.state[state_pair]), collapsed)
            full = self._text.vocabularies.full_row(collapsed, number, free, bound)
            certificates = self._certificates = self._room_for_certificates()
        given = alone, packed(collapsed), full, packed(certificates), free, bound
        begin, vocabulary = (state_pair, number), packed(self.vocabulary)
        both, open_ = self.ask(readable_ids, *begin, *given, vocabulary, loop=loop)
        return both, open_, self._no_ids if collapsed is NOTHING else full

    def _collapsed(self, state_pair: int, utf8_row: int) -> tuple[Collapsed, np.ndarray]:
        """The collapsed vocabulary for a state pair, at a character's end, or NOTHING; bool [256],
        the bytes of which tokens are read alone, see `_kernels.edges`."""
        state, text = int(self.memo.state[state_pair]), int(self.memo.text_state[state_pair])
        collapsed = self._regions.at(state) if utf8_row == 0 else NOTHING
        outside = self._regions.outside(state)
        if text == 0:
            return collapsed, outside
        alphabet = self.canonical.pipeline.alphabet
        return collapsed, self._text.begins_otherwise(text, alphabet) | outside

    def keep(self) -> None:
        """Put the collapsed vocabularies on the disk."""
        self._regions.keep()

    def _room_for_certificates(self) -> Certificates:
        """Those known, with room for all sets."""
        known, n_sets = self._certificates, len(self.canonical.sets.sets)
        if not len(known.texts):
            n_states, n_texts = len(self._product.dfa.accepting), len(self._text.next)
            known = _certificates(n_states, len(self._product.reading.utf8), n_texts)
        elif known.counts[0] == _FEW_CERTIFICATES == len(known.ends):
            known = _with_more(known)
        if len(known.of_set) < n_sets:
            known = known._replace(of_set=resized(known.of_set, 2 * n_sets, -1))
        return known

    @locked
    def statuses(self, state_pairs: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """uint8: the status of each configuration, see `_kernels.product`. state pairs, numbers:
        int64."""
        while 2 * (int(self.memo.n_configurations[0]) + len(state_pairs)) >= len(
            self.memo.configurations
        ):
            self._grow_configurations()  # else the kernel could not remember what it finds
        return self.ask(statuses_of, state_pairs, numbers)

    @property
    def fixed_set(self) -> int:
        """The number of the set that reading leaves as it is, -1 if there is none."""
        return self._product.fixed_set.number

    def state_pairs(self, states: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """int64: `state_pair` of each."""
        states, texts = states.astype(np.int64), self._text.same[texts].astype(np.int64)
        found: np.ndarray = self.ask(intern_state_pairs, states, texts) if texts.any() else states
        return found

    @locked
    def add_lively(self, open_: np.ndarray, free: np.ndarray, bound: np.ndarray) -> None:
        """Set in packed rows the ids of open ones (see `_kernels.masks`) that are not dead
        where they lead."""
        if len(unsettled(open_, self.settled)):
            open_ = open_[np.lexsort((open_[:, 1], open_[:, 2]))]
            for number in set(open_[:, 2].tolist()):
                self._set_arrays.know(number)
            given = open_, free, bound, self.settled, self._tokens(), packed(self.forbidden_sets)
            open_ = open_[self.ask(add_witnessed, *given)]
            if not len(open_):
                return
            self.settle(unsettled(open_, self.settled))
        add_settled(open_, free, bound, self.settled, self.forbidden_sets.left_at)

    @locked
    def settle(self, configurations: np.ndarray) -> None:
        """Find what is dead at configurations (int64, `_kernels.product.configuration_key`):
        `settled` says it then."""
        if not len(configurations):
            return
        nearest = np.argsort(
            self._product.fixed_set.distance[self.memo.state[configurations >> SET_BITS]]
        )
        configurations, wanted = configurations[nearest], AGAIN
        while wanted != DONE:
            check()
            if wanted != AGAIN:
                self._set_arrays.know(wanted)
            tokens = self._tokens()
            # Interrupted while the kernel adds to it, all of it is forgotten.
            known, self.settled = self.settled, _settled(len(self.forbidden_sets.before.order))
            given = configurations, known, tokens, packed(self.forbidden_sets)
            (arrays, dead), wanted = self.ask(settle, *given)
            self.settled = Settled(*arrays, Dead(*dead))

    def _tokens(self) -> Packed:
        known, classes = self._set_arrays.known_rows(), self.canonical.actions.of_token
        if known is not self._known_rows:  # it takes as long as a kernel to write it out
            given = self.vocabulary, _ALL_BYTES, NOTHING, *known, classes
            self._known_rows, self._packed_tokens = known, packed(Tokens(*given))
        return self._packed_tokens

    def edges(
        self,
        state_pair: int,
        utf8_row: int,
        vocabulary: Vocabulary | None = None,
        left: int = NEVER,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """All tokens that can be read at a state pair from UTF-8 row `utf8_row` if the hypotheses
        allow it, in groups that lead alike: (state_pairs int64, classes int64, start int32 [groups
        + 1] into, ids int32). Added tokens are left out, and what `vocabulary.towards` says is more
        than `left` tokens from acceptance."""
        dfa, memo = self._product.dfa, self.memo
        collapsed, alone = self._collapsed(state_pair, utf8_row)
        begin = int(memo.state[state_pair]), int(memo.text_state[state_pair]), utf8_row, alone
        given = packed(collapsed), packed(vocabulary or self.vocabulary), left
        rows, start, ids = watched(grouped_edges, *begin, packed(dfa.steps), *given)
        return self.state_pairs(rows[:, 0], rows[:, 1]), rows[:, 2].astype(np.int64), start, ids

    @locked
    def unsure(
        self, state_pair: int, number: int, live: tuple[np.ndarray, np.ndarray], most: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """(state pairs, sets), int64, of configurations that ids lead to from a configuration,
        added tokens left out: all those where an id that leads on at all may need more than `most`
        others to acceptance, and perhaps others. live: the configuration's row,
        `Relevance.readable`."""
        sets = self.canonical.sets
        utf8_row, sides = sets.sets[number].utf8_row, sets.successors(number)
        collapsed, alone = self._collapsed(state_pair, utf8_row)
        vocabulary = packed(collapsed), packed(NOTHING), packed(self.vocabulary)
        certificates = self._certificates = self._room_for_certificates()
        begin = state_pair, utf8_row, alone
        while True:
            after = sides, live, self._set_arrays.known_rows(), most
            given = *begin, *vocabulary, *after, packed(certificates), self._shortest
            states, texts, numbers = self.ask(unsure, *given).T
            partial = [n for n in np.unique(numbers).tolist() if sets.sets[n].utf8_row]
            if not sum(not self._set_arrays.know(n) for n in partial):
                return self.state_pairs(states, texts), numbers.astype(np.int64)

    @cached
    def vocabulary(self) -> Vocabulary:
        """The tokens that BPE makes, with the text automaton as the DFA sees it."""
        return self._text.vocabulary(self.canonical.pipeline.alphabet)

    def at_most(self, state_pairs: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """int32: bounds on the ids from configurations to acceptance, whatever the last id was;
        NEVER where none is known. state pairs, numbers: int64."""
        return self.ask(all_at_most, state_pairs, numbers, self._shortest)

    @cached
    def _shortest(self) -> Shortest:
        n_states, n_hypotheses = len(self._product.dfa.accepting), len(self._product.reading.ends)
        reads, begins, *others = np.zeros((4, n_states, -(-n_hypotheses // 64)), dtype=np.int64)
        atom, longer = np.full((2, n_states), NOT_YET, dtype=np.int32)
        return Shortest(atom, reads, begins, longer, others[0], others[1])

    def ids_ending_in(self, utf8_row: int) -> np.ndarray:
        """int64: the tokens that can end inside a character, in this UTF-8 row."""
        fragments = self._product.fragments
        low, high = fragments.open_start[utf8_row : utf8_row + 2]
        return fragments.open_ids[low:high].astype(np.int64)

    def added_steps(self, state_pair: int) -> tuple[np.ndarray, np.ndarray]:
        """(ids, state pairs), int64: the added tokens that can be read at a state pair between
        pretokens, and where each leads."""
        dfa, added = self._product.dfa, self._product.added
        begin = int(dfa.added_from[self.memo.state[state_pair]])
        text = int(self.memo.text_state[state_pair])
        every = np.arange(len(added.ids))
        given = packed(dfa.steps), begin, added.start, added.data, every
        ends = called(armed(), states_after, *given)
        states, texts = dfa.after_added[ends], added.after[added.after_row[text]]
        read = np.flatnonzero((added.ids >= 0) & (states > 0) & (texts >= 0))
        return added.ids[read].astype(np.int64), self.state_pairs(states[read], texts[read])

    @locked
    def ask(self, kernel: Callable[..., T], *arguments: Any, loop: bytes = b"") -> T:
        """What a kernel answers that takes the `Product` last; asked again where the memo had no
        room for its state pairs. loop: in which it begins, see `Proven`. Raises
        BudgetExceededError."""
        proofs, given_up = self._proven.taken(), self._proven.given_up_in(loop)
        lent = NOTHING_GIVEN_UP[0]
        try:
            # Only now, so that it has all sets that the proofs speak of.
            columns = self._set_arrays.current()
            proofs = with_room_for(proofs, len(columns.utf8_row))
            lent = give_up(proofs, given_up)
            before = proofs.given_up.copy()
            while True:
                watch = self._armed(columns, proofs)
                answer = called(watch, kernel, *arguments, packed(self._product))
                # Half full it takes no more: a call is to find room for as many as there are, or
                # for a lot.
                slots = len(self.memo.configurations)
                if int(self.memo.n_configurations[0]) >= slots // 2 - min(slots // 4, _ENOUGH):
                    self._grow_configurations()
                found = np.flatnonzero(proofs.given_up & ~before)
                if int(self.memo.n_state_pairs[0]) <= len(self.memo.state):
                    self._proven.remember(loop, found, proofs)
                    return answer
                forget(proofs, found)  # perhaps there was no room
                self._grow_state_pairs()
        finally:
            forget(proofs, lent)
            self._proven.give_back(proofs)

    def _armed(self, columns: Columns, proofs: Proofs) -> np.ndarray:
        """Hand all that may have changed to the kernels; returns the watch."""
        watch, product = armed(), self._product
        if columns is not self._columns or proofs is not self._proofs:
            self._product = product._replace(
                sets=Sets(*columns, proofs.given_up, proofs.shown),
                fragments=product.fragments._replace(covers=proofs.covers),
                witnesses=proofs.witnesses,
                watch=watch,
            )
            self._columns, self._proofs = columns, proofs
        elif watch is not product.watch:
            self._product = product._replace(watch=watch)
        return watch

    def _count(self, memo: Memo) -> None:
        """Of a state pair in state 0 of the text automaton, the state is its number."""
        if isinstance(self._dfa, LinkedDFA):
            self._dfa.count_into(memo.state)
        else:
            memo.state[: self._dfa.n_states] = np.arange(self._dfa.n_states)

    def _grow_configurations(self) -> None:
        old = self.memo
        configurations, status = with_room(old.configurations, old.status, len(old.configurations))
        self._product = self._product._replace(
            memo=old._replace(configurations=configurations, status=status)
        )

    def _grow_state_pairs(self) -> None:
        old, size, n_states = self.memo, len(self.memo.state), len(self._product.dfa.accepting)
        new = _memo(n_states, old.free.shape[1], _MORE_STATE_PAIRS * (size - n_states))
        # Texts that were found are texts. All else may rest on a state pair that was not there.
        written = self._dfa.n_written if isinstance(self._dfa, LinkedDFA) else n_states
        for some in slice(written), slice(n_states, size):
            known = old.at_end[some]
            new.at_end[some] = known & ~(known >> 1) & _ALIVE_ALONE
        # Far fewer are asked about again than were known.
        slots = max(len(new.configurations), len(old.configurations) // 4)
        configurations, status = np.full(slots, EMPTY, np.int64), np.zeros(slots, np.uint8)
        new.state[n_states:size] = old.state[n_states:]
        new.text_state[n_states:size] = old.text_state[n_states:]
        self._count(new)
        new.n_state_pairs[0] = size
        keys, values = with_room(old.keys, old.values, len(new.state) - n_states)
        new = new._replace(keys=keys, values=values)
        self._product = self._product._replace(
            memo=new._replace(configurations=configurations, status=status)
        )


def _added(
    canonical: CanonicalAutomaton, seen: TextQuotient, banned: set[int], is_linked: bool
) -> Added:
    text = canonical.pipeline.text
    ids = text.ids.copy()
    ids[np.isin(ids, list(banned))] = -1
    harmless = np.zeros(len(seen.next), np.bool_)
    if is_linked:  # of other automata no state is said to be plain
        harmless = seen.harmless(text.ends, canonical.pipeline.alphabet)
    tokens = text.token_start, text.data, ids
    return Added(seen.next, text.ends, harmless, text.after_row, seen.after, *tokens)


def _memo(n_states: int, n: int, spare: int) -> Memo:
    """`spare` state pairs besides the DFA's states."""
    state_pairs, slots, room = n_states + spare, table_size(spare), table_size(_ROOM)
    check_fits("state pairs", state_pairs, NUMBERS, _SMALLER)
    each, bits = (state_pairs, np.int32), ((state_pairs, n), np.uint8)
    at_end, free, state, text_state = untouched(
        ((state_pairs, -(-n // 4)), np.uint8), bits, each, each
    )
    return Memo(
        configurations=np.full(room, EMPTY, dtype=np.int64),
        status=np.zeros(room, dtype=np.uint8),
        n_configurations=np.zeros(1, dtype=np.int64),
        at_end=at_end,
        free=free,
        keys=np.full(slots, EMPTY, dtype=np.int64),
        values=np.full(slots, -1, dtype=np.int32),
        state=state,  # see `ProductTables._count`
        text_state=text_state,
        n_state_pairs=np.array([n_states], dtype=np.int64),
    )


def _certificates(n_states: int, n_rows: int, n_texts: int) -> Certificates:
    """None yet."""
    room, n = table_size(_MOST_CERTIFICATES), _FEW_CERTIFICATES
    asked, holds = _words_of_states(n_states, n)
    return Certificates(
        of_set=np.empty(0, dtype=np.int32),
        keys=np.full(room, EMPTY, dtype=np.int64),
        values=np.zeros(room, dtype=np.int32),
        shown=np.zeros((n, *SHOWN), dtype=np.int32),
        ends=np.zeros(n, dtype=bool),
        whole=np.zeros(n, dtype=bool),
        asked=asked,
        holds=holds,
        column=np.full(n_rows, -1, dtype=np.int32),
        need=np.zeros((_COLUMNS, -(-n // 64)), dtype=np.int64),
        texts=np.zeros(n_texts, dtype=np.int32),
        counts=np.zeros(2, dtype=np.int64),
    )


def _words_of_states(n_states: int, n: int) -> list[np.ndarray]:
    """Twice n bits for each state."""
    return untouched(*(((n_states, -(-n // 64)), np.int64) for _ in range(2)))


def _with_more(known: Certificates) -> Certificates:
    """The same with all the room that there may be. Where they hold is asked again: it is found
    sooner than so many bits are copied."""
    n = _MOST_CERTIFICATES
    asked, holds = _words_of_states(len(known.asked), n)
    return known._replace(
        shown=resized(known.shown, n),
        ends=resized(known.ends, n),
        whole=resized(known.whole, n),
        asked=asked,
        holds=holds,
        need=np.zeros((_COLUMNS, -(-n // 64)), dtype=np.int64),
    )


@cache  # not while this is imported: it would compile a kernel
def _no_certificates() -> Certificates:
    return _certificates(0, 1, 0)


def _settled(n_ids: int) -> Settled:
    """Nothing yet, of a tokenizer with so many ids that BPE makes."""
    room, words = table_size(_ROOM_OF_SETS), (n_ids + 63) >> 6
    dead = Dead(
        np.empty((_ROOM_OF_SETS, words), dtype=np.int64),
        np.full(room, EMPTY, dtype=np.int64),
        np.zeros(room, dtype=np.int32),
        np.zeros(1, dtype=np.int64),
    )
    slots, values = np.full(room, EMPTY, dtype=np.int64), np.zeros(room, dtype=np.int32)
    return Settled(slots, values, np.zeros(1, dtype=np.int64), dead)
