"""One measurement in a process of its own:
`python -m experiments.serving.speed_child PART FILE EOS...`.

Prints one JSON object. Imports as little as can be, so that time and memory are the library's.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from experiments.shared.resources import resident

WALKED = (r"(true|false)", r"[ -~]{0,500}", r"[a-z0-9.]+@[a-z0-9-]+\.[a-z]{2,}")


def start(file: str, eos_ids: tuple[int, ...]) -> dict[str, Any]:
    """Seconds from nothing to the first mask of `(true|false)`, by part."""
    clock = [time.perf_counter()]
    from bpe_automata import Tokenizer, constrain
    from bpe_automata._core.canonical import canonical_automaton

    clock.append(time.perf_counter())
    tokenizer = Tokenizer.load(file)
    clock.append(time.perf_counter())
    canonical_automaton(tokenizer)
    clock.append(time.perf_counter())
    constrain(tokenizer, r"(true|false)", eos_ids=eos_ids).matcher().allowed_ids()
    clock.append(time.perf_counter())
    names = ("import", "load tokenizer.json", "canonical automaton", "first mask")
    parts = {name: clock[i + 1] - clock[i] for i, name in enumerate(names)}
    return {"parts": parts, "ready_at": time.time()}


def memory(file: str, eos_ids: tuple[int, ...]) -> dict[str, Any]:
    """Resident megabytes (10^6 bytes) after each stage, and the peak."""
    stages = {"python": resident("VmRSS")}
    from bpe_automata import Tokenizer, constrain
    from bpe_automata._core.canonical import canonical_automaton

    stages["import"] = resident("VmRSS")
    tokenizer = Tokenizer.load(file)
    stages["load tokenizer.json"] = resident("VmRSS")
    canonical_automaton(tokenizer)
    stages["canonical automaton"] = resident("VmRSS")
    matchers = [constrain(tokenizer, regex, eos_ids=eos_ids).matcher() for regex in WALKED]
    for matcher in matchers:
        walk(matcher, 40)
    stages["three regexes, walked"] = resident("VmRSS")
    return {"stages": stages, "peak": resident("VmHWM"), "torch": "torch" in sys.modules}


def walk(matcher: Any, steps: int) -> None:
    """Random ids until the end."""
    rng = random.Random(0)
    for _ in range(steps):
        if matcher.is_finished:
            return
        matcher.advance(rng.choice(matcher.allowed_ids().tolist()))


def classes(file: str, eos_ids: tuple[int, ...]) -> dict[str, Any]:
    """Seconds to compile the pipeline: asking the engine for its character classes, and from the
    disk. A first time loads the kernels."""
    from bpe_automata import Tokenizer
    from bpe_automata._tokenizer import alphabet
    from bpe_automata._tokenizer.pipeline import compile_pipeline

    tokenizer = Tokenizer.load(file)
    compile_pipeline(tokenizer.description, tokenizer.backend.engine)

    def again() -> float:
        alphabet.class_cache.clear()
        started = time.perf_counter()
        compile_pipeline(tokenizer.description, tokenizer.backend.engine)
        return time.perf_counter() - started

    with tempfile.TemporaryDirectory() as empty:
        os.environ["BPE_AUTOMATA_CACHE"] = empty
        return {"asked": again(), "disk": min(again() for _ in range(3))}


PARTS: dict[str, Callable[[str, tuple[int, ...]], dict[str, Any]]] = {
    "start": start,
    "memory": memory,
    "classes": classes,
}


if __name__ == "__main__":
    part, file, *ids = sys.argv[1:]
    print(json.dumps(PARTS[part](file, tuple(map(int, ids)))))
