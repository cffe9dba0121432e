"""`bpe-automata inspect TOKENIZER`."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from bpe_automata.cli.common import (
    Commands,
    add_command,
    add_tokenizer,
    load_tokenizer,
    seconds,
    show,
)
from bpe_automata.constructions import CanonicalAutomaton, canonical_automaton
from bpe_automata.decoding.visible import visible
from bpe_automata.tokenizer import SplitRule, Tokenizer

_EXAMPLES = 5
_ADDED_SHOWN = 20


def register(commands: Commands) -> None:
    """Add the command."""
    summary = "say what a tokenizer is made of, and what its canonical automaton looks like"
    parser = add_command(commands, "inspect", summary, run)
    add_tokenizer(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    begin = time.perf_counter()
    tokenizer = load_tokenizer(arguments.tokenizer)
    loaded = time.perf_counter()
    automaton = canonical_automaton(tokenizer)
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
    """The same without lists of lists and long floats."""
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
