"""Are ids that a model wrote freely its tokenizer's own?

A text that ended must be canonical as it stands: encode(decode(ids)) = ids, after the prompt. A
text that was cut off must be the beginning of a canonical one: more text could change how its last
characters are divided (GPT-2 reads two line breaks as one token at the end of a text, and as two
before a word). So an end that more text would mend is no fault, half a character included.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bpe_automata import Constraint, Matcher, Tokenizer, constrain
from bpe_automata.errors import PromptError, TokenNotAllowedError


def all_texts(tokenizer: Tokenizer) -> Constraint:
    """What may follow is what some canonical text goes on with. Made once for a tokenizer. Without
    end-of-sequence: added tokens are text."""
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


def fault(start: Matcher, ids: Sequence[int], ended: bool) -> int | None:
    """The place of the first id that no canonical text has there, from 0 after the prompt; of an
    end where none can end, how many ids there are; None if the text is canonical. start: after the
    prompt; ids: without end-of-sequence or other special tokens; ended: did the text end there, or
    was it cut off?"""
    matcher = start.copy()
    for place, token in enumerate(ids):
        if not matcher.allows(token):
            return place
        matcher.advance(token)
    return len(ids) if ended and not matcher.is_accepting else None
