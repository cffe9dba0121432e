"""Text on which tokenizers are known to be misread."""

from __future__ import annotations

from hypothesis import strategies as st

from bpe_automata.tokenizer import Tokenizer

ADVERSARIAL: tuple[str, ...] = (
    *"abcdestlmrvABCDESTLMRV0123456789 \t\n\r'\"_-.,!?{}<>|",
    *("'s", "'ll", "'RE", "'", " the", "  ", "   ", "\r\n", "\n\n", " \n"),
    *("\u00a0", "\u2028", "\u3000", "\u200d", "é", "e\u0301", "\u0301", "ß", "ſ", "İ", "K", "ǆ"),
    *("日", "本", "語", "한", "ก", "ا", "½", "²", "٣", "Ⅷ", "_", "\x00", "\x04", "\x7f"),
    *("🎉", "👩\u200d👧", "🇫🇷", "\U00010348", "\ufeff", "\ufffd", "<|", "|>", "<|im_", "im_end"),
)
"""Both cases, digits, white space of all kinds, contractions, combining marks, scripts, emoji, and
fragments of what special tokens look like."""


def texts(tokenizer: Tokenizer | None = None, max_pieces: int = 12) -> st.SearchStrategy[str]:
    """Random text of pieces from `ADVERSARIAL`; with a tokenizer, mostly from its own tokens, its
    added tokens and their fragments, so that small vocabularies can spell it."""
    pieces = st.sampled_from(ADVERSARIAL)
    if tokenizer is not None:
        own = st.sampled_from(tokenizer.derived("pieces of text", own_pieces))
        pieces = st.one_of(own, own, own, pieces)
    return st.lists(pieces, max_size=max_pieces).map("".join)


def own_pieces(tokenizer: Tokenizer) -> tuple[str, ...]:
    """What single tokens spell, and for the added ones every beginning and end as well."""
    contents = [token.content for token in tokenizer.description.cut_out]
    whole = [spelled.decode("utf-8", "ignore") for spelled in tokenizer.spellings]
    parts = [content[:k] for content in contents for k in range(1, len(content) + 1)]
    parts += [content[k:] for content in contents for k in range(1, len(content))]
    return tuple(dict.fromkeys(piece for piece in (*parts, *whole) if piece)) or ADVERSARIAL
