"""A real model, writing under schemas with and without forced ids.

In both loops that can do so (see `forced_loops`), what is forced goes through the model's cache
together with the next id that is not. Both ways of a text follow each other at once, each first in
half of the cases, on one model and one seed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

from bpe_automata.errors import ArgumentError
from experiments.run.executors import FAILURE, Cell, Row
from experiments.serving.forced_inputs import Item, Source, item_of
from experiments.serving.forced_loops import Asked, Loop, with_decode, with_generate
from experiments.shared import models
from experiments.shared.models import Named

MODES = {"greedy": 0.0, "sampled": 1.0}
"""Name: temperature."""
MOST_STATES = 400
LOOPS: dict[str, Loop] = {"decode": with_decode, "generate": with_generate}


def fit(rows: Sequence[Row], pairs: Sequence[tuple[str, Source, str]]) -> list[tuple[Source, str]]:
    """Of (key of a row, source, style) those whose automaton is small."""
    states = {row["key"]: row.get("states") for row in rows if not row.get(FAILURE)}
    return [(source, s) for key, source, s in pairs if 0 < (states.get(key) or 0) <= MOST_STATES]


def cells(
    pairs: Sequence[tuple[Source, str]], named: Named, texts: int, most_ids: int, seed: int
) -> list[Cell]:
    """A few of them, each in both modes, in both loops."""

    def rank(pair: tuple[Source, str]) -> float:
        """Of the schema alone, so that one more that fits displaces at most one other."""
        return random.Random(f"{seed} {pair[0].group} {pair[0].id} {pair[1]}").random()

    chosen = sorted(pairs, key=rank)[:texts]
    return [
        Cell(
            f"generation {source.group} {source.id} {loop} {mode}",
            compared,
            (named, source, style, loop, mode, most_ids, seed, bool(number % 2)),
        )
        for number, (source, style) in enumerate(chosen)
        for loop in LOOPS
        for mode in MODES
    ]


def compared(
    named: Named,
    source: Source,
    style: str,
    loop: str,
    mode: str,
    most_ids: int,
    seed: int,
    forced_first: bool,
) -> Row:
    """One text, written twice by one loop."""
    loaded, item = models.opened(*named), item_of(source, style)
    if item.dfa is None:
        raise ArgumentError(f"{source.id} has no automaton: {item.refused}")
    prompt = tuple(loaded.prompt_ids(prompt_of(item)))
    asked = Asked(item.dfa, prompt, MODES[mode], seed, most_ids)
    ways = (True, False) if forced_first else (False, True)
    written = {way: LOOPS[loop](loaded, asked, way) for way in ways}
    ours, plain = written[True], written[False]
    row: Row = {"kind": "generation", "id": source.id, "loop": loop, "mode": mode}
    row |= {"same": ours.pop("ids") == plain["ids"], "ids": len(plain.pop("ids"))}
    return row | {"with": ours, "without": plain}


def prompt_of(item: Item) -> str:
    """A question in the chat format of the default model, which asks for such a text."""
    schema = item.source.schema
    about = item.source.id if schema is None else json.dumps(schema)[:600]
    question = f"Give an example of a JSON object for this schema, without white space: {about}"
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
