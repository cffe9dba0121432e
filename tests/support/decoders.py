"""Decoders of a `tokenizer.json`: they must give the text that the ids were encoded from."""

from __future__ import annotations

from bpe_automata import Tokenizer
from bpe_automata.testing import byte_level
from support.laws import texts_of
from support.making import PLAIN, SPACE, exact, library, refused
from support.models import BYTES, TABLE
from support.normalizers import PREPEND, SPACED, sequence
from support.pretokenizers import metaspace

SECTION = "decoder"
SEVERAL = "`Sequence` of `Replace` `ByteFallback` `Fuse` `Strip`"
TEXT = (*PLAIN, "é", "日", "\n")


def decodes_otherwise(data, without, pieces):
    """Canonical ids are decoded as `tokenizers` does, and not so without the decoder."""
    ours, theirs, bare = (
        Tokenizer.from_json(data),
        library(data),
        library({**data, "decoder": None}),
    )
    differs = False
    for text in texts_of(pieces):
        ids = ours.encode(text)
        if ours.decode(ids) == text:
            assert theirs.decode(ids, skip_special_tokens=False) == text
        differs |= theirs.decode(ids) != bare.decode(ids)
    return differs


def does(name, decoder, variant="", pieces=PLAIN, **base):
    part = {"decoder": decoder}
    return exact(SECTION, name, pieces, part, base, variant=variant, matters=decodes_otherwise)


def does_not(name, decoder, says="", variant="", **base):
    part = {"decoder": decoder}
    return refused(SECTION, name, part, "decoder", says, base, variant=variant)


def steps(*decoders):
    return {"type": "Sequence", "decoders": list(decoders)}


BYTE_LEVEL, FUSE, FALLBACK = byte_level(), {"type": "Fuse"}, {"type": "ByteFallback"}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
UNSPACED = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
LLAMA = steps(UNSPACED, FALLBACK, FUSE, STRIP)
LLAMA_BASE = {
    "normalizer": sequence(PREPEND, SPACED),
    "vocabulary": (*TABLE, SPACE, SPACE + "a"),
    "merges": [("a", "b"), (SPACE, "a")],
    "byte_fallback": True,
    "more": BYTES,
}
MAPPED = {"byte_level": True, "pretokenizer": byte_level()}

CASES = [
    does("`Fuse`", FUSE),
    does("`ByteLevel`", BYTE_LEVEL, pieces=TEXT, **MAPPED),
    *(
        does("`Metaspace`", metaspace(scheme), scheme, pretokenizer=metaspace(scheme), space=SPACE)
        for scheme in ("always", "first", "never")
    ),
    does(SEVERAL, LLAMA, "llama", pieces=TEXT, **LLAMA_BASE),
    does(SEVERAL, steps(UNSPACED, FALLBACK, FUSE), "gemma",
         pieces=TEXT, **{**LLAMA_BASE, "normalizer": SPACED}),
    *(
        does_not(f"`{decoder['type']}`", decoder, "changes the text of tokens")
        for decoder in (
            {"type": "BPEDecoder", "suffix": "</w>"},
            {"type": "WordPiece", "prefix": "##", "cleanup": True},
            {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True},
        )
    ),
    does_not("one that does not match its encoder", BYTE_LEVEL, "without a ByteLevel", "bytes"),
    does_not("one that does not match its encoder", FUSE, "is missing", "no bytes", **MAPPED),
    does_not("one that does not match its encoder", steps(UNSPACED, FUSE, STRIP), "byte tokens",
             "no byte tokens", **LLAMA_BASE),
    does_not("one that does not match its encoder", FUSE, "spaces are written", "no spaces",
             pretokenizer=metaspace(), space=SPACE),
    does_not("one that does not match its encoder", steps(FUSE, STRIP), "takes away", "strips"),
]  # fmt: skip
