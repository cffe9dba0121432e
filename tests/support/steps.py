"""Normalizers, pretokenizers and split patterns of a `tokenizer.json`, as cases of the matrix.

In the lists a function says what is done: `norm`, `pre` and `regex` are read exactly, `not_norm`,
`not_pre` and `no_regex` are refused by name. A split pattern is in the dialect of `tokenizers`
(Oniguruma), and where it differs, of `tiktoken`.
"""

from __future__ import annotations

import base64
import struct

from bpe_automata._tokenizer.sources import published
from bpe_automata._tokenizer.sources.json_vocabulary import byte_to_char
from bpe_automata.testing import byte_level, byte_spelling, sequence, split
from support.making import SPACE, exact, refused

ALPHABET = (*"abéeEA²2ﬁ \u0301\u200b", "e\u0301", "ab", "fi")
SPACES = ("a", " ", "  ", "b", "\n", "ab", " a", "aab")
SPACED = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
PREPEND = {"type": "Prepend", "prepend": SPACE}


def in_turn(*steps):
    return {"type": "Sequence", "normalizers": list(steps)}


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def strip(left, right):
    return {"type": "Strip", "strip_left": left, "strip_right": right}


def norm(name, step, pieces=ALPHABET, variant="", **base):
    return exact("normalizer", name, pieces, {"normalizer": step}, base, variant=variant)


def not_norm(name, step, component, says="", variant="", **base):
    part = {"normalizer": step}
    return refused("normalizer", name, part, component, says, base, variant=variant)


NFD, NFC, LOWER = {"type": "NFD"}, {"type": "NFC"}, {"type": "Lowercase"}
BERT = {
    "type": "BertNormalizer",
    "clean_text": True,
    "handle_chinese_chars": True,
    "strip_accents": None,
    "lowercase": True,
}
NOTHING = base64.b64encode(struct.pack("<I", 1024) + bytes(1024) + b"\0").decode()
PRECOMPILED = {"type": "Precompiled", "precompiled_charsmap": NOTHING}
UNDO = in_turn(NFD, strip(True, True), NFC)

NORMALIZER_CASES = [
    *(norm(f"`{kind}`", {"type": kind}) for kind in ("NFC", "NFD", "NFKC", "NFKD")),
    *(norm(f"`{kind}`", {"type": kind}) for kind in ("Lowercase", "Nmt")),
    norm("`StripAccents`", {"type": "StripAccents"}),
    *(
        norm("`Strip`", strip(left, right), SPACES, f"left {left} right {right}")
        for left, right in ((True, True), (True, False), (False, True))
    ),
    norm("`Replace`", replace({"String": "ab"}, "b"), SPACES, "String"),
    norm("`Replace`", replace({"Regex": r"\s+"}, " "), SPACES, "Regex"),
    norm("`Replace`", replace({"Regex": "a{2,}"}, ""), SPACES, "to nothing"),
    norm('`Replace " " → "▁"`', SPACED, SPACES, space=SPACE),
    norm('`Prepend "▁"`', in_turn(PREPEND, SPACED), SPACES, "llama", space=SPACE),
    norm("`Sequence`", in_turn(NFD, LOWER, {"type": "StripAccents"}), ALPHABET, "bert"),
    norm("`Sequence`", in_turn(NFC, replace({"Regex": r"\s+"}, " "), LOWER), ALPHABET, "clip"),
    norm("`Sequence`", in_turn(LOWER, SPACED), ALPHABET, "then spaces", space=SPACE),
    not_norm("`Precompiled`", PRECOMPILED, "normalizer", "Precompiled"),
    not_norm("`BertNormalizer`", BERT, "normalizer", "BertNormalizer"),
    not_norm("`ByteLevel`", {"type": "ByteLevel"}, "normalizer", "ByteLevel"),
    not_norm("other `Prepend`", {"type": "Prepend", "prepend": "x"}, "normalizer Prepend", "x"),
    not_norm("steps that may undo one another", UNDO, "normalizer Sequence", "undo"),
    not_norm(
        "steps after spaces became `▁`",
        in_turn(SPACED, LOWER),
        "normalizer Sequence",
        space=SPACE,
    ),
    not_norm(
        "`Replace` that writes `▁`", replace({"Regex": "c"}, SPACE), "normalizer Replace", SPACE
    ),
    not_norm("`Replace` by what may be shorter or longer", replace({"Regex": "a|bab"}, "ab"),
             "normalizer Replace", "shorter"),
    not_norm("`Replace` with lookbehind", replace({"Regex": "(?<=a)b"}, ""), "normalizer Replace"),
]  # fmt: skip


# ---------------------------------------------------------------- pretokenizers

WORDS = ("a", "b", "ab", " ", "1", "2", "12", ".", ",", "..", "\n", "日", "_", " a", "b ")
BYTES = ("a", "b", "ab", " ", "  ", "1", "12", "ò", "²", "é", "日本", "'s", "\n", ".", " a", "\t")
BEHAVIORS = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
BYTE, META = "pretokenizer `ByteLevel`", "pretokenizer `Metaspace`, with and without `split`"
SPLIT = "pretokenizer `Split`, with and without `invert`"
PATTERN = {"Regex": r"[a ]+|\d"}
SCHEMES = ("always", "first", "never")


def metaspace(scheme="always", divide=True, replacement=SPACE):
    options = {"replacement": replacement, "prepend_scheme": scheme, "split": divide}
    return {"type": "Metaspace", **options}


def pre(name, step, variant="", pieces=WORDS, section="pretokenizer", **base):
    return exact(section, name, pieces, {"pretokenizer": step}, base, variant=variant)


def not_pre(name, step, component, says="", variant="", **base):
    part = {"pretokenizer": step}
    return refused("pretokenizer", name, part, component, says, base, variant=variant)


def prefixed(regex=True):
    return byte_level(regex) | {"add_prefix_space": True}


ADDED = ("<x>",)
MARKED = {"space": SPACE, "added": ADDED}
AFTER_BYTES = {
    each: sequence(byte_level(True), {"type": "Digits", "individual_digits": each})
    for each in (True, False)
}
BYTE_MERGES = (("a", "b"), ("1", "2"), ("Ġ", "1"), ("Ġ", "a"), ("12", "1"), ("Ã", "©"))
BYTE_TABLE = (*byte_to_char(), *("".join(pair) for pair in BYTE_MERGES))

PRETOKENIZER_CASES = [
    *(
        pre(f"`{behavior}`", split(PATTERN, behavior, invert), variant, section=SPLIT)
        for behavior in BEHAVIORS
        for invert, variant in ((False, ""), (True, "invert"))
    ),
    pre("a literal `String`", split({"String": "ab"}), section=SPLIT),
    pre("a literal `String`", split({"String": "."}, "Removed"), "special", section=SPLIT),
    *(
        pre("`Digits`", {"type": "Digits", "individual_digits": each}, f"individual {each}")
        for each in (True, False)
    ),
    *(
        pre("`Punctuation`", {"type": "Punctuation", "behavior": behavior}, behavior)
        for behavior in BEHAVIORS
    ),
    *(
        pre(f"`{kind}`", {"type": kind})
        for kind in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer")
    ),
    pre("`CharDelimiterSplit`", {"type": "CharDelimiterSplit", "delimiter": "a"}),
    pre("`FixedLength`", {"type": "FixedLength", "length": 3}),
    pre("without `use_regex`", byte_level(), "", BYTES, BYTE, byte_level=True),
    pre(
        "`use_regex`", byte_level(True), "", BYTES, BYTE, byte_level=True, pretokenizer=byte_level()
    ),
    *(
        pre(
            "`add_prefix_space`", prefixed(regex), f"regex {regex}", BYTES, BYTE,
            byte_level=True, pretokenizer=byte_level(regex), added=ADDED,
        )
        for regex in (True, False)
    ),
    *(
        pre(f"`{scheme}`", metaspace(scheme, divide), f"split {divide}",
             (*WORDS, "<x>"), META, **MARKED)
        for scheme in SCHEMES
        for divide in (True, False)
    ),
    pre("other `replacement`", metaspace(replacement="_"), "",
         tuple(piece for piece in WORDS if piece != "_"), META, space="_"),
    pre("`Sequence`", sequence({"type": "Digits", "individual_digits": True}, byte_level(True)),
         "smollm2", BYTES, byte_level=True, pretokenizer=byte_level(True)),
    pre("`Sequence`", sequence(split({"Regex": "[0-9]{1,2}"}), split({"Regex": "[a-z]+"}),
         split({"Regex": r"\s+"})), "three splits"),
    pre("`Sequence`", sequence(metaspace(), {"type": "Punctuation", "behavior": "Isolated"}),
         "metaspace, punctuation", space=SPACE, pretokenizer=metaspace()),
    pre("`Sequence`", sequence({"type": "WhitespaceSplit"}, sequence({"type": "Punctuation"})),
         "nested"),
    not_pre("`UnicodeScripts`", {"type": "UnicodeScripts"}, "pretokenizer", "UnicodeScripts"),
    *(
        pre("`Digits` after `ByteLevel`", AFTER_BYTES[each], f"individual {each}", BYTES, BYTE,
             byte_level=True, pretokenizer=byte_level(True), vocabulary=BYTE_TABLE,
             merges=BYTE_MERGES)
        for each in (True, False)
    ),
    pre("`Split` of visible ASCII after `ByteLevel`",
         sequence(byte_level(True), split({"Regex": "[a-c0-9]{2}"})), "", BYTES, BYTE,
         byte_level=True, pretokenizer=byte_level(True)),
    not_pre("`Digits` after `ByteLevel` that split a token inside a character", AFTER_BYTES[True],
             "pretokenizer", "splits between the bytes", byte_level=True,
             pretokenizer=byte_level(True), vocabulary=BYTE_TABLE, merges=BYTE_MERGES,
             more=(byte_spelling("ò".encode()),)),
    not_pre("`Digits` after `ByteLevel` with `ignore_merges`", AFTER_BYTES[True], "pretokenizer",
             "looked up whole", byte_level=True, pretokenizer=byte_level(True),
             vocabulary=BYTE_TABLE, merges=BYTE_MERGES, ignore_merges=True),
    *(
        not_pre("other steps after `ByteLevel`", sequence(byte_level(), step), "pretokenizer",
                 "after ByteLevel", byte_level=True, pretokenizer=byte_level(), variant=variant)
        for variant, step in (("punctuation", {"type": "Punctuation"}),
                              ("split", split({"Regex": r"\d"})))
    ),
    not_pre("`ByteLevel` after `Metaspace`", sequence(metaspace(), byte_level()), "ByteLevel",
             "spaces were written", space=SPACE, pretokenizer=metaspace()),
    not_pre("a second step that puts a space before",
             sequence({"type": "Digits", "individual_digits": True}, metaspace()),
             "pretokenizer", "puts a space", space=SPACE),
    not_pre("a class after `Metaspace` that tells `▁` from a space",
             sequence(metaspace(), {"type": "Whitespace"}), "pretokenizer", "sees '▁'",
             space=SPACE, pretokenizer=metaspace()),
    not_pre("`add_prefix_space` after a normalizer that strips", prefixed(True),
             "ByteLevel.add_prefix_space", "strip", byte_level=True, pretokenizer=byte_level(),
             normalizer={"type": "Strip", "strip_left": True, "strip_right": False}),
]  # fmt: skip


# ---------------------------------------------------------------- split patterns

CHARS = ("a", "b", "A", "aa", "ab", "ba", " ", "  ", "1", "12", "é", "\n", "'s", "'S", ".", "ſ")
PATTERN_SECTION = "split pattern"


def regex(name, pattern, variant=""):
    part = {"pretokenizer": split({"Regex": pattern})}
    return exact(PATTERN_SECTION, name, CHARS, part, variant=variant)


def no_regex(name, pattern, variant=""):
    part = {"pretokenizer": split({"Regex": pattern})}
    return refused(PATTERN_SECTION, name, part, "split pattern", variant=variant, pieces=CHARS)


PATTERN_CASES = [
    regex("alternation", "ab|a|b+"),
    regex("groups", "(a(?:b|1))+"),
    regex("gaps between matches", "ab"),
    regex("`* + ? {n,m}`", "a*b", "*"),
    *(regex("`* + ? {n,m}`", f"a[ab1]{many}", many) for many in ("+", "{2}", "{2,}", "{,2}")),
    regex("`* + ? {n,m}`", "a?b", "?"),
    *(regex("lazy", f"a{many}b", many) for many in ("*?", "+?", "??", "{1,2}?")),
    *(regex("possessive", f"a{many}[ab]", many) for many in ("*+", "++", "?+", "{1,2}+")),
    regex("`(?i:…)`", "(?i:'s|ab)"),
    regex("`(?i:…)`", "(?i)'s|ab", "leading"),
    regex("classes", "[^ab]|[a-b1]+", "brackets"),
    regex("classes", r"\p{L}+|\P{L}", "properties"),
    regex("classes", r"\w+|\s|\d+|\h", "escapes"),
    regex("classes", "[a-z&&[^b]]+", "intersection"),
    regex(r"`\x{…}`", r"\x{61}+|\u0062"),
    regex("`.`", "a."),
    regex("lookahead of one character", r"\s+(?!\S)|a(?=b)"),
    regex("lookahead of more, where a pattern ends", "b|a+(?=(?:ab|b)b)"),
    regex(
        "lookahead of more, where a pattern ends", r"\d{1,3}(?=(?:\d{3})*\b)", "digits in threes"
    ),
    *(regex("`\\A $ \\z`", pattern, pattern) for pattern in (r"\Aa+", r"a+\z", "b+$")),
    *(
        regex(f"{name}'s", pattern)
        for name, pattern in (
            ("GPT-2", published.GPT2),
            ("Llama-3", published.LLAMA3),
            ("Qwen", published.QWEN),
            ("tekken", published.TEKKEN),
            ("o200k", published.O200K),
        )
    ),
    *(no_regex("lookbehind", pattern, pattern) for pattern in ("(?<=a)b", "(?<!a)b")),
    no_regex("lookahead of more, elsewhere", "a(?=bb)|b"),
    no_regex("negative lookahead of more", "a(?!bb)"),
    *(no_regex(r"`\b`", pattern, pattern) for pattern in (r"\bab", r"a\Bb", r"a(?=b+\b)")),
    no_regex("`^` in Oniguruma", "^a"),
    no_regex("backreferences", r"(a)\1"),
    no_regex("atomic groups", "(?>ab|a)b"),
    no_regex("possessive groups", "(?:ab)*+a"),
    no_regex("matches of nothing", "a*"),
    no_regex("letters that fold to several", "(?i:ss)"),
]
