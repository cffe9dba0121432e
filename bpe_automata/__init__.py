"""Regex-constrained decoding along the tokenizer's own tokenization, exactly.

    from bpe_automata import Tokenizer, constrain

    tokenizer = Tokenizer.load("tokenizer.json")
    matcher = constrain(tokenizer, r"(true|false)").matcher()
    matcher.allowed_ids()

Words that are this package's, or that it means one thing by:

    canonical      of ids: encode(decode(ids)) == ids, they are the tokenizer's own
    lift           all ids that spell a text of the language, canonical or not
    pretoken       a piece that the tokenizer splits a text into before BPE runs on it
    joint          where two ids meet; it is free at a boundary of pretokens, bound inside one
    hypothesis     which piece is being read, and which matches of the split pattern must not come
    derivation     of which two parts a merge makes a token; its birth is the rank of that merge
    atom           a class of characters that nothing in the tokenizer's pipeline can tell apart
    spelling       the bytes that an id stands for
    state pair     a state of the byte DFA with one of the text automaton
    configuration  a state pair with a set of hypotheses: all that a mask depends on but the last id

Public are the names in `__all__` of this package and of `schemas`, `sampling`, `banning`, `viz`,
`models`, `reference` and `testing`, the modules of `integrations`, and `errors`: all that has no
underscore in its path. What has one may change without a word. Importing the package imports
nothing else: each of its names brings what it needs.
"""

import lazy_loader

from bpe_automata._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
