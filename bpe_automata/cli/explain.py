"""`bpe-automata explain TOKENIZER --ids "1 2 3"` or `--text "..."`."""

from __future__ import annotations

import argparse
from typing import Any

from bpe_automata.cli.common import (
    Commands,
    add_command,
    add_tokenizer,
    ids_of,
    load_tokenizer,
    show,
)
from bpe_automata.constructions import canonical_automaton
from bpe_automata.decoding.explanation import Explanation, divide, explain
from bpe_automata.decoding.visible import visible
from bpe_automata.tokenizer import Tokenizer


def register(commands: Commands) -> None:
    """Add the command."""
    summary = "say whether ids are the tokenizer's own, and if not, at which token and why"
    parser = add_command(commands, "explain", summary, run)
    add_tokenizer(parser)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--ids", type=ids_of, help="ids, as in '1 2 3'")
    source.add_argument("--text", help="a text: shows its tokens and pretokens")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    tokenizer = load_tokenizer(arguments.tokenizer)
    ids = tokenizer.encode(arguments.text) if arguments.ids is None else arguments.ids
    found = explain(tokenizer, ids)
    lost = arguments.text is not None and found.text != arguments.text
    report = _report(tokenizer, found)
    if lost:
        report |= {"canonical": False, "reason": "the tokenizer drops part of this text"}
    if arguments.json:
        show(report, as_json=True)
    else:
        _print(tokenizer, report)
    return 0 if report["canonical"] else 1


def _report(tokenizer: Tokenizer, found: Explanation) -> dict[str, Any]:
    return {
        "canonical": found.canonical,
        "position": found.position,
        "reason": found.reason,
        "text": found.text,
        "ids": list(found.ids),
        "tokens": [token.decode("utf-8", "backslashreplace") for token in found.tokens],
        "expected_ids": list(found.expected_ids),
        "pretokens": _pretokens(tokenizer, b"".join(found.tokens)),
    }


def _pretokens(tokenizer: Tokenizer, data: bytes) -> list[str] | None:
    """The pieces of the text; None if it is no text, or part of it is removed."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    pipeline = canonical_automaton(tokenizer).pipeline
    divided = divide(pipeline, tokenizer.description.cut_out, text)
    if divided is None:
        return None
    return [data[begin:end].decode("utf-8") for begin, end in divided.pretokens()]


def _print(tokenizer: Tokenizer, report: dict[str, Any]) -> None:
    wrong = "" if report["position"] is None else f"not canonical at token {report['position']}: "
    print(f"{wrong}{report['reason']}")
    for index, token in enumerate(report["ids"]):
        mark = ">" if index == report["position"] else " "
        print(f"{mark}{index:>5} {token:>8}  {visible(tokenizer.token_bytes(token))}")
    if report["pretokens"] is not None:
        print(f"pretokens: {' '.join(map(visible, report['pretokens']))}")
    if not report["canonical"]:
        own = " ".join(f"{i}" for i in report["expected_ids"])
        shown = " ".join(visible(tokenizer.token_bytes(i)) for i in report["expected_ids"])
        print(f"encode makes: {own}\n              {shown}")
