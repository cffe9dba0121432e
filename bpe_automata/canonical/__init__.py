"""The automaton of canonical ids, and its product with an automaton of texts.

pairs        `geometry`: which ids may follow one another, as rectangles
pretokens    `sets` of boundary hypotheses; `token_actions`: what each token does to them
automaton    `canonical` puts both together; `stored` keeps it on disk
masks        `product`: states and masks; `reader`, `slices`, `groups`: how the vocabulary is
             read; `lift`, `lifting`: the same for all tokenizations
kernels      see `arrays` for their terms
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
