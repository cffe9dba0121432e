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
    hypothesis     a guess about the text so far: where the pretoken being read began, and which
                   matches of the split pattern must still fail, or succeed, if that is right
    derivation     the two parts that a merge makes a token of; its birth is the rank of that merge
    atom           a class of characters that nothing in the tokenizer's pipeline distinguishes
    spelling       the bytes that an id stands for
    byte automaton that of the language, over bytes: a minimal DFA, or linked (see `automata`)
    text automaton reads added tokens, normalizers and prefixes, character by character
    configuration  a state of the byte automaton, one of the text automaton, a set of hypotheses:
                   all that a mask depends on but the last id

Public are the names in `__all__` of this package and of those in it, the modules of `integrations`,
and `errors`. Anything else may change without notice. Names are imported when they are first used.
"""

import lazy_loader

from bpe_automata._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
