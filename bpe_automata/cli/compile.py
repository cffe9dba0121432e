"""`bpe-automata compile TOKENIZER --regex R`, or `--schema FILE`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, get_args

from bpe_automata.automata.compile import Budget, compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.cli.common import (
    Commands,
    add_command,
    add_language,
    add_seconds,
    add_tokenizer,
    automaton_of,
    load_tokenizer,
    named,
    natural,
    seconds,
    show,
)
from bpe_automata.constructions import canonical_automaton
from bpe_automata.decoding.constraint import Constraint, Method, constrain
from bpe_automata.decoding.removed import Removed
from bpe_automata.errors import BudgetExceededError
from bpe_automata.tokenizer import Tokenizer
from bpe_automata.viz import check_target, counted

_METHODS = get_args(Method)
_AUTOMATON_SUFFIXES = (".npz", ".json")
_MAX_EDGES = 1_000_000


def register(commands: Commands) -> None:
    """Add the command."""
    summary = "compile a regex or a schema over a tokenizer, and say what it took"
    parser = add_command(commands, "compile", summary, run)
    add_tokenizer(parser)
    add_language(parser)
    parser.add_argument("--method", choices=_METHODS, help="one method only (default: both)")
    parser.add_argument(
        "--max-states",
        type=natural,
        default=Budget().max_states,
        help="give up on larger automata (default: %(default)s)",
    )
    add_seconds(parser)
    parser.add_argument(
        "--max-edges",
        type=natural,
        default=_MAX_EDGES,
        help="with --save: give up on an automaton with more transitions (default: %(default)s)",
    )
    parser.add_argument(
        "--save",
        type=Path,
        metavar="FILE",
        help="write the whole automaton, minimal, of --method (default: canonical): as .npz or "
        ".json for TokenAutomaton.load, or a picture of it as .svg, .png, .pdf, .dot, .html, .txt",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if arguments.save:
        check_target(arguments.save, _AUTOMATON_SUFFIXES)  # before anything that takes time
    tokenizer = load_tokenizer(arguments.tokenizer)
    budget = Budget(max_states=arguments.max_states, max_seconds=arguments.max_seconds)
    compile_regex("(ab|c)*", budget)  # kernels from disk or compiler are no part of the figures
    begin = time.perf_counter()
    dfa = automaton_of(arguments, budget)
    taken = time.perf_counter() - begin
    methods = [arguments.method] if arguments.method else list(_METHODS)
    if "canonical" in methods:
        canonical_automaton(tokenizer)  # per tokenizer, not per regex: see `inspect`
    report = {
        **named(arguments),
        "dfa_states": dfa.n_states,
        "byte_classes": dfa.n_classes,
        "dfa_seconds": seconds(taken),
        "methods": {method: _first_mask(tokenizer, dfa, method, budget) for method in methods},
    }
    if arguments.save:
        chosen = constrain(tokenizer, dfa, arguments.method or "canonical", budget=budget)
        report["saved"] = _saved(chosen, arguments.save, arguments.max_edges)
    show(report if arguments.json else _for_people(report), arguments.json)
    return 0


def _first_mask(
    tokenizer: Tokenizer, dfa: ByteDFA, method: Method, budget: Budget
) -> dict[str, Any]:
    constrain(tokenizer, compile_regex("(ab|c)*"), method).matcher().allowed_ids()  # kernels
    begin = time.perf_counter()
    constraint = constrain(tokenizer, dfa, method, budget=budget)
    matcher = constraint.matcher()
    ids = matcher.allowed_ids()
    taken = time.perf_counter() - begin
    return {
        "first_mask_ids": len(ids),
        "first_mask_seconds": seconds(taken),
        "accepts_empty": matcher.is_accepting,
        "removed_by_normalizer": str(removed) if (removed := _removed(constraint)) else None,
    }


def _saved(constraint: Constraint, path: Path, max_edges: int) -> dict[str, Any]:
    try:
        automaton = constraint.automaton(max_edges=max_edges).minimised()
    except BudgetExceededError as error:
        if error.resource != "edges":
            raise
        advice = "a narrower regex makes it smaller, --max-edges allows more"
        raise BudgetExceededError(error.resource, error.limit, advice) from None
    if path.suffix in _AUTOMATON_SUFFIXES:
        automaton.save(path)
    else:
        automaton.picture().save(path)
    sizes = {"states": automaton.n_states, "transitions": automaton.n_transitions}
    return {"path": str(path), "method": constraint.method, **sizes}


def _removed(constraint: Constraint) -> Removed | str | None:
    try:
        return constraint.removed
    except BudgetExceededError as error:
        return str(error)


def _for_people(report: dict[str, Any]) -> dict[str, Any]:
    masks = {
        f"{method}": f"{counted(found['first_mask_ids'], 'id')} in the first mask, "
        f"{found['first_mask_seconds'] * 1000:.2f} ms"
        + (f"; without {found['removed_by_normalizer']}" if found["removed_by_normalizer"] else "")
        for method, found in report["methods"].items()
    }
    saved = report.get("saved")
    if saved:
        masks["saved"] = (
            f"{saved['path']}: {saved['method']}, {counted(saved['states'], 'state')}, "
            f"{counted(saved['transitions'], 'transition')}"
        )
    return {
        **{key: report[key] for key in ("regex", "schema") if key in report},
        "byte DFA": f"{counted(report['dfa_states'], 'state')} x "
        f"{counted(report['byte_classes'], 'class', 'classes')} of bytes, "
        f"{report['dfa_seconds'] * 1000:.2f} ms",
        **masks,
    }
