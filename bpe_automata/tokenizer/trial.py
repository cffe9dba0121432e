"""No tokenizer is believed without having been tried: the texts that each is tried on, and the
first trial, which asks whether ids spell here what the library decodes them to.

The second trial, whether the automaton of canonical ids agrees with `encode` on these texts, is run
where that automaton is built (`constructions.canonical`), and kept with it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from bpe_automata.errors import TokenizerMismatchError
from bpe_automata.tokenizer.description import Prefix

if TYPE_CHECKING:
    from bpe_automata.tokenizer.tokenizer import Tokenizer

_EACH_PIECE = (Prefix.PIECE, Prefix.PIECE_UNLESS_SPACE)
_MOST_ADDED = 12  # added tokens whose neighbourhood is tried, of those in the middle too
_MOST_IDS = 256  # ids whose own text is tried

_WRITTEN = (
    *("The quick brown fox", "hello world", "Hello, World!", "a b  c   d    e", " leading", "end "),
    *("\n", "\n\n", " \n", "\n ", "\r\n\r\n", "\t\t", "a\n\n\nb", "a \n b", "x\t y", " " * 40),
    *("\u00a0", "a\u00a0b", "\u2003\u2028 ", "a\u0085b", "\u3000日", "\u200b\ufeff", "\x1c", "▁"),
    *("don't", "I'LL we've she'd", "DON'T", "'s 's's", "'\u017f", "x'rey", "o’clock", "''''"),
    *("0", "12", "123", "1234", "12345678901", "3.14159", "1,234.5", "½²Ⅷ", "٣٤٥", "१२३४", "x1y22"),
    *("ǅ ß ſ İ K ﬀ", "STRASSE Straße", "camelCaseHTTPServer", "a_b__x", "ÀÉÎ", "Ελλάδα ΣΑΣ"),
    *("e\u0301", "\u0301", "a\u0327\u0301", "\u1e9b\u0323", "한국어", "\u1112\u1161\u11ab", "กำลัง"),
    *("日本語", "漢字 かな カナ", "中文，标点。", "مرحبا", "שלום", "नमस्ते", "\ua7c5", "\U00010348x"),
    *("🎉", "👩\u200d👩\u200d👧", "🇫🇷🇩🇪", "👍🏽", "❤\ufe0f", "\U000e0067", "\ufffd", "\U0010ffff"),
    *("\x00", "a\x00b", "\x01\x02\x1b\x7f", "{\"a\": [1, 2]}", "if (x) {\n    y;\n}", "a=b*c//d"),
    *("http://a.b/c?d=e&f", "<|endoftext|>", "<|im_", "<s>", "</s>", "[INST]", "<0x41>", "<unk>"),
    *("...", "!!!???", "-----", "=" * 70, "a" * 64, "ab" * 40, "é" * 33, "日" * 17, "aA" * 20),
    *("((((()))))", "\"'`", "\\n\\t", "a/b\\c", "$1.50 €2", "x @ y # z", "~!@#$%^&*()_+", "–—…“”"),
)  # fmt: skip

_PIECES = (
    *"abestlmrvDSTLM019 \n\r\t'\"_-.,!?{}<>|/",
    *("'s", "'ll", "'RE", " the", "  ", "   ", "\r\n", "\n\n", " \n", "ing", " a", "er", "\u00a0"),
    *("\u2028", "\u3000", "\u200d", "é", "e\u0301", "\u0301", "ß", "ſ", "İ", "ǆ", "日", "本", "한"),
    *("ก", "ا", "½", "²", "٣", "Ⅷ", "\x00", "\x7f", "🎉", "🇫🇷", "\U00010348", "\ufeff", "<|", "|>"),
)  # fmt: skip


@lru_cache(maxsize=1)
def fixed_texts() -> tuple[str, ...]:
    """Some 300 texts, always the same: written down, then of all bytes, then drawn."""
    rng = random.Random(20)
    latin = ("".join(map(chr, range(k, k + 16))) for k in range(0, 0x800, 16) if k < 256 or k % 96)
    leads = [chr(k << 12 | 0x123) for k in range(16) if k != 13] + [
        chr(k << 18 | 0x10123) for k in range(4)
    ]
    drawn = ("".join(rng.choices(_PIECES, k=rng.randint(2, 12))) for _ in range(120))
    return tuple(dict.fromkeys((*_WRITTEN, *latin, "".join(leads), *drawn)))


def trial_texts(tokenizer: Tokenizer) -> list[str]:
    """The texts that are the same for all, and some about its own added tokens."""
    added = tokenizer.description.added
    chosen = [added[k * len(added) // _MOST_ADDED] for k in range(_MOST_ADDED)] if added else []
    contents = dict.fromkeys(token.content for token in chosen)
    around = ("{}", "a{}b", " {} ", "{}{}", "\n{}\n", "'{}'s")
    return [*fixed_texts(), *(text.replace("{}", c) for c in contents for text in around)]


def try_decoding(tokenizer: Tokenizer) -> None:
    """Compare `decode` with that of the library: on what `encode` makes of the texts, and on single
    ids spread over the vocabulary. Left out is what is stated to differ: ids that spell no text
    (the unknown token), fragments of UTF-8, and the space that some libraries leave after an added
    token.

    Raises TokenizerMismatchError at the first difference."""
    texts = trial_texts(tokenizer)
    encoded = list(zip(texts, tokenizer.encode_batch(texts), strict=True))
    anchor = next((ids for text, ids in encoded if text == "a"), tokenizer.encode("a"))
    step = max(tokenizer.n_ids // _MOST_IDS, 1)
    encoded += [("", [*anchor, token]) for token in range(0, tokenizer.n_ids, step)]
    for text, ids in encoded:
        for run in _runs(tokenizer, ids):
            _compare(tokenizer, text, run)


def _runs(tokenizer: Tokenizer, ids: list[int]) -> Iterator[list[int]]:
    """Where each piece between added tokens has a space of its own put before it, each piece."""
    if tokenizer.description.prefix not in _EACH_PIECE:
        yield ids
        return
    run: list[int] = []
    for token in ids:
        if token in tokenizer.added_ids:
            yield run
            run = []
        else:
            run.append(token)
    yield run


def _compare(tokenizer: Tokenizer, text: str, ids: list[int]) -> None:
    if ids and not 0 <= min(ids) <= max(ids) < tokenizer.n_ids:
        ours = f"ids below {tokenizer.n_ids}"
        raise TokenizerMismatchError(tokenizer.name, text, tuple(ids), ours, ids)
    spellings = tokenizer.spellings
    if not all(map(spellings.__getitem__, ids)):
        return
    try:
        spelled = tokenizer.text_bytes(ids).decode()
    except UnicodeDecodeError:
        return
    decoded = tokenizer.backend.decode(ids)
    if spelled != decoded:
        raise TokenizerMismatchError(tokenizer.name, text, tuple(ids), spelled, decoded)
