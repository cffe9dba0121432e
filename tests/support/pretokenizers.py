"""Pretokenizers of a `tokenizer.json`, and the space that some of them put before the text."""

from __future__ import annotations

from bpe_automata.testing import byte_level, byte_spelling, sequence, split
from bpe_automata.tokenizer.sources.json_vocabulary import byte_to_char
from support.making import SPACE, exact, refused

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


def does(name, step, variant="", pieces=WORDS, section="pretokenizer", **base):
    return exact(section, name, pieces, {"pretokenizer": step}, base, variant=variant)


def does_not(name, step, component, says="", variant="", **base):
    part = {"pretokenizer": step}
    return refused("pretokenizer", name, part, component, says, base, variant=variant)


def prefixed(regex):
    return byte_level(regex) | {"add_prefix_space": True}


ADDED = ("<x>",)
MARKED = {"space": SPACE, "added": ADDED}
AFTER_BYTES = {
    each: sequence(byte_level(True), {"type": "Digits", "individual_digits": each})
    for each in (True, False)
}
BYTE_MERGES = (("a", "b"), ("1", "2"), ("Ġ", "1"), ("Ġ", "a"), ("12", "1"), ("Ã", "©"))
BYTE_TABLE = (*byte_to_char(), *("".join(pair) for pair in BYTE_MERGES))

CASES = [
    *(
        does(f"`{behavior}`", split(PATTERN, behavior, invert), variant, section=SPLIT)
        for behavior in BEHAVIORS
        for invert, variant in ((False, ""), (True, "invert"))
    ),
    does("a literal `String`", split({"String": "ab"}), section=SPLIT),
    does("a literal `String`", split({"String": "."}, "Removed"), "special", section=SPLIT),
    *(
        does("`Digits`", {"type": "Digits", "individual_digits": each}, f"individual {each}")
        for each in (True, False)
    ),
    *(
        does("`Punctuation`", {"type": "Punctuation", "behavior": behavior}, behavior)
        for behavior in BEHAVIORS
    ),
    *(
        does(f"`{kind}`", {"type": kind})
        for kind in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer")
    ),
    does("`CharDelimiterSplit`", {"type": "CharDelimiterSplit", "delimiter": "a"}),
    does("`FixedLength`", {"type": "FixedLength", "length": 3}),
    does("without `use_regex`", byte_level(), "", BYTES, BYTE, byte_level=True),
    does(
        "`use_regex`", byte_level(True), "", BYTES, BYTE, byte_level=True, pretokenizer=byte_level()
    ),
    *(
        does(
            "`add_prefix_space`", prefixed(regex), f"regex {regex}", BYTES, BYTE,
            byte_level=True, pretokenizer=byte_level(regex), added=ADDED,
        )
        for regex in (True, False)
    ),
    *(
        does(f"`{scheme}`", metaspace(scheme, divide), f"split {divide}",
             (*WORDS, "<x>"), META, **MARKED)
        for scheme in SCHEMES
        for divide in (True, False)
    ),
    does("other `replacement`", metaspace(replacement="_"), "",
         tuple(piece for piece in WORDS if piece != "_"), META, space="_"),
    does("`Sequence`", sequence({"type": "Digits", "individual_digits": True}, byte_level(True)),
         "smollm2", BYTES, byte_level=True, pretokenizer=byte_level(True)),
    does("`Sequence`", sequence(split({"Regex": "[0-9]{1,2}"}), split({"Regex": "[a-z]+"}),
         split({"Regex": r"\s+"})), "three splits"),
    does("`Sequence`", sequence(metaspace(), {"type": "Punctuation", "behavior": "Isolated"}),
         "metaspace, punctuation", space=SPACE, pretokenizer=metaspace()),
    does("`Sequence`", sequence({"type": "WhitespaceSplit"}, sequence({"type": "Punctuation"})),
         "nested"),
    does_not("`UnicodeScripts`", {"type": "UnicodeScripts"}, "pretokenizer", "UnicodeScripts"),
    *(
        does("`Digits` after `ByteLevel`", AFTER_BYTES[each], f"individual {each}", BYTES, BYTE,
             byte_level=True, pretokenizer=byte_level(True), vocabulary=BYTE_TABLE,
             merges=BYTE_MERGES)
        for each in (True, False)
    ),
    does("`Split` of visible ASCII after `ByteLevel`",
         sequence(byte_level(True), split({"Regex": "[a-c0-9]{2}"})), "", BYTES, BYTE,
         byte_level=True, pretokenizer=byte_level(True)),
    does_not("`Digits` after `ByteLevel` that split a token inside a character", AFTER_BYTES[True],
             "pretokenizer", "splits between the bytes", byte_level=True,
             pretokenizer=byte_level(True), vocabulary=BYTE_TABLE, merges=BYTE_MERGES,
             more=(byte_spelling("ò".encode()),)),
    does_not("`Digits` after `ByteLevel` with `ignore_merges`", AFTER_BYTES[True], "pretokenizer",
             "looked up whole", byte_level=True, pretokenizer=byte_level(True),
             vocabulary=BYTE_TABLE, merges=BYTE_MERGES, ignore_merges=True),
    *(
        does_not("other steps after `ByteLevel`", sequence(byte_level(), step), "pretokenizer",
                 "after ByteLevel", byte_level=True, pretokenizer=byte_level(), variant=variant)
        for variant, step in (("punctuation", {"type": "Punctuation"}),
                              ("split", split({"Regex": r"\d"})))
    ),
    does_not("`ByteLevel` after `Metaspace`", sequence(metaspace(), byte_level()), "ByteLevel",
             "spaces were written", space=SPACE, pretokenizer=metaspace()),
    does_not("a second step that puts a space before",
             sequence({"type": "Digits", "individual_digits": True}, metaspace()),
             "pretokenizer", "puts a space", space=SPACE),
    does_not("a class after `Metaspace` that tells `▁` from a space",
             sequence(metaspace(), {"type": "Whitespace"}), "pretokenizer", "sees '▁'",
             space=SPACE, pretokenizer=metaspace()),
    does_not("`add_prefix_space` after a normalizer that strips", prefixed(True),
             "ByteLevel.add_prefix_space", "strip", byte_level=True, pretokenizer=byte_level(),
             normalizer={"type": "Strip", "strip_left": True, "strip_right": False}),
]  # fmt: skip
