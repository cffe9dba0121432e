"""Token automata of a language: `lift` admits every tokenization of a matching text,
`cartesian_merge` the tokenizer's own, and `explicit` makes either an explicit automaton.

Modules:

    within       texts of a limited number of ids (`endings`: how many ids complete a text)
    segments     parts that many languages have in common, made once
    engine       the interface of all of them
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
