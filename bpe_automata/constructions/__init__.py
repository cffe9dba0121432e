"""Floor 2: token automata. `lift` admits every tokenization of a matching text, `cartesian_merge`
the tokenizer's own, `explicit.Listed` what an automaton that is written out does; `canonical` is
the automaton of all canonical sequences, `geometry` its part that is BPE alone."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
