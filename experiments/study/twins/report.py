"""What is said of the twins: tables, figure, facts and the sentences of the report.

A number of a twin is a mean over items: passages, prompts, contexts. All twins are asked about the
same items, so each twin of dropout is compared with the plain one of its seed, item by item. For
intervals of 95 % seeds and items are drawn again, each by themselves (pigeonhole bootstrap).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from experiments.run.executors import Row
from experiments.run.report import Figure, panels
from experiments.run.tables import Column, Table, frame, interval, records, table
from experiments.shared.shown import CANONICAL, LIFT, Estimate, estimate
from experiments.show import fixed, is_missing, whole
from experiments.statistics import weighted_mean

TITLE = "Twins with and without BPE-dropout: does a model suffer from what it never saw?"
PLAIN, DROPOUT = ARMS = ("plain", "dropout")
DRAWN = "drawn ids"
"""The arm of texts that no model wrote."""
TOLERANCE = 0.01
"""Contexts of which a distance may be farther from exact, under any twin, are left out."""


@dataclass(frozen=True)
class Measure:
    """name: of its line; question: whose rows it is of; of: one entry of such a row -> (item,
    value); format: how values are shown."""

    name: str
    question: str
    of: Callable[[int, Any], tuple[Any, float]]
    format: Callable[[float], str]


def _answer(field: str) -> Callable[[int, Any], tuple[Any, float]]:
    return lambda k, found: (k, found[field])


NEAR, FAR, LIFTED, MASKED = "near", "far", "lift", "canonical"
"""Names of measures that the headline and the sentences are about."""
OFF, JOINTS, OWN, ANY = "texts", "joints", "own ids", "drawn ids"
MEASURES = {
    OWN: Measure(
        "loss, the tokenizer's ids: nats per byte",
        "losses",
        lambda k, found: (k, found[2] / found[1]),
        fixed(3),
    ),
    ANY: Measure(
        "loss, drawn ids: nats per byte",
        "losses",
        lambda k, found: (k, found[3] / found[1]),
        fixed(3),
    ),
    OFF: Measure(
        "texts that are not canonical, %",
        "texts",
        lambda _, found: (found[0], 100.0 * found[3]),
        fixed(1),
    ),
    JOINTS: Measure(
        "joints at fault, per 1,000",
        "texts",
        lambda _, found: (found[0], 1000 * found[2] / max(1, found[1])),
        fixed(1),
    ),
    NEAR: Measure(
        "extra loss after a cut token, ids 1 to 16: nats per id",
        "cuts",
        lambda k, found: (k, found[1]),
        fixed(4),
    ),
    FAR: Measure("the same, ids 17 to 48", "cuts", lambda k, found: (k, found[2]), fixed(4)),
    LIFTED: Measure("TV of the lift", "answers", _answer("lift"), fixed(3)),
    MASKED: Measure("TV of canonical", "answers", _answer("canonical"), fixed(3)),
    "advantage": Measure(
        "the lift is farther off than canonical by",
        "answers",
        lambda k, found: (k, found["lift"] - found["canonical"]),
        fixed(3),
    ),
    "rest": Measure("TV of canonical with weights", "answers", _answer("rest"), fixed(3)),
    "outside": Measure(
        "mass of the answers that is not canonical, %",
        "answers",
        lambda k, found: (k, 100 * found["outside"]),
        fixed(2),
    ),
}


# ---------------------------------------------------------------- estimates


def entries(rows: pd.DataFrame, question: str) -> Iterator[tuple[str, int, Any]]:
    """(arm, seed, what was found) of each twin that was asked, in the order of the keys."""
    for row in sorted(records(rows), key=lambda row: str(row["key"])):
        if not is_missing(row.get(question)):
            yield row["arm"], int(row["seed"]), row[question]


def values(rows: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """A line for each twin and item: arm, seed, item, value, which is the mean of what was found of
    it. Of contexts those are left out that are not exact under some twin."""
    asked = list(entries(rows, measure.question))
    inexact = {
        k
        for _, _, found in asked
        for k, one in enumerate(found)
        if measure.question == "answers" and one["slack"] > TOLERANCE
    }
    lines = [
        (arm, seed, *measure.of(k, one))
        for arm, seed, found in asked
        for k, one in enumerate(found)
        if k not in inexact
    ]
    every = pd.DataFrame(lines, columns=["arm", "seed", "item", "value"])
    return every.groupby(["arm", "seed", "item"], as_index=False)["value"].mean()


def paired(each: pd.DataFrame) -> pd.DataFrame:
    """A line for each seed and item of both arms: plain, dropout, and the difference dropout -
    plain."""
    own = [
        each.loc[each["arm"] == arm, ["seed", "item", "value"]].rename(columns={"value": arm})
        for arm in ARMS
    ]
    both = own[0].merge(own[1], on=["seed", "item"])
    return both.assign(difference=both[DROPOUT] - both[PLAIN])


def mean_of(both: pd.DataFrame, field: str) -> Estimate | None:
    """The mean over seeds and items, with the interval of drawing both again; None of nothing."""
    return estimate(weighted_mean, field, "seed", "item")(both)


def compared(rows: pd.DataFrame) -> dict[str, Row]:
    """By measure: items; plain, dropout, difference, each as [value, low, high]; seeds: of each arm
    the means, by seed. Only of what both arms were asked."""
    found: dict[str, Row] = {}
    for name, measure in MEASURES.items():
        both = paired(values(rows, measure))
        estimates = {field: mean_of(both, field) for field in (*ARMS, "difference")}
        if len(both):
            means = {arm: both.groupby("seed")[arm].mean().tolist() for arm in ARMS}
            found[name] = {"items": both["item"].nunique(), "seeds": means, **estimates}
    return found


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """measures: see `compared`; first: by arm, the extra loss of the first id after a cut token,
    nats; several: how many answers there are in all contexts, and how many of them are more than
    one id of the tokenizer; drawn: of ids that BPE-dropout draws, the share of texts that are not
    canonical in % and of joints at fault per 1,000; trainings: of each twin."""
    drawn = {}
    for name in (OFF, JOINTS):
        each = values(rows, MEASURES[name])
        own = each.loc[each["arm"] == DRAWN, "value"]
        if len(own):
            drawn[name] = float(own.mean())
    trainings = [
        {"arm": arm, "seed": seed, **found} for arm, seed, found in entries(rows, "training")
    ]
    curves = list(entries(rows, "mean"))
    first = {arm: [mean[0] for one, _, mean in curves if one == arm] for arm in ARMS}
    asked: list[Row] = next((found for _, _, found in entries(rows, "answers")), [])
    return {
        "measures": compared(rows),
        "several": {name: sum(one[name] for one in asked) for name in ("several", "answers")},
        "first": {arm: float(np.mean(each)) for arm, each in first.items() if each},
        "drawn": drawn,
        "trainings": trainings,
    }


def complete(rows: pd.DataFrame, manifest: Row) -> bool:
    """Was each twin asked everything? The report speaks of all seeds."""
    twins = {(arm, seed) for seed in range(manifest["config"]["seeds"]) for arm in ARMS}
    questions = {"training", *(measure.question for measure in MEASURES.values())}
    return all(twins <= {(a, s) for a, s, _ in entries(rows, q)} for q in questions)


# ---------------------------------------------------------------- what the numbers say


def verdict(found: Row) -> str:
    """Of a loss or a distance of `compared`: what it does where other ids were seen in training, as
    far as the intervals tell."""
    (plain, low, _), (difference, least, most) = found[PLAIN], found["difference"]
    if low <= 0:
        return "is not clear of 0 in the plain twins: nothing is to be explained"
    if most < 0:
        return f"falls by {min(1.0, -difference / plain):.0%}"
    if least > 0:
        return f"grows by {difference / plain:.0%}"
    return "does not clearly change"


SUFFERED = {NEAR: "the extra loss after a cut token", LIFTED: "the distance of the lift"}
"""What a model may suffer from, by measure."""


def headline(facts: Row) -> str:
    """What follows from the rows, a line for each of `SUFFERED`."""
    said = []
    for name, what in SUFFERED.items():
        if found := facts["measures"].get(name):
            ends = " : ".join(f"{found[arm][0]:.3f}" for arm in ARMS)
            said.append(f"With BPE-dropout {what} {verdict(found)} ({ends})")
    return "\n".join(said)


def readme(facts: Row) -> str:
    """What the report says of it."""
    found = facts.get("measures", {})
    if not {NEAR, FAR, LIFTED, MASKED, OFF, JOINTS, OWN, ANY} <= set(found):
        return ""

    def both(name: str, digits: int) -> str:
        one, other = (f"{found[name][arm][0]:.{digits}f}" for arm in ARMS)
        return f"{one} and {other}"

    def change(name: str) -> str:
        return interval("{:+.3f}".format)(found[name]["difference"])

    answers = "; ".join(f"{what} {verdict(found[name])}" for name, what in SUFFERED.items())
    drawn = facts["drawn"].get(JOINTS)
    first = " and ".join(f"{facts['first'][arm]:.2f}" for arm in ARMS)
    return (
        f"Where a twin saw other ids in training, {answers}. In the means of "
        f"{len(found[NEAR]['seeds'][PLAIN])} pairs, plain and BPE-dropout:\n"
        f"- the loss after one token was cut in two rises by {both(NEAR, 3)} nats per id over the "
        f"next 16 ids (difference {change(NEAR)}), that of the first alone by {first} nats; over "
        f"the 17th to 48th by {both(FAR, 4)};\n"
        f"- the lift is {both(LIFTED, 3)} from the free distribution of the answers (difference "
        f"{change(LIFTED)}), canonical {both(MASKED, 3)} ({change(MASKED)}), over "
        f"{found[LIFTED]['items']} contexts;\n"
        f"- of texts that they write freely {both(OFF, 0)} % are not canonical, {both(JOINTS, 1)} "
        f"of 1,000 joints"
        + (f" (of ids that BPE-dropout draws: {drawn:.1f})" if drawn is not None else "")
        + f";\n- held-out text costs {both(OWN, 3)} nats per byte in the tokenizer's ids, "
        f"{both(ANY, 3)} in drawn ones."
    )


# ---------------------------------------------------------------- tables


def signed(format_: Callable[[float], str]) -> Callable[[float], str]:
    """The same, with a plus too."""
    return lambda value: f"{'+' if value >= 0 else ''}{format_(value)}"


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """Both arms side by side; the trainings."""
    told = facts(rows, manifest)
    return [_compared(told, manifest), _trainings(told)]


def _compared(told: Row, manifest: Row) -> Table:
    lines = []
    for name, found in told["measures"].items():
        shown = MEASURES[name].format
        line = {"measure": MEASURES[name].name, "items": found["items"]}
        for arm in ARMS:
            line[arm] = f"{shown(found[arm][0])} ({', '.join(map(shown, found['seeds'][arm]))})"
        lines.append(line | {"difference": interval(signed(shown))(found["difference"])})
    columns = [
        Column("measure", "measure"),
        Column("items", "items", whole),
        *(Column(f"{arm}\nmean (seeds)", arm) for arm in ARMS),
        Column("dropout - plain", "difference"),
    ]
    chosen, drawn, several = manifest["config"], told["drawn"], told["several"]
    notes = [
        "plain: trained on the tokenizer's own ids; dropout: on ids that BPE-dropout draws anew "
        f"each time, with probability {chosen['dropout']:g}; {chosen['seeds']} twins of each, with "
        "the numbers of each in brackets. Twins of one seed begin with the same weights and read "
        "windows of text that begin at the same places.",
        "[ ]: 95 % intervals by drawing seeds and items again, each by themselves; no interval is "
        "corrected for the number of them. "
        f"{chosen['seeds']} seeds are few: of how much twins differ from seed to seed they say "
        "little, and of other sizes of models nothing.",
        "An equal number of ids is less text under dropout (see the trainings), so that twin saw "
        "less text; its loss in the tokenizer's ids shows what both cost it together. Loss in "
        "drawn ids: of one draw, with what stands before in the tokenizer's ids; it bounds that of "
        "the text from above.",
        f"Texts: {chosen['texts']} of at most {chosen['length']} ids after each prompt, at "
        "temperature 1. A joint is the position before an id, that of an end included"
        + (
            f". Where a passage goes on in drawn ids, {drawn[OFF]:.1f} % of texts are not "
            f"canonical, {drawn[JOINTS]:.1f} of 1,000 joints."
            if len(drawn) == 2
            else "."
        ),
        "Cut token: a word of two letters or more that is one token was spelled by two; the loss "
        "of the ids that do follow, less that after its own token. Items are words in their "
        "place.",
        "TV: total variation distance to the twin's own distribution of ids that spell an answer "
        "exactly, whatever follows (sequence); contexts are places in held-out files that one of 4 "
        f"to 12 answers follows ({several['several']:,} of {several['answers']:,} answers are more "
        f"than one id); those are left out that are not within {TOLERANCE} of exact under each "
        "twin.",
    ]
    return table("Twins side by side", frame(lines), columns, notes)


def _trainings(told: Row) -> Table:
    columns = [
        Column("twin", lambda line: f"{line['arm'].iloc[0]} {line['seed'].iloc[0]}"),
        Column("parameters", "parameters", whole),
        Column("ids read", "ids", whole),
        Column("text read, MB", lambda line: line["bytes"].iloc[0] / 1e6, fixed(2)),
        Column(
            "training loss at the end\nnats per id",
            lambda line: line["losses"].iloc[0][-1],
            fixed(3),
        ),
        Column("CPU, s", "cpu_seconds", whole),
    ]
    notes = [
        "Training loss: mean of the last twentieth of the steps, each twin in the ids that it was "
        "trained on."
    ]
    return table("Trainings", frame(told["trainings"]), columns, notes)


# ---------------------------------------------------------------- figure

COLORS = {PLAIN: CANONICAL, DROPOUT: LIFT}


def figures(rows: pd.DataFrame, manifest: Row) -> list[Figure]:
    """Extra loss up to each distance from the cut token; distances of both methods. None where
    something of it was not measured."""
    told = facts(rows, manifest)
    curves = list(entries(rows, "mean"))
    if not curves or not {LIFTED, MASKED} <= set(told["measures"]):
        return []
    drawn, axes = panels(1, 2, (9.0, 3.9), "y", width_ratios=(3, 2))
    _curves(axes[0, 0], curves)
    _distances(axes[0, 1], told["measures"])
    items = {name: told["measures"][name]["items"] for name in (NEAR, LIFTED)}
    note = (
        f"Left: means over {items[NEAR]} words; thin: each seed. Right: means over {items[LIFTED]} "
        "contexts; dots: each seed; lines: 95 % intervals by drawing seeds and contexts again. In "
        "the headline plain : dropout, the loss in nats per id over the next 16 ids."
    )
    return [Figure("twins", drawn, headline(told), note)]


def _curves(axes: Any, curves: list[tuple[str, int, list[float]]]) -> None:
    for arm, color in COLORS.items():
        own = [np.cumsum(mean) for one, _, mean in curves if one == arm]
        places = range(1, 1 + min(map(len, own), default=0))
        for mean in own:
            axes.plot(places, mean, color=color, linewidth=0.7, alpha=0.5)
        if own:
            axes.plot(places, np.mean(own, axis=0), color=color, linewidth=2.2, label=arm)
    axes.axhline(0, color="#555555", linewidth=0.8)
    axes.set_xlabel("distance: ids after the cut token")
    axes.set_ylabel("extra loss up to there, nats")
    axes.legend(frameon=False, loc="center right")


def _distances(axes: Any, found: dict[str, Row]) -> None:
    for k, name in enumerate((LIFTED, MASKED)):
        for arm, shift in zip(ARMS, (-0.12, 0.12), strict=True):
            value, low, high = found[name][arm]
            axes.plot([k + shift] * 2, [low, high], color=COLORS[arm], linewidth=1.6)
            axes.scatter(k + shift, value, s=36, color=COLORS[arm], zorder=3)
            seeds = found[name]["seeds"][arm]
            axes.scatter([k + 1.7 * shift] * len(seeds), seeds, s=9, color=COLORS[arm], alpha=0.6)
    axes.set_xticks(range(2), ["lift", "canonical"])
    axes.set_xlim(-0.5, 1.5)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("TV to the free distribution, mean")
