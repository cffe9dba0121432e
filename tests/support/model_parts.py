"""The BPE model, added tokens and decoder of a `tokenizer.json`, as cases of the matrix."""

import json

import tokenizers
from tokenizers import decoders, models, processors

from bpe_automata import Tokenizer
from bpe_automata.testing import added_token, byte_level, byte_spelling, split
from support.making import (
    PLAIN,
    SPACE,
    Section,
    as_json,
    encodes_otherwise,
    library,
    never,
    texts_of,
)
from support.steps import MAPPED, MARKED, PREPEND, SPACED, in_turn, metaspace

FOREIGN = (*PLAIN, "é", "日", "x", "<unk>", "<")
TABLE = ("a", "b", "c", "d", " ", "ab", "bc", "abc", "cd", "abcd")
ABCD = ("a", "b", "c", "d", "ab", "bc", "abc", "cd", "abcd", " ", "abcabcd")
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
WORDS = {"pretokenizer": split({"Regex": " ?[a-z]+"})}
UNSPACED = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}


def table(name, merges, without, matters=encodes_otherwise):
    """A written merge table, beside another one."""
    base = {"vocabulary": TABLE, "merges": pairs(without)}
    return MODEL.reads(name, {"merges": pairs(merges)}, "", ABCD, matters, **base)


def pairs(merges):
    return [tuple(merge.split("+")) for merge in merges.split()]


MODEL = Section("model")
AROUND = Section("around `encode`, left out")
"""What `tokenizers` does to the ids of a whole text, after it has encoded it."""
WITH_MARK = {"vocabulary": (*TABLE, "<"), "merges": pairs("a+b ab+c")}
UNKNOWN = {"unk_token": "<unk>", "more": ("<unk>",)}
REMOVED = {"pretokenizer": {"type": "Punctuation", "behavior": "Removed"}}
FALLING = {"byte_fallback": True, "more": BYTES}
KNOWN = {"a": 0, "[UNK]": 1}
OTHERS = [
    models.Unigram([("<unk>", 0.0), ("a", -1.0)], 0, False),
    *(kind(KNOWN, unk_token="[UNK]") for kind in (models.WordPiece, models.WordLevel)),
]
WHOLE = tokenizers.Tokenizer(models.BPE())
WHOLE.post_processor = processors.TemplateProcessing("a $A", "$A $B", [("a", 0)])
WHOLE.enable_truncation(2)
WHOLE.enable_padding(length=9, pad_token="a")
LEFT_OUT = json.loads(WHOLE.to_str())

MODEL_CASES = [
    MODEL.reads("characters or bytes as symbols", MAPPED, pieces=(*PLAIN, "é", "日")),
    MODEL.reads("`dropout: 0`", {"dropout": 0.0}, matters=never),
    MODEL.reads("`unk_token`", UNKNOWN, pieces=FOREIGN, **WITH_MARK),
    MODEL.reads("`fuse_unk`", {"fuse_unk": True}, pieces=FOREIGN, **WITH_MARK, **UNKNOWN),
    MODEL.reads("`byte_fallback`", FALLING, pieces=FOREIGN, vocabulary=TABLE, merges=pairs("a+b")),
    MODEL.reads("`ignore_merges`", {"ignore_merges": True}, more=("abca", " abab", "cabb"),
                **WORDS),
    MODEL.reads("tokens that no merge reaches", {"merges": pairs("b+c a+b ab+c")}, pieces=ABCD,
                vocabulary=TABLE, merges=pairs("a+b ab+c")),
    table("merges listed twice", "a+b b+c ab+c a+b", "a+b b+c ab+c"),
    table("several merges of one token", "b+c a+b ab+c a+bc", "b+c a+b ab+c"),
    table("improper tables where order is certain", "b+c abc+d a+b a+bc", "b+c a+b a+bc abc+d",
          never),
    MODEL.reads("improper tables where order matters", {"merges": pairs("bb+b b+b b+a")}, "",
                ("b", "bb", "bbb", "a"), vocabulary=("b", "bb", "bbb", "a", "ba"),
                merges=pairs("b+b bb+b b+a")),
    MODEL.reads("vocabularies without all bytes", {}, pieces=("a", "b", "ab", "é", "日", " "),
                vocabulary=(*map(byte_spelling, (b"a", b"b", b" ", b"\xc3", b"\xa9")), "ab"),
         merges=pairs("a+b"), byte_level=True, pretokenizer=byte_level(), matters=never),
    MODEL.reads("ids without a token", {"vocab": {t: 3 * i + 2 for i, t in enumerate(TABLE)}},
                pieces=ABCD, vocabulary=TABLE, merges=pairs("a+b ab+c")),
    *(MODEL.refuses(f"`{other['type']}`", other, "model", other["type"])
      for other in map(as_json, OTHERS)),
    MODEL.refuses("`dropout` over 0", {"dropout": 0.1}, "model.dropout"),
    MODEL.refuses("`continuing_subword_prefix`", {"continuing_subword_prefix": "##"},
                  "model.continuing_subword_prefix", vocabulary=("a", "b"), merges=()),
    MODEL.refuses("`end_of_word_suffix`", {"end_of_word_suffix": "</w>"},
                  "model.end_of_word_suffix"),
    MODEL.refuses("merges of byte tokens",
                  {"merges": [("<0x61>", "<0x62>")], "more": (*BYTES, "<0x61><0x62>")},
                  "model.byte_fallback", "byte token", vocabulary=TABLE, merges=(), **FALLING),
    MODEL.refuses("`byte_fallback` without some bytes", {"more": BYTES[:0x90]}, "byte fallback",
                  "<0x90>", vocabulary=TABLE, merges=(), **FALLING),
    MODEL.refuses("an unknown token that spells itself", {"fuse_unk": True}, "model.fuse_unk",
                  vocabulary=("a", "b"), merges=(), **UNKNOWN),
    MODEL.refuses("an unknown token that spells itself", REMOVED, "model.unk_token", "<unk>",
             variant="fused, once marks are removed", fuse_unk=True, vocabulary=("a", "b", "<"),
                  merges=(), **UNKNOWN),
    MODEL.refuses("an unknown token that spells itself", REMOVED, "model.unk_token", "<x>",
                  variant="once marks are removed", vocabulary=("a", "b", "<"), merges=(),
                  unk_token="<x>", more=("<x>",)),
    MODEL.refuses("`ignore_merges` with tokens of missing symbols", {"more": ("axb",)},
                  "ignore_merges", "'x'", ignore_merges=True, vocabulary=("a", "b"), merges=()),
    *(AROUND.reads(f"`{part}`", {"around": {part: LEFT_OUT[part]}})
      for part in ("post_processor", "truncation", "padding")),
]  # fmt: skip


# ---------------------------------------------------------------- added tokens

STRINGS = ("a", "b", "ab", " ", "  ", "<x>", "<x", "x>", "<", ".", "\n", " <x>", "<x> ", "c")


ADDED = Section("added tokens", "added", STRINGS)


def cut(name, *added, **options):
    return ADDED.reads(name, added, **options)


def flag(name):
    """The flag itself is what matters: beside the same token without it."""
    base = {"vocabulary": (*"ab<x>. \nc", "ab"), "merges": [("a", "b")]}
    marked = [added_token("<x>", **{name: True})]
    return ADDED.reads(f"`{name}`", marked, added=[added_token("<x>")], **base)


LOWER = {"normalizer": {"type": "Lowercase"}}
UPPER = ("a", "A", "b", "ab", "<x>", "<X>", "<", "x", " ")

ADDED_CASES = [
    cut("any text", "<x>"),
    cut("`special`", added_token("<x>", special=True)),
    *(flag(name) for name in ("lstrip", "rstrip", "single_word")),
    cut("`normalized`", added_token("<x>", normalized=True)),
    cut("`normalized`", added_token("<x>", normalized=True), variant="lower case", pieces=UPPER,
        **LOWER),
    cut("before the normalizer", "<X>", pieces=UPPER, **LOWER),
    cut("in two passes", added_token("ab", normalized=True), "b<x>"),
    cut("overlapping", "<x>", "x>a", "<x>b"),
    cut("with white space in them", " <x", "x> "),
    cut("ordinary tokens that are added as well", "ab", "a"),
    cut("ordinary tokens that are added as well", SPACE + SPACE, SPACE + "a",
        variant="written with ▁", pieces=("a", "b", " ", "  ", "ab", " a"), matters=never,
        space=SPACE, normalizer=SPACED, decoder=UNSPACED),
    cut("of other than ASCII characters", "日", pieces=("a", "é", "本", "日", "ab"),
        byte_level=True, pretokenizer=byte_level()),
    cut("one id for a byte and another text", "é", pieces=("a", "é", "魚", "b", "ab", "aé"),
        byte_level=True, pretokenizer=byte_level(), decoder=byte_level(),
        vocabulary=(*"abé", *byte_spelling("é魚".encode()), "ab"), merges=[("a", "b")]),
    ADDED.refuses("`single_word` that overlaps", [added_token("<x>", single_word=True), "x>a"],
                  "added token '<x>'", "overlaps"),
    ADDED.refuses("`single_word` of an ordinary token", [added_token("ab", single_word=True)],
                  "added token 'ab'", "ordinary token"),
    ADDED.refuses("`lstrip` or `rstrip` beside tokens with white space",
                  [added_token("<x>", lstrip=True), " y"], "added token '<x>'", "white space"),
    ADDED.refuses("`normalized` that its normalizer changes",
                  [added_token("<X>", normalized=True)], "added token '<X>'", "'<x>'", **LOWER),
    ADDED.refuses("`normalized` with `Prepend`", [added_token("<x>", normalized=True)],
                  "added token '<x>'", "prefix", normalizer=in_turn(PREPEND, SPACED), space=SPACE),
    ADDED.refuses("`normalized` with `lstrip` or `rstrip` where spaces become `▁`",
                  [added_token("<x>", normalized=True, rstrip=True)], "added token '<x>'",
                  "no white space", normalizer=SPACED, space=SPACE,
                  decoder=UNSPACED),
]  # fmt: skip


# ---------------------------------------------------------------- decoders

SEVERAL = "`Sequence` of `Replace` `ByteFallback` `Fuse` `Strip`"
PARTS = (*PLAIN, "é", "日", "\n")


def decodes_otherwise(data, without, pieces):
    """Ids of texts are decoded as `tokenizers` does, and not so without the decoder."""
    bare, tokenizer = library({**data, "decoder": None}), Tokenizer.from_json(data)
    ids = [each.ids for each in library(data).encode_batch(texts_of(pieces))]
    theirs = library(data).decode_batch(ids, skip_special_tokens=False)
    assert [tokenizer.decode(each) for each in ids] == theirs
    return bare.decode_batch(ids, skip_special_tokens=False) != theirs


DECODER = Section("decoder", "decoder", PLAIN, decodes_otherwise)


def steps(*decoders):
    return {"type": "Sequence", "decoders": list(decoders)}


BYTE_LEVEL, FUSE, FALLBACK = byte_level(), {"type": "Fuse"}, {"type": "ByteFallback"}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
LLAMA = steps(UNSPACED, FALLBACK, FUSE, STRIP)
LLAMA_BASE = {
    "normalizer": in_turn(PREPEND, SPACED),
    "vocabulary": (*TABLE, SPACE, SPACE + "a"),
    "merges": [("a", "b"), (SPACE, "a")],
    "byte_fallback": True,
    "more": BYTES,
}

DECODER_CASES = [
    DECODER.reads("`Fuse`", FUSE),
    DECODER.reads("`ByteLevel`", BYTE_LEVEL, pieces=PARTS, **MAPPED),
    *(DECODER.reads("`Metaspace`", metaspace(scheme), scheme, pretokenizer=metaspace(scheme),
                    space=SPACE) for scheme in ("always", "first", "never")),
    DECODER.reads(SEVERAL, LLAMA, pieces=PARTS, **LLAMA_BASE),
    *(DECODER.refuses(f"`{other['type']}`", other, "decoder", "changes the text of tokens")
      for other in map(as_json, (decoders.BPEDecoder(), decoders.WordPiece(), decoders.CTC()))),
    *(DECODER.refuses("one that does not match its encoder", decoder, "decoder", says, says, **base)
      for decoder, says, base in (
          (BYTE_LEVEL, "without a ByteLevel", {}),
          (FUSE, "is missing", MAPPED),
          (steps(UNSPACED, FUSE, STRIP), "byte tokens", LLAMA_BASE),
          (FUSE, "spaces are written", MARKED),
          (steps(FUSE, STRIP), "takes away", {}),
      )),
]  # fmt: skip
