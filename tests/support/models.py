"""The BPE model: its flags, its table, its vocabulary."""

from __future__ import annotations

from bpe_automata import Tokenizer
from bpe_automata.constructions import canonical_automaton
from bpe_automata.testing import byte_level, byte_spelling, split
from support.making import PLAIN, SPACE, encodes_otherwise, exact, never, refused

SECTION = "model"
FOREIGN = (*PLAIN, "é", "日", "x", "<unk>", "<")
TABLE = ("a", "b", "c", "d", " ", "ab", "bc", "abc", "cd", "abcd")
ABCD = ("a", "b", "c", "d", "ab", "bc", "abc", "cd", "abcd", " ", "abcabcd")
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
WORDS = {"pretokenizer": split({"Regex": " ?[a-z]+"})}


def does(name, part, pieces=PLAIN, *, variant="", matters=encodes_otherwise, **base):
    return exact(SECTION, name, pieces, part, base, variant=variant, matters=matters)


def table(name, merges, without, matters=encodes_otherwise, **part):
    """A written merge table, beside another one."""
    base = {"vocabulary": TABLE, "merges": pairs(without)}
    part = {"merges": pairs(merges), **part}
    return exact(SECTION, name, ABCD, part, base, matters=matters)


def pairs(merges):
    return [tuple(merge.split("+")) for merge in merges.split()]


def not_reached(data, without, pieces):
    """Some token that can be spelled is made by no merge, and its text is in a text."""
    automaton = canonical_automaton(Tokenizer.from_json(data))
    return not automaton.derivation.reachable.all() and encodes_otherwise(data, without, pieces)


def late(data, without, pieces):
    """A merge comes before those that make its parts."""
    return bool(canonical_automaton(Tokenizer.from_json(data)).derivation.late.any())


def bytes_missing(data, without, pieces):
    """A text loses characters in `encode`."""
    tokenizer = Tokenizer.from_json(data)
    return any(tokenizer.decode(tokenizer.encode(piece)) != piece for piece in pieces)


def does_not(name, part, component, says="", variant="", **base):
    return refused(SECTION, name, part, component, says, base, variant=variant)


def around(name, **part):
    """What `tokenizers` does to the ids of a whole text, after it has encoded it, is left out."""
    return exact("around `encode`, left out", name, PLAIN, part)


UNKNOWN = {"unk_token": "<unk>", "more": ("<unk>",)}
REMOVED = {"pretokenizer": {"type": "Punctuation", "behavior": "Removed"}}
FALLING = {"byte_fallback": True, "more": BYTES}
UNIGRAM = {"type": "Unigram", "vocab": [["<unk>", 0.0], ["a", -1.0]], "unk_id": 0}
WORDLEVEL = {"type": "WordLevel", "vocab": {"a": 0, "[UNK]": 1}, "unk_token": "[UNK]"}
WORDPIECE = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
             "max_input_chars_per_word": 100, "vocab": {"a": 0, "[UNK]": 1}}  # fmt: skip

ONCE = {"Sequence": {"id": "A", "type_id": 0}}
TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "a", "type_id": 0}}, ONCE],
    "pair": [ONCE, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"a": {"id": "a", "ids": [0], "tokens": ["a"]}},
}
TRUNCATION = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
PADDING = {
    "strategy": {"Fixed": 9},
    "direction": "Right",
    "pad_to_multiple_of": None,
    "pad_id": 0,
    "pad_type_id": 0,
    "pad_token": "a",
}

CASES = [
    does("characters or bytes as symbols", {"byte_level": True, "pretokenizer": byte_level()},
         (*PLAIN, "é", "日")),
    does("`dropout: 0`", {"dropout": 0.0}, matters=never),
    does("`unk_token`", UNKNOWN, FOREIGN, vocabulary=(*TABLE, "<"), merges=pairs("a+b ab+c")),
    does("`fuse_unk`", {"fuse_unk": True}, FOREIGN, vocabulary=(*TABLE, "<"),
         merges=pairs("a+b ab+c"), **UNKNOWN),
    does("`byte_fallback`", FALLING, FOREIGN, vocabulary=TABLE, merges=pairs("a+b")),
    does("`byte_fallback`", FALLING, (*PLAIN, "é", "\n"), variant="spaces as ▁",
         vocabulary=(*TABLE, SPACE, SPACE + "a"), merges=[("a", "b"), (SPACE, "a")],
         normalizer={"type": "Replace", "pattern": {"String": " "}, "content": SPACE}),
    does("`ignore_merges`", {"ignore_merges": True}, more=("abca", " abab", "cabb"), **WORDS),
    does("tokens that no merge reaches", {"merges": pairs("b+c a+b ab+c")}, ABCD,
         vocabulary=TABLE, merges=pairs("a+b ab+c"), matters=not_reached),
    table("merges listed twice", "a+b b+c ab+c a+b", "a+b b+c ab+c"),
    table("several merges of one token", "b+c a+b ab+c a+bc", "b+c a+b ab+c"),
    table("improper tables where order is certain", "b+c abc+d a+b a+bc", "b+c a+b a+bc abc+d",
          late),
    exact(SECTION, "improper tables where order matters", ("b", "bb", "bbb", "a"),
          {"merges": pairs("bb+b b+b b+a")}, {"vocabulary": ("b", "bb", "bbb", "a", "ba"),
          "merges": pairs("b+b bb+b b+a")}),
    does("vocabularies without all bytes", {}, ("a", "b", "ab", "é", "日", " "),
         vocabulary=(*map(byte_spelling, (b"a", b"b", b" ", b"\xc3", b"\xa9")), "ab"),
         merges=pairs("a+b"), byte_level=True, pretokenizer=byte_level(), matters=bytes_missing),
    does("ids without a token", {"vocab": {t: 3 * i + 2 for i, t in enumerate(TABLE)}}, ABCD,
         vocabulary=TABLE, merges=pairs("a+b ab+c")),
    *(
        does_not(f"`{other['type']}`", other, "model", other["type"])
        for other in (UNIGRAM, WORDPIECE, WORDLEVEL)
    ),
    does_not("`dropout` over 0", {"dropout": 0.1}, "model.dropout"),
    does_not("`continuing_subword_prefix`", {"continuing_subword_prefix": "##"},
             "model.continuing_subword_prefix", vocabulary=("a", "b"), merges=()),
    does_not("`end_of_word_suffix`", {"end_of_word_suffix": "</w>"}, "model.end_of_word_suffix"),
    does_not("merges of byte tokens",
             {"merges": [("<0x61>", "<0x62>")], "more": (*BYTES, "<0x61><0x62>")},
             "model.byte_fallback", "byte token", vocabulary=TABLE, merges=(), **FALLING),
    does_not("`byte_fallback` without some bytes", {"more": BYTES[:0x90]}, "byte fallback",
             "<0x90>", vocabulary=TABLE, merges=(), **FALLING),
    does_not("an unknown token that spells itself", {"fuse_unk": True}, "model.fuse_unk",
             vocabulary=("a", "b"), merges=(), **UNKNOWN),
    does_not("an unknown token that spells itself", REMOVED, "model.unk_token", "<unk>",
             variant="fused, once marks are removed", fuse_unk=True, vocabulary=("a", "b", "<"),
             merges=(), **UNKNOWN),
    does_not("an unknown token that spells itself", REMOVED, "model.unk_token", "<x>",
             variant="once marks are removed", vocabulary=("a", "b", "<"), merges=(),
             unk_token="<x>", more=("<x>",)),
    does_not("`ignore_merges` with tokens of missing symbols", {"more": ("axb",)}, "ignore_merges",
             "'x'", ignore_merges=True, vocabulary=("a", "b"), merges=()),
    around("`post_processor`", post_processor=TEMPLATE),
    around("`truncation`", truncation=TRUNCATION),
    around("`padding`", padding=PADDING),
]  # fmt: skip
