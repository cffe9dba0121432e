"""Added tokens and their flags."""

from __future__ import annotations

from bpe_automata.testing import added_token, byte_level, byte_spelling
from support.making import SPACE, exact, never, refused
from support.normalizers import PREPEND, SPACED, sequence

PIECES = ("a", "b", "ab", " ", "  ", "<x>", "<x", "x>", "<", ".", "\n", " <x>", "<x> ", "c")
SECTION = "added tokens"


def does(name, *added, variant="", pieces=PIECES, **base):
    return exact(SECTION, name, pieces, {"added": added}, base, variant=variant)


def flag(name, *others, **base):
    """The flag itself is what matters: beside the same token without it."""
    plain = [added_token("<x>"), *others]
    part = {"added": [added_token("<x>", **{name: True}), *others]}
    base = {"vocabulary": (*"ab<x>. \nc", "ab"), "merges": [("a", "b")], **base}
    return exact(SECTION, f"`{name}`", PIECES, part, {"added": plain, **base})


def does_not(name, added, component, says, variant="", **base):
    part = {"added": added}
    return refused(SECTION, name, part, component, says, base, pieces=PIECES, variant=variant)


LOWER = {"normalizer": {"type": "Lowercase"}}
UPPER = ("a", "A", "b", "ab", "<x>", "<X>", "<", "x", " ")

CASES = [
    does("any text", "<x>"),
    does("`special`", added_token("<x>", special=True)),
    *(flag(name) for name in ("lstrip", "rstrip", "single_word")),
    does("`normalized`", added_token("<x>", normalized=True)),
    does("`normalized`", added_token("<x>", normalized=True), variant="lower case", pieces=UPPER,
         **LOWER),
    does("before the normalizer", "<X>", pieces=UPPER, **LOWER),
    does("in two passes", added_token("ab", normalized=True), "b<x>"),
    does("overlapping", "<x>", "x>a", "<x>b"),
    does("with white space in them", " <x", "x> "),
    does("ordinary tokens that are added as well", "ab", "a"),
    exact(SECTION, "ordinary tokens that are added as well", ("a", "b", " ", "  ", "ab", " a"),
          {"added": (SPACE + SPACE, SPACE + "a")}, {"space": SPACE, "normalizer": SPACED,
          "decoder": {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}},
          variant="written with ▁", matters=never),
    does("of other than ASCII characters", "日", pieces=("a", "é", "本", "日", "ab"),
         byte_level=True, pretokenizer=byte_level()),
    does("one id for a byte and another text", "é", pieces=("a", "é", "魚", "b", "ab", "aé"),
         byte_level=True, pretokenizer=byte_level(), decoder=byte_level(),
         vocabulary=(*"abé", *byte_spelling("é魚".encode()), "ab"), merges=[("a", "b")]),
    does_not("`single_word` that overlaps", [added_token("<x>", single_word=True), "x>a"],
             "added token '<x>'", "overlaps"),
    does_not("`single_word` of an ordinary token", [added_token("ab", single_word=True)],
             "added token 'ab'", "ordinary token"),
    does_not("`lstrip` or `rstrip` beside tokens with white space",
             [added_token("<x>", lstrip=True), " y"], "added token '<x>'", "white space"),
    does_not("`normalized` that its normalizer changes",
             [added_token("<X>", normalized=True)], "added token '<X>'", "'<x>'", **LOWER),
    does_not("`normalized` with `Prepend`", [added_token("<x>", normalized=True)],
             "added token '<x>'", "prefix", normalizer=sequence(PREPEND, SPACED), space=SPACE),
    does_not("`normalized` with `lstrip` or `rstrip` where spaces become `▁`",
             [added_token("<x>", normalized=True, rstrip=True)], "added token '<x>'",
             "no white space", normalizer=SPACED, space=SPACE,
             decoder={"type": "Replace", "pattern": {"String": SPACE}, "content": " "}),
]  # fmt: skip
