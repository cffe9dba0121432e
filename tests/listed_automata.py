"""Random automata given as plain lists, and what they accept, said with dicts alone."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from bpe_automata import TokenAutomaton


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
