"""Forced tokens: how many ids of a text are certain before the model is asked, and what that saves.

*Known*: along the ids of valid instances of real schemas, as regexes that outlines-core makes: what
is certain by the canonical automaton, by the lift, and what the published heuristic appends
(`chop`, giving back up to 0, 1, 2 or 4 ids, or 7 bytes, or 4 ids whatever the grammar allows). A
run is compared with the ids that come; if it departs, the ids up to there are known, the next one
is taken from the text, and it is looked whether any text of the language, or any text at all, is
tokenized so. *Texts*: a model writes under some of the schemas with and without forced ids, by
`decode` and by transformers' `generate`.
*Ways*: it writes under schemas of several families with the canonical constraint, the lift, and the
lift with `chop`, each with and without feeding known ids in one pass, one after the other in one
warm process.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bpe_automata import Constraint, Tokenizer, compile_regex, constrain
from bpe_automata._automata.compile import Budget
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._constructions.engine import TextEngine
from bpe_automata._core.canonical import CanonicalState
from bpe_automata._decoding.constraint import Method
from bpe_automata._decoding.forced import Forced, bytes_from, forced_tokens
from bpe_automata._kernels.bits import has, only
from bpe_automata.errors import BpeAutomataError
from bpe_automata.sampling import decode
from bpe_automata.sampling._logits import Model, draw, log_probabilities
from bpe_automata.schemas import json_schema
from experiments.artefacts.figures import FUNCTIONS
from experiments.chop import chop, chopped, encoded
from experiments.engines import INSTALL
from experiments.files import lines_of, require
from experiments.inputs import SCHEMAS, SMOKE_SCHEMAS, Case, files_of, schema_cases
from experiments.lab import Row
from experiments.models import LoadedModel, causal, device_name, opened
from experiments.resources import timed
from experiments.show import (
    CANONICAL,
    LIFT,
    PALE,
    Figure,
    Table,
    fixed,
    interval,
    panels,
    percent,
    scaled,
    whole,
)
from experiments.statistics import median_interval

TITLE, TIMED, LONG = "Forced tokens", True, True
PACKAGES = ("outlines_core",)
STYLES = {"compact": "", "spaced": None}
"""By style of the texts: what outlines-core puts where white space may be (None: `[ ]?`)."""
CHOPS: dict[str, Row] = {f"chop {k}": {"max_tokens": k} for k in (0, 1, 2, 4)}
CHOPS["chop 7 bytes"] = {"max_tokens": 1, "least_bytes": 7}
CHOPS["chop 4, no grammar"] = {"max_tokens": 4, "grammar": False}
METHODS = ("canonical", "lift", *CHOPS)
COUNTS = ("ids", "known", "runs", "departing", "no_match", "no_text")
LONGEST, BUDGET = 20_000, Budget(max_states=5_000, max_seconds=20)
"""Characters of a regex (outlines-core makes up to 27 million of one schema), and of its
automaton."""
MOST_STATES = 400
"""Of a schema that a model writes under with and without."""
MODES = {"greedy": 0.0, "sampled": 1.0}
PUBLISHED = {"canonical": "20.4 %", "lift": "4.0 %", "chop 4": "12.7 %"}
PUBLISHED["chop 4, no grammar"] = "12.1 %"
PUBLISHED_WRONG = {"chop 0": "97 %", "chop 1": "23 runs", "chop 2": "none", "chop 4": "none"}
PUBLISHED_WRONG["chop 7 bytes"] = "none"


@dataclass(frozen=True)
class Config:
    """sampled: schemas that are walked; texts: of them, under which a model writes, at most
    most_ids each; each: schemas of each family; way_ids, temperature: of their texts; largest:
    states of their automata."""

    schemas: Path = SCHEMAS
    sampled: int = 60
    tokenizers: tuple[str, ...] = ("smollm2", "mistral-v1", "llama-3")
    texts: int = 10
    most_ids: int = 48
    each: int = 6
    way_ids: int = 40
    temperature: float = 0.7
    largest: int = 5_000
    model: str = "smollm2"
    device: str = "auto"
    dtype: str = "float32"
    seed: int = 0


SMOKE = Config(SMOKE_SCHEMAS, 2, ("smollm2",), texts=1, most_ids=6, each=1, way_ids=6)


def cells(config: Config) -> list[Row]:
    """A schema in a style; a text in a loop and mode; a schema of a family."""
    n = len(sampled(config.schemas, "compact", config.sampled, config.seed))
    loops = [(loop, mode) for loop in LOOPS for mode in MODES]
    walks = [{"part": "known", "style": s, "index": k} for k in range(n) for s in STYLES]
    texts = [
        {"part": "texts", "index": k, "loop": loop, "mode": mode}
        for k in range(config.texts)
        for loop, mode in loops
    ]
    names = [*dict.fromkeys(path.name.split(".")[0] for path in files_of(config.schemas))]
    families = [*names, "functions"]
    ways = [{"part": "ways", "family": f, "index": k} for f in families for k in range(config.each)]
    return [*walks, *texts, *ways]


def measure(
    config: Config,
    part: str,
    index: int,
    style: str = "compact",
    loop: str = "",
    mode: str = "",
    family: str = "",
) -> list[Row] | Row:
    """Counts of each tokenizer and method; of a text, what it took both ways; or a row of each
    way."""
    if part == "ways":
        return ways(config, family, index)
    if part == "texts":
        return with_and_without(config, index, loop, mode)
    case = sampled(config.schemas, style, config.sampled, config.seed)[index]
    dfa, texts, other, refused = item_of(case, style)
    row: Row = {"id": case.id, "texts": len(texts), "other": other}
    if dfa is None:
        return row | {"refused": refused}
    return [
        row | {"tokenizer": name, **counts}
        for name in config.tokenizers
        for counts in walked(tokenizer_of(name), dfa, texts)
    ]


@cache
def tokenizer_of(name: str) -> Tokenizer:
    """Once a process."""
    return Tokenizer.load(name)


@lru_cache(maxsize=2)
def sampled(place: Path, style: str, count: int, seed: int) -> list[Case]:
    """So many at random, in their order."""
    every = schema_cases(place, style)
    chosen = random.Random(seed).sample(range(len(every)), min(count, len(every)))
    return [every[k] for k in sorted(chosen)]


def item_of(case: Case, style: str) -> tuple[ByteDFA | None, tuple[str, ...], int, str]:
    """(the automaton, or None; the valid texts that it accepts; how many it does not; why there is
    none)."""
    build = require("outlines_core.json_schema", INSTALL).build_regex_from_schema
    try:
        regex = str(build(json.dumps(case.source["schema"]), STYLES[style]))
        if len(regex) > LONGEST:
            return None, (), 0, f"a regex of more than {LONGEST:,} characters"
        dfa = compile_regex(regex, BUDGET)
    except BpeAutomataError as error:
        return None, (), 0, f"{type(error).__name__}: {str(error)[:60]}"
    except (ValueError, RecursionError) as error:
        return None, (), 0, f"outlines-core: {str(error)[:60]}"
    # What `re.fullmatch` says too; but that takes exponential time on some of these regexes.
    fit = tuple(text for text in case.valid if dfa.accepts(text.encode("utf-8", "replace")))
    return dfa, fit, len(case.valid) - len(fit), ""


# What is known of given texts.


def walked(tokenizer: Tokenizer, dfa: ByteDFA, texts: Sequence[str]) -> list[Row]:
    """Counts of each method over all texts. ids: of all; known: those that a method had right;
    departing: runs that are not what the text goes on with; no_match: that no text of the language
    has there; no_text: that no text has; left_out: texts without canonical ids."""
    canonical: Any = constrain(tokenizer, dfa).engine
    lift: Any = constrain(tokenizer, dfa, "lift").engine
    totals, left_out = {method: Counter(dict.fromkeys(COUNTS, 0)) for method in METHODS}, 0
    for text in texts:
        ids, states = tuple(tokenizer.encode(text)), [(canonical.initial(), lift.initial())]
        read = [canonical.canonical.start]
        for token in ids:
            after = canonical.canonical.step(read[-1], token)
            if after is None or not has(canonical.mask(states[-1][0]), token):
                break
            read.append(after)
            states.append((canonical.step(states[-1][0], token), lift.step(states[-1][1], token)))
        if len(read) <= len(ids) or not canonical.accepting(states[-1][0]):
            left_out += 1
            continue
        for method, of in totals.items():
            runs = runs_of(method, canonical, lift, states, ids)
            of.update(counted(runs, ids, canonical, [own for own, _ in states], read))
    return [{"method": name, "left_out": left_out, **of} for name, of in totals.items()]


def runs_of(
    method: str, canonical: Any, lift: Any, states: list[tuple[Any, Any]], ids: tuple[int, ...]
) -> Callable[[int], Sequence[int]]:
    """The run that a method knows after so many ids."""
    if method == "canonical":
        return lambda k: forced_tokens(canonical, states[k][0]).ids
    if method == "lift":
        return lambda k: forced_tokens(lift, states[k][1]).ids

    def run(k: int) -> Sequence[int]:
        state, made = encoded(canonical, states[k][0], ids[:k])
        return chopped(canonical.tokenizer, canonical.dfa, state, made, **CHOPS[method])

    return run


def counted(
    runs: Callable[[int], Sequence[int]],
    ids: Sequence[int],
    canonical: Any,
    states: list[Any],
    read: list[CanonicalState],
) -> Counter[str]:
    """One method along one text."""
    counts, k = Counter(ids=len(ids)), 0
    while k < len(ids):
        run, rest = runs(k), ids[k:]
        differ = (n for n, (a, b) in enumerate(zip(run, rest, strict=False)) if a != b)
        agreed = next(differ, min(len(run), len(rest)))
        counts.update(runs=bool(run), known=agreed)
        if agreed < len(run):
            counts.update(departing=1, no_match=not follows(canonical, states[k], run))
            after: CanonicalState | None = read[k]
            for token in run:
                after = None if after is None else canonical.canonical.step(after, token)
            counts["no_text"] += after is None
        k += agreed + (agreed < len(run) or not run)
    return counts


def follows(engine: Any, state: Any, run: Sequence[int]) -> bool:
    """Can these ids come next?"""
    for token in run:
        if not has(engine.mask(state), token):
            return False
        state = engine.step(state, token)
    return True


# A model, writing with and without forced ids. In both loops what is forced goes through the
# model's cache together with the next id that is not.


@lru_cache(maxsize=1)
def fitting(config: Config) -> list[Case]:
    """Some of those with a small automaton, in an order that depends on each alone."""
    every = sampled(config.schemas, "compact", config.sampled, config.seed)
    small = [c for c in every if (dfa := item_of(c, "compact")[0]) and dfa.n_states <= MOST_STATES]

    def rank(case: Case) -> float:
        return random.Random(f"{config.seed} {case.group} {case.id} compact").random()

    return sorted(small, key=rank)[: config.texts]


def with_and_without(config: Config, index: int, loop: str, mode: str) -> Row:
    """One text, written both ways by one loop; which is first rotates."""
    loaded, case = opened(config.model, config.device, config.dtype), fitting(config)[index]
    dfa, *_ = item_of(case, "compact")
    about = json.dumps(case.source["schema"])[:600]
    question = f"Give an example of a JSON object for this schema, without white space: {about}"
    prompt = loaded.prompt_ids(chat(question))
    made: dict[bool, Row] = {}
    for forced in (True, False) if index % 2 else (False, True):
        constraint = constrain(loaded.tokenizer, dfa, eos_ids=loaded.eos_ids)
        made[forced] = LOOPS[loop](loaded, constraint, prompt, MODES[mode], config, forced)
    row: Row = {"id": case.id, "model": loaded.name, "written": len(made[False]["ids"])}
    row |= {"same": made[True]["ids"] == made[False]["ids"], "forced": made[True]["forced"]}
    ways_ = {"with": made[True], "without": made[False]}
    return row | {f"{part} {w}": one[part] for w, one in ways_.items() for part in ("passes", "s")}


def chat(question: str) -> str:
    """In the format of the default model."""
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


def with_decode(
    loaded: LoadedModel,
    constraint: Constraint,
    prompt: list[int],
    temperature: float,
    config: Config,
    forced: bool,
) -> Row:
    """The model reads the prompt before the clock starts."""
    model = causal(loaded)
    model(prompt)
    before = model.passes
    options: Row = {"max_new_tokens": config.most_ids, "seed": config.seed}
    options |= {"temperature": temperature, "forced": forced}
    spent, made = timed(lambda: decode(model, constraint, prompt, **options))
    return {"s": spent, "passes": model.passes - before, "forced": made.forced, "ids": [*made.ids]}


def with_generate(
    loaded: LoadedModel,
    constraint: Constraint,
    prompt: list[int],
    temperature: float,
    config: Config,
    forced: bool,
) -> Row:
    """The prompt is read within the first pass, and its time."""
    hosts, torch = require("bpe_automata.integrations.transformers"), require("torch")
    inputs = hosts.padded([prompt], loaded.eos_ids[0])
    inputs = {name: tensor.to(loaded.model.device) for name, tensor in inputs.items()}
    # From the whole distribution: what the model's generation config cuts off is not cut off.
    drawing: Row = {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0}
    torch.manual_seed(config.seed)
    with counting(loaded.model) as passes:
        started = time.perf_counter()
        masks = hosts.ConstraintLogitsProcessor(constraint, **inputs)
        loop = hosts.ForcedDecoding(masks) if forced else None
        out = loaded.model.generate(
            **inputs,
            custom_generate=loop,
            logits_processor=[masks],
            max_new_tokens=config.most_ids,
            eos_token_id=list(loaded.eos_ids),
            pad_token_id=loaded.eos_ids[0],
            **(drawing if temperature else {"do_sample": False}),
        )
        ids = out[0, len(prompt) :].tolist()  # waits for the device
        spent = time.perf_counter() - started
    ids = ids[:-1] if ids[-1] in loaded.eos_ids else ids  # `decode` does not give the end back
    return {"s": spent, "passes": len(passes), "forced": loop.forced[0] if loop else 0, "ids": ids}


LOOPS = {"decode": with_decode, "generate": with_generate}


@contextmanager
def counting(model: Any) -> Iterator[list[None]]:
    """A list that grows by one with each forward pass of a model of torch."""
    passes: list[None] = []
    handle = model.register_forward_pre_hook(lambda module, args: passes.append(None))
    try:
        yield passes
    finally:
        handle.remove()


# All ways under schemas of families.

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


WAYS: dict[str, tuple[Method, Known]] = {
    "lift": ("lift", nothing),
    "lift forced": ("lift", certain),
    "chop": ("lift", heuristic),
    "canonical": ("canonical", nothing),
    "canonical forced": ("canonical", certain),
}
AGAINST = {"canonical forced": "canonical", "lift forced": "lift", "chop": "lift"}
"""Each way that knows ids, and the way without that it is held against. `chop` may write another
text than that one, and is compared by seconds for each id."""


@lru_cache(maxsize=1)
def chosen(config: Config, family: str) -> list[tuple[str, str, ByteDFA]]:
    """(name, schema, automaton) of a few of a family, at random; passed over: what has no
    automaton, a large one, or one text only."""
    tasks = [(f["name"], json.dumps(f["parameters"])) for f in lines_of(FUNCTIONS)]
    if family != "functions":
        every = schema_cases(config.schemas, "compact")
        own = [case for case in every if case.group == family]
        tasks = [(case.id.split("---")[-1], json.dumps(case.source["schema"])) for case in own]
    found = list[tuple[str, str, ByteDFA]]()
    for name, schema in random.Random(f"{config.seed} {family}").sample(tasks, len(tasks)):
        if len(found) == config.each:
            break
        try:
            dfa = json_schema(schema, closed=True, order="schema").to_dfa(depth=3)
        except BpeAutomataError:
            continue
        end = dfa.walk(bytes_from(dfa, dfa.start))
        if dfa.n_states <= config.largest and len(dfa.live_bytes(end)):
            found.append((name, schema, dfa))
    return found


@cache
def warmed(loaded: LoadedModel) -> None:
    """Each way once, so that no kernel is compiled or loaded on the clock."""
    dfa, prompt = compile_regex(r'\{"a":(true|false|[0-9]+)\}'), loaded.prompt_ids("{")
    for way in WAYS:
        of_way(loaded, causal(loaded), dfa, prompt, way, Config(way_ids=6))


def ways(config: Config, family: str, index: int) -> list[Row]:
    """A row of each way, in an order that rotates. own: are the ids those that `encode` gives for
    the text? None where it was cut off."""
    loaded = opened(config.model, config.device, config.dtype)
    warmed(loaded)
    name, schema, dfa = chosen(config, family)[index]
    text = chat(
        f"Call {name}. Answer with a JSON object for this schema, without white space: "
        f"{schema[:400]}"
    )
    prompt, model, rows = loaded.prompt_ids(text), causal(loaded), list[Row]()
    names, turn = [*WAYS], index % len(WAYS)
    for way in names[turn:] + names[:turn]:
        constraint, written, row = of_way(loaded, model, dfa, prompt, way, config)
        matcher = constraint.matcher(prompt)
        for token in written:  # raises where a mask does not allow one, as after a heuristic
            matcher.advance(token)
        ids = [token for token in written if token not in loaded.eos_ids]
        answer, ended = loaded.tokenizer.decode(ids, prompt), matcher.is_accepting
        own = loaded.prompt_ids(text + answer) == [*prompt, *ids] if ended else None
        said = {"schema": name, "way": way, "model": loaded.name, "written": len(written)}
        said |= {"device": device_name(loaded.device), "ended": ended, "own": own, "text": answer}
        rows.append(said | {"bytes": len(answer.encode())} | row)
    by = {row["way"]: row["text"] for row in rows}
    same = {method: by[method] == by[f"{method} forced"] for method in ("lift", "canonical")}
    return [row | {"same": same.get(row["way"].split()[0])} for row in rows]


def of_way(
    loaded: LoadedModel, model: Any, dfa: ByteDFA, prompt: list[int], way: str, config: Config
) -> tuple[Constraint, list[int], Row]:
    """One text. Its constraint has made no mask before, and the model has read the prompt when the
    clock starts (what it wrote before is cropped from its cache by that)."""
    method, known = WAYS[way]
    options: Row = {"eos_ids": loaded.eos_ids, "added_tokens": False}
    prepared, constraint = timed(lambda: constrain(loaded.tokenizer, dfa, method, **options))
    model(prompt)
    found = write(model, constraint.engine, prompt, known, config)
    row = {"passes": found.passes, "runs": found.runs, "s": found.seconds, "prepared": prepared}
    return constraint, found.ids, row | {"model s": found.model, "masks s": found.masks}


@dataclass
class Written:
    """ids: end-of-sequence included; runs: how many ids were known at once, each time; passes: of
    the model; seconds: all of them, and of them `model` and `masks` (the rest is drawing)."""

    ids: list[int] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)
    passes: int = 0
    seconds: float = 0.0
    model: float = 0.0
    masks: float = 0.0

    def timed(self, part: str, call: Callable[..., Any], *given: Any) -> Any:
        """Call it, on the clock of a part."""
        spent, found = timed(lambda: call(*given))
        setattr(self, part, getattr(self, part) + spent)
        return found


def write(
    model: Model, engine: TextEngine[Any], prompt: Sequence[int], known: Known, config: Config
) -> Written:
    """The loop of `sampling.decode`, with a clock between its parts. Each id takes one uniform
    number from the generator, also one that is known, so the text is the same with `certain`."""
    found, rng, started = Written(), np.random.default_rng(config.seed), time.perf_counter()

    def is_over() -> bool:
        return len(found.ids) == config.way_ids or bool({*found.ids[-1:]} & {*engine.eos_ids})

    state = found.timed("masks", engine.initial, prompt)
    while True:
        before, room = [*prompt, *found.ids], config.way_ids - len(found.ids)
        run = found.timed("masks", known, engine, state, before, room)
        if run.ids:
            found.runs.append(len(run.ids))
            found.ids += run.ids
            rng.random(len(run.ids))
            state = run.state
        bits = found.timed("masks", engine.mask, state)
        if is_over() or not bits.any():
            break
        logits = found.timed("model", model, [*prompt, *found.ids])
        found.passes += 1
        log_probs = log_probabilities(logits, engine.n_ids, config.temperature)
        allowed = np.unpackbits(bits.view(np.uint8), count=engine.n_ids, bitorder="little")
        greedy = not config.temperature
        token, _ = draw(log_probs, allowed.view(bool), rng.random(), greedy=greedy)
        found.ids.append(token)
        if is_over():
            break
        state = found.timed("masks", engine.step, state, token)
    found.seconds = time.perf_counter() - started
    return found


# What the rows say.

TITLES = {
    "compact": "JSON without white space",
    "spaced": "a space is optional where JSON has white space, and written after , and :",
}
SHORT = {"canonical forced": "canonical", "lift forced": "lift", "chop": "lift, chop (heuristic)"}


def tables(rows: pd.DataFrame) -> list[Table]:
    """Known ids by style; texts with and without; ways by family, their runs and their time."""
    known = rows[rows["part"] == "known"]
    found = [known_table(of, str(style)) for style, of in known.groupby("style", sort=False)]
    return [*found, texts_table(rows[rows["part"] == "texts"]), *ways_tables(written(rows))]


def known_shares(known: pd.DataFrame) -> pd.DataFrame:
    """Sums of the counts by style, tokenizer and method."""
    by = ["style", "tokenizer", "method"]
    sums = known.dropna(subset=["method"]).groupby(by, sort=False)
    found = sums[["left_out", *COUNTS]].sum().astype(int).reset_index()
    return found.assign(share=found["known"] / found["ids"].replace(0, np.nan))


def reasons_of(once: pd.DataFrame) -> list[str]:
    """Why schemas have no automaton, of those that have none."""
    return [*once["refused"].dropna()] if "refused" in once else []


def known_table(known: pd.DataFrame, style: str) -> Table:
    """A line for each tokenizer and method."""
    sums, once = known_shares(known), known.drop_duplicates("index")
    data = sums[["tokenizer", "method"]].assign(**{"known ids": sums["share"]})
    data["published"] = data["method"].map(PUBLISHED)
    data["runs"] = sums["runs"]
    names = ("not of this text", "of no text that matches", "of no text at all")
    for name, count in zip(names, COUNTS[3:], strict=True):
        each = zip(sums[count], sums["runs"], strict=True)
        data[name] = [f"{k:,} ({percent(1)(k / n)})" if k else "0" for k, n in each]
    data["not canonical, published"] = data["method"].map(PUBLISHED_WRONG)
    refused = Counter(reason.split(":")[0] for reason in reasons_of(once))
    reasons = "; ".join(f"{reason} {n}" for reason, n in sorted(refused.items()))
    ids = sums[sums["method"] == METHODS[0]]
    of = zip(ids["tokenizer"], ids["ids"], ids["left_out"], strict=True)
    sizes = "; ".join(f"{name} {n:,} ids, {k} instances left out" for name, n, k in of)
    notes = f"""{len(once)} schemas; without a regex: {refused.total()} ({reasons or "none"})

        {once["texts"].sum():,.0f} valid instances match their regex and are walked;
        {once["other"].sum():,.0f} do not and are not; {sizes}

        a run: what a method appends at once; after one that is not of this text the walk goes on
        behind the id where it departs. Known ids: those that runs have right, of all ids

        published, heuristic: llguidance, docs/fast_forward.md, on MaskBench (about 10,000 tests)
        with Llama-3; there a run is not canonical where it is not of this text

        published, canonical and lift: 3,853 and 750 of 18,898 ids were the only ones that were
        allowed, in the companion notebook of Tran-Thien 2024: Mistral-7B, Outlines' regexes of
        function-calling schemas, along the texts of the data"""
    title = f"Ids that are known before the model is asked; {TITLES[style]}"
    return Table(title, data, {"known ids": percent(1), "runs": whole}, notes)


def texts_table(texts: pd.DataFrame) -> Table:
    """A line for each loop and mode."""
    by = texts.astype({"same": float}).groupby(["loop", "mode"], sort=False)
    names = ["written", "forced", "passes without", "passes with", "s without", "s with", "same"]
    data = by[names].sum().assign(texts=by.size()).reset_index()
    data["saved"] = 1 - data["passes with"] / data["passes without"]
    data["with / without"] = data["s with"] / data["s without"]
    each = zip(data["same"], data["texts"], strict=True)
    data["same ids"] = [f"{k:.0f} of {n}" for k, n in each]
    order = [
        "loop",
        "mode",
        "texts",
        *names[:4],
        "saved",
        *names[4:6],
        "with / without",
        "same ids",
    ]
    formats = dict.fromkeys(names[:4], whole) | {"saved": percent(1), "with / without": fixed(2)}
    note = f"""{texts["model"].iloc[0]}; each text is written both ways in turn, masks made on the
        way

        decode: `sampling.decode` with `CausalModel`, the prompt read beforehand; generate:
        `model.generate` of transformers with `ConstraintLogitsProcessor`, without and with
        `custom_generate=ForcedDecoding(processor)`, the prompt read in the first pass and timed"""
    formats |= dict.fromkeys(("s without", "s with"), fixed(1))
    return Table("Generation with and without forced ids", data[order], formats, note)


def written(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of ways, with ratios within their cell. saved: the share of the ids for which the
    model was not asked; wall: seconds an id, as a multiple of those without known ids;
    against_lift: seconds for each byte, as a multiple of those of the lift that asks for every id;
    ms an id."""
    found, cell = rows[rows["part"] == "ways"].copy(), ["family", "schema"]
    found["each"] = found["s"] / found["written"]
    found["a byte"] = found["s"] / found["bytes"].clip(lower=1)
    wide = found.set_index([*cell, "way"])
    keys = [found[name] for name in cell]
    base = pd.MultiIndex.from_arrays([*keys, found["way"].map(AGAINST).fillna(found["way"])])
    lift = pd.MultiIndex.from_arrays([*keys, pd.Series("lift", found.index)])
    found["saved"] = 1 - found["passes"] / found["written"]
    found["wall"] = found["each"] / wide["each"].loc[base].to_numpy()
    found["against lift"] = found["a byte"] / wide["a byte"].loc[lift].to_numpy()
    for part in ("model", "masks"):
        found[f"{part} ms"] = 1e3 * found[f"{part} s"] / found["written"]
    found["ms an id"] = 1e3 * found["each"]
    found["drawing ms"] = found["ms an id"] - found["model ms"] - found["masks ms"]
    return found.assign(**{"bytes an id": found["bytes"] / found["written"]})


def middle(values: pd.Series) -> tuple[float, float, float]:
    """(median, low, high) with an exact interval of 95 %; nan where values are too few."""
    return (float(values.median()), *(median_interval([*values]) or (np.nan, np.nan)))


def with_ends(format_: Callable[[float], str]) -> Callable[[Any], str]:
    """A `middle`, without brackets where there is no interval."""
    return lambda m: format_(m[0]) if np.isnan(m[1]) else interval(format_)(m)


def ways_tables(found: pd.DataFrame) -> list[Table]:
    """By family; lengths of runs; where the time goes."""
    families, lengths, parts = list[Row](), list[Row](), list[Row]()
    every = [*found.groupby("family", sort=False), ("all", found)]
    for family, way, of in ((f, w, g[g["way"] == w]) for f, g in every for w in SHORT):
        line = {"family": family, "constraint": SHORT[way], "texts": len(of)}
        line |= {"complete": of["ended"].sum(), "ids a text": of["written"].median()}
        families.append(line | {"passes saved": middle(of["saved"]), "wall": middle(of["wall"])})
    for way, short in SHORT.items():
        of = found[found["way"] == way]
        runs, ids = [run for each in of["runs"] for run in each], of["written"].sum()
        line = {"constraint": short, "ids": ids, "runs": len(runs)}
        line |= {"mean": np.mean(runs) if runs else None, "longest": max(runs, default=0)}
        shares = {f"in {k} or more": sum(r for r in runs if r >= k) / ids for k in (1, 2, 4, 8)}
        lengths.append(line | shares)
    for way in WAYS:
        of = found[found["way"] == way]
        ended, names = of[of["ended"].astype(bool)], ["ms an id", "model ms", "masks ms"]
        line = {"way": way, "ids a text": of["written"].median()}
        line |= {name: of[name].median() for name in ("bytes an id", *names, "drawing ms")}
        line["to prepare, ms"] = 1e3 * of["prepared"].median()
        line["own ids"] = f"{ended['own'].astype(bool).sum()} of {len(ended)}"
        parts.append(line | {"a byte, against the lift": middle(of["against lift"])})
    alike = found.dropna(subset=["same"]).groupby("way")["same"].sum()
    note = f"""{found["model"].iloc[0]} on {found["device"].iloc[0]}; medians over schemas, with
        exact intervals of the sign test (95 %; none with fewer than 6 schemas); all ways of a cell
        follow each other in one warm process, each with masks of its own, the prompt read before
        the clock

        wall: time with known ids fed in one pass, as a multiple of that with the model asked for
        each; the ids are the same in {alike["canonical"]} (canonical) and {alike["lift"]} (lift)
        of {found.drop_duplicates(["family", "schema"]).shape[0]} texts. chop: what llguidance
        appends, under the masks of the lift; it may write another text, so its time is for each id,
        against the lift without it"""
    share, two = with_ends(scaled(100, fixed(1))), with_ends(fixed(2))
    one = {"ids a text": "{:g}".format, "passes saved": share, "wall": two, "complete": whole}
    two_digits = dict.fromkeys(("bytes an id", "ms an id", "model ms", "masks ms"), fixed(2))
    last = two_digits | {"drawing ms": fixed(2), "to prepare, ms": fixed(1)}
    last |= {"a byte, against the lift": two, "ids a text": "{:g}".format}
    shown = {f"in {k} or more": percent(1) for k in (1, 2, 4, 8)}
    return [
        Table("Forced ids by family of schemas", pd.DataFrame(families), one, note),
        Table(
            "Lengths of forced runs",
            pd.DataFrame(lengths),
            {"ids": whole, "mean": fixed(2)} | shown,
            "a run: the ids that are known at once; in 4 or more: the share of ids in such runs",
        ),
        Table(
            "All ways, where their time goes",
            pd.DataFrame(parts),
            last,
            """medians over texts; masks: initial state, masks, what is known, steps, all made anew
            for each text; to prepare: the constraint, from the automaton of its schema

            own ids: complete texts with the ids that `encode` gives them, of all that are complete

            against the lift: wall time for each byte of text, as a multiple of that of the lift
            which asks for every id, in the same cell; texts differ""",
        ),
    ]


def figure(rows: pd.DataFrame) -> Figure:
    """What forced ids save, schema by schema, and how long their runs are."""
    found = written(rows)
    pairs = {way: found[found["way"] == way].set_index(["family", "schema"]) for way in SHORT}
    own, lift = pairs["canonical forced"], pairs["lift forced"]
    order = own.assign(at=own.groupby("family", sort=False).ngroup())
    order = order.sort_values(["at", "saved"], ascending=[True, False])
    heights = -np.arange(len(order)) - 1.2 * order["at"].to_numpy()
    size = (12, 2.4 + 0.14 * (heights.max() - heights.min() + 1))
    drawn, ((saved, wall, runs),) = panels(1, 3, size, width_ratios=(1, 1, 0.9))
    colors = {"canonical forced": CANONICAL, "lift forced": LIFT, "chop": "#9a9a9a"}
    for axes, value, factor in ((saved, "saved", 100), (wall, "wall", 1)):
        ends = [factor * of.loc[order.index, value] for of in (own, lift)]
        axes.hlines(heights, *ends, color="#cccccc", linewidth=1.5, zorder=1)
        axes.scatter(ends[1], heights, marker="s", s=44, facecolor="white", edgecolor=LIFT)
        axes.scatter(ends[0], heights, s=20, color=CANONICAL, zorder=3)
        for way, of in pairs.items():
            axes.axvline(factor * of[value].median(), color=colors[way], linestyle="--", zorder=0)
        axes.grid(axis="x", color="#eeeeee")
        middles = pd.Series(heights, order["at"]).groupby(level=0).mean()
        axes.set_yticks(middles, order.index.get_level_values(0).unique())
    saved.set_xlabel("forward passes saved (%)")
    wall.set_xlabel("wall time with forced ids / without")
    wall.set_yticklabels([])
    for way, of in pairs.items():
        lengths = np.concatenate([[0], *of["runs"]])
        shares = [100 * lengths[lengths >= k].sum() / of["written"].sum() for k in range(1, 13)]
        runs.step(range(1, 13), shares, where="mid", color=colors[way], label=SHORT[way])
    runs.set(xlabel="ids in a run, at least", ylabel="ids in such runs (% of all)")
    runs.grid(axis="y", color=PALE, alpha=0.4)
    runs.legend(frameon=False)
    headline = (
        f"Under a schema, the tokenizer's own ids leave {100 * own['saved'].median():.0f} % of the "
        f"forward passes out; any tokenization, {100 * lift['saved'].median():.0f} %"
    )
    more = (own["saved"] > lift["saved"]).sum(), (own["saved"] < lift["saved"]).sum()
    note = (
        f"{found['model'].iloc[0]} on {found['device'].iloc[0]}; n = {len(own)} schemas, a text of "
        f"each way. A line: one schema, both ways joined; canonical saves more in {more[0]}, less "
        f"in {more[1]}. Dashed: medians over schemas. Wall time: the same text in one process; "
        "of chop, seconds an id against the lift without it. Right: all families together."
    )
    return Figure(drawn, headline, note)


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """What is certain by each automaton, and what a model is saved by it."""
    shares, found = known_shares(rows[rows["part"] == "known"]), written(rows)

    def ends(values: pd.Series) -> str:
        low, high = (f"{100 * v:.0f}" for v in (values.min(), values.max()))
        return f"{low} %" if low == high else f"{low} to {high} %"

    known = {m: ends(of) for m, of in shares.groupby("method")["share"]}
    texts = rows[rows["part"] == "texts"]
    sums = texts.groupby(["loop", "mode"])[["passes with", "passes without"]].sum()
    saved = ends(1 - sums["passes with"] / sums["passes without"])
    by = {way: found[found["way"] == way] for way in SHORT}
    own, lift, chop_ = by.values()
    model, device = own["model"].iloc[0], own["device"].iloc[0]

    def said(of: pd.DataFrame, value: str, format_: Callable[[float], str], unit: str = "") -> str:
        median, low, high = middle(of[value])
        if np.isnan(low):
            return f"{format_(median)}{unit}"
        return f"{format_(median)}{unit} [{format_(low)} to {format_(high)}]"

    share = scaled(100, fixed(0))
    return {
        "forced": f"""On JSON schemas the canonical automaton leaves no choice about
        {known["canonical"]} of all ids, the lift about {known["lift"]}; a real model ({model}) then
        needs {saved} fewer passes ([table](paper_figures/forced.md), `python -m experiments run
        forced`).""",
        "speedup": f"""Under schemas of {own["family"].nunique()} families ({len(own)} in all),
        {model} on {device} is not asked for {said(own, "saved", share, " %")} of the ids by the
        canonical automaton and for {said(lift, "saved", share, " %")} by the lift
        ({said(chop_, "saved", share, " %")} with the published heuristic); the same texts take
        {said(own, "wall", fixed(2))} and {said(lift, "wall", fixed(2))} times as long as without
        (medians over schemas, with exact intervals of 95 %; [tables](paper_figures/forced.md)).""",
    }
