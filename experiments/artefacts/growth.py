"""How the automata grow with the regex: DirectMerge against CartesianMerge.

The published algorithms in plain Python (the reference) and the package construct the same
automata, for BPE alone with the merge table of Mistral-7B. Their states, transitions and seconds
are measured. A construction has a limit of time and of memory; if it exceeds one, that is the
result, and this method skips the larger sizes of the family. Constructions that finish are
compared, as languages and by their first masks.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pandas as pd

from bpe_automata import ByteDFA, TokenAutomaton, compile_regex
from bpe_automata._kernels.bits import members
from bpe_automata.canonical.canonical import canonical_automaton
from bpe_automata.constructions.cartesian_merge import CartesianMerge
from bpe_automata.constructions.explicit import explore
from bpe_automata.reference import CartesianProduct, direct_merge, explicit, product_mask
from experiments.lab import Row, failed
from experiments.mistral import NAME, Reference, mistral_table
from experiments.resources import limited, timed
from experiments.show import CANONICAL, PALE, Figure, Table, panels, whole

TITLE, TIMED, LONG = f"Growth: {NAME}", True, True
DIRECT, CARTESIAN = "DirectMerge (reference)", "CartesianMerge (reference)"
LAZY, EXPLICIT = "package, first mask", "package, written out"
COLORS = {DIRECT: "#6a4c93", CARTESIAN: "#edae49", EXPLICIT: "#7fc4cc", LAZY: CANONICAL}
DONE, SKIPPED = "done", "skipped"
WARM = ("[a-c]{3}", "(ab)*(true|false)*")
"""Regexes that need every kernel."""


def nested(n: int) -> str:
    """Boolean expressions whose operators nest n - 1 deep: alternations within alternations."""
    if n == 1:
        return "(true|false)"
    inner = nested(n - 1)
    return rf"(not {inner}|\({inner} (and|or) {inner}\))"


def fields(n: int) -> str:
    """A JSON object of n fields."""
    value = r'(true|false|null|-?(0|[1-9][0-9]*)|"(low|medium|high)")'
    return r"\{" + ", ".join(rf'"field{i}": {value}' for i in range(1, n + 1)) + r"\}"


FAMILIES: dict[str, tuple[Callable[[int], str], tuple[int, ...]]] = {
    ".{n}": (".{{{}}}".format, (1, 2, 3, 4, 5, 6)),
    "[a-z]{n}": ("[a-z]{{{}}}".format, (1, 2, 3, 4, 5, 6, 7)),
    "alternations nested n deep": (nested, (1, 2, 3, 4, 5)),
    "JSON object of n fields": (fields, (1, 2, 4, 8, 16)),
}


@dataclass(frozen=True)
class Config:
    """families: names; largest: size of each, None for their own; merges: how many of the first are
    used; limit: seconds; mb: 10^6 bytes; most_kept: transitions of an automaton to be compared."""

    families: tuple[str, ...] = tuple(FAMILIES)
    largest: int | None = None
    merges: int | None = None
    limit: float = 45
    mb: float = 4000
    most_kept: int = 12_000_000


SMOKE = Config(("[a-z]{n}", "alternations nested n deep"), largest=2, merges=300, limit=20)


Built = tuple[Sequence[int], Callable[[], TokenAutomaton] | None, list[int]]
"""The first mask; the automaton, None where none is written out; its states and transitions."""

# The clock runs while a method constructs; the function that it returns describes the result later.


def direct(bench: Reference, dfa: ByteDFA) -> Callable[[], Built]:
    """DirectMerge on base symbols, as published."""
    merged = direct_merge(bench.symbols(dfa), bench.merges)
    size = [len(merged.states()), sum(map(len, merged.out.values()))]
    return lambda: ([*merged.out[merged.start]], lambda: explicit(merged), size)


def cartesian(bench: Reference, dfa: ByteDFA) -> Callable[[], Built]:
    """CartesianMerge as published: the lift, and the relevant states of the product."""
    product = CartesianProduct(bench.lifted(dfa), bench.texts)
    relevant = product.relevant

    def built() -> Built:
        size = [len(relevant), sum(len(product_mask(product, pair)) for pair in relevant)]
        first = product_mask(product, product.start)
        return [*first], lambda: explicit(product.automaton()), size

    return built


def lazy(bench: Reference, dfa: ByteDFA) -> Callable[[], Built]:
    """CartesianMerge of the package, to its first mask; no automaton is written out."""
    engine = CartesianMerge(bench.tokenizer, dfa)
    mask = engine.mask(engine.initial())
    return lambda: (members(mask).tolist(), None, [])


def written_out(bench: Reference, dfa: ByteDFA) -> Callable[[], Built]:
    """CartesianMerge of the package, the whole automaton; its states hold the last id."""
    engine = CartesianMerge(bench.tokenizer, dfa)
    made = explore(engine, engine.initial(), 2**62)
    size = [made.n_states, made.n_transitions]
    return lambda: (made.row(made.start)[0].tolist(), lambda: made, size)


METHODS = {DIRECT: direct, CARTESIAN: cartesian, LAZY: lazy, EXPLICIT: written_out}


def cells(config: Config) -> list[Row]:
    """One cell for what is made once for all regexes, then one for each family."""
    return [{"family": family} for family in ("preparation", *config.families)]


@lru_cache(maxsize=1)
def prepared(merges: int | None) -> tuple[Reference, dict[str, float]]:
    """What regexes share, and the seconds that it took by method; kernels are loaded too."""
    bench = Reference(mistral_table(merges))
    compiled = [compile_regex(regex) for regex in WARM]
    seconds = {LAZY: timed(lambda: canonical_automaton(bench.tokenizer))[0]}
    for dfa in compiled:
        written_out(bench, dfa)()[1]().minimised()  # type: ignore[misc]
    seconds[CARTESIAN] = timed(lambda: (bench.texts, bench.spelled))[0]
    return bench, seconds


def measure(config: Config, family: str) -> list[Row]:
    """A row for each size and method."""
    bench, seconds = prepared(config.merges)
    if family == "preparation":
        return [{"method": method, "construction": spent} for method, spent in seconds.items()]
    regex_of, sizes = FAMILIES[family]
    rows, over = list[Row](), set[str]()
    for n in (n for n in sizes if config.largest is None or n <= config.largest):
        made: dict[str, tuple[Row, TokenAutomaton | None]] = {}
        for method in METHODS:
            row: Row = {"n": n, "method": method, "regex": regex_of(n), "status": SKIPPED}
            rows.append(row)
            if method in over:
                continue
            row |= constructed(bench, config, method, row["regex"], made)
            if row["status"] != DONE:
                over.add(method)
    return rows


def constructed(
    bench: Reference,
    config: Config,
    method: str,
    regex: str,
    others: dict[str, tuple[Row, TokenAutomaton | None]],
) -> Row:
    """The row of one construction, compared with `others` of its size, to which it is added."""
    dfa = compile_regex(regex)
    try:
        with limited(config.limit, config.mb):
            seconds, built = timed(lambda: METHODS[method](bench, dfa))
    except (TimeoutError, MemoryError) as error:
        return {"status": str(error)}
    except Exception as error:  # other methods may make what one cannot
        return {"status": "failed"} | failed(error)
    first, automaton, size = built()
    row: Row = {"status": DONE, "construction": seconds, "size": size}
    row |= {"first ids": len(first), "first crc32": zlib.crc32(repr(sorted(first)).encode())}
    mine = automaton() if automaton and size[1] <= config.most_kept else None
    row |= {"equal to": [], "disagrees": []}
    for name, (other, theirs) in others.items():
        if other["first crc32"] != row["first crc32"]:
            row["disagrees"].append(f"{name}: another first mask")
        elif mine is not None and theirs is not None:
            differing = mine.equivalent(theirs)
            row["equal to"] += [name] * (differing is None)
            row["disagrees"] += [f"{name}: {list(differing.ids)}"] if differing else []
    if mine is not None and not any(theirs for _, theirs in others.values()):
        least = mine.minimised()
        row["minimal"] = [least.n_states, least.n_transitions]
    others[method] = (row, mine)
    return row


# What the rows say.


def pair(values: Any) -> str | None:
    """States and transitions."""
    return " / ".join(map(whole, values)) if isinstance(values, list) and values else None


def grown(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of constructions, with the name of the regex."""
    found = rows[rows["family"] != "preparation"]
    return found.assign(name=found["family"] + found["n"].map(", n = {:.0f}".format))


def tables(rows: pd.DataFrame) -> list[Table]:
    """A table of sizes, and one of seconds."""
    found, at = grown(rows), {"index": "name", "columns": "method"}
    found["spent"] = [seconds(row) for _, row in found.iterrows()]
    names, written = found["name"].unique(), [method for method in METHODS if method != LAZY]
    sizes = found.pivot(**at, values="size").reindex(names)[written].map(pair)
    sizes["minimal"] = found.dropna(subset=["minimal"]).set_index("name")["minimal"].map(pair)
    sizes["equal"] = found.explode("equal to").groupby("name")["equal to"].nunique() + 1
    sizes["equal"] = sizes["equal"].where(sizes["equal"] > 1)
    spent = found.pivot(**at, values="spent").reindex(names)[[*METHODS]]
    prepared_ = rows[rows["family"] == "preparation"]
    each = zip(prepared_["method"], prepared_["construction"], strict=True)
    shared = ", ".join(f"{method} {spent:.1f} s" for method, spent in each)
    return [
        Table(
            "States / transitions",
            sizes.reset_index(),
            {},
            """CartesianMerge (reference): the relevant pairs of the product, which it never writes
            out. The package's states also hold the last id

            minimal: the least automaton of the language, where one was written out; equal: how many
            automata were compared, as languages (fewer where one is too large to be kept)""",
        ),
        Table(
            "Seconds",
            spent.reset_index(),
            {},
            f"""from a byte DFA on; made once for all regexes, not counted: {shared}

            published, as a plot without numbers: n = 1 .. 6 of `.` repeated, for both algorithms,
            in the article's companion notebook (CartesianMerge there over 27 characters,
            DirectMerge over 100)""",
        ),
    ]


def seconds(row: pd.Series) -> str:
    """The seconds of a construction, or why there are none."""
    if row["status"] != DONE:
        return "..." if row["status"] == SKIPPED else str(row["status"])
    return f"{row['construction']:.2g}" if row["construction"] < 10 else whole(row["construction"])


def figure(rows: pd.DataFrame) -> Figure:
    """A panel per family; seconds, on log scales."""
    found = grown(rows)
    families = [*found.groupby("family", sort=False)]
    width = max(3.1 * len(families), 6.2)
    canvas, axes = panels(1, len(families), (width, 3.8), sharey="row")
    limit = 1.5 * found["construction"].max()
    for panel, (family, group) in zip(axes[0], families, strict=True):
        sizes = sorted(group["n"].unique())
        for k, (method, color) in enumerate(COLORS.items()):
            of = group[group["method"] == method]
            done, stopped = of[of["status"] == DONE], of[of["status"].str.startswith("over")]
            marks = {"color": color, "marker": "s^oo"[k], "markersize": 8 - k, "zorder": 2 + k}
            panel.plot(done["n"], done["construction"], label=method, **marks)
            cross = {"color": color, "s": 120 - 20 * k, "marker": "x", "zorder": 9}
            panel.scatter(stopped["n"], [limit] * len(stopped), **cross)
        panel.set_yscale("log")
        if sizes[-1] > 2 * len(sizes):
            panel.set_xscale("log", base=2)
        panel.set_xticks(sizes, [f"{n:.0f}" for n in sizes])
        panel.minorticks_off()
        panel.grid(axis="y", color=PALE, alpha=0.4)
        panel.set_title(str(family), loc="left", fontsize=11)
        panel.set_xlabel("n")
    axes[0, 0].set_ylabel("seconds (log scale)")
    axes[0, -1].legend(loc="upper left", frameon=False, fontsize=9)
    at_end = found[(found["method"] == DIRECT) & found["status"].str.startswith("over")]
    stops = [f"at n = {row['n']:.0f} for {row['family']}" for _, row in at_end.iterrows()]
    slowest = found[(found["method"] == LAZY)]["construction"].max()
    headline = (
        f"DirectMerge stops being practical: it is over a limit {' and '.join(stops)};\n"
        f"the package makes the first mask of each regex in at most {slowest:.2g} s"
    )
    note = f"""{NAME}. x: over a limit. The reference is the published algorithms in plain Python.
Each construction was timed once."""
    return Figure(canvas, headline, " ".join(note.split()))


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """How many automata were compared, and how large the largest are."""
    found = grown(rows)
    done = found[found["status"] == DONE]
    wrong = sum(map(len, done["disagrees"]))
    compared = sum(map(len, done["equal to"])) + wrong
    least = done.dropna(subset=["minimal"])
    large = least[least["family"].isin(("[a-z]{n}", ".{n}"))].groupby("family").last()[::-1]
    sizes = [
        f"`{row['regex']}` has {row['minimal'][1] / 1e6:.1f} million transitions"
        for _, row in large.iterrows()
    ]
    return {
        "growth": f"""All methods that end are compared, by their first masks and, where they write
        an automaton down, as languages: {compared} pairs of automata for {found["regex"].nunique()}
        regexes, {f"{wrong} of them differ" if wrong else "all are equal"}. What makes DirectMerge
        and explicit products impractical is not their steps but their result: the minimal automaton
        of {", that of ".join(sizes)}. The lazy product never writes it down."""
    }
