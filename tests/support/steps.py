"""Normalizers, pretokenizers and split patterns of a `tokenizer.json`, as cases of the matrix.

A split pattern is in the dialect of `tokenizers` (Oniguruma), and where it differs, of `tiktoken`.
"""

import struct

from tokenizers import normalizers, pre_tokenizers

from bpe_automata.testing import byte_level, byte_spelling, sequence, split
from bpe_automata.tokenizer.sources import published
from bpe_automata.tokenizer.sources.json_vocabulary import byte_to_char
from support.making import SPACE, Section, as_json

ALPHABET = (*"abéeEA²2ﬁ \u0301\u200b", "e\u0301", "ab", "fi")
SPACES = ("a", " ", "  ", "b", "\n", "ab", " a", "aab")
SPACED = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
PREPEND = {"type": "Prepend", "prepend": SPACE}


def in_turn(*steps):
    return {"type": "Sequence", "normalizers": list(steps)}


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def strip(left, right):
    return as_json(normalizers.Strip(left, right))


NORM = Section("normalizer", "normalizer", ALPHABET)
NFD, NFC, LOWER = {"type": "NFD"}, {"type": "NFC"}, {"type": "Lowercase"}
BERT = as_json(normalizers.BertNormalizer())
NOTHING = struct.pack("<I", 1024) + bytes(1024) + b"\0"
PRECOMPILED = as_json(normalizers.Precompiled(NOTHING))
UNDO = in_turn(NFD, strip(True, True), NFC)

NORMALIZER_CASES = [
    *(NORM.reads(f"`{kind}`", {"type": kind}) for kind in ("NFC", "NFD", "NFKC", "NFKD")),
    *(NORM.reads(f"`{kind}`", {"type": kind}) for kind in ("Lowercase", "Nmt")),
    NORM.reads("`StripAccents`", {"type": "StripAccents"}),
    *(
        NORM.reads("`Strip`", strip(left, right), f"left {left} right {right}", SPACES)
        for left, right in ((True, True), (True, False), (False, True))
    ),
    NORM.reads("`Replace`", replace({"String": "ab"}, "b"), "String", SPACES),
    NORM.reads("`Replace`", replace({"Regex": r"\s+"}, " "), "Regex", SPACES),
    NORM.reads("`Replace`", replace({"Regex": "a{2,}"}, ""), "to nothing", SPACES),
    NORM.reads('`Replace " " → "▁"`', SPACED, "", SPACES, space=SPACE),
    NORM.reads('`Prepend "▁"`', in_turn(PREPEND, SPACED), "llama", SPACES, space=SPACE),
    NORM.reads("`Sequence`", in_turn(NFD, LOWER, {"type": "StripAccents"}), "bert"),
    NORM.reads("`Sequence`", in_turn(NFC, replace({"Regex": r"\s+"}, " "), LOWER), "clip"),
    NORM.reads("`Sequence`", in_turn(LOWER, SPACED), "then spaces", space=SPACE),
    NORM.refuses("`Precompiled`", PRECOMPILED, "normalizer", "Precompiled"),
    NORM.refuses("`BertNormalizer`", BERT, "normalizer", "BertNormalizer"),
    NORM.refuses("`ByteLevel`", {"type": "ByteLevel"}, "normalizer", "ByteLevel"),
    NORM.refuses("other `Prepend`", {"type": "Prepend", "prepend": "x"}, "normalizer Prepend", "x"),
    NORM.refuses("steps that may undo one another", UNDO, "normalizer Sequence", "undo"),
    NORM.refuses("steps after spaces became `▁`", in_turn(SPACED, LOWER), "normalizer Sequence",
                 space=SPACE),
    NORM.refuses("`Replace` that writes `▁`", replace({"Regex": "c"}, SPACE), "normalizer Replace",
                 SPACE),
    NORM.refuses("`Replace` by what may be shorter or longer", replace({"Regex": "a|bab"}, "ab"),
                 "normalizer Replace", "shorter"),
    NORM.refuses("`Replace` with lookbehind", replace({"Regex": "(?<=a)b"}, ""),
                 "normalizer Replace"),
]  # fmt: skip


# ---------------------------------------------------------------- pretokenizers

WORDS = ("a", "b", "ab", " ", "1", "2", "12", ".", ",", "..", "\n", "日", "_", " a", "b ")
BYTES = ("a", "b", "ab", " ", "  ", "1", "12", "ò", "²", "é", "日本", "'s", "\n", ".", " a", "\t")
BEHAVIORS = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
PATTERN = {"Regex": r"[a ]+|\d"}


def metaspace(scheme="always", divide=True, replacement=SPACE):
    return as_json(pre_tokenizers.Metaspace(replacement, scheme, divide))


PRE = Section("pretokenizer", "pretokenizer", WORDS)
BYTE = Section("pretokenizer `ByteLevel`", "pretokenizer", BYTES)
META = Section("pretokenizer `Metaspace`, with and without `split`", "pretokenizer", WORDS)
SPLIT = Section("pretokenizer `Split`, with and without `invert`", "pretokenizer", WORDS)


def prefixed(regex=True):
    return byte_level(regex) | {"add_prefix_space": True}


BYTE_MERGES = (("a", "b"), ("1", "2"), ("Ġ", "1"), ("Ġ", "a"), ("12", "1"), ("Ã", "©"))
BYTE_TABLE = (*byte_to_char(), *("".join(pair) for pair in BYTE_MERGES))
MAPPED = {"byte_level": True, "pretokenizer": byte_level()}
CUT = {"byte_level": True, "pretokenizer": byte_level(True)}
TABLED = {**CUT, "vocabulary": BYTE_TABLE, "merges": BYTE_MERGES}
MARKED = {"space": SPACE, "pretokenizer": metaspace()}
DIGITS, MARKS = {"type": "Digits", "individual_digits": True}, {"type": "Punctuation"}
AFTER_BYTES = sequence(byte_level(True), DIGITS)

PRETOKENIZER_CASES = [
    *(SPLIT.reads(f"`{behavior}`", split(PATTERN, behavior, invert), "invert" * invert)
      for behavior in BEHAVIORS for invert in (False, True)),
    SPLIT.reads("a literal `String`", split({"String": "ab"})),
    SPLIT.reads("a literal `String`", split({"String": "."}, "Removed"), "special"),
    *(PRE.reads("`Digits`", {**DIGITS, "individual_digits": each}, f"individual {each}")
      for each in (True, False)),
    *(PRE.reads("`Punctuation`", {**MARKS, "behavior": behavior}, behavior)
      for behavior in BEHAVIORS),
    *(PRE.reads(f"`{kind}`", {"type": kind})
      for kind in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer")),
    PRE.reads("`CharDelimiterSplit`", {"type": "CharDelimiterSplit", "delimiter": "a"}),
    PRE.reads("`FixedLength`", {"type": "FixedLength", "length": 3}),
    BYTE.reads("without `use_regex`", byte_level(), byte_level=True),
    BYTE.reads("`use_regex`", byte_level(True), **MAPPED),
    *(BYTE.reads("`add_prefix_space`", prefixed(regex), f"regex {regex}", byte_level=True,
                 pretokenizer=byte_level(regex), added=("<x>",)) for regex in (True, False)),
    *(META.reads(f"`{scheme}`", metaspace(scheme, divide), f"split {divide}", (*WORDS, "<x>"),
                 space=SPACE, added=("<x>",))
      for scheme in ("always", "first", "never") for divide in (True, False)),
    META.reads("other `replacement`", metaspace(replacement="_"), space="_",
               pieces=tuple(piece for piece in WORDS if piece != "_")),
    PRE.reads("`Sequence`", sequence(DIGITS, byte_level(True)), "smollm2", BYTES, **CUT),
    PRE.reads("`Sequence`", sequence(*(split({"Regex": one}) for one in ("[0-9]{1,2}", "[a-z]+",
              r"\s+"))), "three splits"),
    PRE.reads("`Sequence`", sequence(metaspace(), {**MARKS, "behavior": "Isolated"}),
              "metaspace, punctuation", **MARKED),
    PRE.reads("`Sequence`", sequence({"type": "WhitespaceSplit"}, sequence(MARKS)), "nested"),
    *(BYTE.reads("`Digits` after `ByteLevel`", sequence(byte_level(True),
                 {**DIGITS, "individual_digits": each}), f"individual {each}", **TABLED)
      for each in (True, False)),
    BYTE.reads("`Split` of visible ASCII after `ByteLevel`",
               sequence(byte_level(True), split({"Regex": "[a-c0-9]{2}"})), **CUT),
    PRE.refuses("`UnicodeScripts`", {"type": "UnicodeScripts"}, "pretokenizer", "UnicodeScripts"),
    PRE.refuses("`Digits` after `ByteLevel` that split a token inside a character", AFTER_BYTES,
                "pretokenizer", "splits between the bytes", more=(byte_spelling("ò".encode()),),
                **TABLED),
    PRE.refuses("`Digits` after `ByteLevel` with `ignore_merges`", AFTER_BYTES, "pretokenizer",
                "looked up whole", ignore_merges=True, **TABLED),
    *(PRE.refuses("other steps after `ByteLevel`", sequence(byte_level(), step), "pretokenizer",
                  "after ByteLevel", variant, **MAPPED)
      for variant, step in (("punctuation", MARKS), ("split", split({"Regex": r"\d"})))),
    PRE.refuses("`ByteLevel` after `Metaspace`", sequence(metaspace(), byte_level()), "ByteLevel",
                "spaces were written", **MARKED),
    PRE.refuses("a second step that puts a space before", sequence(DIGITS, metaspace()),
                "pretokenizer", "puts a space", space=SPACE),
    PRE.refuses("a class after `Metaspace` that tells `▁` from a space",
                sequence(metaspace(), {"type": "Whitespace"}), "pretokenizer", "sees '▁'",
                **MARKED),
    PRE.refuses("`add_prefix_space` after a normalizer that strips", prefixed(True),
                "ByteLevel.add_prefix_space", "strip", normalizer=strip(True, False), **MAPPED),
]  # fmt: skip


# ---------------------------------------------------------------- split patterns

CHARS = ("a", "b", "A", "aa", "ab", "ba", " ", "  ", "1", "12", "é", "\n", "'s", "'S", ".", "ſ")


PATTERNS = Section("split pattern", "pretokenizer", CHARS)
DEPLOYED = [
    *(("GPT-2", published.GPT2), ("Llama-3", published.LLAMA3), ("Qwen", published.QWEN)),
    *(("tekken", published.TEKKEN), ("o200k", published.O200K)),
]


def regex(name, pattern, variant=""):
    return PATTERNS.reads(name, split({"Regex": pattern}), variant)


def no_regex(name, pattern, variant=""):
    return PATTERNS.refuses(name, split({"Regex": pattern}), "split pattern", variant=variant)


PATTERN_CASES = [
    regex("alternation", "ab|a|b+"),
    regex("groups", "(a(?:b|1))+"),
    regex("gaps between matches", "ab"),
    regex("`* + ? {n,m}`", "a*b|b[ab1]+|1a?b|1{2}|A{2,}| {,2}a"),
    *(regex("lazy", f"a[ab]{many}b", many) for many in ("*?", "+?", "??", "{1,2}?")),
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
    regex("lookahead of more, where a pattern ends", r"\d{1,3}(?=(?:\d{3})*\b)", "digits"),
    *(regex("`\\A $ \\z`", pattern, pattern) for pattern in (r"\Aa+", r"a+\z", "b+$")),
    *(regex(f"{name}'s", pattern) for name, pattern in DEPLOYED),
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
