"""Random tokenizers, trained by `tokenizers` on random text, out of everything that may be in a
`tokenizer.json` of the BPE kind."""

from __future__ import annotations

import json
from typing import Any

import tokenizers
from hypothesis import strategies as st
from tokenizers import models, normalizers, pre_tokenizers, trainers

from bpe_automata.constructions import canonical_automaton
from bpe_automata.errors import (
    BudgetExceededError,
    ImproperMergeTableError,
    UnsupportedTokenizerError,
)
from bpe_automata.testing.splits import split_patterns
from bpe_automata.testing.texts import ADVERSARIAL
from bpe_automata.testing.written import added_token
from bpe_automata.tokenizer import Tokenizer

Json = dict[str, Any]
SPACE = "▁"

_WORDS = ("the ", " cat", "ab", "ba", "aab", "é", "e\u0301", "日本", "Ab", "12", "'s", " \n", "  ")
_ADDED = ("<s>", "<|", "|>", "<|a|>", "cat", "the", "ab", "é", "<m>", "a b", "日", "[X]")
_FORMS = ("NFC", "NFD", "NFKC", "NFKD")
_BEHAVIORS = ("isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous")


def normalizers_for(space: bool) -> st.SearchStrategy[Json | None]:
    """A normalizer as JSON; `space`: one that writes spaces as `▁`, with or without a prefix."""
    if space:
        replace = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
        prepend = {"type": "Prepend", "prepend": SPACE}
        both = {"type": "Sequence", "normalizers": [prepend, replace]}
        return st.sampled_from([replace, both, both])
    one = st.one_of(
        st.sampled_from([{"type": kind} for kind in (*_FORMS, "Lowercase", "Nmt", "StripAccents")]),
        st.builds(
            lambda left, right: {"type": "Strip", "strip_left": left, "strip_right": right},
            st.booleans(),
            st.booleans(),
        ),
        st.sampled_from(
            [
                {"type": "Replace", "pattern": {"String": "ab"}, "content": "b"},
                {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
                {"type": "Replace", "pattern": {"Regex": r"a{2,}"}, "content": "a"},
            ]
        ),
    )
    several = st.lists(one, min_size=2, max_size=3).map(
        lambda parts: {"type": "Sequence", "normalizers": parts}
    )
    return st.one_of(st.none(), st.none(), one, several)


def pretokenizers_for(byte_level: bool, metaspace: bool) -> st.SearchStrategy[Json | None]:
    """A pretokenizer as JSON, of every kind that `tokenizers` has."""
    if metaspace:
        return st.builds(
            lambda scheme, split: {
                "type": "Metaspace",
                "replacement": SPACE,
                "prepend_scheme": scheme,
                "split": split,
            },
            st.sampled_from(("always", "first", "never")),
            st.booleans(),
        )
    steps = st.lists(_steps(), max_size=2)
    if not byte_level:
        return steps.map(_sequence)
    last = st.builds(
        lambda add, regex: {
            "type": "ByteLevel",
            "add_prefix_space": add,
            "trim_offsets": True,
            "use_regex": regex,
        },
        st.sampled_from((False, False, False, True)),
        st.booleans(),
    )
    return st.builds(lambda some, end: _sequence([*some, end]), steps, last)


def _steps() -> st.SearchStrategy[Json]:
    behavior = st.sampled_from(_BEHAVIORS)
    return st.one_of(
        st.builds(_split, split_patterns(), behavior, st.booleans()),
        st.builds(_split, split_patterns(), st.just("isolated"), st.just(False)),
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


def _split(pattern: str, behavior: str, invert: bool) -> Json:
    return _as_json(pre_tokenizers.Split(tokenizers.Regex(pattern), behavior, invert))


def _as_json(part: Any) -> Json:
    """A component as the file spells it."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = part
    return dict(json.loads(tokenizer.to_str())["pre_tokenizer"])


def _sequence(steps: list[Json]) -> Json | None:
    if not steps:
        return None
    return steps[0] if len(steps) == 1 else {"type": "Sequence", "pretokenizers": steps}


def _added_tokens() -> st.SearchStrategy[list[Json]]:
    flags = st.fixed_dictionaries(
        {},
        optional={
            name: st.sampled_from((False, False, True))
            for name in ("lstrip", "rstrip", "single_word", "normalized", "special")
        },
    )
    one = st.builds(lambda content, some: added_token(content, **some), st.sampled_from(_ADDED), flags)
    return st.lists(one, max_size=3, unique_by=lambda entry: str(entry["content"]))


@st.composite
def tokenizer_files(draw: st.DrawFn) -> Json:
    """The content of a random `tokenizer.json`; it may well be one that is refused."""
    byte_level = draw(st.booleans())
    metaspace = not byte_level and draw(st.sampled_from((False, True)))
    spaced = not byte_level and not metaspace and draw(st.booleans())
    normalizer = draw(normalizers_for(spaced))
    pretokenizer = None if spaced else draw(pretokenizers_for(byte_level, metaspace))
    data = _trained(draw, normalizer, pretokenizer)
    model = data["model"]
    model["ignore_merges"] = draw(st.sampled_from((False, False, True)))
    if not byte_level and draw(st.booleans()):
        model["byte_fallback"] = True
        for byte in range(256):
            model["vocab"].setdefault(f"<0x{byte:02X}>", len(model["vocab"]))
    for entry in draw(_added_tokens()):
        known = model["vocab"].get(entry["content"])
        fresh = len(model["vocab"]) + sum(e["content"] not in model["vocab"] for e in data["added_tokens"])
        data["added_tokens"].append({"id": fresh if known is None else known, **entry})
    return data


def _trained(draw: st.DrawFn, normalizer: Json | None, pretokenizer: Json | None) -> Json:
    """BPE trained on random text, with some of the resulting tokens taken out of the merges."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    data = json.loads(tokenizer.to_str())
    data["normalizer"], data["pre_tokenizer"] = normalizer, pretokenizer
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(data))
    corpus = draw(st.lists(st.lists(st.sampled_from(_WORDS), min_size=1, max_size=8), min_size=1, max_size=6))
    rare = draw(st.lists(st.sampled_from(ADVERSARIAL), max_size=6))
    alphabet = pre_tokenizers.ByteLevel.alphabet() if draw(st.booleans()) else []
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) + draw(st.integers(20, 60)),
        min_frequency=1,
        show_progress=False,
        initial_alphabet=alphabet,
    )
    tokenizer.train_from_iterator([*map("".join, corpus), "".join(rare)] * 2, trainer)
    trained: Json = json.loads(tokenizer.to_str())
    return trained


def trained_tokenizers() -> st.SearchStrategy[Tokenizer]:
    """Random tokenizers that are accepted. What is refused, with a typed error, is left out."""
    return tokenizer_files().map(accepted).filter(lambda found: found is not None)  # type: ignore


def accepted(data: Json) -> Tokenizer | None:
    """The tokenizer, None if it is refused."""
    try:
        tokenizer = Tokenizer.from_json(data)
        canonical_automaton(tokenizer)
    except (UnsupportedTokenizerError, ImproperMergeTableError, BudgetExceededError):
        return None
    return tokenizer
