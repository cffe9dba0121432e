"""Constraints, and the matcher that follows one.

Modules:

    constraint   a language over a tokenizer; `removed`: the texts that its normalizer removes
    matcher      the one mutable object; `streaming` reads the text that it has so far
    masks        `batches`, `drafts`; `forced` ids; `token_table` of explicit automata
    prompts      `healing`
    checks       `explanation` says why ids are not canonical; `verification` compares a constraint
                 with `encode`
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
