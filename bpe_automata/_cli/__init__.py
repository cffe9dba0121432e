"""Runs the command line, `bpe-automata`.

Exit codes: 0 success, 1 a counterexample or ids that are not canonical, 2 an error, in one line.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from bpe_automata._cli.constraints import add_compile, add_generate
from bpe_automata._cli.examine import add_explain, add_inspect, add_verify
from bpe_automata._cli.warm import add_warm
from bpe_automata._version import __version__
from bpe_automata.errors import BpeAutomataError

_COMMANDS = (add_inspect, add_compile, add_generate, add_verify, add_explain, add_warm)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. argv: without the program's name."""
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader has closed the pipe, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 2
    except (BpeAutomataError, ImportError, OSError, MemoryError, UnicodeError) as error:
        print(f"error: {_one_line(error)}", file=sys.stderr)
        return 2


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bpe-automata",
        description="Regex-constrained decoding along the tokenizer's own tokenization.",
        epilog="TOKENIZER is a file (tokenizer.json, SentencePiece .model, tekken.json, .gguf), a "
        "folder that holds one, a name such as smollm2, or (with transformers) a model's name on "
        "the hub. Every command takes --json.",
    )
    parser.add_argument("--version", action="version", version=f"bpe-automata {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in _COMMANDS:
        add(commands)
    return parser
