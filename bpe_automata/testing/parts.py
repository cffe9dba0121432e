"""Random components of a `tokenizer.json`, chosen so that they go together."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import tokenizers
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers

from bpe_automata.testing.splits import split_patterns
from bpe_automata.testing.written import added_token, matching_decoder, sequence

Json = dict[str, Any]
SPACE = "▁"

_ADDED = ("<s>", "<|", "|>", "<|a|>", "cat", "the", "ab", "é", "<m>", "a b", "日", "[X]", "b\n")
_FORMS = ("NFC", "NFD", "NFKC", "NFKD")
_BEHAVIORS = ("isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous")
_WRITTEN: Json = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
_READ: Json = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}


@dataclass(frozen=True)
class Parts:
    """normalizer, pretokenizer, decoder: as the file holds them; added: added tokens without their
    ids; byte_level: is the alphabet that of bytes; byte_fallback: are there to be byte tokens."""

    normalizer: Json | None
    pretokenizer: Json | None
    decoder: Json
    added: list[Json]
    byte_level: bool
    byte_fallback: bool


@st.composite
def parts(draw: st.DrawFn) -> Parts:
    """Like GPT-2 (bytes), like Llama-2 (spaces written by a normalizer), like T5 and Llama-2 legacy
    (spaces written by Metaspace), or plain characters."""
    kind = draw(st.sampled_from(("bytes", "bytes", "replaced", "metaspace", "plain")))
    normalizer: Json | None
    pretokenizer: Json | None
    decoder: Json
    byte_level = kind == "bytes"
    fallback = not byte_level and draw(st.booleans())
    if kind == "replaced":
        normalizer, pretokenizer, decoder = draw(_replaced())
    elif kind == "metaspace":
        normalizer = draw(normalizers())
        pretokenizer = draw(_metaspace())
        decoder = matching_decoder(None, pretokenizer)
    elif byte_level:
        pretokenizer, normalizer = draw(_bytes())
        decoder = {"type": "ByteLevel"} | _BYTE_LEVEL
    else:
        normalizer = draw(normalizers())
        pretokenizer = draw(st.lists(splitters(), max_size=2).map(lambda some: sequence(*some)))
        decoder = {"type": "Fuse"}
    if fallback:
        decoder = sequence_of("decoders", {"type": "ByteFallback"}, decoder)
    prepends = kind == "replaced" and normalizer != _WRITTEN
    return Parts(
        normalizer,
        pretokenizer,
        decoder,
        draw(added_tokens(byte_level, may_be_normalized=not prepends)),
        byte_level,
        fallback,
    )


def sequence_of(field: str, *steps: Json) -> Json:
    """A Sequence of normalizers or decoders."""
    return {"type": "Sequence", field: list(steps)}


# ---------------------------------------------------------------- where spaces are written


@st.composite
def _replaced(draw: st.DrawFn) -> tuple[Json, Json | None, Json]:
    """(normalizer, pretokenizer, decoder): the normalizer writes spaces as `▁`."""
    if draw(st.sampled_from((True, True, False))):
        prepend = {"type": "Prepend", "prepend": SPACE}
        stripped = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
        decoder = sequence_of("decoders", _READ, {"type": "Fuse"}, stripped)
        return sequence_of("normalizers", prepend, _WRITTEN), None, decoder
    normalizer = draw(normalizers())
    whole = _WRITTEN if normalizer is None else sequence_of("normalizers", normalizer, _WRITTEN)
    literal = _as_json(pre_tokenizers.Split(SPACE, draw(st.sampled_from(_BEHAVIORS)), False))
    return whole, draw(st.sampled_from((None, literal))), _READ


def _metaspace() -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries(
        {
            "type": st.just("Metaspace"),
            "replacement": st.just(SPACE),
            "prepend_scheme": st.sampled_from(("always", "first", "never")),
            "split": st.booleans(),
        }
    )


_BYTE_LEVEL: Json = {"add_prefix_space": False, "trim_offsets": True, "use_regex": False}


@st.composite
def _bytes(draw: st.DrawFn) -> tuple[Json, Json | None]:
    """(pretokenizer, normalizer): splitters, then ByteLevel. A space is put before the text only
    where nothing else can take it away."""
    last = {"type": "ByteLevel", **_BYTE_LEVEL, "use_regex": draw(st.booleans())}
    if draw(st.integers(0, 7)) == 7:
        forms = st.sampled_from((None, {"type": "NFC"}, {"type": "Lowercase"}))
        return {**last, "add_prefix_space": True}, draw(forms)
    steps = draw(st.lists(splitters(), max_size=2))
    return sequence(*steps, last) or last, draw(normalizers())


# ---------------------------------------------------------------- steps


def normalizers() -> st.SearchStrategy[Json | None]:
    """None, a step, or up to three, of all kinds that are modelled."""
    one = st.one_of(
        st.sampled_from([{"type": kind} for kind in _FORMS]),
        st.sampled_from([{"type": kind} for kind in ("Lowercase", "Nmt", "StripAccents")]),
        st.builds(
            lambda left, right: {"type": "Strip", "strip_left": left, "strip_right": right},
            st.booleans(),
            st.booleans(),
        ),
        st.sampled_from(
            [
                {"type": "Replace", "pattern": {"String": "ab"}, "content": "b"},
                {"type": "Replace", "pattern": {"String": "é"}, "content": "e"},
                {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
                {"type": "Replace", "pattern": {"Regex": r"a{2,}"}, "content": "a"},
            ]
        ),
    )
    several = st.lists(one, min_size=2, max_size=3).map(
        lambda steps: sequence_of("normalizers", *steps)
    )
    return st.one_of(st.none(), st.none(), one, several)


def splitters() -> st.SearchStrategy[Json]:
    """One pretokenizer that only splits."""
    behavior = st.sampled_from(_BEHAVIORS)
    regex = split_patterns().map(tokenizers.Regex)
    literal = st.sampled_from(("a", "ab", " ", "日", "\n"))
    split = st.builds(pre_tokenizers.Split, st.one_of(regex, literal), behavior, st.booleans())
    usual = st.builds(pre_tokenizers.Split, regex, st.just("isolated"), st.just(False))
    return st.one_of(
        split.map(_as_json),
        usual.map(_as_json),
        st.booleans().map(lambda each: {"type": "Digits", "individual_digits": each}),
        behavior.map(lambda how: _as_json(pre_tokenizers.Punctuation(how))),
        st.sampled_from(
            [
                {"type": "Whitespace"},
                {"type": "WhitespaceSplit"},
                {"type": "BertPreTokenizer"},
                {"type": "CharDelimiterSplit", "delimiter": "a"},
                {"type": "FixedLength", "length": 3},
            ]
        ),
    )


def _as_json(part: pre_tokenizers.PreTokenizer) -> Json:
    """A pretokenizer as the file spells it."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = part
    return dict(json.loads(tokenizer.to_str())["pre_tokenizer"])


def added_tokens(byte_level: bool, may_be_normalized: bool = True) -> st.SearchStrategy[list[Json]]:
    """Up to three, without ids. With the byte alphabet `é` is how a byte is written, so it would
    share that byte's id."""
    names = ["lstrip", "rstrip", "single_word", "special"]
    names += ["normalized"] * may_be_normalized
    rarely = st.sampled_from((False, False, False, True))
    flags = st.fixed_dictionaries({}, optional=dict.fromkeys(names, rarely))
    contents = st.sampled_from(
        [content for content in _ADDED if not (byte_level and content == "é")]
    )
    one = st.builds(lambda content, some: added_token(content, **some), contents, flags)
    return st.lists(one, max_size=3, unique_by=lambda entry: str(entry["content"]))
