"""What the command line of the exactness experiment chooses."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from bpe_automata.tokenizer.sources.named import names
from experiments.runner import Options

DEFAULT = "smollm2"
ALL = "all"


@dataclass(frozen=True)
class ExactOptions(Options):
    """tokenizer: a name, a path, or "all"; text: folder of further multilingual text; jobs: how
    many tokenizers are measured at a time."""

    tokenizer: str = DEFAULT
    text: Path | None = None
    jobs: int = 1

    @property
    def folder(self) -> Path:
        """A folder for the default tokenizer, one for all, and one for each other."""
        if self.tokenizer == DEFAULT:
            return self.results / self.name
        return self.results / f"{self.name}-{shown(self.tokenizer)}"

    def tokenizers(self) -> tuple[str, ...]:
        """What is to be loaded, in order."""
        return tuple(names()) if self.tokenizer == ALL else (self.tokenizer,)


def shown(source: str) -> str:
    """What a table and a manifest call a tokenizer: its name, or of a path the last part."""
    return source if source in names() else Path(source).name


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this experiment only."""
    parser.add_argument(
        "--tokenizer",
        metavar="NAME|PATH|all",
        help=f"exactness: which tokenizer (default: {DEFAULT}); all: every one that has a name",
    )
    parser.add_argument(
        "--text", type=Path, metavar="FOLDER", help="exactness: more multilingual text"
    )
    parser.add_argument("--jobs", type=int, help="exactness: tokenizers at a time (default: 1)")


def options_of(chosen: argparse.Namespace, common: Options) -> ExactOptions:
    """`--model`, which other experiments have, names a tokenizer too."""
    return ExactOptions(
        common.name,
        seed=common.seed,
        n=common.n,
        render_only=common.render_only,
        results=common.results,
        tokenizer=chosen.tokenizer or common.model or DEFAULT,
        text=chosen.text,
        jobs=chosen.jobs or 1,
    )
