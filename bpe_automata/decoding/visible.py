"""Text and tokens in messages: every byte can be seen, between backticks."""

from __future__ import annotations

from collections.abc import Iterable

from bpe_automata.tokenizer.tokenizer import Tokenizer
from bpe_automata.viz import visible as seen


def visible(data: bytes | str) -> str:
    """The text between backticks: spaces as ␣, other invisible characters escaped, bytes that are
    no UTF-8 as \\xNN. A long text is shortened in the middle."""
    return f"`{seen(data)}`"


def visible_tokens(tokenizer: Tokenizer, ids: Iterable[int]) -> str:
    """Tokens joined by +, as in `ord`+`er`."""
    return "+".join(visible(tokenizer.token_bytes(token)) for token in ids) or "nothing"
