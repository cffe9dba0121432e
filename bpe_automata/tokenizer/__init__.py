"""Tokenizers. Each is read completely, or refused.

`Tokenizer` reads one, with the readers in `sources`; `Description` holds its parts.
`derivation` computes how BPE makes each token; `pipeline` compiles the rest of `encode` into
automata: `alphabet`, `text_automaton` (added tokens, prefix, normalizers) and `boundaries` (the
pretokenizer).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
