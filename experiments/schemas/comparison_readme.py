"""What the README says of the comparison on schemas: how it was made, and a line per engine."""

from __future__ import annotations

from experiments.run.executors import Row
from experiments.run.readme import wrapped
from experiments.run.tables import markdown
from experiments.schemas.comparison_report import duration


def readme(facts: Row) -> str:
    """Of the first tokenizer; the tables have the others."""
    engines = facts["engines"]
    first = engines[0]["tokenizer"] if engines else "none"
    own = [engine for engine in engines if engine["tokenizer"] == first]
    columns = (
        f"engine, tokenizer {first}", "cases", "compiled", "invalid accepted", "valid rejected",
        "compile p50, p99, max",
    )  # fmt: skip
    table = markdown(columns, [_line(engine) for engine in own])
    return f"{wrapped(_circumstances(facts, own))}\n\n{table}"


def _circumstances(facts: Row, own: list[Row]) -> str:
    cases, instances = f"{facts['cases']:,}", f"{facts['instances']:,}"
    parts = [
        f"`python -m experiments schemas` ({facts['minutes']} minutes): the {cases} schemas of "
        f"MaskBench with {instances} instances, each engine in a process of its own, `jsonschema` "
        "as the judge. An instance is written by `json.dumps` without white space."
    ]
    short = [engine["engine"] for engine in own if engine["cases"] < facts["cases"]]
    if short:
        each = " each" if len(short) > 1 else ""
        parts.append(
            f"{' and '.join(short)} had {facts['peer_seconds']:g} s{each} and did the first cases "
            "of one random order."
        )
    parts.append("[The tables](paper_figures/schemas.md) have the rest.")
    return " ".join(parts)


def _line(engine: Row) -> list[str]:
    share = engine["compiled"] / engine["cases"] if engine["cases"] else 0
    reasons = ", ".join(f"{why} {n}" for why, n in engine["reasons"].items())
    rejected = f"{engine['valid_rejected']:,} of {engine['valid']:,}"
    return [
        f"{engine['engine']} {engine['version']}".strip(),
        f"{engine['cases']:,}",
        f"{share:.1%}",
        f"{engine['invalid_accepted']:,} of {engine['invalid']:,}",
        f"{rejected}: {reasons}" if reasons else rejected,
        ", ".join(map(duration, engine["compile_seconds"].values())),
    ]
