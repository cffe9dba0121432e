"""Regex-constrained decoding along the tokenizer's own tokenization, exactly.

    from bpe_automata import Tokenizer, constrain

    tokenizer = Tokenizer.load("tokenizer.json")
    matcher = constrain(tokenizer, r"(true|false)").matcher()
    matcher.allowed_ids()

Terms:

    canonical      of ids: encode(decode(ids)) == ids, they are the tokenizer's own
    lift           all ids that spell a text of the language, canonical or not
    pretoken       a piece that the tokenizer splits a text into before BPE runs on it
    joint          where two ids meet; it is free at a boundary of pretokens, bound inside one
    hypothesis     which pretoken is being read, and which matches of the split pattern must still
                   fail if it is to be right
    derivation     of which two parts a merge makes a token; its birth is the rank of that merge
    atom           a class of characters that nothing in the tokenizer's pipeline distinguishes
    spelling       the bytes that an id stands for
    byte DFA       the minimal automaton of the regex, over bytes
    text automaton reads added tokens, normalizers and prefixes, character by character
    state pair     a state of the byte DFA with one of the text automaton
    configuration  a state pair with a set of hypotheses: all that a mask depends on but the last id

Public are the names in `__all__` of this package and of those in it, the modules of `integrations`,
and `errors`. Anything else may change without notice. Names are imported when they are first used.
"""

import lazy_loader

from bpe_automata._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
