"""Prepares tokenizers: `bpe-automata warm TOKENIZER ...`.

That is to make a tokenizer's automaton and its groups of tokens, which are kept in the cache on
disk: later processes begin with them.
"""

from __future__ import annotations

import argparse
import time

from bpe_automata._cli.common import Commands, add_command, load_tokenizer, show
from bpe_automata._cli.progress import step
from bpe_automata.canonical.canonical import canonical_automaton
from bpe_automata.canonical.tables import TokenizerTables


def add_warm(commands: Commands) -> None:
    """Add the command `warm`."""
    summary = "keep on disk what masks need of tokenizers (some seconds each)"
    parser = add_command(commands, "warm", summary, _run_warm)
    parser.add_argument("tokenizers", nargs="+", metavar="TOKENIZER")


def _run_warm(arguments: argparse.Namespace) -> int:
    begin, names = time.perf_counter(), arguments.tokenizers
    with step(arguments, "preparing") as progress:
        for number, tokenizer in enumerate([load_tokenizer(name) for name in names]):
            progress(number, len(names))
            _ = TokenizerTables(canonical_automaton(tokenizer)).groups
    done = {"tokenizers_prepared": names if arguments.json else ", ".join(names)}
    show(done | {"seconds": round(time.perf_counter() - begin, 1)}, arguments.json)
    return 0
