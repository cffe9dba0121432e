"""One schema and one seed: the same prompt answered in every way, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bpe_automata import Constraint, compile_regex, constrain
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.decoding.constraint import Method
from bpe_automata.sampling.logits import Model
from experiments.run.executors import Row
from experiments.serving.speedup_inputs import Task, Terms, dfa_of
from experiments.serving.speedup_loop import Known, Written, certain, heuristic, nothing, write
from experiments.shared import models
from experiments.shared.models import LoadedModel, Named, causal
from experiments.shared.resources import timed


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
    prompt, terms = loaded.prompt_ids("{"), Terms(most_ids=6)
    for way in WAYS:
        _written(loaded, causal(loaded), compile_regex(WARM), prompt, way, terms, 0)


def compared(named: Named, task: Task, terms: Terms, seed: int, turn: int) -> Row:
    """The row of a cell. `own`: are the ids those that `encode` gives for the text? None where it
    was cut off. `same`: did forced ids change nothing?"""
    loaded, dfa = models.opened(*named), dfa_of(task.schema, terms.whitespace, terms.closed)
    text = task.prompt()
    prompt, model = loaded.prompt_ids(text), causal(loaded)
    ways, ids = {}, {}
    for way in in_turn(turn):
        constraint, row, written = _written(loaded, model, dfa, prompt, way, terms, seed)
        ids[way.name] = written.ids
        ways[way.name] = row | _described(loaded, constraint, text, prompt, written)
    same = {method: ids[method] == ids[f"{method} forced"] for method in ("lift", "canonical")}
    place = {"family": task.family, "schema": task.id, "seed": seed, "turn": turn}
    return place | {"states": dfa.n_states, "prompt_ids": len(prompt), "same": same, "ways": ways}


def _written(
    loaded: LoadedModel,
    model: Model,
    dfa: ByteDFA,
    prompt: Sequence[int],
    way: Way,
    terms: Terms,
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
        most_ids=terms.most_ids,
        temperature=terms.temperature,
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
