"""`python -m experiments NAME...`: run one experiment after the other, or `list` them."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from bpe_automata.errors import BpeAutomataError
from experiments import exact_options, forced_options, schemas_options
from experiments.runner import Options

EXPERIMENTS = {
    "banned": "banned words by the mask and by going back: none gets through, and what it costs",
    "distortion": "what constraining by the lift or the canonical automaton does to a model's law",
    "exactness": "laws of the canonical automaton against encode itself, with their exceptions",
    "figures": "the article's Figures 1 to 6, redrawn from what the library computes",
    "forced": "ids that are certain beforehand: canonical, lift, published heuristic; model passes",
    "geometry": "the automaton of all texts: the published algorithm against the rectangles",
    "growth": "DirectMerge against CartesianMerge as the regex grows: sizes, seconds, memory",
    "schemas": "real JSON schemas: compiled, refused, wrong, and the cost, beside other engines",
    "segments": "segments shared between schemas: hit share and speed-up; what merges with what",
    "speed": "what automata, regexes and masks cost, beside other engines",
    "support": "every component value as a test, and the README's table of what they show",
    "table1": "the article's Table 1 and example automaton, published beside measured",
    "table2": "the article's Table 2: what function calls cost, step by step, published beside",
    "walks": "random walks through the masks of schemas; each text is parsed and validated",
    "yaml_schemas": "real schemas of YAML files: compiled, their files, and random texts checked",
    "warm": "compile every kernel once; they are kept on disk",
}
"""Name of a module of this package with `run(options: Options) -> None`, and what it shows."""
MODULES = {"figures": "article_figures", "walks": "schema_walks"}
"""Those that are called otherwise: `figures` is what all figures have in common."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    result.add_argument("names", nargs="+", choices=[*EXPERIMENTS, "list"], metavar="NAME")
    result.add_argument("--model", help="folder or hub id of a causal LM (default: SmolLM2-135M)")
    result.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    result.add_argument("--seed", type=int, default=0)
    result.add_argument("--n", type=int, help="how many samples or cases (default: by experiment)")
    result.add_argument("--render", action="store_true", help="redraw from the rows on disk")
    exact_options.add_arguments(result)
    forced_options.add_arguments(result)
    schemas_options.add_arguments(result)
    result.add_argument("--check", action="store_true", help="support: compare, run nothing")
    result.add_argument(
        "--regexes",
        type=Path,
        metavar="FILE",
        help='figures, forced, schemas: JSON lines with a "regex"',
    )
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0, or 2 with one line of error for whatever the user can mend. An experiment that
    fails is the last one."""
    chosen = parser().parse_args(arguments)
    if "list" in chosen.names:
        for name, summary in EXPERIMENTS.items():
            print(f"{name:12} {summary}")
        return 0
    try:
        for name in chosen.names:
            run(name, chosen)
    except (BpeAutomataError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def run(name: str, chosen: argparse.Namespace) -> None:
    """One experiment."""
    options = Options(name, chosen.model, chosen.device, chosen.seed, chosen.n, chosen.render)
    module = importlib.import_module(f"experiments.{MODULES.get(name, name)}")
    own = getattr(module, "options_of", None)
    module.run(own(chosen, options) if own else options)


if __name__ == "__main__":
    sys.exit(main())
