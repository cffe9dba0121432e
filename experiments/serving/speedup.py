"""What exactness saves while a model writes: passes, runs and wall time, canonical against lift.

A model writes under schemas of several families, with the canonical constraint and with the lift,
each with and without feeding forced ids in one pass, and with the lift and the published heuristic
for forced ids (`chop`). All ways of a cell (a schema and a seed) begin after the same prompt, with
the same seed, one after the other in one warm process, in an order that rotates from cell to cell;
each has a constraint of its own, so that its masks are made on the way.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from bpe_automata import Constraint, compile_regex, constrain
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._constructions.engine import TextEngine
from bpe_automata._decoding.constraint import Method
from bpe_automata._decoding.forced import Forced, bytes_from, forced_tokens
from bpe_automata._kernels.bits import only
from bpe_automata.errors import ArgumentError, BpeAutomataError
from bpe_automata.sampling._logits import Model, draw, log_probabilities
from bpe_automata.schemas import json_schema
from experiments.models import LoadedModel, OneModel, causal
from experiments.run.config import option
from experiments.run.executors import Cell, Row
from experiments.run.files import ROOT, lines_of
from experiments.run.measuring import Run
from experiments.schemas.inputs import SCHEMAS, schema_cases
from experiments.serving.forced_walks import chop
from experiments.serving.speedup_report import TITLE, facts, figures, readme, tables, wrong
from experiments.shared.resources import timed

__all__ = ["TITLE", "facts", "figures", "readme", "tables", "wrong"]

VERSION = 1
FUNCTIONS = "functions"
"""The family that is part of the repository: the parameters of function calls."""


@dataclass(frozen=True)
class Config(OneModel):
    """What determines the texts. The default takes about 8 minutes on two CPU cores."""

    schemas: Path = option(SCHEMAS, "folder of JSON lines of schemas, a family a file")
    families: tuple[str, ...] = option((), "some of the families; none: all")
    each: int = option(6, "schemas of each family, drawn with the seed")
    seeds: int = option(1, "texts of each schema")
    temperature: float = option(0.7, "of the drawing; 0: the likeliest id")
    most_ids: int = option(40, "of each text, end of sequence included")
    whitespace: Literal["compact", "spaced", "flexible"] = option("compact", "style of the texts")
    closed: bool = option(True, "has an object no properties that its schema does not name?")
    most_states: int = option(5_000, "schemas with a larger automaton are passed over")


SMOKE = Config(families=(FUNCTIONS,), each=1, most_ids=6)


def measure(run: Run[Config]) -> None:
    """A row per schema and seed."""
    made = run.config
    loaded = made.opened()
    run.note(**loaded.provenance())
    chosen, over = [], {}
    for name, tasks in families_of(made.schemas, made.families).items():
        found, over[name] = passed_over(tasks, made, made.each, f"{made.seed} {name}")
        chosen += found
    run.note(passed_over=over)
    warmed(loaded)
    asked = [(task, made.seed + k) for task in chosen for k in range(made.seeds)]
    cells = [
        Cell(f"{task.family} {task.id} {seed}", compared, (task, made, seed, turn))
        for turn, (task, seed) in enumerate(asked)
    ]
    run.cells(cells, alone=True)


# Schemas by family, and what a model is asked to write under them.

_FUNCTIONS = ROOT / "experiments" / "article" / "schemas.jsonl"
_MOST_ASKED = 400
"""Characters of a schema that stand in a prompt."""


@dataclass(frozen=True)
class Task:
    """family; id: unique in it; schema: as JSON."""

    family: str
    id: str
    schema: str

    def prompt(self) -> str:
        """A question in the chat format of the default model, which asks for such a text."""
        question = (
            f"Call {self.id}. Answer with a JSON object for this schema, without white space: "
            f"{self.schema[:_MOST_ASKED]}"
        )
        return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


def families_of(folder: Path, names: Sequence[str] = ()) -> dict[str, list[Task]]:
    """All families: those of the folder, a file each, and FUNCTIONS. names: some of them only. The
    default folder need not be there. Raises ArgumentError, and MissingFileError for another folder
    that is not there, and for files that cannot be read."""
    found: dict[str, list[Task]] = {}
    if {*names} != {FUNCTIONS} and (folder.is_dir() or folder != SCHEMAS):
        for case in schema_cases(folder, "compact"):
            schema = json.dumps(case.source["schema"])
            found.setdefault(case.group, []).append(
                Task(case.group, case.id.split("---")[-1], schema)
            )
    found[FUNCTIONS] = [
        Task(FUNCTIONS, row["name"], json.dumps(row["parameters"])) for row in lines_of(_FUNCTIONS)
    ]
    unknown = [name for name in names if name not in found]
    if unknown:
        raise ArgumentError(f"no family is named {unknown[0]!r}; there are {', '.join(found)}")
    return {name: tasks for name, tasks in found.items() if not names or name in names}


def passed_over(
    tasks: Sequence[Task], made: Config, count: int, seed: str
) -> tuple[list[Task], dict[str, int]]:
    """(so many of them at random, reasons why others, met on the way, were passed over)."""
    found: list[Task] = []
    reasons: Counter[str] = Counter()
    for task in random.Random(seed).sample(list(tasks), len(tasks)):
        if len(found) == count:
            break
        why = _unfit(task, made)
        if why is None:
            found.append(task)
        else:
            reasons[why] += 1
    return found, dict(reasons)


def _unfit(task: Task, made: Config) -> str | None:
    """Why there is nothing to be measured under the schema."""
    try:
        dfa = dfa_of(task.schema, made.whitespace, made.closed)
    except BpeAutomataError as error:
        return type(error).__name__
    if dfa.n_states > made.most_states:
        return f"more than {made.most_states:,} states"
    only = dfa.walk(bytes_from(dfa, dfa.start))
    return None if len(dfa.live_bytes(only)) else "one text only"


@lru_cache(maxsize=256)
def dfa_of(
    schema: str, whitespace: Literal["compact", "spaced", "flexible"], closed: bool
) -> ByteDFA:
    """The automaton of a schema. Raises what `json_schema` raises."""
    made = json_schema(schema, whitespace=whitespace, closed=closed, order="schema")
    return made.to_dfa(depth=3)


# The loop of `sampling.decode`, with a clock between its parts and a choice of forced ids.
#
#     repeat: read the ids that are known; ask the model after them; draw one id under the mask
#
# The model keeps its cache: ids that are known go through it in one pass, with the next one that is
# drawn. Each id takes one uniform number from the generator, also one that is known, so the text is
# the same with and without `certain` ids.

T = TypeVar("T")
Known = Callable[[TextEngine[Any], Any, Sequence[int], int], Forced[Any]]
"""(engine, state, ids that led there with the prompt, most) -> the ids that come next, and the
state that they lead to."""


def nothing(engine: TextEngine[Any], state: Any, before: Sequence[int], most: int) -> Forced[Any]:
    """The model is asked for every id."""
    return Forced((), state)


def certain(engine: TextEngine[Any], state: Any, before: Sequence[int], most: int) -> Forced[Any]:
    """As long as one id only is possible; end-of-sequence too."""
    run = forced_tokens(engine, state, most)
    end = only(engine.mask(run.state)) if len(run.ids) < most else -1
    return Forced((*run.ids, end), run.state) if end in engine.eos_ids else run


def heuristic(engine: TextEngine[Any], state: Any, before: Sequence[int], most: int) -> Forced[Any]:
    """What `chop` appends."""
    ids = chop(engine, state, before)[:most]
    for token in ids:
        state = engine.step(state, token)
    return Forced(ids, state)


@dataclass
class Written:
    """ids: end-of-sequence included; runs: how many ids were known at once, each time; passes: of
    the model; seconds: all of them, and of them `model` and `masks` (what is known included; the
    rest is drawing)."""

    ids: list[int] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)
    passes: int = 0
    seconds: float = 0.0
    model: float = 0.0
    masks: float = 0.0

    def timed(self, part: str, call: Callable[..., T], *given: Any) -> T:
        """Call it, on the clock of a part."""
        started = time.perf_counter()
        found = call(*given)
        setattr(self, part, getattr(self, part) + time.perf_counter() - started)
        return found


def write(
    model: Model,
    engine: TextEngine[Any],
    prompt: Sequence[int],
    known: Known,
    *,
    most_ids: int,
    temperature: float,
    seed: int,
) -> Written:
    """One text of the engine after the prompt, which the model should have read already.

    Raises what the model raises, PromptError and LogitsError.
    """
    found, rng, started = Written(), np.random.default_rng(seed), time.perf_counter()
    state = found.timed("masks", engine.initial, prompt)
    while True:
        before, room = [*prompt, *found.ids], most_ids - len(found.ids)
        run = found.timed("masks", known, engine, state, before, room)
        if run.ids:
            found.runs.append(len(run.ids))
            found.ids += run.ids
            rng.random(len(run.ids))
            state = run.state
        bits = found.timed("masks", engine.mask, state)
        if len(found.ids) == most_ids or _over(engine, found.ids) or not bits.any():
            break
        logits = found.timed("model", model, [*prompt, *found.ids])
        found.passes += 1
        log_probs = log_probabilities(logits, engine.n_ids, temperature)
        allowed = np.unpackbits(bits.view(np.uint8), count=engine.n_ids, bitorder="little")
        token, _ = draw(log_probs, allowed.view(bool), rng.random(), greedy=not temperature)
        found.ids.append(token)
        if len(found.ids) == most_ids or _over(engine, found.ids):
            break
        state = found.timed("masks", engine.step, state, token)
    found.seconds = time.perf_counter() - started
    return found


def _over(engine: TextEngine[Any], ids: Sequence[int]) -> bool:
    return bool(ids) and ids[-1] in engine.eos_ids


@dataclass(frozen=True)
class Way:
    """name: of the row's part; method: whose masks; known: which ids are not asked for."""

    name: str
    method: Method
    known: Known


WAYS = (
    Way("lift", "lift", nothing),
    Way("lift forced", "lift", certain),
    Way("chop", "lift", heuristic),
    Way("canonical", "canonical", nothing),
    Way("canonical forced", "canonical", certain),
)
WARM = r'\{"a":(true|false|[0-9]+)\}'


def in_turn(turn: int) -> tuple[Way, ...]:
    """The ways in the order in which they are timed."""
    first = turn % len(WAYS)
    return WAYS[first:] + WAYS[:first]


def warmed(loaded: LoadedModel) -> None:
    """Each way once, so that no kernel is compiled or loaded on the clock."""
    prompt, made = loaded.prompt_ids("{"), Config(most_ids=6)
    for way in WAYS:
        _written(loaded, causal(loaded), compile_regex(WARM), prompt, way, made, 0)


def compared(task: Task, made: Config, seed: int, turn: int) -> Row:
    """The row of a cell. `own`: are the ids those that `encode` gives for the text? None where it
    was cut off. `same`: did forced ids change nothing?"""
    loaded, dfa = made.opened(), dfa_of(task.schema, made.whitespace, made.closed)
    text = task.prompt()
    prompt, model = loaded.prompt_ids(text), causal(loaded)
    ways, ids = {}, {}
    for way in in_turn(turn):
        constraint, row, written = _written(loaded, model, dfa, prompt, way, made, seed)
        ids[way.name] = written.ids
        ways[way.name] = row | _described(loaded, constraint, text, prompt, written)
    same = {method: ids[method] == ids[f"{method} forced"] for method in ("lift", "canonical")}
    cell = {"family": task.family, "schema": task.id, "seed": seed, "turn": turn}
    return cell | {"states": dfa.n_states, "prompt_ids": len(prompt), "same": same, "ways": ways}


def _written(
    loaded: LoadedModel,
    model: Model,
    dfa: ByteDFA,
    prompt: Sequence[int],
    way: Way,
    made: Config,
    seed: int,
) -> tuple[Constraint, Row, Written]:
    """One text. Its constraint has made no mask before, and the model has read the prompt when the
    clock starts (what it wrote before is cropped from its cache by that)."""
    prepared, constraint = timed(
        lambda: constrain(
            loaded.tokenizer, dfa, way.method, eos_ids=loaded.eos_ids, added_tokens=False
        )
    )
    model(prompt)
    found = write(
        model,
        constraint.engine,
        prompt,
        way.known,
        most_ids=made.most_ids,
        temperature=made.temperature,
        seed=seed,
    )
    row = {"ids": len(found.ids), "passes": found.passes, "runs": found.runs}
    row |= {"seconds": found.seconds, "model": found.model, "masks": found.masks}
    return constraint, row | {"prepared": prepared}, found


def _described(
    loaded: LoadedModel, constraint: Constraint, text: str, prompt: Sequence[int], found: Written
) -> Row:
    """What was written, gone through once more by a matcher. Raises TokenNotAllowedError where a
    mask does not allow an id, as may be so after a heuristic."""
    matcher = constraint.matcher(prompt)
    for token in found.ids:
        matcher.advance(token)
    ids = [token for token in found.ids if token not in loaded.eos_ids]
    ended = matcher.is_accepting
    answer = loaded.tokenizer.decode(ids, prompt)
    own = loaded.prompt_ids(text + answer) == [*prompt, *ids] if ended else None
    return {"ended": ended, "own": own, "text": answer, "bytes": len(answer.encode())}
