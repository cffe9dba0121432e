"""Random tokenizers with everything that a `tokenizer.json` of the BPE kind may contain.

The components are drawn so that they fit together; the vocabulary and the merges are trained by
`tokenizers` on random text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import tokenizers
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers, trainers

from bpe_automata.canonical.canonical import canonical_automaton
from bpe_automata.errors import (
    BudgetExceededError,
    EncodingError,
    ImproperMergeTableError,
    TokenizerMismatchError,
    UnsupportedTokenizerError,
)
from bpe_automata.testing._inputs import ADVERSARIAL
from bpe_automata.testing._small import added_token, matching_decoder, sequence, split_patterns
from bpe_automata.testing._small import byte_level as byte_level_step
from bpe_automata.tokenizer.tokenizer import Tokenizer

SPACE = "▁"

_ADDED = ("<s>", "<|", "|>", "<|a|>", "cat", "the", "ab", "é", "<m>", "a b", "日", "[X]", "b\n")
_FORMS = ("NFC", "NFD", "NFKC", "NFKD")
_BEHAVIORS = ("isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous")
_WRITTEN: Json = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
_READ: Json = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}

REFUSALS = (
    UnsupportedTokenizerError,
    ImproperMergeTableError,
    BudgetExceededError,
    EncodingError,
    TokenizerMismatchError,
)
"""The errors of a refused tokenizer; any other error is a bug. The last is rare: comparing with the
library finds, for example, an unknown token whose own text is lost before BPE sees it."""

_WORDS = ("the ", " cat", "ab", "ba", "aab", "é", "e\u0301", "日本", "Ab", "12", "'s", " \n", "  ")


@st.composite
def tokenizer_files(draw: st.DrawFn) -> Json:
    """The content of a random `tokenizer.json`, with some 10 to 600 ids. About one in ten is
    refused, for reasons that are found only when it is read."""
    chosen = draw(parts())
    data = _trained(draw, chosen)
    data["decoder"] = chosen.decoder
    model = data["model"]
    model["vocab"] = model["vocab"] or {"a": 0}  # normalizing may remove the whole training text
    _spoil(draw, model)
    if chosen.byte_fallback:
        _add_byte_tokens(draw, model)
    _add_unknown(draw, model)
    # A token of unknown characters may be a pretoken of its own; that is refused.
    spellable = all(c in model["vocab"] for c in "<unk>") or "<unk>" not in model["vocab"]
    model["ignore_merges"] = draw(st.sampled_from((False, False, True))) and spellable
    _add_tokens(data, chosen.added)
    return data


def trained_tokenizers() -> st.SearchStrategy[Tokenizer]:
    """Random tokenizers, without those that are refused with one of `REFUSALS`."""
    return tokenizer_files().map(accepted).filter(lambda found: found is not None)  # type: ignore[return-value]


def accepted(data: Json) -> Tokenizer | None:
    """The tokenizer, None if it is refused. Any other error is a bug."""
    try:
        tokenizer = Tokenizer.from_json(data)
        canonical_automaton(tokenizer)
    except REFUSALS:
        return None
    return tokenizer


# ---------------------------------------------------------------- tables


def _trained(draw: st.DrawFn, chosen: Parts) -> Json:
    """BPE trained on random text through the chosen normalizer and pretokenizer."""
    blank = json.loads(tokenizers.Tokenizer(models.BPE()).to_str())
    blank["normalizer"], blank["pre_tokenizer"] = chosen.normalizer, chosen.pretokenizer
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(blank))
    line = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=8).map("".join)
    rare = st.lists(st.sampled_from(ADVERSARIAL), min_size=1, max_size=8).map("".join)
    letters = st.text("abcA 1\n", min_size=1, max_size=12)
    corpus = draw(st.lists(st.one_of(line, line, letters, rare), min_size=2, max_size=7))
    whole = chosen.byte_level and draw(st.booleans())
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet()) if whole else []
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) + draw(st.integers(10, 90)),
        min_frequency=1,
        show_progress=False,
        initial_alphabet=alphabet,
    )
    tokenizer.train_from_iterator(corpus * 2, trainer)
    trained: Json = json.loads(tokenizer.to_str())
    return trained


def _spoil(draw: st.DrawFn, model: Json) -> None:
    """Add what deployed tables have and trained ones do not: tokens that no merge makes, merges
    listed twice, ranks out of order."""
    merges = model["merges"]
    if not merges or not draw(st.booleans()):
        return
    position = st.integers(0, len(merges) - 1)
    for _ in range(draw(st.integers(0, 2))):
        merges.append(merges[draw(position)])
    for at in draw(st.lists(position, max_size=2, unique=True)):
        merges[at], merges[at - 1] = merges[at - 1], merges[at]
    for at in sorted(draw(st.lists(position, max_size=2, unique=True)), reverse=True):
        if not _is_part(merges[at], merges):
            del merges[at]


def _is_part(merge: list[str], merges: list[list[str]]) -> bool:
    """Does another merge use the token of this one? Without it most of the table would be dead."""
    return any("".join(merge) in other for other in merges)


def _add_byte_tokens(draw: st.DrawFn, model: Json) -> None:
    """Add all 256 byte tokens, or rarely all but one, before or after the other tokens."""
    model["byte_fallback"] = True
    written = [f"<0x{byte:02X}>" for byte in range(256)]
    if draw(st.integers(0, 19)) == 19:
        written.remove("<0xE6>")
    model["vocab"].setdefault(SPACE, len(model["vocab"]))
    words = sorted(model["vocab"], key=model["vocab"].__getitem__)
    order = [*written, *words] if draw(st.booleans()) else [*words, *written]
    model["vocab"] = {token: number for number, token in enumerate(dict.fromkeys(order))}


def _add_unknown(draw: st.DrawFn, model: Json) -> None:
    """Sometimes add an unknown token; with `fuse_unk` a character of its text must be a token."""
    if draw(st.sampled_from((True, False, False))):
        vocabulary = model["vocab"]
        vocabulary.setdefault("<unk>", len(vocabulary))
        model["unk_token"], model["fuse_unk"] = "<unk>", draw(st.booleans())
        if model["fuse_unk"]:
            vocabulary.setdefault("<", len(vocabulary))


def _add_tokens(data: Json, entries: list[Json]) -> None:
    """Add the added tokens with the ids that `tokenizers` gives them: those of equal tokens, or new
    ones."""
    vocabulary = data["model"]["vocab"]
    fresh = len(vocabulary)
    for entry in entries:
        number = vocabulary.get(entry["content"])
        data["added_tokens"].append({"id": fresh if number is None else number, **entry})
        fresh += number is None


# ---------------------------------------------------------------- components


@dataclass(frozen=True)
class Parts:
    """normalizer, pretokenizer, decoder: as in the file; added: added tokens without ids;
    byte_level: is the alphabet that of bytes? byte_fallback: are there byte tokens?"""

    normalizer: Json | None
    pretokenizer: Json | None
    decoder: Json
    added: list[Json]
    byte_level: bool
    byte_fallback: bool


@st.composite
def parts(draw: st.DrawFn) -> Parts:
    """Components as in GPT-2 (bytes), Llama-2 (a normalizer writes spaces), T5 and Llama-2 legacy
    (Metaspace writes spaces), or with plain characters."""
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
        decoder = byte_level_step()
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


@st.composite
def _bytes(draw: st.DrawFn) -> tuple[Json, Json | None]:
    """(pretokenizer, normalizer): splitters, then ByteLevel. A space is prepended only where no
    other step can remove it."""
    last = byte_level_step(draw(st.booleans()))
    if draw(st.integers(0, 7)) == 7:
        forms = st.sampled_from((None, {"type": "NFC"}, {"type": "Lowercase"}))
        return {**last, "add_prefix_space": True}, draw(forms)
    steps = draw(st.lists(splitters(), max_size=2))
    return sequence(*steps, last) or last, draw(normalizers())


# ---------------------------------------------------------------- steps


def normalizers() -> st.SearchStrategy[Json | None]:
    """None, or up to three steps of all kinds that are modelled."""
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
    """Up to three added tokens, without ids. With the byte alphabet, `é` is not among them: it is
    how a byte is written, so the token would have that byte's id."""
    names = ["lstrip", "rstrip", "single_word", "special"]
    names += ["normalized"] * may_be_normalized
    rarely = st.sampled_from((False, False, False, True))
    flags = st.fixed_dictionaries({}, optional=dict.fromkeys(names, rarely))
    contents = st.sampled_from(
        [content for content in _ADDED if not (byte_level and content == "é")]
    )
    one = st.builds(lambda content, some: added_token(content, **some), contents, flags)
    return st.lists(one, max_size=3, unique_by=lambda entry: str(entry["content"]))


Json = dict[str, Any]
