"""What the command line of Table 2 chooses."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from experiments.article_table import MISTRAL
from experiments.exact_options import shown
from experiments.forced_options import SCHEMAS
from experiments.runner import ROOT, Options

GROUP = "Glaiveai2K"
"""The file of `SCHEMAS` that is taken by default: function calls, as in the article."""


@dataclass(frozen=True)
class Table2Options(Options):
    """tokenizer: a name or a path; schemas: a folder of JSON lines, or the hub id of a data set;
    reference: seconds that the plain algorithms may take of one schema, 0 to leave them out."""

    tokenizer: str = MISTRAL
    schemas: Path = SCHEMAS
    reference: float = 40.0

    @property
    def folder(self) -> Path:
        """One for the default, and one for each other choice."""
        given = [self.schemas.name] if self.schemas != SCHEMAS else []
        given += [shown(self.tokenizer)] if self.tokenizer != MISTRAL else []
        return self.results / "-".join([self.name, *given])

    @property
    def figures(self) -> Path:
        """The paper shows the default; a sample (`--n`) or other data stay beside their rows."""
        default = self.folder == ROOT / "results" / self.name and self.n is None
        return ROOT / "paper_figures" if default else self.folder


def options_of(chosen: argparse.Namespace, common: Options) -> Table2Options:
    """`--tokenizer` and `--schemas` are options of other experiments too."""
    given = vars(common)
    return Table2Options(
        **given, tokenizer=chosen.tokenizer or MISTRAL, schemas=chosen.schemas or SCHEMAS
    )
