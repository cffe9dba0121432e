"""Normalizers of a `tokenizer.json`."""

from __future__ import annotations

import base64
import struct

from support.making import SPACE, exact, refused

LETTERS = (*"abéeEA²2ﬁ \u0301\u200b", "e\u0301", "ab", "fi")
SPACES = ("a", " ", "  ", "b", "\n", "ab", " a", "aab")
SPACED = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
PREPEND = {"type": "Prepend", "prepend": SPACE}


def sequence(*steps):
    return {"type": "Sequence", "normalizers": list(steps)}


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def strip(left, right):
    return {"type": "Strip", "strip_left": left, "strip_right": right}


def does(name, step, pieces=LETTERS, variant="", **base):
    return exact("normalizer", name, pieces, {"normalizer": step}, base, variant=variant)


def does_not(name, step, component, says="", variant="", **base):
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
UNDO = sequence(NFD, strip(True, True), NFC)

CASES = [
    *(does(f"`{kind}`", {"type": kind}) for kind in ("NFC", "NFD", "NFKC", "NFKD")),
    *(does(f"`{kind}`", {"type": kind}) for kind in ("Lowercase", "Nmt")),
    does("`StripAccents`", {"type": "StripAccents"}),
    *(
        does("`Strip`", strip(left, right), SPACES, f"left {left} right {right}")
        for left, right in ((True, True), (True, False), (False, True))
    ),
    does("`Replace`", replace({"String": "ab"}, "b"), SPACES, "String"),
    does("`Replace`", replace({"Regex": r"\s+"}, " "), SPACES, "Regex"),
    does("`Replace`", replace({"Regex": "a{2,}"}, ""), SPACES, "to nothing"),
    does('`Replace " " → "▁"`', SPACED, SPACES, space=SPACE),
    does('`Prepend "▁"`', sequence(PREPEND, SPACED), SPACES, "llama", space=SPACE),
    does("`Sequence`", sequence(NFD, LOWER, {"type": "StripAccents"}), LETTERS, "bert"),
    does("`Sequence`", sequence(NFC, replace({"Regex": r"\s+"}, " "), LOWER), LETTERS, "clip"),
    does("`Sequence`", sequence(LOWER, SPACED), LETTERS, "then spaces", space=SPACE),
    does_not("`Precompiled`", PRECOMPILED, "normalizer", "Precompiled"),
    does_not("`BertNormalizer`", BERT, "normalizer", "BertNormalizer"),
    does_not("`ByteLevel`", {"type": "ByteLevel"}, "normalizer", "ByteLevel"),
    does_not("other `Prepend`", {"type": "Prepend", "prepend": "x"}, "normalizer Prepend", "x"),
    does_not("steps that may undo one another", UNDO, "normalizer Sequence", "undo"),
    does_not(
        "steps after spaces became `▁`",
        sequence(SPACED, LOWER),
        "normalizer Sequence",
        space=SPACE,
    ),
    does_not(
        "`Replace` that writes `▁`", replace({"Regex": "c"}, SPACE), "normalizer Replace", SPACE
    ),
    does_not("`Replace` by what may be shorter or longer", replace({"Regex": "a|bab"}, "ab"),
             "normalizer Replace", "shorter"),
    does_not("`Replace` with lookbehind", replace({"Regex": "(?<=a)b"}, ""), "normalizer Replace"),
]  # fmt: skip
