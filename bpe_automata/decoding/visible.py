"""Text and tokens written so that every byte can be seen."""

from __future__ import annotations

from collections.abc import Iterable

from bpe_automata.tokenizer import Tokenizer

_LONGEST = 60
_SHOWN = {" ": "␣", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\"}


def visible(data: bytes | str) -> str:
    """Between backticks: spaces as ␣, other invisible characters escaped, bytes that are no UTF-8
    as \\xNN. Shortened in the middle when long."""
    text = data if isinstance(data, str) else data.decode("utf-8", "surrogateescape")
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST - 20]}…{text[-19:]}"
    return f"`{''.join(map(_character, text))}`"


def visible_tokens(tokenizer: Tokenizer, ids: Iterable[int]) -> str:
    """Tokens joined by +, as in `ord`+`er`."""
    return "+".join(visible(tokenizer.token_bytes(token)) for token in ids) or "nothing"


def _character(character: str) -> str:
    if character in _SHOWN:
        return _SHOWN[character]
    if "\udc80" <= character <= "\udcff":  # a byte that is no UTF-8, by "surrogateescape"
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character if character.isprintable() else ascii(character)[1:-1]
