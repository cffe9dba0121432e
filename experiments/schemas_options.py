"""What the command line of the experiments on schemas chooses."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from experiments.exact_options import ALL, shown
from experiments.forced_options import SCHEMAS
from experiments.runner import ROOT, Options

TOKENIZERS = ("smollm2", "llama-3")
OURS, JUDGE = "bpe_automata", "jsonschema"
ENGINES = (OURS, "llguidance", "xgrammar", "outlines_core")
WHITESPACE = ("compact", "spaced", "flexible")
PEER_SECONDS = 600.0


@dataclass(frozen=True)
class SchemasOptions(Options):
    """schemas: folder of JSON lines; regexes: a file of them instead; chosen, engines: names of
    tokenizers and of engines; whitespace: style of the texts; jobs: processes at a time;
    peer_seconds: after these a peer begins no further case with a tokenizer."""

    schemas: Path = SCHEMAS
    regexes: Path | None = None
    chosen: tuple[str, ...] = TOKENIZERS
    engines: tuple[str, ...] = ENGINES
    whitespace: str = WHITESPACE[0]
    jobs: int = 2
    peer_seconds: float = PEER_SECONDS

    @property
    def folder(self) -> Path:
        """One for each kind of input: data, style. Rows of any tokenizer or engine go there."""
        parts = [self.name]
        if self.regexes:
            parts.append(self.regexes.name.split(".")[0])
        elif self.schemas != SCHEMAS:
            parts.append(self.schemas.name)
        if self.whitespace != WHITESPACE[0] and not self.regexes:
            parts.append(self.whitespace)
        return self.results / "-".join(parts)

    @property
    def figures(self) -> Path:
        """The paper shows full runs of the default choice, and of the regexes; a sample (`--n`),
        other engines or tokenizers stay beside their rows."""
        default = SchemasOptions(self.name)
        same = self.n is None and (self.chosen, self.engines) == (default.chosen, default.engines)
        shown_data = self.schemas == SCHEMAS and self.whitespace == WHITESPACE[0]
        at_home = self.results == ROOT / "results"
        return ROOT / "paper_figures" if same and shown_data and at_home else self.folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of these experiments only."""
    parser.add_argument(
        "--engines", metavar="A,B", help=f"schemas: some of {','.join(ENGINES)} (default: all)"
    )
    parser.add_argument(
        "--whitespace", choices=WHITESPACE, default=WHITESPACE[0], help="schemas: style of texts"
    )
    parser.add_argument(
        "--peer-seconds",
        type=float,
        default=PEER_SECONDS,
        help="schemas: a peer begins no case after these, by tokenizer (default: %(default)g)",
    )


def options_of(chosen: argparse.Namespace, common: Options) -> SchemasOptions:
    """`--tokenizer`, `--regexes`, `--schemas` and `--jobs` are options of other experiments too."""
    return SchemasOptions(
        **vars(common),
        schemas=chosen.schemas or SCHEMAS,
        regexes=chosen.regexes,
        chosen=_tokenizers(chosen.tokenizer),
        engines=tuple(chosen.engines.split(",")) if chosen.engines else ENGINES,
        whitespace=chosen.whitespace,
        jobs=chosen.jobs or 2,
        peer_seconds=chosen.peer_seconds,
    )


def _tokenizers(given: str | None) -> tuple[str, ...]:
    return TOKENIZERS if given in (None, ALL) else (given or "",)


def folder_name(source: str) -> str:
    """A tokenizer in the name of a file."""
    return shown(source)
