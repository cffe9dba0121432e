"""What a split pattern may hold: in the dialect of `tokenizers` (Oniguruma) and, where it differs,
in that of tiktoken (fancy-regex)."""

from __future__ import annotations

from bpe_automata.testing import split
from bpe_automata.tokenizer.sources import published
from support.making import exact, refused

PIECES = ("a", "b", "A", "aa", "ab", "ba", " ", "  ", "1", "12", "é", "\n", "'s", "'S", ".", "ſ")
SECTION = "split pattern"


def does(name, pattern, variant=""):
    part = {"pretokenizer": split({"Regex": pattern})}
    return exact(SECTION, name, PIECES, part, variant=variant)


def does_not(name, pattern, variant=""):
    part = {"pretokenizer": split({"Regex": pattern})}
    return refused(SECTION, name, part, "split pattern", variant=variant, pieces=PIECES)


CASES = [
    does("alternation", "ab|a|b+"),
    does("groups", "(a(?:b|1))+"),
    does("gaps between matches", "ab"),
    does("`* + ? {n,m}`", "a*b", "*"),
    *(does("`* + ? {n,m}`", f"a[ab1]{many}", many) for many in ("+", "{2}", "{2,}", "{,2}")),
    does("`* + ? {n,m}`", "a?b", "?"),
    *(does("lazy", f"a{many}b", many) for many in ("*?", "+?", "??", "{1,2}?")),
    *(does("possessive", f"a{many}[ab]", many) for many in ("*+", "++", "?+", "{1,2}+")),
    does("`(?i:…)`", "(?i:'s|ab)"),
    does("`(?i:…)`", "(?i)'s|ab", "leading"),
    does("classes", "[^ab]|[a-b1]+", "brackets"),
    does("classes", r"\p{L}+|\P{L}", "properties"),
    does("classes", r"\w+|\s|\d+|\h", "escapes"),
    does("classes", "[a-z&&[^b]]+", "intersection"),
    does(r"`\x{…}`", r"\x{61}+|\u0062"),
    does("`.`", "a."),
    does("lookahead of one character", r"\s+(?!\S)|a(?=b)"),
    does("lookahead of more, where a pattern ends", "b|a+(?=(?:ab|b)b)"),
    does("lookahead of more, where a pattern ends", r"\d{1,3}(?=(?:\d{3})*\b)", "digits in threes"),
    *(does("`\\A $ \\z`", pattern, pattern) for pattern in (r"\Aa+", r"a+\z", "b+$")),
    *(
        does(f"{name}'s", pattern)
        for name, pattern in (
            ("GPT-2", published.GPT2),
            ("Llama-3", published.LLAMA3),
            ("Qwen", published.QWEN),
            ("tekken", published.TEKKEN),
            ("o200k", published.O200K),
        )
    ),
    *(does_not("lookbehind", pattern, pattern) for pattern in ("(?<=a)b", "(?<!a)b")),
    does_not("lookahead of more, elsewhere", "a(?=bb)|b"),
    does_not("negative lookahead of more", "a(?!bb)"),
    *(does_not(r"`\b`", pattern, pattern) for pattern in (r"\bab", r"a\Bb", r"a(?=b+\b)")),
    does_not("`^` in Oniguruma", "^a"),
    does_not("backreferences", r"(a)\1"),
    does_not("atomic groups", "(?>ab|a)b"),
    does_not("possessive groups", "(?:ab)*+a"),
    does_not("matches of nothing", "a*"),
    does_not("letters that fold to several", "(?i:ss)"),
]
