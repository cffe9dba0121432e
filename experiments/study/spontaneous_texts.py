"""All texts, as a constraint: what may follow is what some canonical text goes on with."""

from __future__ import annotations

from collections.abc import Iterable

from bpe_automata import Constraint, Matcher, Tokenizer, constrain
from bpe_automata.errors import PromptError, TokenNotAllowedError


def all_texts(tokenizer: Tokenizer) -> Constraint:
    """Made once for a tokenizer. Without end-of-sequence: added tokens are text."""
    return tokenizer.derived(
        "all texts", lambda it: constrain(it, r"(?s:.*)", eos_ids=(), added_tokens=True)
    )


def after(tokenizer: Tokenizer, ids: Iterable[int]) -> Matcher:
    """A matcher that has read these ids, which begin a canonical text and may end inside a
    character. Raises PromptError for ids that begin none."""
    matcher = all_texts(tokenizer).matcher()
    try:
        for token in ids:
            matcher.advance(token)
    except TokenNotAllowedError as error:
        raise PromptError(f"the prompt's ids are not canonical: {error}") from error
    return matcher
