"""`bpe-automata segments TOKENIZER`: make the library of common segments, once."""

from __future__ import annotations

import argparse
import string
import time
from typing import Any

from bpe_automata.cli.common import Commands, add_command, add_tokenizer, load_tokenizer, show
from bpe_automata.constructions import SegmentCache, canonical_automaton
from bpe_automata.constructions.segments_joints import neighbours
from bpe_automata.decoding.segment_library import precompute
from bpe_automata.storage import cache_folder, cache_is_off

_SHOWN = "\n " + '"' + ":,{}[]_-." + string.digits[:1] + "aA"


def register(commands: Commands) -> None:
    """Add the command."""
    summary = "make the common segments of JSON and YAML for a tokenizer, and keep them on disk"
    parser = add_command(commands, "segments", summary, run)
    add_tokenizer(parser)
    parser.add_argument(
        "--table",
        action="store_true",
        help="make nothing, but say which characters merge with which, on either side",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    tokenizer = load_tokenizer(arguments.tokenizer)
    if arguments.table:
        canonical = canonical_automaton(tokenizer)
        report: dict[str, Any] = {}
        for character in _SHOWN:
            found = neighbours(canonical, character)
            sides = {"left": found.left, "right": found.right, "alone": found.alone}
            report[repr(character)] = sides
        show(report if arguments.json else _for_people(report), arguments.json)
        return 0
    begin, cache = time.perf_counter(), SegmentCache(on_disk=True, max_bytes=1_000_000_000)
    nodes = precompute(tokenizer, cache)
    segments, written = cache.n_segments, cache.save()
    report = {
        "languages": len(nodes),
        "nodes": sum(nodes.values()),
        "segments": segments,
        "rows_made": cache.counts.made,
        "segments_written": written,
        "megabytes": round(cache.n_bytes / 1e6, 1),
        "seconds": round(time.perf_counter() - begin, 2),
        "folder": None if cache_is_off() else str(cache_folder("segments")),
    }
    show(report, arguments.json)
    return 0


def _for_people(report: dict[str, Any]) -> dict[str, str]:
    return {
        character: "merges with nothing"
        if found["alone"]
        else f"after {found['left']!r}; before {found['right']!r}"
        for character, found in report.items()
    }
