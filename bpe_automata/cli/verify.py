"""`bpe-automata verify TOKENIZER --regex R`."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any, get_args

from bpe_automata.budget import Budget
from bpe_automata.cli.common import (
    Commands,
    add_command,
    add_regex,
    add_seconds,
    add_tokenizer,
    end_progress,
    load_tokenizer,
    natural,
    progress_line,
    show,
)
from bpe_automata.constructions import canonical_automaton
from bpe_automata.decoding.constraint import Method, constrain
from bpe_automata.decoding.verification import Verification, verify


def register(commands: Commands) -> None:
    """Add the command."""
    summary = "compare a constraint with the tokenizer's own encode, by random walks and strings"
    parser = add_command(commands, "verify", summary, run)
    add_tokenizer(parser)
    add_regex(parser)
    parser.add_argument(
        "-n", type=natural, default=1000, help="walks, and strings (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    parser.add_argument("--method", choices=get_args(Method), default="canonical")
    add_seconds(parser)
    parser.add_argument("--prompt", default="", help="text before the constrained one")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    tokenizer = load_tokenizer(arguments.tokenizer)
    if arguments.method == "canonical":
        canonical_automaton(tokenizer)  # per tokenizer, with a budget of its own
    budget = Budget(max_seconds=arguments.max_seconds)
    try:
        result = verify(
            tokenizer,
            constrain(tokenizer, arguments.regex, arguments.method, budget=budget),
            arguments.n,
            arguments.seed,
            arguments.method,
            tokenizer.encode(arguments.prompt),
            progress=progress_line("verified"),
        )
    finally:
        end_progress()
    if arguments.json:
        show(_as_values(result), as_json=True)
    else:
        print(result)
    return 0 if result.ok else 1


def _as_values(result: Verification) -> dict[str, Any]:
    values = {"ok": result.ok, **asdict(result)}
    if values["counterexample"]:
        tokens = values["counterexample"]["tokens"]
        values["counterexample"]["tokens"] = [t.decode("utf-8", "backslashreplace") for t in tokens]
    return values
