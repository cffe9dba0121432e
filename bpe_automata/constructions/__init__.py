"""Token automata of a language: `lift` admits every tokenization of a matching text,
`cartesian_merge` the tokenizer's own, and `explicit` writes either out.

Modules:

    within       texts of so many ids at most (`endings`: the shortest ways to an end)
    segments     parts that many languages have in common, made once
    engine       what all of them have in common
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
