"""Does the tokenizer's own tokenization improve what a model writes freely?

For each model, temperature and prompt two texts: a free one, and a canonical one under a constraint
that allows every text, in the tokenizer's own ids alone. They are drawn with the same random
numbers, so they differ only from the first id on that the mask forbids (`shared.paired_texts`).

Prompts are beginnings of passages, and the unit of all intervals. Texts are judged by their loss
after the prompt, as each model reads them in ids of its own tokenizer's `encode`: the other model
did not write them. A byte that is no UTF-8 is read as U+FFFD, as it is shown; the first bytes of a
character that the length cut off are left out.
"""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata.errors import ArgumentError
from experiments import models
from experiments.engines.named import check_known
from experiments.models import Device, Dtype, models_there
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Cell, Row
from experiments.run.measuring import Run
from experiments.shared.free_texts import Text
from experiments.shared.losses import losses
from experiments.shared.paired_texts import drawn_pairs
from experiments.shared.passages import KINDS, UNSPACED, digest, divided, passages
from experiments.study.free_text_report import TITLE, facts, figures, readme, tables

__all__ = ["LONG", "SMOKE", "TITLE", "VERSION", "Config", "facts", "figures", "inputs", "measure"]
__all__ += ["readme", "tables"]

VERSION = 1
LONG = True


@dataclass(frozen=True)
class Config(config.Config):
    """Who writes what after which prompts."""

    models: tuple[str, ...] = option((models.SMOLLM2, models.GEMMA), "packaged, folder or hub id")
    temperatures: tuple[float, ...] = option((0.7, 1.0, 1.3), "of sampling")
    kinds: tuple[str, ...] = option(KINDS, "of passages")
    prompts: int = option(50, "of each kind, at most")
    prompt_ids: int = option(30, "the fewest of a prompt")
    ids: int = option(48, "of each text, at most")
    device: Device = option("auto", "where the models run")
    dtype: Dtype = option("float32", "of the arithmetic")


SMOKE = Config(
    models=(models.SMOLLM2,), temperatures=(1.0, 1.3), kinds=("prose", "code"), prompts=4, ids=8
)


def inputs(chosen: Config) -> Row:
    """What names the passages of each kind: they are those of the system."""
    check_known("kinds", chosen.kinds, KINDS)
    return {"passages": digest(chosen.kinds, chosen.seed)}


def measure(run: Run[Config]) -> None:
    """A row for each model, then the texts of each model and kind, then what each model makes of
    them. A kind without passages is one failure for each model, and nothing is read of it."""
    chosen = run.config
    if cold := [temperature for temperature in chosen.temperatures if temperature <= 0]:
        raise ArgumentError(f"--temperatures: {cold[0]:g} is not over 0")
    there = models_there(run, chosen.models, chosen.device, chosen.dtype)
    of = [(name, kind) for name in there for kind in chosen.kinds]
    keys = [f"{name} {kind}" for name, kind in of]
    run.cells(
        [Cell(key, written, (*one, chosen)) for key, one in zip(keys, of, strict=True)],
        what="writing",
    )
    rows = [row for key in keys if not (row := run.store.rows[key]).get(FAILURE)]
    run.cells(
        [
            Cell(f"{row['key']} read by {reader}", read, (reader, row, chosen))
            for reader in there
            for row in rows
        ],
        what="reading",
    )


# ---------------------------------------------------------------- texts


def written(name: str, kind: str, chosen: Config) -> Row:
    """The prompts of a kind with the rest of their passages, and both texts of each prompt at each
    temperature; `canonical` is None where the mask changed nothing."""
    loaded = models.opened(name, chosen.device, chosen.dtype)
    prompts = prompts_of(kind, loaded.tokenizer, chosen)
    wanted = [(temperature, k) for temperature in chosen.temperatures for k in range(len(prompts))]
    ids = [loaded.prompt_ids(prompt) for prompt, _ in prompts]
    seeds = [
        f"{chosen.seed} {name} {kind} {temperature:g} {k}".encode() for temperature, k in wanted
    ]
    numbers = [np.random.default_rng(zlib.crc32(s)).random((chosen.ids, 2)) for s in seeds]
    pairs = drawn_pairs(
        loaded,
        ids,
        [k for _, k in wanted],
        [temperature for temperature, _ in wanted],
        np.stack(numbers),
    )

    def described(k: int, text: Text) -> Row:
        shown = shown_text(loaded.tokenizer, text.ids, ids[k])
        return {"text": shown, "ids": list(text.ids), "ended": text.ended}

    texts = [
        {
            "prompt": k,
            "temperature": temperature,
            "fork": pair.fork,
            "free": described(k, pair.free),
        }
        | {"canonical": None if pair.fork is None else described(k, pair.canonical)}
        for (temperature, k), pair in zip(wanted, pairs, strict=True)
    ]
    return {"model": name, "kind": kind, "prompts": [list(p) for p in prompts], "texts": texts}


def prompts_of(kind: str, tokenizer: Tokenizer, chosen: Config) -> list[tuple[str, str]]:
    """(prompt, as many ids of what the passage goes on with as a text has)."""
    found = list[tuple[str, str]]()
    for passage in passages(kind, chosen.seed):
        made = divided(passage, tokenizer, chosen.prompt_ids, kind not in UNSPACED)
        if made is None:
            continue
        before = tokenizer.encode(made[0])
        rest = tokenizer.encode(passage)[len(before) :][: chosen.ids]
        found.append((made[0], shown_text(tokenizer, rest, before)))
        if len(found) == chosen.prompts:
            break
    return found


def shown_text(tokenizer: Tokenizer, ids: Sequence[int], before: Sequence[int]) -> str:
    """The text of ids up to the last whole character."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(
        tokenizer.text_bytes(ids, before)
    )


# ---------------------------------------------------------------- losses


def read(reader: str, row: Row, chosen: Config) -> Row:
    """What a model makes of the texts of a row: losses in nats, of both texts of each pair, in
    their order, and of the rest of each prompt's passage. Of its own texts it reads those that the
    mask changed, for nothing is said of the others; None stands for what is not read."""
    loaded = models.opened(reader, chosen.device, chosen.dtype)
    is_own = reader == row["model"]
    asked: dict[str, list[tuple[str, str] | None]] = {"free": [], "canonical": []}
    for text in row["texts"]:
        for which, of in asked.items():
            is_left_out = is_own and text["canonical"] is None
            prompt, shown = row["prompts"][text["prompt"]][0], text[which] or text["free"]
            of.append(None if is_left_out else (prompt, shown["text"]))
    asked["rest"] = [None if is_own else (prompt, rest) for prompt, rest in row["prompts"]]
    every = [pair for of in asked.values() for pair in of if pair is not None]
    once = list(dict.fromkeys(every))
    known = dict(zip(once, losses(loaded, once), strict=True))
    found = {which: [pair and known[pair] for pair in of] for which, of in asked.items()}
    return {"model": row["model"], "kind": row["kind"], "reader": reader, **found}
