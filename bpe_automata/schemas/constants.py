"""The sets that everything is made from: no value, every value, all values of one kind."""

from __future__ import annotations

from bpe_automata.automata.algebra import all_texts
from bpe_automata.automata.sources import from_strings
from bpe_automata.schemas.numbers import no_numbers, numbers
from bpe_automata.schemas.shapes import ArrayShape, Child, ObjectShape, Term, Values

ALL_TEXTS = all_texts()
NO_TEXT = from_strings(())
ALL_NUMBERS = numbers()
NO_NUMBER = no_numbers()
BOTH = frozenset((False, True))
_ANY_LOOP = -1  # arrays and objects of anything are a loop, as a $ref to itself is

NONE = Values(False, frozenset(), NO_NUMBER, NO_TEXT, (), ())
NOTHING = Child.of(NONE)

ANYTHING = Child(lambda: ALL)  # ALL holds itself
ANY_ARRAY = ArrayShape((), ANYTHING)
ANY_OBJECT = ObjectShape(rest=((ALL_TEXTS, ANYTHING),))
ALL: Values = Values(
    True,
    BOTH,
    ALL_NUMBERS,
    ALL_TEXTS,
    (Term(ANY_ARRAY),),
    (Term(ANY_OBJECT),),
    frozenset((_ANY_LOOP,)),
    True,
)
ANYTHING.__dict__["values"] = ALL
