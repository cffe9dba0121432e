"""The article's figures, redrawn from what the library computes, into `paper_figures`.

Figure 1 is as published: a regex over characters, over tokens, and as masks. Of the others neither
number nor caption was at hand, so their numbers are ours; they show what the article's sections and
its companion notebook are known to show: 2 the example `boolean: ((true)|(false))` under the lift
and under DirectMerge, 3 one step of DirectMerge, 4 the automaton of all texts and its product with
a lift, 5 the growth of a repeated `.` (from the rows of `growth`), 6 how preprocessing and mask
times are distributed over function-calling schemas.

Only Figure 6 is measured here. `--regexes FILE`: JSON lines with a "regex" each, instead of the
schemas of the repository; `--n`: how many of them, drawn at random.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpe_automata import Tokenizer
from experiments import (
    article_boolean,
    article_cdf,
    article_growth,
    article_idea,
    article_product,
    article_steps,
)
from experiments.article_distribution import Engines, measured, regexes_of_file, regexes_of_schemas
from experiments.article_panels import save
from experiments.article_table import MISTRAL, bpe_alone
from experiments.distortion_report import shown_path
from experiments.growth_methods import WARM
from experiments.optional import require
from experiments.peers import OutlinesCore, PeerError, peer_versions
from experiments.runner import Options, Run, read_run

Row = dict[str, Any]

DRAWN = {
    "figure1": (article_idea.figure_1, article_idea.HEADLINE, article_idea.NOTE),
    "figure2": (article_boolean.figure_2, article_boolean.HEADLINE, article_boolean.NOTE),
    "figure3": (article_steps.figure_3, article_steps.HEADLINE, article_steps.NOTE),
    "figure4": (article_product.figure_4, article_product.HEADLINE, article_product.NOTE),
}
"""Name: panels, headline, note."""


@dataclass(frozen=True)
class FigureOptions(Options):
    """regexes: a file of them for Figure 6."""

    regexes: Path | None = None


def options_of(chosen: argparse.Namespace, common: Options) -> FigureOptions:
    """With what this experiment alone has."""
    return FigureOptions(**vars(common), regexes=chosen.regexes)


def run(options: Options) -> None:
    """Measure Figure 6 unless told to render only; then draw all."""
    given = options.regexes if isinstance(options, FigureOptions) else None
    if not options.render_only:
        if given is None:
            regexes = regexes_of_schemas()[: options.n]
        else:
            regexes = regexes_of_file(given, options.n, options.seed)
        measure(options, engines(Tokenizer.load(MISTRAL)), regexes)
    rows, _ = read_run(options)
    draw(rows, options)


def engines(tokenizer: Tokenizer) -> Engines:
    """What is measured with a tokenizer."""
    try:
        outlines = OutlinesCore(tokenizer, tokenizer.eos_ids)
    except PeerError:
        outlines = None
    return Engines(tokenizer, Tokenizer.from_json(bpe_alone(tokenizer)), outlines)


def measure(options: Options, found: Engines, regexes: list[tuple[str, str]]) -> None:
    """A row per regex."""
    started = time.perf_counter()
    for regex in WARM:
        measured("", regex, found, options.seed)  # loads the kernels
    provenance: Row = {"tokenizer": found.complete.name, "peers": peer_versions()}
    provenance["load_average"] = list(os.getloadavg())
    run_ = Run(options, {}, provenance, len(regexes), started)
    console = require("rich.console").Console(stderr=True)
    with require("rich.progress").Progress(console=console, transient=True) as bar:
        for name, regex in bar.track(regexes, description="Figure 6"):
            run_.add(measured(name, regex, found, options.seed))


def draw(rows: list[Row], options: Options) -> None:
    """All six."""
    folder = options.figures
    saved = []
    for name, (panels, headline, note) in DRAWN.items():
        saved += save(panels(), headline, note, folder, name)
    saved += article_growth.draw(*article_growth.rows_of(options), folder)
    saved += article_cdf.draw(rows, folder)
    print("figures: " + ", ".join(map(shown_path, saved)))
