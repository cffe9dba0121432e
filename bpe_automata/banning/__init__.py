"""Banned words: texts that must not be written, as automata.

`Ban` says what is banned. `Ban.constrain` makes a constraint that holds for every tokenization, and
`AppliedBan` adds the ban to a given constraint, such as `any_text`. `Spellings` is the token
automaton of all spellings of the banned words over a vocabulary, and `Watch` follows a sequence
along it. With these `sampling.decode_without` rolls back, for models that only give logits.
"""

from bpe_automata.banning._applied import AppliedBan, any_text
from bpe_automata.banning._spellings import Spellings, Watch
from bpe_automata.banning._words import Ban, Found

__all__ = ["AppliedBan", "Ban", "Found", "Spellings", "Watch", "any_text"]
