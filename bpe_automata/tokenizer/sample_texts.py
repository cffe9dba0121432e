"""The texts on which every tokenizer is compared with its library.

`Tokenizer` compares decoding on them when it is loaded; `canonical.canonical` compares the
automaton of canonical ids with `encode` on them when the automaton is built.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache

_MOST_CONTENTS = 12  # added tokens that are tried in context, spread over all of them

_CHOSEN = (
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
    """Some 300 texts, always the same: chosen ones, runs of code points, lead bytes of UTF-8, and
    random ones."""
    rng = random.Random(20)
    latin = ("".join(map(chr, range(k, k + 16))) for k in range(0, 0x800, 16) if k < 256 or k % 96)
    leads = [chr(k << 12 | 0x123) for k in range(16) if k != 13] + [
        chr(k << 18 | 0x10123) for k in range(4)
    ]
    drawn = ("".join(rng.choices(_PIECES, k=rng.randint(2, 12))) for _ in range(120))
    return tuple(dict.fromkeys((*_CHOSEN, *latin, "".join(leads), *drawn)))


def texts_with(contents: Sequence[str]) -> list[str]:
    """The fixed texts, then up to twelve of the contents of added tokens, each in some contexts."""
    numbers = range(_MOST_CONTENTS if contents else 0)
    spread = (contents[k * len(contents) // _MOST_CONTENTS] for k in numbers)
    contexts = ("{}", "a{}b", " {} ", "{}{}", "\n{}\n", "'{}'s")
    return [*fixed_texts(), *(c.replace("{}", s) for s in dict.fromkeys(spread) for c in contexts)]
