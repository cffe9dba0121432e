"""Banned words, by the mask and by going back: does one ever get through, and what does it cost?

First the article's words and prompt, with a real model: Clay, "Using Finite State Machine (FSM) and
Rollback Mechanism to Restrict LLM from Generating Banned Words" (2024), whose companion notebook
bans `talk`, `listen` and `fuck you` after the prompt `Can we talk?`. Then random lists over the
tokenizer's own vocabulary, with a model that is drawn to the banned words. SmolLM2, much smaller
than the article's model, seldom says them there, so a second prompt is ours. All texts are looked
through for banned words by plain string search; one that is found is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

from experiments.run.config import option
from experiments.run.executors import Cell
from experiments.run.measuring import Run
from experiments.serving.banned_report import TITLE, facts, readme, tables, wrong
from experiments.serving.banned_runs import article, listed, settings, word_lists
from experiments.shared.models import OneModel

__all__ = ["TITLE", "facts", "readme", "tables", "wrong"]

VERSION = 1
SIZED_EACH = 10
"""Of so many lists, the spellings of one are written down and counted."""


@dataclass(frozen=True)
class Config(OneModel):
    """What determines the texts."""

    draws: int = option(2, "texts drawn after each prompt of the article's words")
    new_tokens: int = option(40, "at most so many ids of each of them")
    lists: int = option(200, "random lists of banned words")


SMOKE = Config(draws=0, new_tokens=2, lists=4)


def measure(run: Run[Config]) -> None:
    """A row per text of the article's words, then one per list. The modes of a row are timed."""
    made = run.config
    loaded = made.opened()
    run.note(**loaded.provenance())
    cells = [
        Cell(f"article {turn}", article, (made, setting, made.new_tokens, turn))
        for turn, setting in enumerate(settings(made.draws))
    ]
    for turn, words in enumerate(word_lists(loaded.tokenizer, made.lists, made.seed)):
        sized = turn % SIZED_EACH == 0
        given = (made, words, made.seed + turn, turn, sized)
        cells.append(Cell(f"list {turn}", listed, given))
    run.cells(cells, alone=True)
