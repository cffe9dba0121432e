"""Where cold masks spend time: `python -m experiments.serving.kernel_times TOKENIZER METHOD`.

Each regex of `masks_constraints.jsonl` is compiled anew in one process, and its masks are asked for
along its texts; all of them have been compiled and asked once before, so what is known of the
tokenizer alone is known. Printed are the median mask and the longest ones: microseconds in all, how
many of them in Python, and in each kernel.
"""

from __future__ import annotations

import gc
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, cast, get_args
from unittest.mock import patch

import numpy as np

from bpe_automata import Tokenizer, constrain
from bpe_automata._constructions import product_tables
from bpe_automata._decoding.constraint import Method
from bpe_automata._kernels import watch
from experiments.serving.masks_child import CONSTRAINTS

LONGEST = 2
"""How many of the longest masks of a constraint are shown."""


class Mask(NamedTuple):
    """us: in all; kernels: us in each that was called."""

    us: float
    kernels: Counter[str]

    def __str__(self) -> str:
        python = self.us - self.kernels.total()
        parts = [f"{name} {us:,.0f}" for name, us in self.kernels.most_common()]
        return f"{self.us:8,.0f} = " + ", ".join([f"Python {python:,.0f}", *parts])


@contextmanager
def timed() -> Iterator[Counter[str]]:
    """Microseconds in each kernel, as long as it lasts."""
    spent, plain = Counter[str](), watch.called

    def called(armed: np.ndarray, kernel: Callable[..., Any], *arguments: Any) -> Any:
        begin = time.perf_counter_ns()
        try:
            return plain(armed, kernel, *arguments)
        finally:
            spent[kernel.__name__] += (time.perf_counter_ns() - begin) / 1e3  # type: ignore[assignment]

    with patch.object(watch, "called", called), patch.object(product_tables, "called", called):
        yield spent


def masks(tokenizer: Tokenizer, name: str, method: Method) -> list[Mask]:
    """The masks of a new constraint along its texts, each at a new prefix."""
    case = CONSTRAINTS[name]
    constraint, found = constrain(tokenizer, case.source["regex"], method), list[Mask]()
    out = np.zeros((1, (tokenizer.n_ids + 31) // 32), dtype=np.int32)
    with timed() as spent:
        for text in case.texts:
            matcher = constraint.matcher()
            for token in [*tokenizer.encode(text), None]:
                spent.clear()
                begin = time.perf_counter_ns()
                matcher.mask(out)
                found.append(Mask((time.perf_counter_ns() - begin) / 1e3, spent.copy()))
                if token is not None:
                    matcher.advance(token)
    return found


def main(source: str, method: str = "canonical") -> None:
    """Print it for all constraints."""
    if method not in get_args(Method):
        raise SystemExit(f"METHOD is one of {', '.join(get_args(Method))}, not {method!r}")
    tokenizer, chosen = Tokenizer.load(source), cast(Method, method)
    regexes = [name for name, case in CONSTRAINTS.items() if "regex" in case.source]
    for name in regexes:
        masks(tokenizer, name, chosen)
    gc.disable()  # what it takes is no part of one mask
    for name in regexes:
        found = sorted(masks(tokenizer, name, chosen), key=lambda mask: mask.us)
        print(f"{name}, {len(found)} masks\n  median  {found[len(found) // 2]}")
        for mask in reversed(found[-LONGEST:]):
            print(f"  longest {mask}")


if __name__ == "__main__":
    main(*sys.argv[1:])
