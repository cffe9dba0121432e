"""Reports on a tokenizer, on ids, and on a constraint compared with the tokenizer's own encoding.

bpe-automata inspect TOKENIZER
bpe-automata explain TOKENIZER (--ids "1 2 3" | --text T)
bpe-automata verify TOKENIZER --regex R
"""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from typing import Any, get_args

import numpy as np

from bpe_automata._budget import Budget
from bpe_automata._cli.common import (
    REGEX,
    Commands,
    add_command,
    add_seconds,
    add_tokenizer,
    ids_of,
    natural,
    prepare,
    seconds,
    show,
    tokenizer_of,
)
from bpe_automata._cli.progress import step
from bpe_automata.canonical.canonical import CanonicalAutomaton
from bpe_automata.decoding.constraint import Method, constrain
from bpe_automata.decoding.explanation import Explanation, explain
from bpe_automata.decoding.verification import Verification, verify
from bpe_automata.decoding.visible import visible
from bpe_automata.tokenizer.description import SplitRule
from bpe_automata.tokenizer.tokenizer import Tokenizer

_EXAMPLES = 5
_ADDED_SHOWN = 20


def add_inspect(commands: Commands) -> None:
    """Add the command `inspect`."""
    summary = "say what a tokenizer is made of, and what its canonical automaton looks like"
    parser = add_command(commands, "inspect", summary, _run_inspect)
    add_tokenizer(parser)


def _run_inspect(arguments: argparse.Namespace) -> int:
    begin = time.perf_counter()
    tokenizer = tokenizer_of(arguments)
    loaded = time.perf_counter()
    automaton = prepare(arguments, tokenizer)
    built = time.perf_counter()
    report = {
        **_parts(tokenizer),
        **_automaton(tokenizer, automaton),
        "load_seconds": seconds(loaded - begin),
        "build_seconds": seconds(built - loaded),
    }
    show(report if arguments.json else _for_people(report), arguments.json)
    return 0


def _parts(tokenizer: Tokenizer) -> dict[str, Any]:
    description = tokenizer.description
    base = {symbol[0] for symbol in description.base}
    missing = [byte for byte in range(256) if byte not in base] if description.byte_level else []
    return {
        "tokenizer": tokenizer.name,
        "alphabet": "bytes" if description.byte_level else "characters",
        "ids": tokenizer.n_ids,
        "base_symbols": len(description.base),
        "missing_bytes": missing,
        "merges": len(description.merges),
        "runs_on": tokenizer.backend.name,
        "byte_fallback": bool(description.byte_tokens),
        "ignore_merges": description.ignore_merges,
        "normalizers": [step.kind for step in description.normalizers],
        "prefix": description.prefix.value,
        "splitters": [_splitter(rule) for rule in description.splitters],
        "added_tokens": [token.content for token in description.added],
        "control_ids": len(description.controls),
        "eos_ids": list(tokenizer.eos_ids),
    }


def _splitter(rule: SplitRule) -> dict[str, Any]:
    return {
        "kind": rule.kind,
        "pattern": rule.pattern,
        "behavior": rule.behavior,
        "invert": rule.invert,
    }


def _automaton(tokenizer: Tokenizer, automaton: CanonicalAutomaton) -> dict[str, Any]:
    added = tokenizer.added_ids | tokenizer.description.controls
    unmade = np.flatnonzero(~automaton.derivation.reachable).tolist()
    made = [i for i in unmade if i not in added and tokenizer.spellings[i]]
    return {
        "rectangles": len(automaton.derivation.proper),
        "late_merges": int(automaton.derivation.late.sum()),
        "unreachable_tokens": len(made),
        "unreachable_examples": [visible(tokenizer.spellings[i]) for i in made[:_EXAMPLES]],
        "forbidden_share": automaton.geometry.forbidden_share(),
        "boundary_hypotheses": automaton.pipeline.boundaries.n,
        "token_classes": len(automaton.actions.classes) - 1,
    }


def _for_people(report: dict[str, Any]) -> dict[str, Any]:
    """The report without nested lists and long floats."""
    rules = (_rule(rule) for rule in report["splitters"])
    added = report["added_tokens"]
    shown = [*added[:_ADDED_SHOWN], "..."] if len(added) > _ADDED_SHOWN else added
    examples = " ".join(report["unreachable_examples"])
    unreachable = report["unreachable_tokens"]
    return {
        **report,
        "missing_bytes": " ".join(f"{byte:02X}" for byte in report["missing_bytes"]) or "none",
        "splitters": ", then ".join(rules) or "none",
        "normalizers": ", then ".join(report["normalizers"]) or "none",
        "added_tokens": f"{len(added)}: {' '.join(shown)}" if added else "none",
        "eos_ids": " ".join(map(str, report["eos_ids"])) or "none named",
        "unreachable_tokens": f"{unreachable}: {examples}" if unreachable else "none",
        "unreachable_examples": None,
        "forbidden_share": f"{report['forbidden_share']:.2%} of the pairs inside a pretoken",
        "load_seconds": f"{report['load_seconds']:.3f}",
        "build_seconds": f"{report['build_seconds']:.3f}",
    }


def _rule(rule: dict[str, Any]) -> str:
    inverted = ", inverted" if rule["invert"] else ""
    return f"{rule['kind']} {rule['pattern']}".rstrip() + f" ({rule['behavior']}{inverted})"


def add_explain(commands: Commands) -> None:
    """Add the command `explain`."""
    summary = "say whether ids are the tokenizer's own, and if not, at which token and why"
    parser = add_command(commands, "explain", summary, _run_explain)
    add_tokenizer(parser)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--ids", type=ids_of, help="ids, as in '1 2 3'")
    source.add_argument("--text", help="a text: shows its tokens")


def _run_explain(arguments: argparse.Namespace) -> int:
    tokenizer = tokenizer_of(arguments)
    ids = tokenizer.encode(arguments.text) if arguments.ids is None else arguments.ids
    found = explain(tokenizer, ids)
    lost = arguments.text is not None and found.text != arguments.text
    report = _report(found)
    if lost:
        report |= {"canonical": False, "reason": "the tokenizer drops part of this text"}
    if arguments.json:
        show(report, as_json=True)
    else:
        _print(tokenizer, report)
    return 0 if report["canonical"] else 1


def _report(found: Explanation) -> dict[str, Any]:
    return {
        "canonical": found.canonical,
        "position": found.position,
        "reason": found.reason,
        "text": found.text,
        "ids": list(found.ids),
        "tokens": [token.decode("utf-8", "backslashreplace") for token in found.tokens],
        "expected_ids": list(found.expected_ids),
    }


def _print(tokenizer: Tokenizer, report: dict[str, Any]) -> None:
    wrong = "" if report["position"] is None else f"not canonical at token {report['position']}: "
    print(f"{wrong}{report['reason']}")
    for index, token in enumerate(report["ids"]):
        mark = ">" if index == report["position"] else " "
        print(f"{mark}{index:>5} {token:>8}  {visible(tokenizer.token_bytes(token))}")
    if not report["canonical"]:
        own = " ".join(f"{i}" for i in report["expected_ids"])
        shown = " ".join(visible(tokenizer.token_bytes(i)) for i in report["expected_ids"])
        print(f"encode makes: {own}\n              {shown}")


def add_verify(commands: Commands) -> None:
    """Add the command `verify`."""
    summary = "compare a constraint with the tokenizer's own encode, by random walks and strings"
    parser = add_command(commands, "verify", summary, _run_verify)
    add_tokenizer(parser)
    parser.add_argument("--regex", required=True, help=REGEX)
    parser.add_argument(
        "-n", type=natural, default=1000, help="walks, and strings (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    parser.add_argument("--method", choices=get_args(Method), default="canonical")
    add_seconds(parser)
    parser.add_argument("--prompt", default="", help="text before the constrained one")


def _run_verify(arguments: argparse.Namespace) -> int:
    tokenizer = tokenizer_of(arguments)
    if arguments.method == "canonical":
        prepare(arguments, tokenizer)
    budget = Budget(max_seconds=arguments.max_seconds)
    method, prompt = arguments.method, tokenizer.encode(arguments.prompt)
    with step(arguments, "compiling the constraint"):
        constraint = constrain(tokenizer, arguments.regex, method, tokenizer.eos_ids, budget=budget)
    with step(arguments, "verifying") as progress:
        result = verify(
            tokenizer, constraint, arguments.n, arguments.seed, method, prompt, progress=progress
        )
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
