"""Do models suffer from other tokenizations because they never saw them?

Small twins are trained on one text (`text`): `plain` on the tokenizer's own ids alone, `dropout` on
ids that BPE-dropout draws anew each time. Twins of one seed begin with the same weights and read
windows that begin at the same places, in the same order, in as many steps of as many ids; ids of
dropout are shorter, so from each window that twin reads less text. Each is then asked, on files
that neither has seen,

- what it loses on the tokenizer's ids, and on drawn ones;
- how often texts that it writes freely leave the tokenizer's ids;
- what it loses on the rest of a passage after one token in it was cut in two;
- how far the lift and canonical are from its own distribution over a few answers.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata._decoding.visible import visible_tokens
from experiments import models
from experiments.answers.asked import Opened
from experiments.answers.distributions import Aims, distributions
from experiments.answers.methods import OUR_METHODS, Poser
from experiments.logprobs import PROBE, pick_reader
from experiments.models import LoadedModel
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Cell, Row
from experiments.run.files import require
from experiments.run.measuring import Run
from experiments.run.provenance import pick_device, version_of
from experiments.shared.canonical_texts import Judge
from experiments.shared.free_texts import Text, sample
from experiments.shared.losses import id_losses
from experiments.study.twins.report import (
    ARMS,
    DRAWN,
    DROPOUT,
    TITLE,
    complete,
    facts,
    figures,
    readme,
    tables,
)
from experiments.study.twins.text import (
    Corpus,
    Passage,
    contexts,
    corpus,
    cut_tokens,
    digest,
    passages,
)

__all__ = [
    "LONG",
    "ON_GPU",
    "SMOKE",
    "TITLE",
    "VERSION",
    "Config",
    "complete",
    "facts",
    "figures",
    "inputs",
]
__all__ += ["measure", "readme", "tables"]

VERSION = 1
LONG = True
PARTS = 20
"""Of a training, whose mean losses are kept."""
TRAINING = (
    *("seed", "files", "ids", "dropout", "width", "layers", "heads", "context"),
    *("batch", "steps", "rate"),
)
"""What of the config weights depend on: another question trains nothing anew."""


@dataclass(frozen=True)
class Config(config.Config):
    """The text, the twins, and what they are asked."""

    files: int = option(10_000, "of the standard library, at most")
    ids: int = option(4096, "of the tokenizer")
    dropout: float = option(0.1, "probability that BPE-dropout leaves out a merge")
    seeds: int = option(3, "twins of each kind")
    width: int = option(224, "of the models")
    layers: int = option(3, "of the models")
    heads: int = option(4, "of the models' attention")
    context: int = option(128, "ids that the models read at a time")
    batch: int = option(8, "windows in a step of training")
    steps: int = option(1000, "of training")
    rate: float = option(2e-3, "the highest learning rate")
    passages: int = option(300, "held out, for losses")
    prompts: int = option(64, "held out, for texts that are written freely")
    texts: int = option(4, "written after each prompt")
    length: int = option(64, "ids of each, at most")
    contexts: int = option(32, "held out, for each set of answers")
    slack: float = option(1e-3, "most probability of a distribution that may stay unassigned")
    most_nodes: int = option(1500, "most forward positions per context")


ON_GPU = Config(width=512, layers=8, heads=8, batch=64, rate=1e-3)
"""25 million weights beside those of the ids, eight times as many ids read."""
SMOKE = Config(
    files=60,
    ids=400,
    seeds=2,
    width=16,
    layers=1,
    steps=4,
    passages=6,
    prompts=4,
    contexts=1,
    most_nodes=100,
)


def inputs(chosen: Config) -> Row:
    """What names the text: it is that of the interpreter."""
    return {"text": digest(chosen.files)}


@dataclass(frozen=True)
class Twin:
    """Which model. folder: where its weights are kept."""

    chosen: Config
    arm: str
    seed: int
    folder: Path

    @property
    def path(self) -> Path:
        """Of the weights; the name says what they were trained by."""
        values = [getattr(self.chosen, name) for name in TRAINING]
        by = (VERSION, values, digest(self.chosen.files), version_of("torch"))
        name = hashlib.sha256(repr(by).encode()).hexdigest()[:12]
        return self.folder / f"{self.arm}-{self.seed}-{name}.safetensors"

    @property
    def corpus(self) -> Corpus:
        """What it reads."""
        return corpus(self.chosen.files, self.chosen.ids)

    @property
    def dropout(self) -> float:
        """That of the ids that it is trained on."""
        return self.chosen.dropout if self.arm == DROPOUT else 0.0


# ---------------------------------------------------------------- training


def new_model(chosen: Config, eos_id: int) -> Any:
    """A llama with random weights, float32; END is its last id."""
    transformers = require("transformers")
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=eos_id + 1,
            hidden_size=chosen.width,
            intermediate_size=8 * chosen.width // 3,
            num_hidden_layers=chosen.layers,
            num_attention_heads=chosen.heads,
            num_key_value_heads=chosen.heads,
            max_position_embeddings=chosen.context,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=eos_id,
        )
    )


def batches(read: Corpus, twin: Twin) -> Iterator[list[list[int]]]:
    """Of each step, `batch` times context + 1 ids. The places where windows begin depend on the
    seed alone: all of them in random order, then again in another."""
    chosen = twin.chosen
    starts = read.windows(chosen.context)
    order = np.random.default_rng([chosen.seed, twin.seed])
    rng = random.Random(f"{chosen.seed} {twin.seed} dropout")
    left: list[int] = []
    for _ in range(chosen.steps):
        while len(left) < chosen.batch:
            left += order.permutation(starts).tolist()
        taken, left = left[: chosen.batch], left[chosen.batch :]
        yield [read.ids_from(start, chosen.context + 1, twin.dropout, rng) for start in taken]


def rate_at(chosen: Config, step: int) -> float:
    """The learning rate: up in a tenth of the steps, then down along a cosine to a hundredth."""
    warm = max(1, chosen.steps // 10)
    if step < warm:
        return chosen.rate * (step + 1) / warm
    done = (step - warm) / max(1, chosen.steps - warm)
    return chosen.rate * (0.01 + 0.99 * (1 + math.cos(math.pi * done)) / 2)


def trained(twin: Twin) -> Row:
    """What is said of its training, which takes place now unless its weights are there."""
    if not twin.path.exists():
        model, row = train(twin)
        twin.folder.mkdir(parents=True, exist_ok=True)
        scratch = twin.path.with_suffix(".partial")
        require("safetensors.torch").save_model(model, str(scratch), {"row": json.dumps(row)})
        scratch.replace(twin.path)
    with require("safetensors").safe_open(str(twin.path), "pt") as file:
        return json.loads(file.metadata()["row"])


def train(twin: Twin) -> tuple[Any, Row]:
    """(the model, what is said of it). losses: nats per id, means over parts of the training;
    bytes: of the text that was read."""
    models.use_threads()
    torch, chosen, begun = require("torch"), twin.chosen, time.process_time()
    read = twin.corpus
    torch.manual_seed(1000 * chosen.seed + twin.seed)
    device = pick_device("auto")
    model = new_model(chosen, read.eos_id).train().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1)
    losses, read_bytes = [], 0
    for step, batch in enumerate(batches(read, twin)):
        optimizer.param_groups[0]["lr"] = rate_at(chosen, step)
        ids = torch.tensor(batch, device=device)
        # Half the time of float32; weights and sums stay float32.
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = model(input_ids=ids[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        read_bytes += sum(len(read.tokenizer.text_bytes(window[1:])) for window in batch)
    parts = [part.mean() for part in np.array_split(losses, PARTS) if len(part)]
    return model, {
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "ids": chosen.steps * chosen.batch * chosen.context,
        "bytes": read_bytes,
        "losses": [round(float(mean), 4) for mean in parts],
        "cpu_seconds": round(time.process_time() - begun, 1),
        "device": models.device_name(device),
    }


@lru_cache(maxsize=1)
def opened(twin: Twin) -> LoadedModel:
    """The twin, trained now where its weights are not there."""
    models.use_threads()
    trained(twin)
    read = twin.corpus
    model = new_model(twin.chosen, read.eos_id)
    require("safetensors.torch").load_model(model, str(twin.path))
    name, device = f"{twin.arm} {twin.seed}", pick_device("auto")
    model = model.eval().to(device)
    return LoadedModel(name, "", model, read.tokenizer, (read.eos_id,), device, 0.0)


def measure(run: Run[Config]) -> None:
    """A row for drawn ids, then for each twin one for its training, and one for each question once
    all are trained."""
    chosen, folder = run.config, run.folder / "weights"
    twins = [Twin(chosen, arm, seed, folder) for seed in range(chosen.seeds) for arm in ARMS]

    def cells(asked: Sequence[Callable[[Twin], Row]]) -> list[Cell]:
        return [Cell(f"{t.arm} {t.seed} {ask.__name__}", ask, (t,)) for t in twins for ask in asked]

    drawn = Cell("drawn texts", drawn_texts, (chosen,))
    run.cells([*cells([training]), drawn], what="trainings")
    run.cells(cells([losses, texts, cuts, answers]), what="twins")


def training(twin: Twin) -> Row:
    """How it was trained."""
    return named(twin, training=trained(twin))


def named(twin: Twin, **found: Any) -> Row:
    """A row: of which twin, and what was found under the name of the question."""
    return {"arm": twin.arm, "seed": twin.seed, **found}


# ---------------------------------------------------------------- questions

PROMPT, LENGTH = 40, 48
"""Ids of the tokenizer, at least: of what stands before, and of what is asked about. Drawn ids are
more; together they must be within the twins' context."""
NEAR = 16
"""So many ids right after a token that was cut are near it; those up to `LENGTH` are far."""


def losses(twin: Twin) -> Row:
    """Of passages [path, bytes, nats in the tokenizer's ids, nats in ids drawn with dropout]; what
    stands before is in the tokenizer's."""
    loaded, read, chosen = opened(twin), twin.corpus, twin.chosen
    some = passages(read, PROMPT, LENGTH, random.Random(f"{chosen.seed} losses"))
    asked, rng = list(islice(some, chosen.passages)), random.Random(f"{chosen.seed} drawn")
    before = [tuple(read.speller.own_of(passage.before)) for passage in asked]
    own = [tuple(read.speller.own_of(passage.after)) for passage in asked]
    drawn = [tuple(read.speller.spelled(p.after, chosen.dropout, rng)) for p in asked]
    nats = [
        [
            round(float(each.sum()), 4)
            for each in id_losses(loaded.model, list(zip(before, after, strict=True)))
        ]
        for after in (own, drawn)
    ]
    sizes = [len(loaded.tokenizer.text_bytes(ids)) for ids in own]
    each = zip((p.path for p in asked), sizes, *nats, strict=True)
    return named(twin, losses=[list(one) for one in each])


def cuts(twin: Twin) -> Row:
    """What a token in two parts adds to the loss of the ids after it. cuts: of each place [parts,
    nats per id near it, nats per id far from it]; mean: nats of each id, in order."""
    loaded, read, chosen = opened(twin), twin.corpus, twin.chosen
    places = cut_tokens(read, PROMPT, LENGTH, random.Random(f"{chosen.seed} cuts"))
    asked = list(islice(places, chosen.passages))
    own = id_losses(loaded.model, [((*p.before, p.token), p.after) for p in asked])
    cut = id_losses(loaded.model, [((*p.before, *p.parts), p.after) for p in asked])
    extra = np.stack(cut) - np.stack(own)
    near, far = extra[:, :NEAR].mean(axis=1), extra[:, NEAR:].mean(axis=1)
    found = [
        [visible_tokens(loaded.tokenizer, place.parts), round(one, 5), round(other, 5)]
        for place, one, other in zip(asked, near.tolist(), far.tolist(), strict=True)
    ]
    return named(twin, cuts=found, mean=[round(x, 5) for x in extra.mean(axis=0).tolist()])


def prompts(read: Corpus, chosen: Config) -> list[Passage]:
    """Those after which texts are written, each with how its passage goes on."""
    some = passages(read, PROMPT, chosen.length, random.Random(f"{chosen.seed} prompts"))
    return list(islice(some, chosen.prompts))


def texts(twin: Twin) -> Row:
    """Texts that are drawn at temperature 1 without a mask, judged."""
    loaded, read, chosen = opened(twin), twin.corpus, twin.chosen
    before = [list(read.speller.own_of(p.before)) for p in prompts(read, chosen)]
    which = [k for k in range(len(before)) for _ in range(chosen.texts)]
    rng = np.random.default_rng([chosen.seed, twin.seed, len(which)])
    written = sample(
        loaded.model,
        before,
        which,
        [1.0] * len(which),
        rng.random((len(which), chosen.length)),
        models.special_ids(loaded),
    )
    return named(twin, texts=judged(loaded.tokenizer, before, which, written))


def drawn_texts(chosen: Config) -> Row:
    """How the passages do go on, in ids that BPE-dropout draws: what is to be expected of a model
    that has learned to write such ids."""
    read = corpus(chosen.files, chosen.ids)
    asked, rng = prompts(read, chosen), random.Random(f"{chosen.seed} drawn texts")
    which = [k for k in range(len(asked)) for _ in range(chosen.texts)]
    spelled = [read.speller.spelled(asked[k].after, chosen.dropout, rng) for k in which]
    drawn = [Text(tuple(islice(ids, chosen.length)), False) for ids in spelled]
    before = [list(read.speller.own_of(p.before)) for p in asked]
    return {"arm": DRAWN, "seed": 0, "texts": judged(read.tokenizer, before, which, drawn)}


def judged(
    tokenizer: Tokenizer, before: Sequence[list[int]], which: Sequence[int], written: Sequence[Text]
) -> list[list[int]]:
    """Of each text [number of its prompt, joints, how many are at fault, 1 if it is not canonical
    and else 0], as the artefact `spontaneous` counts them."""
    judges = [Judge(tokenizer, ids) for ids in before]
    found = []
    for prompt, (ids, ended) in zip(which, written, strict=True):
        verdict = judges[prompt].verdict(ids, ended)
        counts = len(ids) + ended, len(verdict.faults), int(not verdict.canonical)
        found.append([prompt, *counts])
    return found


def answers(twin: Twin) -> Row:
    """Of contexts how far the lift and canonical are from the free distribution over the answers,
    exactly. outside: the share of its mass that is not canonical; rest: the distance of canonical
    with weights; slack: how far a distance may be from exact, at most; several: how many of the
    answers have more than one id."""
    loaded, chosen = opened(twin), twin.chosen
    reader = pick_reader(loaded.model, loaded.prompt_ids("The"), PROBE)
    ready = Opened(loaded, Poser(loaded.tokenizer, loaded.eos_ids), reader)
    aims, found = Aims(chosen.slack, 1.0, chosen.most_nodes), []
    for name, prompt, own in contexts(
        chosen.files, loaded.tokenizer, chosen.contexts, chosen.context // 2, chosen.seed
    ):
        at, slack = _distances(ready, loaded.prompt_ids(prompt), own, aims)
        lift, canonical = (at["methods"][method] for method in OUR_METHODS)
        numbers = {
            "lift": lift["tv"],
            "canonical": canonical["tv"],
            "rest": canonical["weighted_tv"],
            "outside": 1 - canonical["share"],
            "log10_mass": at["log10_mass"],
            "slack": slack,
        }
        shown = {field: float(f"{value:.6g}") for field, value in numbers.items()}
        sizes = [len(loaded.tokenizer.encode(answer)) for answer in own]
        shown |= {"answers": len(own), "several": sum(size > 1 for size in sizes)}
        found.append({"question": name, "prompt": prompt[-40:], **shown})
    return named(twin, answers=found)


def _distances(
    ready: Opened, prompt_ids: Sequence[int], answers: Sequence[str], aims: Aims
) -> tuple[Row, float]:
    """(the `distributions` of lift and canonical over the answers at temperature 1, how far a
    distance of theirs may be from exact, at most)."""
    posed = ready.poser.posed(prompt_ids, answers)
    found = ready.explored(posed, (1.0,), aims, OUR_METHODS)
    at = distributions(found, 0, OUR_METHODS, len(answers), ())
    lift, canonical = (at["methods"][method] for method in OUR_METHODS)
    slacks = lift["slack"] / 2, canonical["slack"] / 2, canonical["weighted_slack"]
    return at, at["free_slack"] + max(slacks)
