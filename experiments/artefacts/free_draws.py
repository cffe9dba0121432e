"""Free draws: does a model's own `generate` write what the exact numbers say?

For each prompt of the distortion table whose answers a model writes often enough, texts are drawn
by `transformers`' `generate`: at temperature 1, from the whole vocabulary, with no mask. The
model's cache of the prompt is the only thing that they share. A draw goes on until it is decided:

- *complete*: the ids spelled an answer exactly, then the sequence ended;
- *goes on*: they spelled an answer exactly, and something else came next;
- *past*: the text began with an answer, but the last id went past its end;
- *other*: the text began with no answer.

Beside the counts stand the probabilities that `answers.distributions` sums up over all
tokenizations, and an exact test of the counts of all outcomes of all answers. What rejection
sampling costs comes from the same draws: ids until a draw is decided, over the share of draws that
are accepted.
"""

from __future__ import annotations

import copy
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.special import xlogy

from bpe_automata import Tokenizer
from experiments.answers.asked import Opened, opened
from experiments.answers.cases import PROMPTS
from experiments.answers.distributions import Aims, distributions, per_leaf, tv_between
from experiments.answers.methods import OUR_METHODS, Posed
from experiments.answers.targets import COMPLETE, PREFIX, SEQUENCE
from experiments.lab import Row
from experiments.models import GEMMA, SMOLLM2, LoadedModel
from experiments.run.files import cache_name, require
from experiments.show import Figure, Format, Table, fixed, interval, panels, percent, small, whole
from experiments.statistics import clopper_pearson
from experiments.trie import along_paths

TITLE, LONG = "What the models' own `generate` writes, and what the exact numbers say", True
CASES = {case.name: case for case in PROMPTS}
OUTCOMES = {
    "complete": "an answer, then the end",
    "goes on": "ids that spell one, then others",
    "past": "an id runs past its end",
}
"""Of a draw whose text begins with an answer, and what they mean."""
ACCEPTED = {SEQUENCE: ("complete", "goes on"), PREFIX: (*OUTCOMES,), COMPLETE: ("complete",)}
"""By target, the draws that rejection sampling keeps."""
SIMULATED, KNOWN = 100_000, 0.01
"""Draws of the test of fit; of a target's mass, what may be missing at most where it is said to be
exact."""


@dataclass(frozen=True)
class Config:
    """least_mass: a prompt whose answers have less is not drawn from; draws: of each prompt, so
    many at a time as `batch`; slack: most probability of answers that may stay unread, of theirs,
    for the exact numbers, and most_nodes forward positions."""

    models: tuple[str, ...] = (SMOLLM2, GEMMA)
    prompts: tuple[str, ...] = ()
    least_mass: float = 0.01
    draws: int = 2000
    batch: int = 100
    slack: float = 1e-4
    most_nodes: int = 6000
    device: str = "auto"
    dtype: str = "float32"
    seed: int = 0


ON_GPU = Config(models=(SMOLLM2,), draws=100_000, batch=2048, device="cuda")
SMOKE = Config((SMOLLM2,), ("yes_no", "digit"), draws=40, batch=20)


def cells(config: Config) -> list[Row]:
    """A model and a prompt."""
    prompts = config.prompts or CASES
    return [{"source": model, "prompt": name} for model in config.models for name in prompts]


def measure(config: Config, source: str, prompt: str) -> Row:
    """Exact numbers, and draws where the answers have `least_mass`."""
    ready, case = opened(source, config.device, config.dtype), CASES[prompt]
    loaded = ready.loaded
    if not loaded.eos_ids:
        raise ValueError(f"{source} names no end-of-sequence id: nothing is ever complete")
    posed = ready.poser.posed(loaded.prompt_ids(case.prompt), case.answers)
    exact = exact_row(posed, ready, config)
    row: Row = {"model": loaded.name, "note": loaded.note, "exact": exact}
    row |= {"least mass": config.least_mass, "draws": 0}
    if 10 ** exact["log10_mass"][PREFIX] < config.least_mass:
        return row
    drawn = draws(loaded, posed, f"{config.seed} {source} {prompt}", config)
    counts = Counter((one.outcome, one.answer) for one in drawn)
    whole_ = [loaded.prompt_ids(case.prompt + answer) for answer in case.answers]
    own = [ids[len(posed.prompt_ids) :] for ids in whole_]
    return row | {
        "draws": len(drawn),
        "counts": {o: [counts[o, k] for k in range(len(own))] for o in OUTCOMES},
        "canonical": sum(one.ids != () and [*one.ids] == own[one.answer] for one in drawn),
        "read": sum(one.read for one in drawn),
    }


def exact_row(posed: Posed, ready: Opened, config: Config) -> Row:
    """The probability of each outcome and answer; of all answers by target; and the distance of
    each method from each target. slack: what may be missing of each target's mass, relative to it,
    at most. What is complete is summed over the tokenizations that were read: where its slack is
    large, its mass is a lower bound alone, and its distances say little.

    canonical: the share of the tokenizer's own ids in the mass of those that spell an answer; that
    of a row is how many draws have them."""
    aims = Aims(config.slack, config.slack, config.most_nodes)
    found = ready.explored(posed, (1.0,), aims, OUR_METHODS)
    n = len(posed.answers)
    each = distributions(found, 0, OUR_METHODS, n, ())
    own = along_paths(found.trie, found.scores[0])
    spelled = np.exp(per_leaf(found, found.complete, own, n))
    ended, past = np.exp(found.targets.ended[0]), np.exp(found.targets.past[0])
    targets = {SEQUENCE: {"free": each["free"]}, **each["targets"]}
    return {
        "probability": dict(zip(OUTCOMES, ([*ended], [*(spelled - ended)], [*past]), strict=True)),
        "log10_mass": {SEQUENCE: each["log10_mass"]}
        | {target: each["targets"][target]["log10_mass"] for target in (PREFIX, COMPLETE)},
        "slack": {SEQUENCE: each["free_slack"]}
        | {target: each["targets"][target]["slack"] for target in (PREFIX, COMPLETE)},
        "canonical": each["methods"]["canonical"]["share"],
        "tv": {
            target: {
                method: tv_between(part["law"], of["free"], part["lost"])
                for method, part in each["methods"].items()
            }
            for target, of in targets.items()
        },
        "given_back": 0 if posed.healing is None else len(posed.healing.given_back),
    }


# Draws.


@dataclass(frozen=True)
class Draw:
    """outcome: one of `OUTCOMES`, or "other"; answer: its number, -1 for "other"; ids: those that
    spelled the answer, () where none did exactly; read: ids until it was decided."""

    outcome: str
    answer: int
    ids: tuple[int, ...]
    read: int


def decided(
    ids: Sequence[int], answers: Sequence[bytes], tokenizer: Tokenizer, eos_ids: Sequence[int]
) -> Draw | None:
    """What ids are a draw of; None where that is not decided yet. answers: prefix-free."""
    text = b""
    for k, token in enumerate(ids):
        spelled = tokenizer.token_bytes(int(token))
        whole = answers.index(text) if text in answers else -1
        if whole >= 0:
            outcome = "complete" if token in eos_ids else "goes on"
            return Draw(outcome, whole, tuple(ids[:k]), k + 1)
        if token in eos_ids or not spelled:
            return Draw("other", -1, (), k + 1)
        text += spelled
        begun = [j for j, answer in enumerate(answers) if text.startswith(answer)]
        if begun and answers[begun[0]] != text:
            return Draw("past", begun[0], (), k + 1)
        if not begun and not any(answer.startswith(text) for answer in answers):
            return Draw("other", -1, (), k + 1)
    return None


def draws(loaded: LoadedModel, posed: Posed, seed: str, chosen: Config) -> list[Draw]:
    """`chosen.draws` continuations of the prompt, each until it is decided: at the latest with the
    id behind as many as the longest answer has bytes."""
    torch, transformers = require("torch"), require("transformers")
    torch.manual_seed(zlib.crc32(seed.encode()))

    def judged(ids: Sequence[int]) -> Draw | None:
        return decided(ids, posed.answers, loaded.tokenizer, loaded.eos_ids)

    rows = torch.tensor([posed.prompt_ids], device=loaded.model.device)
    first = transformers.DynamicCache(config=loaded.model.config)
    if rows.shape[1] > 1:
        with torch.inference_mode():
            loaded.model(input_ids=rows[:, :-1], **{cache_name(): first}, use_cache=True)
    options = transformers.GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        max_new_tokens=1 + max(map(len, posed.answers)),
        eos_token_id=list(loaded.eos_ids),
        pad_token_id=loaded.eos_ids[0],
    )

    found: list[Draw | None] = []
    while len(found) < chosen.draws:
        count = min(chosen.batch, chosen.draws - len(found))
        made = list[Draw | None]([None] * count)

        def stop(input_ids: Any, scores: Any, made: list[Draw | None] = made, **more: Any) -> Any:
            """Row by row: it looks at what was written, and changes nothing of what is drawn."""
            del scores, more
            open_rows = [k for k, one in enumerate(made) if one is None]
            written = input_ids[open_rows, len(posed.prompt_ids) :].tolist()
            for k, ids in zip(open_rows, written, strict=True):
                made[k] = judged(ids)
            return torch.tensor([one is not None for one in made], device=rows.device)

        cache = copy.deepcopy(first)
        cache.batch_repeat_interleave(count)
        many = rows.repeat(count, 1)
        # `generate` would take what `options` leaves out (a penalty, a least p) from the model's
        # own config: hence the patch.
        with patch.object(loaded.model, "generation_config", options):
            loaded.model.generate(
                many,
                attention_mask=torch.ones_like(many),
                generation_config=options,
                stopping_criteria=[stop],
                **({cache_name(): cache} if rows.shape[1] > 1 else {}),
            )
        found += made
    if None in found:
        raise RuntimeError(f"{found.count(None)} draws are not decided after {options}")
    return [one for one in found if one is not None]


# What the rows say.


def accepted(row: Row, target: str) -> int:
    """How many draws rejection sampling keeps."""
    return sum(sum(row["counts"][outcome]) for outcome in ACCEPTED[target])


def fit(row: Row) -> float:
    """p of the exact test that the counts of all outcomes of all answers, and of none of them, come
    from the exact probabilities: the share of `SIMULATED` multinomial draws whose likelihood ratio
    is no less than that of the counts. 0 where something came that has probability 0."""
    counts = [k for outcome in OUTCOMES for k in row["counts"][outcome]]
    shares = [p for outcome in OUTCOMES for p in row["exact"]["probability"][outcome]]
    n = row["draws"]
    p = np.clip([*shares, 1 - sum(shares)], 0.0, 1.0)
    observed, there = np.array([*counts, n - sum(counts)]), p > 0
    if (observed[~there] > 0).any():
        return 0.0
    expected = n * p[there]

    def ratio(drawn: np.ndarray) -> np.ndarray:
        found: np.ndarray = xlogy(drawn, drawn / expected).sum(axis=-1)
        return found

    simulated = np.random.default_rng(0).multinomial(n, p[there] / p[there].sum(), SIMULATED)
    as_far = ratio(simulated) >= ratio(observed[there]) - 1e-9
    return float((1 + as_far.sum()) / (1 + SIMULATED))


def points(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each model and prompt that was drawn from. mass, drawn, cost: by target, ids that
    rejection sampling reads for one accepted text: those of a draw over the exact share that is
    accepted; nan where that is not known. The id behind an answer that is spelled exactly is only
    needed to see whether the sequence ends."""
    lines = list[Row]()
    for row in rows[rows["draws"] > 0].to_dict("records"):
        n, exact, spelled = int(row["draws"]), row["exact"], accepted(row, SEQUENCE)
        line = {"model": row["model"].partition(" ")[0], "prompt": row["prompt"], "draws": n}
        for target in ACCEPTED:
            k, mass = accepted(row, target), 10 ** exact["log10_mass"][target]
            behind = 0 if target == COMPLETE else spelled
            known = exact["slack"][target] <= KNOWN
            line[f"mass {target}"] = mass
            line[f"{target} exact"] = f"{'' if known else 'over '}{small(mass)}"
            line[f"{target} drawn"] = (k / n, *clopper_pearson(k, n, 0.05))
            line[f"cost {target}"] = (row["read"] - behind) / n / mass if known else np.nan
            line |= {f"{m} {target}": exact["tv"][target][m] for m in OUR_METHODS if exact["tv"]}
        line |= {"canonical exact": exact["canonical"], "read": row["read"] / n}
        line["canonical drawn"] = row["canonical"] / spelled if spelled else None
        lines.append(line | {"slack of complete": exact["slack"][COMPLETE], "p": fit(row)})
    return pd.DataFrame(lines)


def corrected(found: pd.DataFrame) -> float:
    """The least p, times how many there are (Bonferroni)."""
    return float(min(1.0, found["p"].min() * len(found)))


def tables(rows: pd.DataFrame) -> list[Table]:
    """Masses, canonical ids and costs; distances of the methods from each target."""
    found, head = points(rows), ["model", "prompt"]
    masses = [f"{target} {what}" for target in ACCEPTED for what in ("exact", "drawn")]
    masses = [*head, "draws", *masses, "canonical exact", "canonical drawn", "p"]
    costs = {"read": "ids read a draw"} | {f"cost {t}": f"ids for one {t}" for t in ACCEPTED}
    far = [f"{method} {target}" for method in OUR_METHODS for target in ACCEPTED]
    out = rows[rows["draws"] == 0]
    each = zip(out["prompt"], out["model"], strict=True)
    names = [f"{prompt} ({model.partition(' ')[0]})" for prompt, model in each]
    formats: dict[str, Format] = {"draws": whole, "p": small, "ids read a draw": fixed(2)}
    formats |= dict.fromkeys((f"{t} drawn" for t in ACCEPTED), interval(fixed(4)))
    formats |= dict.fromkeys((f"canonical {what}" for what in ("exact", "drawn")), percent(2))
    formats |= dict.fromkeys((f"ids for one {t}" for t in ACCEPTED), fixed(1))
    formats |= dict.fromkeys(far, fixed(4)) | {"slack of complete": small}
    notes = "\n\n".join(filter(None, rows["note"].unique()))
    return [
        Table(
            "Drawn and exact",
            found[masses],
            formats,
            f"""sequence: ids that spell an answer exactly; prefix: texts that begin with one;
            complete: an answer, then the end; intervals: 95 %, Clopper-Pearson, each for itself: of
            all of them some miss (p is of all counts together)

            canonical: of draws that spelled an answer exactly, those by the tokenizer's own ids

            p: exact multinomial test (likelihood ratio, simulated) of the counts of every answer as
            complete, gone on from or gone past, and of none; the least of {len(found)}, times their
            number: {small(corrected(found))}

            not drawn from, for their answers have less than {rows["least mass"].max():g}:
            {", ".join(names) or "none"}

            {notes}""",
        ),
        Table(
            "What rejection sampling costs",
            found[[*head, *costs]].rename(columns=costs),
            formats,
            """ids of a draw until it can begin with no answer any more, or has spelled one (and,
            for complete, the id behind it), over the exact probability; -: that is not known""",
        ),
        Table(
            "Total variation distance to each target",
            found[[*head, *far, "slack of complete"]],
            formats,
            """complete: over the tokenizations that were read; slack: how far a distance to it may
            be from exact, at most (at 1, nothing is known of it)""",
        ),
    ]


def figure(rows: pd.DataFrame) -> Figure:
    """Drawn against exact, of each answer and outcome."""
    each = rows[rows["draws"] > 0]
    drawn, axes = panels(1, len(OUTCOMES), (9, 3.6), sharex=True, sharey=True)
    for axis, (outcome, meaning) in zip(axes[0], OUTCOMES.items(), strict=True):
        axis.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=1, zorder=0)
        for k, (model, own) in enumerate(each.groupby("model", sort=False)):
            exact = [p for one in own["exact"] for p in one["probability"][outcome]]
            of = zip(own["counts"], own["draws"], strict=True)
            shares = [n / draws_ for counts, draws_ in of for n in counts[outcome]]
            style = {"color": ("#6a4c93", "#e09f3e")[k % 2], "marker": "os"[k % 2]}
            axis.scatter(exact, shares, s=14, label=str(model).partition(" ")[0], **style)
        axis.set_xscale("symlog", linthresh=1e-3)
        axis.set_yscale("symlog", linthresh=1e-3)
        axis.set(xlim=(0, 1), ylim=(0, 1), xlabel="exact probability")
        axis.set_title(meaning, loc="left", fontsize=10)
        axis.grid(color="#eeeeee")
    axes[0][0].set_ylabel("share of the draws")
    axes[0][0].legend(fontsize=8, frameon=False)
    note = (
        f"{each['draws'].sum():,.0f} draws of {len(each)} prompts and models; each point an "
        "answer. Axes are linear below 0.001."
    )
    return Figure(drawn, "Free draws fall where the exact numbers are", note)


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """What the report says of it."""
    found = points(rows)
    gaps = [
        abs(share[0] - mass)
        for share, mass in zip(found[f"{PREFIX} drawn"], found[f"mass {PREFIX}"], strict=True)
    ]
    costs = [found[f"cost {target}"].dropna() for target in (SEQUENCE, PREFIX)]
    one, other = (f"{c.median():,.0f}" for c in costs)
    most, more = (f"{c.max():,.0f}" for c in costs)
    return {
        "free-draws": f"""Of {len(rows)} pairs of a prompt and a model, {len(found)} have answers of
        a mass over {rows["least mass"].max():g}; {found["draws"].sum():,} texts were drawn after
        these with `generate`, which knows no mask. They show no disagreement: the smallest p-value
        of the tests of all outcomes, Bonferroni-corrected, is {corrected(found):.2g}, and no share
        of texts that begin with an answer is off by more than {max(gaps):.3f}. Rejection sampling
        needs a median of {one} ids for a text that spells an answer exactly (at most {most}) and of
        {other} ids for a text that begins with one (at most {more})."""
    }
