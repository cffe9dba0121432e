"""Do constraints make a model's function calls right?

A model is asked to write the arguments of a call, for requests of BFCL whose right arguments are
known (`bfcl`), with each method alike after the same prompt:

- *free*: no mask; an answer that is not valid is thrown away and asked for again;
- *lift*: all tokenizations of the valid arguments; *chop*: the same through the published heuristic
  for forced text (`answers.methods`); *canonical*: the tokenizer's own tokenizations;
- *canonical SMC*: a population under the canonical mask, weighed and resampled on its way
  (`bpe_automata.sampling._smc`), of which one text is taken by its weight.

Each writes once with the likeliest ids, but for populations, which are always drawn, and several
times with drawn ones. The likeliest ids are taken in a second style of JSON, too, after the same
prompt: what a tokenizer makes of a style may be tokens that a model has hardly seen. An answer ends
with its closing brace, a free one with that of the first object in it: what a model would have said
behind it is not asked for. What an answer costs is counted as `writing` says; the prompt counts
once for all attempts and for a whole population, and what follows it adds up.

Requests are asked in plain text, with an example before them, in both models alike: in its chat
format SmolLM2 answers most of them with prose or with Python.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bpe_automata import constrain
from bpe_automata._decoding.constraint import Method
from experiments import models
from experiments.answers import bfcl
from experiments.answers.bfcl import Bounds, Request, Style
from experiments.answers.methods import ChopLanguage
from experiments.models import Device, Dtype, LoadedModel, models_there, special_ids
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Cell, Row
from experiments.run.measuring import Run
from experiments.run.provenance import file_sha256
from experiments.schemas.judge import Verdicts
from experiments.study.accuracy.report import (
    CANONICAL,
    CHOP,
    FREE,
    LIFT,
    METHODS,
    SMC,
    TITLE,
    facts,
    figures,
    readme,
    tables,
)
from experiments.study.accuracy.writing import (
    Free,
    Node,
    Population,
    Tree,
    opened,
    timed,
    value_in,
    write,
)

__all__ = ["LONG", "SMOKE", "TITLE", "VERSION", "Config", "facts", "figures", "inputs", "measure"]
__all__ += ["readme", "tables"]

VERSION = 1
LONG = True
OF_A_ROW = 8
"""Requests that are answered side by side."""


@dataclass(frozen=True)
class Config(config.Config):
    """Who answers how many requests, and how."""

    models: tuple[str, ...] = option((models.SMOLLM2, models.GEMMA), "packaged, folder or hub id")
    requests: int = option(200, "drawn from all that can be asked")
    file: Path | None = option(None, "of requests with their answers, in the place of BFCL's")
    seeds: int = option(3, "drawn answers of each method")
    temperature: float = option(0.7, "of these")
    retries: int = option(2, "of a free answer, as long as it is not valid")
    particles: int = option(8, "of a population")
    style: Style = option("spaced", "of the JSON")
    other_style: Style = option("compact", "of the likeliest ids, too")
    ids: int = option(32, "of an answer, at most")
    device: Device = option("auto", "where the models run")
    dtype: Dtype = option("float32", "of the arithmetic")


SMOKE = Config(
    models=(models.SMOLLM2,),
    requests=2,
    file=Path(__file__).with_name("smoke_requests.jsonl"),
    seeds=1,
    retries=1,
    particles=2,
    ids=12,
)


def inputs(chosen: Config) -> Row:
    """The digests of BFCL's files. Raises MissingDependencyError where they are not installed."""
    every = [path for pair in files(chosen) for path in pair]
    # Requests and answers have one name, in two folders.
    return {"bfcl": {f"{path.parent.name}/{path.name}": file_sha256(path) for path in every}}


def files(chosen: Config) -> list[tuple[Path, Path]]:
    """(requests, answers), by category."""
    if chosen.file is not None:
        return [(chosen.file, chosen.file)]
    return [bfcl.files_of(category) for category in bfcl.CATEGORIES]


def every_request(chosen: Config) -> dict[str, Request]:
    """By id."""
    return {one.id: one for pair in files(chosen) for one in bfcl.requests_of(*pair)}


def measure(run: Run[Config]) -> None:
    """A row for each model, one with the requests that are asked, and one for every few requests
    and each model. A model that is not there is one failure, and answers nothing."""
    chosen = run.config
    there = models_there(run, chosen.models, chosen.device, chosen.dtype)
    run.cells([Cell("requests", requests_row, (chosen,))], what="compiling schemas")
    if (row := run.store.rows["requests"]).get(FAILURE):
        return
    known = every_request(chosen)
    order = [known[name] for name in row["requests"]]
    run.cells(
        [
            Cell(
                f"{name} {first}",
                answered,
                (name, order[first : first + OF_A_ROW], chosen),
            )
            for first in range(0, len(order), OF_A_ROW)
            for name in there
        ],
        what="answering",
    )


def requests_row(chosen: Config) -> Row:
    """The requests that are asked, and why others are not."""
    every = every_request(chosen)
    found, refused = bfcl.drawn(
        every.values(), chosen.requests, chosen.seed, Bounds(), (chosen.style, chosen.other_style)
    )
    return {"requests": [one.id for one in found], "refused": refused, "of": len(every)}


# ---------------------------------------------------------------- answers


def answered(name: str, requests: Sequence[Request], chosen: Config) -> Row:
    """The answers to some requests, of each method."""
    loaded = models.opened(name, chosen.device, chosen.dtype)
    prompts = [loaded.prompt_ids(one.prompt()) for one in requests]
    tree = Tree(loaded.model, loaded.tokenizer.n_ids)
    spent, logits = timed(partial(tree.read_prompts, prompts))
    every_one, share = wanted(chosen), spent / len(prompts)
    each = [
        Answers(loaded, request, number, ids, every_one, chosen, share)
        for number, (request, ids) in enumerate(zip(requests, prompts, strict=True))
    ]
    every = [population for answers in each for population in answers.populations.values()]
    write(every, tree, logits, chosen.ids, chosen.temperature)
    return {"model": name, "texts": [row for answers in each for row in answers.rows()]}


class Asked(NamedTuple):
    """seed: None for the likeliest ids; attempt: of a free text."""

    method: str
    style: str
    seed: int | None
    attempt: int = 0


def wanted(chosen: Config) -> list[Asked]:
    """All that is asked after one prompt."""
    found = [Asked(method, chosen.style, None) for method in METHODS if method != SMC]
    found += [Asked(method, chosen.other_style, None) for method in (LIFT, CHOP, CANONICAL)]
    for method in METHODS:
        attempts = 1 + chosen.retries if method == FREE else 1
        found += [
            Asked(method, chosen.style, seed, attempt)
            for seed in range(chosen.seeds)
            for attempt in range(attempts)
        ]
    return found


class Answers:
    """Of a model to one request. number: of its prompt; asked: what is; reading: seconds that the
    prompt took."""

    def __init__(
        self,
        loaded: LoadedModel,
        request: Request,
        number: int,
        prompt: Sequence[int],
        asked: Sequence[Asked],
        chosen: Config,
        reading: float,
    ) -> None:
        self.loaded, self.request, self.number, self.prompt = loaded, request, number, prompt
        self.chosen, self.reading, self._verdicts = chosen, reading, Verdicts(request.schema())
        self._special = special_ids(loaded)
        roots = dict[tuple[str, str], Node]()
        for key in dict.fromkeys((one.method, one.style) for one in asked):
            spent, roots[key] = timed(partial(self._root, *key))
            roots[key].seconds += spent + reading
        self.populations = {
            one: self._population(roots[one.method, one.style], one) for one in asked
        }

    def rows(self) -> list[Row]:
        """Of what was written: one for each of `wanted`, but that the attempts of a free text are
        one: those up to the first that is valid, the last if none is. (All are drawn side by
        side.)"""
        found = dict[Asked, Row]()
        for one, population in self.populations.items():
            first, row = one._replace(attempt=0), self._row(one, population)
            if first not in found:
                found[first] = row
            elif not found[first]["valid"]:
                found[first] = row | {name: found[first][name] + row[name] for name in SUMS}
                found[first]["positions"] -= len(self.prompt)
                found[first]["seconds"] -= self.reading
        return list(found.values())

    def _root(self, method: str, style: str) -> Node:
        """Each method has a constraint of its own, so that it makes its own masks."""
        tokenizer, words = self.loaded.tokenizer, (self.loaded.tokenizer.n_ids + 31) // 32
        if method == FREE:
            return opened(Free(tokenizer, tuple(self.prompt), self._special), self.number, words)
        dfa = bfcl.language(self.request, Bounds(), style)
        kind: Method = "lift" if method in (LIFT, CHOP) else "canonical"
        constraint = constrain(tokenizer, dfa, kind, eos_ids=())
        language = ChopLanguage(constraint) if method == CHOP else constraint
        return opened(language.matcher(self.prompt), self.number, words)

    def _population(self, root: Node, one: Asked) -> Population:
        request = zlib.crc32(self.request.id.encode())
        rng = np.random.default_rng([self.chosen.seed, request, one.seed or 0, one.attempt])
        n = self.chosen.particles if one.method == SMC else 1
        numbers = None if one.seed is None else rng.random((n, self.chosen.ids))
        return Population([root] * n, numbers, rng)

    def _row(self, one: Asked, population: Population) -> Row:
        node, tokenizer = population.taken(), self.loaded.tokenizer
        ids = [token for token in node.text[1] if token not in self._special]
        text = tokenizer.decode(ids, self.prompt)
        value = value_in(text) if node.ended else None
        whole = self.loaded.prompt_ids(self.request.prompt() + text)
        return {
            **{"request": self.request.id, "method": one.method, "style": one.style},
            **{"seed": one.seed, "text": text, "ended": node.ended, "ids": len(node.text[1])},
            "valid": value is not None and self._verdicts.is_valid(value),
            "right": value is not None and self.request.is_right(value),
            "own": whole == [*self.prompt, *ids] if node.ended else None,
            **{"attempts": 1, "passes": population.passes},
            "positions": population.positions + len(self.prompt),
            "seconds": round(population.seconds, 4),
        }


SUMS = ("attempts", "passes", "positions", "seconds")
"""Of a row: what all attempts add to."""
