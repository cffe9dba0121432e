"""The process of the growth experiment: `python -m experiments.article.growth_server FILE`.

FILE: a tokenizer.json, BPE alone. {"prepare": METHOD} is to be asked before the cells of a method;
see `growth_cell` for those.
"""

from __future__ import annotations

import sys

from bpe_automata import Tokenizer
from experiments.article.growth_cell import measured
from experiments.article.growth_methods import Bench
from experiments.article.server import serve, settle
from experiments.run.executors import Row
from experiments.shared.resources import timed


def main(file: str) -> None:
    """Answer until the input ends."""
    bench = Bench(Tokenizer.load(file))

    def answer(question: Row) -> Row:
        if "prepare" not in question:
            return measured(bench, question)
        seconds, _ = timed(lambda: bench.prepare(question["prepare"]))
        settle()
        return {"seconds": seconds}

    serve(answer)


if __name__ == "__main__":
    main(sys.argv[1])
