"""What random tests draw: automata as plain lists that say with dicts alone what is accepted, token
automata whose language is found by walking over every sequence, and small tokenizers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from hypothesis import strategies as st

from bpe_automata import TokenAutomaton
from bpe_automata.testing import small_tokenizer
from support.steps import metaspace

VOCABULARY = ["▁", *"abc\x02", "▁a", "ab", "▁ab", "▁▁"]
MERGES = [("▁", "a"), ("a", "b"), ("▁a", "b"), ("▁", "▁")]
# Tokenizers that put a space before the text, with an added token or without.
PREFIXED = [
    small_tokenizer(VOCABULARY, MERGES, metaspace(scheme, False), added)
    for scheme in ("always", "first")
    for added in ((), ("c",), ("<|",))
]


@dataclass(frozen=True)
class Listing:
    """transitions: (state, id) -> next state."""

    transitions: dict[tuple[int, int], int]
    accepting: frozenset[int]
    eos_ids: tuple[int, ...]
    n_ids: int
    start: int = 0

    @property
    def triples(self) -> list[tuple[int, int, int]]:
        return [(p, token, q) for (p, token), q in self.transitions.items()]

    @property
    def automaton(self) -> TokenAutomaton:
        states = sorted({0, *self.accepting})
        return TokenAutomaton.from_transitions(self.triples, 0, self.accepting, states=states)

    def useful(self) -> set[int]:
        """The states from which an accepting one is in reach."""
        found, before = set(self.accepting), set()
        while found != before:
            before = set(found)
            found |= {p for (p, _), q in self.transitions.items() if q in before}
        return found

    def after(self, ids: list[int]) -> int | None:
        """The state after ids that are all allowed; None once end-of-sequence was read."""
        state = self.start
        for token in ids:
            if token in self.eos_ids:
                return None
            state = self.transitions[state, token]
        return state

    def allowed(self, ids: list[int]) -> set[int]:
        """What may follow."""
        state, useful = self.after(ids), self.useful()
        if state is None:
            return set()
        read = {i for (p, i), q in self.transitions.items() if p == state and q in useful}
        return read | (set(self.eos_ids) if state in self.accepting else set())

    def complete(self, ids: list[int]) -> bool:
        state = self.after(ids)
        return state is None or state in self.accepting


@st.composite
def listings(draw: st.DrawFn, ends: int = 2) -> Listing:
    """Nonempty languages over up to 70 ids, so that masks have one to three words; with up to
    `ends` end-of-sequence ids, dead ends and states out of reach."""
    n_ids = draw(st.sampled_from([5, 31, 32, 33, 70]))
    n_states = draw(st.integers(1, 6))
    eos_ids = draw(st.lists(st.integers(0, n_ids - 1), max_size=ends, unique=True))
    state, token = st.integers(0, n_states - 1), st.integers(0, n_ids - 1)
    few = st.sampled_from(sorted({0, 1, 2, n_ids - 1}))
    pairs = st.tuples(state, token | few).filter(lambda pair: pair[1] not in eos_ids)
    transitions = draw(st.dictionaries(pairs, state, max_size=14))
    named = {0, *(p for p, _ in transitions), *transitions.values()}
    accepting = draw(st.sets(st.sampled_from(sorted(named)), min_size=1))
    made = Listing(transitions, frozenset(accepting), tuple(eos_ids), n_ids)
    return made if 0 in made.useful() else Listing(transitions, frozenset({0}), made.eos_ids, n_ids)


# ---------------------------------------------------------------- regexes

COUNTS = st.builds(lambda n, more: f"{{{n},{n + more}}}", st.integers(0, 3), st.integers(0, 4))


def regexes(leaves, repeats, flags=("",), max_leaves=8):
    """Regexes made of others; flags: of groups."""

    def larger(inner):
        return st.one_of(
            st.builds("{}{}".format, inner, inner),
            st.builds("({}|{})".format, inner, inner),
            st.builds("(?:{}){}".format, inner, repeats),
            st.builds("(?{}:{})".format, st.sampled_from(flags), inner),
        )

    return st.recursive(leaves, larger, max_leaves=max_leaves)


# ---------------------------------------------------------------- token automata

SYMBOLS = (3, 5, 8)
LONGEST = 5


def words(longest=LONGEST, symbols=SYMBOLS):
    """Every sequence of at most `longest` symbols, in length-lexicographic order."""
    return [word for n in range(longest + 1) for word in product(symbols, repeat=n)]


def language(transitions, start, accepting, longest=LONGEST):
    """The accepted sequences, in order; None as symbol reads nothing, choices are all followed."""
    level, found = [((), _closed(transitions, {start}))], []
    for _ in range(longest + 1):
        found += [word for word, states in level if states & set(accepting)]
        level = [
            ((*word, symbol), after)
            for word, states in level
            for symbol in SYMBOLS
            if (after := _after(transitions, states, symbol))
        ]
    return found


def _after(transitions, states, symbol):
    return _closed(transitions, {q for p, a, q in transitions if p in states and a == symbol})


def _closed(transitions, states):
    while True:
        grown = states | {q for p, a, q in transitions if p in states and a is None}
        if grown == states:
            return states
        states = grown


def language_of(automaton, longest=LONGEST):
    """The language of an automaton, by its own transitions and nothing else of it."""
    accepting = [state for state in automaton.states() if automaton.accepting[state]]
    return language(list(automaton.transitions()), automaton.start, accepting, longest)


@st.composite
def automaton_parts(draw, nondeterministic=False, most_states=4, symbols=SYMBOLS):
    """(transitions, start, accepting) over states 0 to 3."""
    n = draw(st.integers(1, most_states))
    state = st.integers(0, n - 1)
    if nondeterministic:
        read = st.sampled_from((*symbols, None))
        listed = draw(st.lists(st.tuples(state, read, state), max_size=9))
    else:
        moves = draw(st.dictionaries(st.tuples(state, st.sampled_from(symbols)), state, max_size=9))
        listed = [(p, a, q) for (p, a), q in moves.items()]
    start = draw(state)
    known = sorted({start, *(p for p, _, _ in listed), *(q for _, _, q in listed)})
    return listed, start, draw(st.sets(st.sampled_from(known)))


@st.composite
def automata(draw, spelled=False, symbols=SYMBOLS):
    """Random automata over SYMBOLS, often with irrelevant states."""
    spellings = draw(st.lists(st.binary(max_size=3), max_size=10)) if spelled else None
    return TokenAutomaton.from_transitions(
        *draw(automaton_parts(symbols=symbols)), SYMBOLS, spellings
    )
