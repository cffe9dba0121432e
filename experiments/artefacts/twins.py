"""Do models suffer from other tokenizations because they never saw them?

Small twins are trained on one text (`experiments.dropout`): `plain` on the tokenizer's own ids,
`dropout` on ids that BPE-dropout draws anew each time. Twins of one seed begin with the same
weights, and read windows that begin at the same positions, in the same order. They take the same
number of steps, with the same number of ids; drawn ids are shorter, so the dropout twin reads less
text from each window. On files that neither has seen, these are measured:

- the loss on the tokenizer's ids, on drawn ones, and after one token in a passage was cut in two;
- how far the lift and canonical are from the twin's own distribution over a few answers, exactly.

Larger twins: `--width 512 --layers 8 --heads 8 --batch 64 --rate 0.001`, on a GPU if there is one.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from experiments import models, show
from experiments.dropout import Corpus, contexts, corpus
from experiments.exact import Trie, laws, pose, total_variation
from experiments.files import require
from experiments.lab import Row
from experiments.models import LoadedModel
from experiments.sampling import id_losses
from experiments.statistics import estimate, weighted_mean

TITLE, LONG = "Twins with and without BPE-dropout", True
ARMS = ("plain", "dropout")
MEASURES = {
    "own": "loss, the tokenizer's ids: nats per byte",
    "drawn": "loss, drawn ids: nats per byte",
    "near": "extra loss after a cut token, ids 1 to 16: nats per id",
    "far": "the same, ids 17 to 48",
    "lift": "TV of the lift",
    "canonical": "TV of canonical",
    "rest": "TV of canonical with weights",
    "outside": "share of the answers' mass that is not canonical",
}
PROMPT, LENGTH, NEAR = 40, 48, 16
"""The fewest ids of the tokenizer before the part that is measured, and in it; and how many ids
right after a cut token count as near it."""
TOLERANCE = 0.01
"""Contexts in which some distance of some twin may be farther from exact are left out."""


@dataclass(frozen=True)
class Config:
    """files: the most of the standard library; ids: of the tokenizer; dropout: the probability that
    a merge is skipped; seeds: twins of each kind; batch: windows of `context` ids in each of
    `steps` of training; passages: held out, for losses; contexts: for each set of answers; slack:
    the most probability that may stay unassigned; most_nodes: forward positions of one
    distribution."""

    files: int = 10_000
    ids: int = 4096
    dropout: float = 0.1
    seeds: int = 3
    width: int = 224
    layers: int = 3
    heads: int = 4
    context: int = 128
    batch: int = 8
    steps: int = 1000
    rate: float = 2e-3
    passages: int = 300
    contexts: int = 32
    slack: float = 1e-3
    most_nodes: int = 1500
    seed: int = 0


SMOKE = Config(60, 400, seeds=2, width=16, layers=1, steps=4, passages=6, contexts=1, most_nodes=99)


def cells(config: Config) -> list[Row]:
    """A cell is a twin."""
    return [{"arm": arm, "twin": seed} for seed in range(config.seeds) for arm in ARMS]


def measure(config: Config, arm: str, twin: int) -> list[Row]:
    """A row for each measure and item (passage, word or context); all twins have the same items."""
    models.use_threads()
    read = corpus(config.files, config.ids)
    model, said = trained(config, read, config.dropout if arm == "dropout" else 0.0, twin)
    ends = tuple(read.tokenizer.eos_ids)
    loaded = LoadedModel(arm, model, read.tokenizer, ends, model.device.type)
    asked = (*losses(config, loaded, read), *cuts(config, loaded, read), *answers(config, loaded))
    return [{"measure": "training", **said}, *asked]


def trained(config: Config, read: Corpus, dropout: float, twin: int) -> tuple[Any, Row]:
    """(a trained llama, the row of its training)."""
    torch, begun = require("torch"), time.process_time()
    torch.manual_seed(1000 * config.seed + twin)
    device, end = models.pick_device("auto"), read.tokenizer.eos_ids[0]
    llama = require("transformers").LlamaConfig(
        vocab_size=end + 1,
        hidden_size=config.width,
        intermediate_size=8 * config.width // 3,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.heads,
        max_position_embeddings=config.context,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=end,
    )
    model = require("transformers").LlamaForCausalLM(llama).train().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1)
    at_step, read_bytes = list[float](), 0
    for step, batch in enumerate(batches(config, read, dropout, twin)):
        # Up in a tenth of the steps, then down along a cosine to a hundredth.
        warm = max(1, config.steps // 10)
        done = max(0.0, (step - warm) / max(1, config.steps - warm))
        cosine = 0.01 + 0.99 * (1 + math.cos(math.pi * done)) / 2
        optimizer.param_groups[0]["lr"] = config.rate * min((step + 1) / warm, cosine)
        ids = torch.tensor(batch, device=device)
        # Half the time of float32; weights and sums stay float32.
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = model(input_ids=ids[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        at_step.append(loss.item())
        read_bytes += sum(len(read.tokenizer.text_bytes(window[1:])) for window in batch)
    return model.eval(), {
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "ids": config.steps * config.batch * config.context,
        "bytes": read_bytes,
        "value": float(np.mean(at_step[-max(1, config.steps // 20) :])),
        "CPU seconds": round(time.process_time() - begun, 1),
    }


def batches(config: Config, read: Corpus, dropout: float, twin: int) -> Iterator[list[list[int]]]:
    """For each step, `batch` windows of context + 1 ids. Where windows begin depends on the seed
    alone: at all starts in a random order, then at all again in another."""
    starts, remaining = read.windows(config.context), list[int]()
    order = np.random.default_rng([config.seed, twin])
    rng = random.Random(f"{config.seed} {twin} dropout")
    for _ in range(config.steps):
        while len(remaining) < config.batch:
            remaining += order.permutation(starts).tolist()
        taken, remaining = remaining[: config.batch], remaining[config.batch :]
        yield [read.ids_from(start, config.context + 1, dropout, rng) for start in taken]


# What a twin is asked.


def losses(config: Config, loaded: LoadedModel, read: Corpus) -> Iterator[Row]:
    """Losses of passages, per byte; the text before a passage is in the tokenizer's ids."""
    own, rng = read.speller.own, random.Random(f"{config.seed} drawn")
    passages = read.passages(PROMPT, LENGTH, random.Random(f"{config.seed} losses"))
    asked = [*islice(passages, config.passages)]
    sizes = [len(loaded.tokenizer.text_bytes([*own(after)])) for _, after in asked]
    drawn = [[*read.speller.spelled(after, config.dropout, rng)] for _, after in asked]
    for name, every in (("own", [[*own(after)] for _, after in asked]), ("drawn", drawn)):
        pairs = [([*own(before)], ids) for (before, _), ids in zip(asked, every, strict=True)]
        for item, nats in enumerate(id_losses(loaded.model, pairs)):
            yield {"measure": name, "item": item, "value": float(nats.sum()) / sizes[item]}


def cuts(config: Config, loaded: LoadedModel, read: Corpus) -> Iterator[Row]:
    """What cutting a token in two adds to the loss of the ids after it."""
    words = read.words(PROMPT, LENGTH, random.Random(f"{config.seed} cuts"))
    asked = [*islice(words, config.passages)]
    own = id_losses(loaded.model, [([*one.before, one.token], one.after) for one in asked])
    cut = id_losses(loaded.model, [([*one.before, *one.parts], one.after) for one in asked])
    extra = np.stack(cut) - np.stack(own)
    for name, of in (("near", extra[:, :NEAR]), ("far", extra[:, NEAR:])):
        for item, value in enumerate(of.mean(axis=1).tolist()):
            yield {"measure": name, "item": item, "value": value}
    for item, value in enumerate(extra.mean(axis=0).tolist()):
        yield {"measure": "extra", "item": item + 1, "value": value}


def answers(config: Config, loaded: LoadedModel) -> Iterator[Row]:
    """Distances in each context. off: the largest error of one; of: how many answers there are;
    several: how many of these have more than one id."""
    encode = loaded.tokenizer.encode
    places = contexts(config.files, encode, config.contexts, config.context // 2, config.seed)
    for item, (prompt, own) in enumerate(places):
        trie = Trie(pose(loaded, prompt, own)).explore(config.slack, 1.0, config.most_nodes)
        found = laws(trie)
        far = {n: total_variation(found["free"], found[n]) for n in ("lift", "canonical")}
        far |= {"rest": total_variation(found["free"], found["weighted"])}
        said = {"of": len(own), "several": sum(len(encode(answer)) > 1 for answer in own)}
        for name, value in (far | {"outside": found["outside"]}).items():
            yield {"measure": name, "item": item, "value": value, "off": found["off"], **said}


# What the rows say.


def compared(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each measure, seed and item, with a column for each arm and for the difference
    dropout - plain. Contexts that are not exact under some twin are left out."""
    inexact = set(rows.loc[rows["off"] > TOLERANCE, "item"])
    kept = rows[
        rows["measure"].isin([*MEASURES]) & ~(rows["off"].notna() & rows["item"].isin(inexact))
    ]
    both = kept.pivot_table(index=["measure", "twin", "item"], columns="arm", values="value")
    return both.assign(difference=both["dropout"] - both["plain"]).reset_index()


def means(rows: pd.DataFrame) -> pd.DataFrame:
    """By measure: the items; for each arm and for the difference (value, low, high), with intervals
    of 95 % by resampling seeds and items independently; ratio: dropout / plain, None where the
    difference is not clear of 0."""
    found = pd.DataFrame(
        {"measure": name, "items": own["item"].nunique()}
        | {arm: estimate(own, weighted_mean, arm, "twin", "item") for arm in (*ARMS, "difference")}
        | {f"{arm}, seeds": own.groupby("twin")[arm].mean().tolist() for arm in ARMS}
        for name, own in compared(rows).groupby("measure")
    ).set_index("measure")
    found["ratio"] = [
        None if low <= 0 <= high else 1 + value / plain
        for (plain, *_), (value, low, high) in zip(found["plain"], found["difference"], strict=True)
    ]
    return found.loc[[*MEASURES]]


FORMATS: dict[str, show.Format] = dict.fromkeys(ARMS, lambda found: f"{found[0]:.4f}")
FORMATS |= dict.fromkeys((f"{arm}, seeds" for arm in ARMS), show.several(show.fixed(4)))
FORMATS |= {"difference": show.interval("{:+.4f}".format)}


def tables(rows: pd.DataFrame) -> list[show.Table]:
    """Both arms side by side."""
    asked = rows[(rows["measure"] == "lift") & (rows["arm"] == "plain") & (rows["twin"] == 0)]
    trainings = rows[rows["measure"] == "training"].groupby("arm")
    read = " and ".join(f"{trainings['bytes'].mean()[arm] / 1e6:.2f}" for arm in ARMS)
    note = f"""{rows["twin"].nunique()} pairs of {rows["parameters"].max():,.0f} parameters, which
        read {rows["ids"].max():,.0f} ids ({read} MB: drawn ids are shorter, so the loss in the
        tokenizer's ids shows what both cost together)

        [ ]: 95 % intervals by resampling seeds and items independently, not corrected for their
        number; so few seeds say little of how much twins differ, and one size of model says nothing
        of others

        drawn ids: one draw, after the tokenizer's own; cut token: a word of two letters or more
        that is one token was spelled by two

        TV: at positions in held-out files where one of 5 to 12 answers comes next
        ({asked["several"].sum():,.0f} of {asked["of"].sum():,.0f} answers are more than one id),
        without those that are not within {TOLERANCE} of exact under each twin"""
    data = means(rows).reset_index()
    data["measure"] = data["measure"].map(MEASURES)
    return [show.Table("Twins side by side", data, FORMATS, note)]


def figure(rows: pd.DataFrame) -> show.Figure:
    """Extra loss up to each distance from the cut token; distances of both masks."""
    found, (canvas, axes) = means(rows).T, show.panels(1, 2, (9, 3.9), width_ratios=(3, 2))
    left, right = axes[0]
    extra = rows[rows["measure"] == "extra"]
    for arm, dash in zip(ARMS, ("-", ":"), strict=True):
        curves = extra[extra["arm"] == arm].pivot(index="item", columns="twin", values="value")
        left.plot(curves.cumsum(), color=show.FREE, linewidth=0.7, alpha=0.4, linestyle=dash)
        mean = curves.mean(axis=1).cumsum()
        left.plot(mean, color=show.FREE, linewidth=2.2, linestyle=dash)
        left.annotate(
            arm, (mean.index[-1], mean.iloc[-1]), (0, 6), textcoords="offset points", ha="right"
        )
    left.set(xlabel="ids after a token that was cut in two", ylabel="extra loss up to there, nats")
    left.set_ylim(bottom=0)
    for k, (name, color) in enumerate({"lift": show.LIFT, "canonical": show.CANONICAL}.items()):
        for arm, shift in zip(ARMS, (-0.15, 0.15), strict=True):
            value, *ends = found[name][arm]
            right.plot([k + shift] * 2, ends, color=color, linewidth=1.6)
            inside = color if arm == "plain" else "white"
            right.scatter(k + shift, value, s=44, facecolor=inside, edgecolor=color, zorder=3)
            right.annotate(
                arm, (k + shift, ends[1]), (0, 4), textcoords="offset points", ha="center"
            )
    right.set_xticks(range(2), ["lift", "canonical"])
    right.set(xlim=(-0.5, 1.5), ylabel="TV to the free distribution")
    right.set_ylim(bottom=0)
    cost, lift, canonical = (
        "as large" if show.is_missing(ratio) else f"{ratio:.2f} times as large"
        for ratio in found.loc["ratio", ["near", "lift", "canonical"]]
    )
    return show.Figure(
        canvas,
        f"Where other ids were seen in training, the extra loss after one is {cost}, the distance "
        f"of the lift {lift}, that of canonical {canonical}",
        f"Left: means over {found['near']['items']} words; thin: each seed. Right: means over "
        f"{found['lift']['items']} contexts; lines: 95 % intervals by drawing seeds and contexts "
        "again. Ratios: of the loss over the next 16 ids, and of these distances.",
    )


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """The means of both arms."""
    return {"twins": tables(rows)[0].lines("measure", *ARMS, "difference", "ratio")}
