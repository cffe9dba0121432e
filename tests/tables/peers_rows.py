"""Rows of the table of peers, as an engine without fault gives them."""

from __future__ import annotations

FIRST = {"ready": 1.0, "engine_mb": 2.0, "process_mb": 3.0}


def exam_row(**other):
    row = {"compile": [0.002], "first": [0.001], "cold": [1e-5, 3e-5], "warm": [2e-6]}
    row |= {"inside": 2, "blocked": [], "outside": 4, "completed": [], "offered": 7, "admitted": 0}
    row |= {"places": 3, "missing": 0, "impossible": 0, "other": 0, "unreached": 0, "peak_mb": 1.0}
    return row | other


def rows_of(engine, tokenizer="smollm2", **other):
    whose = {"engine": engine, "tokenizer": tokenizer}
    start = whose | {"key": f"{engine} {tokenizer}", **FIRST}
    return [
        start,
        whose | {"key": f"{engine} {tokenizer} a", "constraint": "a"} | exam_row(**other),
    ]


def exam_of(engine, constraint, **other):
    whose = {"engine": engine, "tokenizer": "smollm2", "constraint": constraint}
    return whose | {"key": f"{engine} smollm2 {constraint}"} | exam_row(**other)
