"""Programs with assertions -> programs without.

    { w : some path of the program reads w, and each assertion on it is true where it stands }

An assertion speaks of the characters before and after its place. So each place is copied once for
each context (what was read last, what may come next): reading a character is allowed by the second
part and sets the first, an assertion narrows the second part down.
"""

from __future__ import annotations

import numpy as np

from bpe_automata.automata.codepoints import Inversion, complement, without
from bpe_automata.automata.compile import atoms, determinized, finish
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.program import Program
from bpe_automata.automata.syntax import parse
from bpe_automata.budget import Budget, out_of_places
from bpe_automata.kernels.determinize import JUMP, MATCH, SPLIT
from bpe_automata.schemas.ecma_classes import WORD
from bpe_automata.schemas.ecma_syntax import BEGIN, BOUNDARY, END, MARKERS, NO_BOUNDARY

# What was read last, and (as a set) what may come next: a word character, another, the end.
_START, _WORD, _OTHER = 0, 1, 2
_NEXT_WORD, _NEXT_OTHER, _NEXT_END = 1, 2, 4
_ANYTHING = _NEXT_WORD | _NEXT_OTHER | _NEXT_END
_NO_CLASS = 0
_STRIDE = 5  # places that one place and context take: SPLIT, character, JUMP, character, JUMP
_Context = tuple[int, int]


def compile_marked(text: str, budget: Budget) -> ByteDFA:
    """The minimal byte DFA of a regex with MARKERS, which must match a whole text.

    Raises BudgetExceededError.
    """
    for marker in MARKERS:  # twice: the parser makes one class of alternatives of one character
        text = text.replace(marker, 2 * marker)
    program = Program(parse(text), budget)
    rows = program.rows()
    markers = {c: _marker(members) for c, members in enumerate(program.classes)}
    expanded = _Expanded(rows, {c: m for c, m in markers.items() if m})
    if expanded.n_places > budget.max_places:
        raise out_of_places(budget)
    classes: list[Inversion] = [()]
    for members in program.classes:
        plain = () if _marker(members) else members
        classes += [without(plain, complement(WORD)), without(plain, WORD)]
    starts, atom_of, member = atoms(classes)
    trans, accepting = determinized(expanded.rows(), member, budget)
    return finish(trans, accepting, 1, starts, atom_of, budget)


def _marker(members: Inversion) -> str:
    """The marker that a class stands for; empty if it is a class of characters."""
    single = len(members) == 2 and members[1] == members[0] + 1
    return chr(members[0]) if single and chr(members[0]) in MARKERS else ""


def _asserted(marker: str, context: _Context) -> _Context | None:
    """The context after an assertion; None if it is false."""
    before, allowed = context
    if marker == BEGIN:
        return context if before == _START else None
    if marker == END:
        allowed &= _NEXT_END
    if marker in (BOUNDARY, NO_BOUNDARY):
        same = (before == _WORD) == (marker == NO_BOUNDARY)
        allowed &= _NEXT_WORD if same else _NEXT_OTHER | _NEXT_END
    return (before, allowed) if allowed else None


class _Expanded:
    """The program over (context, place). Class c of the program is read as 2 c + 1, its word
    characters, and 2 c + 2, the others."""

    def __init__(self, rows: np.ndarray, markers: dict[int, str]) -> None:
        self._source, self._markers = rows, markers
        self._n = rows.shape[1]
        self._contexts = self._closure()
        self.n_places = len(self._contexts) * self._n * _STRIDE

    def _closure(self) -> dict[_Context, int]:
        """All contexts that may arise, numbered from 0, the start."""
        contexts = {(_START, _ANYTHING): 0}
        queue = list(contexts)
        for context in queue:
            after = [_asserted(marker, context) for marker in self._markers.values()]
            for found in (*after, (_WORD, _ANYTHING), (_OTHER, _ANYTHING)):
                if found is not None and found not in contexts:
                    contexts[found] = len(contexts)
                    queue.append(found)
        return contexts

    def rows(self) -> np.ndarray:
        """int32 [4, n_places], as `kernels.determinize` takes it."""
        out = np.full((4, self.n_places), -1, np.int32)
        out[0], out[1] = _NO_CLASS, 0
        code, arg, near, far = self._source.tolist()
        for context, number in self._contexts.items():
            for i in range(self._n):
                at = self._at(number, i)
                self._place(out[:2], at, context, (i, code[i], arg[i]))
                for row, distance in ((2, near[i]), (3, far[i])):
                    if distance >= 0:  # contexts lie apart, so the first copy is in the same one
                        out[row, at : at + _STRIDE] = distance * _STRIDE
        return out

    def _at(self, context: int, place: int) -> int:
        return (context * self._n + place) * _STRIDE

    def _place(
        self, out: np.ndarray, at: int, context: _Context, source: tuple[int, int, int]
    ) -> None:
        """Write the copy of one place in one context, at `at`."""
        i, code, arg = source
        if code == MATCH:
            if context[1] & _NEXT_END:
                out[0, at] = MATCH
        elif code in (JUMP, SPLIT):
            out[:, at] = code, arg * _STRIDE
            out[:, at + 1] = JUMP, _STRIDE - 1
        elif code in self._markers:
            after = _asserted(self._markers[code], context)
            if after is not None:
                out[:, at] = JUMP, self._at(self._contexts[after], i + 1) - at
        else:
            self._characters(out, at, context[1], (i, code))

    def _characters(self, out: np.ndarray, at: int, allowed: int, source: tuple[int, int]) -> None:
        i, code = source
        out[:, at] = SPLIT, 3
        kinds = ((_NEXT_WORD, _WORD, 1), (_NEXT_OTHER, _OTHER, 3))
        for k, (kind, before, slot) in enumerate(kinds, start=1):
            out[0, at + slot] = 2 * code + k if allowed & kind else _NO_CLASS
            to = self._at(self._contexts[before, _ANYTHING], i + 1)
            out[:, at + slot + 1] = JUMP, to - (at + slot + 1)
