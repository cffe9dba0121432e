"""Random tokenizers, trained by `tokenizers` on random text, out of everything that may be in a
`tokenizer.json` of the BPE kind: `parts` draws the components, this module the tables."""

from __future__ import annotations

import json
from typing import Any

import tokenizers
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers, trainers

from bpe_automata.constructions import canonical_automaton
from bpe_automata.errors import (
    BudgetExceededError,
    EncodingError,
    ImproperMergeTableError,
    TokenizerMismatchError,
    UnsupportedTokenizerError,
)
from bpe_automata.testing.parts import SPACE, Parts, parts
from bpe_automata.testing.texts import ADVERSARIAL
from bpe_automata.tokenizer import Tokenizer

Json = dict[str, Any]

REFUSALS = (
    UnsupportedTokenizerError,
    ImproperMergeTableError,
    BudgetExceededError,
    EncodingError,
    TokenizerMismatchError,
)
"""How a tokenizer may be refused; anything else that is raised is a bug. The last is rare: the
trial at load finds, for one, an unknown token whose own text is lost before BPE sees it."""

_WORDS = ("the ", " cat", "ab", "ba", "aab", "é", "e\u0301", "日本", "Ab", "12", "'s", " \n", "  ")


@st.composite
def tokenizer_files(draw: st.DrawFn) -> Json:
    """The content of a random `tokenizer.json`, with some 10 to 600 ids. About one in ten is
    refused, for reasons that cannot be told beforehand."""
    chosen = draw(parts())
    data = _trained(draw, chosen)
    data["decoder"] = chosen.decoder
    model = data["model"]
    model["vocab"] = model["vocab"] or {"a": 0}  # nothing may be left of the text to train on
    _spoil(draw, model)
    if chosen.byte_fallback:
        _add_byte_tokens(draw, model)
    _add_unknown(draw, model)
    # A token of unknown characters may be a pretoken of its own; that is refused.
    known = all(c in model["vocab"] for c in "<unk>") or "<unk>" not in model["vocab"]
    model["ignore_merges"] = draw(st.sampled_from((False, False, True))) and known
    _add_tokens(data, chosen.added)
    return data


def trained_tokenizers() -> st.SearchStrategy[Tokenizer]:
    """Random tokenizers that are accepted. What is refused, with a typed error, is left out."""
    return tokenizer_files().map(accepted).filter(lambda found: found is not None)  # type: ignore[return-value]


def accepted(data: Json) -> Tokenizer | None:
    """The tokenizer, None if it is refused. What it raises otherwise is a bug."""
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
    """What trained tables do not have and deployed ones do: tokens that no merge makes, merges
    listed twice, ranks out of order."""
    merges = model["merges"]
    if not merges or not draw(st.booleans()):
        return
    place = st.integers(0, len(merges) - 1)
    for _ in range(draw(st.integers(0, 2))):
        merges.append(merges[draw(place)])
    for at in draw(st.lists(place, max_size=2, unique=True)):
        merges[at], merges[at - 1] = merges[at - 1], merges[at]
    for at in sorted(draw(st.lists(place, max_size=2, unique=True)), reverse=True):
        if not _is_part(merges[at], merges):
            del merges[at]


def _is_part(merge: list[str], merges: list[list[str]]) -> bool:
    """Does another merge use what this one makes? Then most of the table would die with it."""
    return any("".join(merge) in other for other in merges)


def _add_byte_tokens(draw: st.DrawFn, model: Json) -> None:
    """All 256, in front of or behind the others; rarely all but one."""
    model["byte_fallback"] = True
    written = [f"<0x{byte:02X}>" for byte in range(256)]
    if draw(st.integers(0, 19)) == 19:
        written.remove("<0xE6>")
    model["vocab"].setdefault(SPACE, len(model["vocab"]))
    words = sorted(model["vocab"], key=model["vocab"].__getitem__)
    order = [*written, *words] if draw(st.booleans()) else [*words, *written]
    model["vocab"] = {token: number for number, token in enumerate(dict.fromkeys(order))}


def _add_unknown(draw: st.DrawFn, model: Json) -> None:
    """Sometimes an unknown token, which may swallow its neighbours; then some character of its own
    text must be known."""
    if draw(st.sampled_from((True, False, False))):
        vocabulary = model["vocab"]
        vocabulary.setdefault("<unk>", len(vocabulary))
        model["unk_token"], model["fuse_unk"] = "<unk>", draw(st.booleans())
        if model["fuse_unk"]:
            vocabulary.setdefault("<", len(vocabulary))


def _add_tokens(data: Json, entries: list[Json]) -> None:
    """With the ids that `tokenizers` gives them: those of equal tokens, or new ones."""
    vocabulary = data["model"]["vocab"]
    fresh = len(vocabulary)
    for entry in entries:
        known = vocabulary.get(entry["content"])
        data["added_tokens"].append({"id": fresh if known is None else known, **entry})
        fresh += known is None
