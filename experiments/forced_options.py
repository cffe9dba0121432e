"""What the command line of the experiment on forced tokens chooses."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from bpe_automata.tokenizer.sources.named import names
from experiments.exact_options import ALL, shown
from experiments.runner import ROOT, Options

TOKENIZERS = ("smollm2", "mistral-v1", "llama-3")
SCHEMAS = ROOT.parent / "shared" / "data" / "maskbench"
SAMPLED = 60
"""Schemas by default; `--n 0` takes all."""


@dataclass(frozen=True)
class ForcedOptions(Options):
    """tokenizer: a name, a path, "all", or None for three; schemas: folder of JSON lines; regexes:
    a file of them instead; generate: also let a model write?"""

    tokenizer: str | None = None
    schemas: Path = SCHEMAS
    regexes: Path | None = None
    generate: bool = True

    @property
    def folder(self) -> Path:
        """A folder for the default, and one for each other choice."""
        given = [self.regexes.name.split(".")[0]] if self.regexes else []
        given += [self.schemas.name] if self.schemas != SCHEMAS and not self.regexes else []
        given += [shown(self.tokenizer)] if self.tokenizer else []
        return self.results / "-".join([self.name, *given])

    @property
    def figures(self) -> Path:
        """The paper shows the default; tables of anything else stay beside their rows."""
        default = ROOT / "results"
        return ROOT / "paper_figures" if self.folder == default / self.name else self.folder

    def tokenizers(self) -> tuple[str, ...]:
        """What is to be loaded, in order."""
        if self.tokenizer is None:
            return TOKENIZERS
        return tuple(names()) if self.tokenizer == ALL else (self.tokenizer,)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this experiment only."""
    parser.add_argument(
        "--schemas", type=Path, metavar="FOLDER", help="forced: JSON lines of schemas and instances"
    )


def options_of(chosen: argparse.Namespace, common: Options) -> ForcedOptions:
    """`--tokenizer` and `--regexes` are options of other experiments too."""
    return ForcedOptions(
        **vars(common),
        tokenizer=chosen.tokenizer,
        schemas=chosen.schemas or SCHEMAS,
        regexes=chosen.regexes,
    )
