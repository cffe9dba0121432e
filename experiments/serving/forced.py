"""Forced tokens: how many ids of a JSON text are certain before the model is asked.

Along the ids of real instances of real schemas: what is certain by the canonical automaton, by the
lift, and what the published heuristic appends (`chop`, giving back up to 0, 1, 2 or 4 ids), with
how often its ids are ones that `encode` would not give. Then the same model writes under some of
the schemas with and without forced ids, and is counted and timed in one run. What cannot be had of
a schema is said in its row.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from bpe_automata import Constraint, Tokenizer, constrain
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._tokenizer.sources.named import names
from bpe_automata.errors import ArgumentError, BpeAutomataError
from bpe_automata.sampling import decode
from experiments.engines.peers import OutlinesCore
from experiments.run.config import option
from experiments.run.executors import FAILURE, Cell, Row
from experiments.run.files import ROOT, require
from experiments.run.measuring import Run
from experiments.schemas.inputs import SCHEMAS, Case, regex_cases, schema_cases
from experiments.serving.forced_report import TITLE, facts, readme, tables
from experiments.serving.forced_walks import GIVEN, STYLES, Item, item_of, sampled, walked
from experiments.shared.models import LoadedModel, OneModel, causal

__all__ = ["TITLE", "facts", "readme", "tables"]

VERSION = 2
TOKENIZERS = ("smollm2", "mistral-v1", "llama-3")
ALL = "all"


@dataclass(frozen=True)
class Config(OneModel):
    """What determines the counts and the texts."""

    schemas: Path = option(SCHEMAS, "folder of JSON lines of schemas and instances")
    regexes: Path | None = option(None, "file of JSON lines of regexes and texts, instead")
    sampled: int = option(60, "so many schemas, drawn with the seed; 0: all")
    tokenizers: tuple[str, ...] = option(TOKENIZERS, "names or paths; all: every one with a name")
    texts: int = option(10, "schemas under which a model writes; 0: none")
    most_ids: int = option(48, "of each of its texts, end of sequence included")

    def cases(self) -> dict[str, list[Case]]:
        """All that there are, by style of their texts."""
        if self.regexes:
            return {GIVEN: regex_cases(self.regexes)}
        return {style: schema_cases(self.schemas, style) for style in STYLES}


SMOKE = Config(
    regexes=ROOT / "experiments" / "serving" / "forced_small.jsonl",
    sampled=4,
    tokenizers=("smollm2",),
    texts=1,
    most_ids=6,
)


def inputs(chosen: Config) -> Row:
    """The version of what makes regexes of schemas, where it is there and has to."""
    version = None if chosen.regexes else OutlinesCore.version()
    return {"versions": {OutlinesCore.name: version} if version else {}}


def measure(run: Run[Config]) -> None:
    """A row per schema and style, then one per text that a model writes, which is timed."""
    made = run.config
    given = made.tokenizers
    tokenizers = names() if given == (ALL,) else given
    every = made.cases()
    styles = [*every]
    chosen = {style: sampled(of, made.sampled, made.seed) for style, of in every.items()}
    known = {"available": len(every[styles[0]]), "sampled": len(chosen[styles[0]])}
    run.note(**known, styles=styles, tokenizers=[*tokenizers])
    pairs = [
        (f"{k} {style}", case, style)
        for k, in_styles in enumerate(zip(*chosen.values(), strict=True))
        for style, case in zip(styles, in_styles, strict=True)
    ]
    walking = [Cell(key, measured, (one, style, tokenizers)) for key, one, style in pairs]
    run.cells(walking, what="walking")
    if made.texts:
        run.note(**made.opened().provenance())
        chosen_pairs = fit(run.rows, [pair for pair in pairs if pair[2] == styles[0]])
        jobs = cells(chosen_pairs, made)
        run.cells(jobs, alone=True, what="writing")


def measured(case: Case, style: str, tokenizers: Sequence[str]) -> Row:
    """All about one schema in one style; `refused`: why it has no automaton."""
    item = item_of(case, style)
    row: Row = {"kind": "schema", "id": case.id, "group": case.group, "style": style}
    row |= {"refused": item.refused, "characters": len(item.regex)}
    if item.dfa is None:
        return row
    row |= {"states": item.dfa.n_states, "texts": len(item.texts), "other": item.other}
    return row | {"tokenizers": {name: _walked(name, item) for name in tokenizers}}


@lru_cache(maxsize=16)
def tokenizer_of(name: str) -> Tokenizer:
    """Once a process."""
    return Tokenizer.load(name)


def _walked(name: str, item: Item) -> Row:
    if item.dfa is None or not item.texts:
        return {"texts": 0, "not_canonical": 0, "methods": {}}
    try:
        return walked(tokenizer_of(name), item.dfa, item.texts)
    except BpeAutomataError as error:
        return {FAILURE: f"{type(error).__name__}: {error}"}


# A real model, writing under schemas with and without forced ids.
#
# In both loops that can do so (`LOOPS`), what is forced goes through the model's cache
# together with the next id that is not. Both ways of a text follow each other at once, each first
# in half of the cases, on one model and one seed.


@dataclass(frozen=True)
class Asked:
    """dfa: what is to be written; prompt: ids; temperature: 0 is greedy; most_ids: end-of-sequence
    included."""

    dfa: ByteDFA
    prompt: tuple[int, ...]
    temperature: float
    seed: int
    most_ids: int

    def constraint(self, loaded: LoadedModel) -> Constraint:
        """Without any mask made yet."""
        return constrain(loaded.tokenizer, self.dfa, eos_ids=loaded.eos_ids)


Loop = Callable[[LoadedModel, Asked, bool], Row]
"""(what is loaded, what is asked, with forced ids?) -> seconds, passes, and what came out."""


def with_decode(loaded: LoadedModel, asked: Asked, forced: bool) -> Row:
    """The model reads the prompt before the clock starts, in both ways."""
    constraint, model = asked.constraint(loaded), causal(loaded)
    model(asked.prompt)
    before, started = model.passes, time.perf_counter()
    result = decode(
        model,
        constraint,
        asked.prompt,
        max_new_tokens=asked.most_ids,
        temperature=asked.temperature,
        seed=asked.seed,
        forced=forced,
    )
    seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "passes": model.passes - before,
        "forced": result.forced,
        "ids": list(result.ids),
    }


def with_generate(loaded: LoadedModel, asked: Asked, forced: bool) -> Row:
    """The prompt is read within the first pass, and its time, in both ways."""
    hosts, torch = require("bpe_automata.integrations.transformers"), require("torch")
    constraint = asked.constraint(loaded)
    inputs = hosts.padded([list(asked.prompt)], loaded.eos_ids[0])
    inputs = {name: tensor.to(loaded.model.device) for name, tensor in inputs.items()}
    torch.manual_seed(asked.seed)
    with _counted(loaded.model) as passes:
        started = time.perf_counter()
        masks = hosts.ConstraintLogitsProcessor(constraint, **inputs)
        loop = hosts.ForcedDecoding(masks) if forced else None
        out = loaded.model.generate(
            **inputs,
            custom_generate=loop,
            logits_processor=[masks],
            max_new_tokens=asked.most_ids,
            eos_token_id=list(loaded.eos_ids),
            pad_token_id=loaded.eos_ids[0],
            **_drawing(asked.temperature),
        )
        ids = out[0, len(asked.prompt) :].tolist()  # waits for the device
        seconds = time.perf_counter() - started
    count = loop.forced[0] if loop else 0
    text = ids[:-1] if ids[-1] in loaded.eos_ids else ids  # `decode` does not give the end back
    return {"seconds": seconds, "passes": len(passes), "forced": count, "ids": text}


def _drawing(temperature: float) -> Row:
    """From the whole distribution: what the model's generation config cuts off is not cut off."""
    if not temperature:
        return {"do_sample": False}
    return {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0}


@contextmanager
def _counted(model: Any) -> Iterator[list[None]]:
    """A list that grows by one with each forward pass of a model of torch."""
    passes: list[None] = []
    handle = model.register_forward_pre_hook(lambda module, args: passes.append(None))
    try:
        yield passes
    finally:
        handle.remove()


MODES = {"greedy": 0.0, "sampled": 1.0}
"""Name: temperature."""
MOST_STATES = 400
LOOPS: dict[str, Loop] = {"decode": with_decode, "generate": with_generate}


def fit(rows: Sequence[Row], pairs: Sequence[tuple[str, Case, str]]) -> list[tuple[Case, str]]:
    """Of (key of a row, case, style) those whose automaton is small."""
    states = {row["key"]: row.get("states") for row in rows if not row.get(FAILURE)}
    return [(case, s) for key, case, s in pairs if 0 < (states.get(key) or 0) <= MOST_STATES]


def cells(pairs: Sequence[tuple[Case, str]], made: Config) -> list[Cell]:
    """A few of them, each in both modes, in both loops."""

    def rank(pair: tuple[Case, str]) -> float:
        """Of the schema alone, so that one more that fits displaces at most one other."""
        return random.Random(f"{made.seed} {pair[0].group} {pair[0].id} {pair[1]}").random()

    chosen = sorted(pairs, key=rank)[: made.texts]
    return [
        Cell(
            f"generation {case.group} {case.id} {loop} {mode}",
            compared,
            (made, case, style, loop, mode, bool(number % 2)),
        )
        for number, (case, style) in enumerate(chosen)
        for loop in LOOPS
        for mode in MODES
    ]


def compared(made: Config, case: Case, style: str, loop: str, mode: str, forced_first: bool) -> Row:
    """One text, written twice by one loop."""
    loaded, item = made.opened(), item_of(case, style)
    if item.dfa is None:
        raise ArgumentError(f"{case.id} has no automaton: {item.refused}")
    prompt = tuple(loaded.prompt_ids(prompt_of(item)))
    asked = Asked(item.dfa, prompt, MODES[mode], made.seed, made.most_ids)
    ways = (True, False) if forced_first else (False, True)
    written = {way: LOOPS[loop](loaded, asked, way) for way in ways}
    ours, plain = written[True], written[False]
    row: Row = {"kind": "generation", "id": case.id, "loop": loop, "mode": mode}
    row |= {"same": ours.pop("ids") == plain["ids"], "ids": len(plain.pop("ids"))}
    return row | {"with": ours, "without": plain}


def prompt_of(item: Item) -> str:
    """A question in the chat format of the default model, which asks for such a text."""
    source = item.case.source
    about = json.dumps(source["schema"])[:600] if "schema" in source else item.case.id
    question = f"Give an example of a JSON object for this schema, without white space: {about}"
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
