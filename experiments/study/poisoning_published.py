"""The published example: what kind of animal some sharks are, by the tokens of "shark".

After a prompt about one of four animals the ratio of the chances of two next words is taken, once
with the tokenizer's own ids of "shark" and once with other ids. Source: the notebook beside the
article (Tran-Thien, 2024), section on self-intoxication; Mistral-7B-v0.1 in 4 bits. There one other
way to spell the word was measured, here all of them are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata.decoding.visible import visible_tokens
from experiments.run.executors import Row
from experiments.run.tables import Table
from experiments.shared.models import LoadedModel
from experiments.study.poisoning_cases import Pieces, SentenceError, sentence
from experiments.study.poisoning_laws import chances

PUBLISHED = {
    "whale": (0.12956, 0.20591),
    "tiger": (0.14835, 0.11374),
    "weasel": (0.08295, 0.23327),
    "cow": (0.18202, 0.13895),
}
"""By animal: the ratio after the word's own ids, and after `SPLIT`."""
BEFORE, WORD, AFTER = "A {}", " shark", " is a kind of"
ANSWERS = (" mammal", " fish")
SPLIT = (b" s", b"har", b"k")
_TITLE = "P(“mammal”) / P(“fish”) after “A … shark is a kind of”, by the tokens of “shark”"
_COLUMNS = (
    "animal",
    "model",
    "own tokens",
    "`␣s`+`har`+`k`",
    "least of the others",
    "median",
    "greatest",
    "others that raise it",
)


def ratios(loaded: LoadedModel, animal: str) -> Row:
    """ways: [tokens, ratio] of the word's own ids, then of others, those of few tokens first;
    split: the place of the published way among them, None where it is not. Raises SentenceError."""
    tokenizer = loaded.tokenizer
    before = BEFORE.format(animal)
    text = sentence(tokenizer, before, WORD, AFTER)
    spelled = b"".join(map(tokenizer.token_bytes, text.word))
    others = sorted(Pieces(tokenizer).all_ways(spelled), key=lambda ids: (len(ids), ids))
    ways = [text.word, *(ids for ids in others if ids != text.word)]
    answers = [_first(tokenizer, before + WORD + AFTER, answer) for answer in ANSWERS]
    found = [one / other for one, other in chances(loaded, text, ways, answers)]
    pieces = [tuple(map(tokenizer.token_bytes, ids)) for ids in ways]
    return {
        "animal": animal,
        "ways": [
            [visible_tokens(tokenizer, ids), float(f"{ratio:.6g}")]
            for ids, ratio in zip(ways, found, strict=True)
        ],
        "split": pieces.index(SPLIT) if SPLIT in pieces else None,
    }


def _first(tokenizer: Tokenizer, prompt: str, answer: str) -> int:
    """The first id of an answer. Raises SentenceError where it changes those of the prompt."""
    ids, whole = tokenizer.encode(prompt), tokenizer.encode(prompt + answer)
    if whole[: len(ids)] != ids:
        raise SentenceError(f"{answer!r} after {prompt!r} changes the ids before it")
    return whole[len(ids)]


def table(rows: Sequence[Row], names: Mapping[str, str]) -> Table:
    """names: what models are called, by their names in the rows."""
    lines = [
        [animal, "Mistral-7B-v0.1, 4 bits (published)", f"{own:.3f}", f"{other:.3f}", *[""] * 4]
        for animal, (own, other) in PUBLISHED.items()
    ]
    for row in rows:
        own, others = facts_of(row)["own"], [ratio for _, ratio in row["ways"][1:]]
        split = "" if row["split"] is None else f"{row['ways'][row['split']][1]:.3f}"
        spread = [f"{np.quantile(others, q):.3f}" for q in (0, 0.5, 1)] if others else [""] * 3
        raised = f"{facts_of(row)['raised']} of {len(others)}"
        model = names[row["model"]]
        lines.append([row["animal"], model, f"{own:.3f}", split, *spread, raised])
    notes = [
        "Published: in the notebook beside the article, all four animals. Its "
        "prompt has no mark of the beginning of a text; ours has what the model expects there.",
        "The others are all other ways to spell the word with tokens of whole characters. Of "
        "“mammal” and “fish” the first token counts.",
    ]
    return Table(_TITLE, [*_COLUMNS], lines, notes)


def facts_of(row: Row) -> dict[str, Any]:
    """own: the ratio after the word's own ids; others: how many; raised: how many are greater."""
    own, *others = [ratio for _, ratio in row["ways"]]
    return {"own": own, "others": len(others), "raised": sum(ratio > own for ratio in others)}
