"""Constraints, and the matcher that follows one.

Modules:

    constraint   a language over a tokenizer; `removed`: what its normalizer takes out of that
    matcher      the one mutable object; `streaming` tells what is known of its text
    masks        `batches`, `drafts`; `forced` ids; `token_table` of explicit automata
    prompts      `healing`
    why          `explanation` says why ids are not canonical; `verification` holds a constraint
                 against `encode`
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
