"""Function calls: schemas, what is right, what a model writes in a tree, and what is said of it."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import defaultdict
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from tiny import tiny_llama

from bpe_automata import constrain
from bpe_automata.errors import MissingDependencyError
from bpe_automata.sampling import decode
from bpe_automata.testing import byte_level, small_tokenizer
from experiments.answers import bfcl
from experiments.models import causal
from experiments.run.artefact import ARTEFACTS
from experiments.run.config import plain
from experiments.run.files import PAPER
from experiments.run.report import read_published
from experiments.study.accuracy import artefact, report, writing
from experiments.study.accuracy.artefact import Asked
from experiments.study.accuracy.report import (
    CHOP,
    FREE,
    LIFT,
    SMC,
    Difference,
    answers_of,
    differences,
    headline,
    holm,
    sign_flips,
)
from experiments.study.accuracy.writing import Free, Node, Population, Tree, opened, write

SMOKE = artefact.SMOKE

# ---------------------------------------------------------------- schemas and requests


def test_types_of_bfcl_become_those_of_json_schema():
    described = {
        "type": "dict",
        "properties": {
            "a": {"type": "float", "description": "...", "default": 1.0},
            "b": {"type": "tuple", "items": {"type": "any"}},
            "c": {"type": "dict", "properties": {"d": {"type": "string", "enum": ["x"]}}},
        },
        "required": ["a"],
    }
    inner = {"d": {"type": "string", "enum": ["x"]}}
    schema = bfcl.schema_of_argument(described)
    assert schema["properties"] == {
        "a": {"type": "number"},
        "b": {"type": "array", "items": {"type": "string"}},
        "c": {"type": "object", "properties": inner, "required": []}
        | {"additionalProperties": False},
    }
    assert schema["required"] == ["a"]
    limited = bfcl.bounded(schema, 5, 2)["properties"]
    assert limited["b"] == {
        "type": "array",
        "items": {"type": "string", "maxLength": 5},
        "maxItems": 2,
    }
    assert limited["c"]["properties"] == inner
    assert "maxItems" not in schema["properties"]["b"]


@pytest.mark.parametrize(
    "described", [{"type": "dict"}, {"type": "array"}, {"type": "hash"}, {"properties": {}}]
)
def test_what_is_not_described_is_refused(described):
    with pytest.raises(bfcl.DescriptionError):
        bfcl.schema_of_argument(described)


def requests() -> dict[str, bfcl.Request]:
    return artefact.every_request(SMOKE)


def test_requests_are_drawn_and_refusals_are_counted():
    every = requests()
    found, refused = bfcl.drawn(every.values(), 9, 0, bfcl.Bounds(), ("spaced", "compact"))
    assert {one.id for one in found} == {"smoke_0", "smoke_1"}
    assert refused == {"DescriptionError": 1}
    few, _ = bfcl.drawn(every.values(), 1, 0, bfcl.Bounds(), ("spaced",))
    assert len(few) == 1
    for bounds, why in (
        (bfcl.Bounds(asked=10), "a long prompt"),
        (bfcl.Bounds(states=10), "a large automaton"),
        (bfcl.Bounds(answer=10), "a long answer"),
        (bfcl.Bounds(characters=2), "an answer that is not in the language"),
    ):
        assert bfcl.unfit(every["smoke_0"], bounds, ("spaced",)) == why
    wrong = replace(every["smoke_0"], accepted=json.dumps({"show": [3]}))
    assert "refuses" in bfcl.unfit(wrong, bfcl.Bounds(), ("spaced",))


def test_the_language_is_of_one_style():
    request = requests()["smoke_0"]
    compact = bfcl.language(request, bfcl.Bounds(), "compact")
    spaced = bfcl.language(request, bfcl.Bounds(), "spaced")
    assert compact.accepts(b'{"show":"Aida","seats":2}')
    assert spaced.accepts(b'{"show": "Aida", "seats": 2}')
    assert not compact.accepts(b'{"show": "Aida", "seats": 2}')
    assert not spaced.accepts(b'{"show": "Aida"}')


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="pip install --no-deps bfcl-eval"):
        artefact.inputs(artefact.Config())


def test_requests_and_answers_are_both_inputs(monkeypatch, tmp_path):
    pair = tmp_path / "data" / "x.json", tmp_path / "answers" / "x.json"
    for path in pair:
        path.parent.mkdir()
        path.write_text(str(path))
    monkeypatch.setattr(artefact, "files", lambda chosen: [pair])
    found = artefact.inputs(artefact.Config())["bfcl"]
    assert {*found} == {"data/x.json", "answers/x.json"}
    assert len({*found.values()}) == 2


# ---------------------------------------------------------------- what is right

PARAMETERS = {
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "rate": {"type": "float"},
        "on": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "rates": {"type": "array", "items": {"type": "float"}},
        "place": {"type": "dict", "properties": {}},
        "places": {"type": "array", "items": {"type": "dict"}},
    },
    "required": ["city"],
}
ACCEPTED = {
    "city": ["New York", "NYC"],
    "days": [3, ""],
    "rate": [5.0, ""],
    "on": [True, ""],
    "tags": [["a b", "c"], ""],
    "rates": [[1.0, 2.0], ""],
    "place": [{"name": ["Oslo"], "zip": [5, ""]}, ""],
    "places": [[{"name": ["Oslo"]}, {"name": ["Bergen"]}], ""],
}
RIGHT = (
    {},
    {"city": "new-york"},
    {"city": "N.Y.C.", "days": 3},
    {"rate": 5},
    {"rate": 5.0, "on": True},
    {"tags": ["A_B", "C"]},
    {"tags": []},  # "" has no items either
    {"rates": [1.0, 2.0]},
    {"rates": [1, 2]},  # where it may be left out its items' types are not looked at
    {"place": {"name": "OSLO"}},
    {"place": {"name": "Oslo", "zip": 5}},
    {"places": [{"name": "Oslo"}, {"name": "Bergen"}]},
)
WRONG = (
    {"city": "Boston"},
    {"city": 3},
    {"country": "US"},
    {"days": 4},
    {"days": 3.0},
    {"days": True},
    {"days": "3"},
    {"rate": 5.5},
    {"on": 1},
    {"tags": ["c", "a b"]},
    {"tags": "a b"},
    {"tags": [1, 2]},
    {"place": {"zip": 5}},
    {"place": {"name": "Oslo", "street": "x"}},
    {"place": {"name": "Oslo", "zip": 6}},
    {"places": [{"name": "Bergen"}, {"name": "Oslo"}]},
    {"places": [{"name": "Oslo"}]},
)


@pytest.mark.parametrize("arguments", RIGHT)
def test_what_is_right(arguments):
    assert bfcl.is_right(PARAMETERS, ACCEPTED, {"city": "NYC"} | arguments)


@pytest.mark.parametrize("arguments", WRONG)
def test_what_is_wrong(arguments):
    assert not bfcl.is_right(PARAMETERS, ACCEPTED, {"city": "NYC"} | arguments)


def test_what_must_be_there():
    assert not bfcl.is_right(PARAMETERS, ACCEPTED, {"days": 3})
    assert not bfcl.is_right(PARAMETERS, ACCEPTED | {"days": [3]}, {"city": "NYC"})
    assert not bfcl.is_right(PARAMETERS, ACCEPTED, ["NYC"])
    assert not bfcl.is_right(
        PARAMETERS, ACCEPTED | {"rates": [[1.0]]}, {"city": "NYC", "rates": [1]}
    )
    # A required argument may not be left out, whatever the values say.
    assert not bfcl.is_right(PARAMETERS, ACCEPTED | {"city": [""]}, {})


def test_a_name_may_stand_for_a_value():
    named = ACCEPTED | {"tags": ["all_tags"], "days": ["n"]}
    assert bfcl.is_right(PARAMETERS, named, {"city": "NYC", "tags": "all_tags", "days": "n"})
    assert not bfcl.is_right(PARAMETERS, named, {"city": "NYC", "tags": "alltags", "days": "n"})


@pytest.fixture(scope="module")
def checker():
    """The package's own. Of its table of hosted models, which needs all of their clients, it asks
    one thing alone: may a name hold a dot?"""
    if importlib.util.find_spec("bfcl_eval") is None:
        pytest.skip("bfcl-eval is not installed")
    with pytest.MonkeyPatch.context() as patch:
        stand_in = ModuleType("bfcl_eval.constants.model_config")
        stand_in.MODEL_CONFIG_MAPPING = defaultdict(
            lambda: SimpleNamespace(underscore_to_dot=False)
        )
        patch.setitem(sys.modules, stand_in.__name__, stand_in)
        ast_checker = pytest.importorskip("bfcl_eval.eval_checker.ast_eval.ast_checker")
        language = pytest.importorskip("bfcl_eval.constants.enums").Language.PYTHON

        def verdict(parameters, accepted, arguments):
            described = [{"name": "f", "parameters": {"required": []} | parameters}]
            called, possible = [{"f": arguments}], [{"f": accepted}]
            found = ast_checker.ast_checker(described, called, possible, language, "simple", "m")
            return found["valid"]

        yield verdict


@pytest.mark.parametrize("arguments", RIGHT + WRONG)
def test_the_checker_of_bfcl_says_the_same(checker, arguments):
    arguments = {"city": "NYC"} | arguments
    ours = bfcl.is_right(PARAMETERS, ACCEPTED, arguments)
    assert checker(PARAMETERS, ACCEPTED, arguments) == ours


def changes(value):
    """Values that are something like this one."""
    yield from (value, [value], {"x": value}, "", 1, True, 0.5, None, [])
    if isinstance(value, str):
        yield from (value.upper(), f" {value}.", f"{value}x")
    if isinstance(value, int | float):
        yield from (value + 1, float(value), int(value), str(value))
    if isinstance(value, list):
        yield from ([*value, *value], value[1:], value[::-1], [[one] for one in value])
    if isinstance(value, dict):
        yield from ({k: v for k, v in value.items() if k != name} for name in value)
        yield value | {"x": 1}


def test_the_checker_of_bfcl_says_the_same_of_its_requests(checker):
    """Of each request an accepted call, and that call with one argument changed or left out."""
    said = {True: 0, False: 0}
    for category in bfcl.CATEGORIES:
        for request in bfcl.requests_of(*bfcl.files_of(category)):
            parameters, accepted = request.described["parameters"], json.loads(request.accepted)
            every = {
                name: bfcl._plain(next((one for one in values if one != ""), ""))
                for name, values in accepted.items()
            }
            calls = [every, bfcl.example(accepted)]
            calls += [
                {k: v for k, v in every.items() if k != name} | changed
                for name, value in every.items()
                for changed in ({}, *({name: other} for other in changes(value)))
            ]
            for call in calls:
                try:
                    theirs = checker(parameters, accepted, call)
                except (KeyError, TypeError, AttributeError):
                    continue  # it falls over on what no call of its own is
                assert request.is_right(call) == theirs, (request.id, call)
                said[theirs] += 1
    assert min(said.values()) > 1000


# ---------------------------------------------------------------- what a model writes


MERGES = [("a", "b"), ("Ġ", "a"), ("b", "a"), ("ab", "a")]
FLAGS = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
TOKENIZER = small_tokenizer(
    [*'ab.Ġ{}"', *map("".join, MERGES)],
    MERGES,
    byte_level(use_regex=True),
    added=[{"content": "<end>", "special": True} | FLAGS],
)
PROMPTS = [TOKENIZER.encode(text) for text in ("ab a", "ab", "ab a.ba")]
WORDS = (TOKENIZER.n_ids + 31) // 32
CHOSEN = replace(SMOKE, ids=6, temperature=0.8)
PATTERN = "(ab|ba|a){1,3}[.]"


@pytest.fixture(scope="module")
def tiny():
    return tiny_llama(TOKENIZER, seed=3, eos_ids=(TOKENIZER.n_ids - 1,))


def logits_after(loaded, ids):
    import torch

    with torch.no_grad():
        return loaded.model(torch.tensor([list(ids)])).logits[0, -1]


def test_a_tree_reads_what_single_texts_read(tiny):
    """Texts that branch, behind prompts of several lengths, some of which have ended."""
    tree, before = Tree(tiny.model, TOKENIZER.n_ids), tiny.model.config._attn_implementation
    first = tree.read_prompts(PROMPTS)
    for prompt, logits in zip(PROMPTS, first, strict=True):
        assert np.allclose(logits, logits_after(tiny, prompt), atol=1e-5)
    steps = (
        [(0, (1,)), (2, (1,)), (0, (2,)), (1, (5,))],
        [(0, (1, 3)), (0, (2, 3)), (0, (1, 4)), (2, (1, 1))],
        [(2, (1, 1, 2)), (0, (1, 4, 2))],
    )
    for texts in steps:
        asked = [k != 1 for k in range(len(texts))]
        kept = [text for text, is_asked in zip(texts, asked, strict=True) if is_asked]
        for (number, ids), logits in zip(kept, tree.read(texts, asked), strict=True):
            assert np.allclose(logits, logits_after(tiny, [*PROMPTS[number], *ids]), atol=1e-5)
    assert tiny.model.config._attn_implementation == before


def test_prompts_with_nothing_in_common_are_read(tiny):
    prompts = [PROMPTS[1], PROMPTS[1], TOKENIZER.encode(".b")]
    for prompt, logits in zip(
        prompts, Tree(tiny.model, TOKENIZER.n_ids).read_prompts(prompts), strict=True
    ):
        assert np.allclose(logits, logits_after(tiny, prompt), atol=1e-5)


def written(tiny, populations):
    tree = Tree(tiny.model, TOKENIZER.n_ids)
    logits = tree.read_prompts(PROMPTS)
    write(populations, tree, logits, CHOSEN.ids, CHOSEN.temperature)
    return populations


@pytest.mark.parametrize("method", ["lift", "canonical"])
@pytest.mark.parametrize("temperature", [0.0, CHOSEN.temperature])
def test_texts_are_those_that_decode_writes(tiny, method, temperature):
    constraint = constrain(TOKENIZER, PATTERN, method, eos_ids=())
    roots = [opened(constraint.matcher(p), k, WORDS) for k, p in enumerate(PROMPTS)]
    asked = [(k, seed) for k in range(3) for seed in range(4)]

    def population(k, seed):
        rng = np.random.default_rng(seed)
        numbers = rng.random((1, CHOSEN.ids)) if temperature else None
        return Population([roots[k]], numbers, rng)

    made = written(tiny, [population(*one) for one in asked])
    for (k, seed), found in zip(asked, made, strict=True):
        wanted = decode(
            causal(tiny),
            constraint,
            PROMPTS[k],
            max_new_tokens=CHOSEN.ids,
            temperature=temperature,
            seed=seed,
        )
        node = found.taken()
        assert (node.text[1], node.ended) == (wanted.ids, wanted.complete)
        # All ids but the last are read, and those that are certain ask for no pass.
        assert found.positions == len(wanted.ids) - 1
        forced = decode(
            causal(tiny), constraint, PROMPTS[k], max_new_tokens=6, temperature=0, forced=True
        )
        assert temperature or found.passes == forced.passes


def test_a_population_has_the_weights_of_single_texts(tiny, monkeypatch):
    """Where nothing is resampled; and the nodes that its texts share are counted once."""
    monkeypatch.setattr(writing, "THRESHOLD", 0.0)
    constraint = constrain(TOKENIZER, PATTERN, "canonical", eos_ids=())
    rngs = [np.random.default_rng(seed) for seed in range(8)]
    numbers = np.stack([rng.random(CHOSEN.ids) for rng in rngs])
    root = opened(constraint.matcher(PROMPTS[0]), 0, WORDS)
    (found,) = written(tiny, [Population([root] * 8, numbers, rngs[0])])
    for seed, (node, weight) in enumerate(zip(found.nodes, found.log_weights, strict=True)):
        wanted = decode(
            causal(tiny), constraint, PROMPTS[0], max_new_tokens=6, temperature=0.8, seed=seed
        )
        assert node.text[1] == wanted.ids
        if wanted.log_weight is not None:
            assert weight == pytest.approx(wanted.log_weight, abs=1e-4)
    read = {node.text[1][:n] for node in found.nodes for n in range(1, len(node.text[1]))}
    assert found.positions == len(read)


def test_resampling_keeps_the_mean_weight():
    matcher = constrain(TOKENIZER, "a|b", "lift", eos_ids=()).matcher()
    heavy, light = opened(matcher, 0, WORDS), opened(matcher.copy(), 0, WORDS)
    population = Population([heavy, *[light] * 7], np.zeros((8, 1)), np.random.default_rng(0))
    population.weigh({heavy: 0.0, light: -20.0})
    assert population.nodes == [heavy] * 8
    assert np.allclose(population.log_weights, np.log((1 + 7 * np.exp(-20)) / 8))
    population.nodes[0] = light
    population.weigh({heavy: -0.1, light: 0.0})
    assert population.nodes[0] is light


def test_one_text_is_taken_by_weight_from_those_that_ended():
    over = constrain(TOKENIZER, "a", "lift", eos_ids=()).matcher()
    over.advance(TOKENIZER.encode("a")[0])
    ended, other = opened(over, 0, WORDS), opened(over.copy(), 0, WORDS)
    going = opened(constrain(TOKENIZER, "a", "lift", eos_ids=()).matcher(), 0, WORDS)
    population = Population([going, ended, other], np.zeros((3, 1)), np.random.default_rng(0))
    population.log_weights[:] = 50, 0, -2
    taken = [population.taken() for _ in range(400)]
    assert going not in taken
    assert 0.05 < taken.count(other) / 400 < 0.2
    population.nodes = [going, going, going]
    assert population.taken() is going


def test_what_is_an_object_in_a_text():
    assert writing.value_in('Sure: {"a": {"b": "}\\""}} and {') == {"a": {"b": '}"'}}
    assert writing.value_in('{"a": 1') is None
    assert writing.value_in("{'a': 1}") is None
    assert writing.end_of("{'a': 1} x") == 8
    assert writing.end_of("none") is None
    assert writing.end_of('{"a\\') is None


def test_a_free_text_is_over_with_its_object_or_its_end():
    end = TOKENIZER.n_ids - 1
    for text, last, over in (('{"a"', "}", True), ("a", "b", False), ("a", "<end>", True)):
        free = Free(TOKENIZER, (), frozenset([end]))
        for token in [*TOKENIZER.encode(text), *TOKENIZER.encode(last)]:
            assert not free.is_accepting
            moved = free.copy()
            moved.advance(token)
            free = moved
        assert free.is_accepting == over
        assert opened(free, 0, WORDS).choices == (0 if over else 32 * WORDS)


# ---------------------------------------------------------------- rows


class Stub:
    """Answers whose populations are rows already."""

    prompt, reading = (1, 2, 3), 0.5

    def __init__(self, rows):
        self.populations = rows

    def _row(self, one, population):
        return dict(population)


def test_attempts_add_up_to_the_first_that_is_valid():
    def row(text, valid):
        return {"text": text, "valid": valid, "attempts": 1, "passes": 4} | {
            "positions": 3 + 4,
            "seconds": 0.5 + 0.25,
        }

    given = {
        Asked(FREE, "spaced", 0, 0): row("a", False),
        Asked(FREE, "spaced", 0, 1): row("b", True),
        Asked(FREE, "spaced", 0, 2): row("c", True),
        Asked(LIFT, "spaced", 0): row("d", False),
    }
    free, lift = artefact.Answers.rows(Stub(given))
    assert (free["text"], free["attempts"], free["passes"]) == ("b", 2, 8)
    assert (free["positions"], free["seconds"]) == (3 + 8, 0.5 + 0.5)
    assert lift == row("d", False)


def test_what_is_asked():
    chosen = replace(SMOKE, seeds=3, retries=2)
    asked = artefact.wanted(chosen)
    assert len(asked) == len({*asked})
    assert not any(one.seed is None for one in asked if one.method == SMC)
    assert [one.attempt for one in asked if (one.method, one.seed) == (FREE, 0)] == [0, 1, 2]
    assert {one.seed for one in asked if one.method == CHOP} == {None, 0, 1, 2}
    assert all(one.seed is None for one in asked if one.style == chosen.other_style)


# ---------------------------------------------------------------- what is said


def row_of(request, method, right, style="spaced", seed=None):
    spent = {"passes": 2, "positions": 9, "seconds": 0.5, "attempts": 1}
    return {"request": request, "method": method, "style": style, "seed": seed, "text": "{}"} | {
        **{"ended": True, "valid": right, "right": right, "own": True, "ids": 3},
        **spent,
    }


def rows_of(rights, **more):
    """rights: by method, a bool for each request."""
    texts = [
        row_of(f"r{k}", method, right, **more)
        for method, each in rights.items()
        for k, right in enumerate(each)
    ]
    asked = {"key": "requests", "requests": [], "refused": {"a long prompt": 2}, "of": 70}
    return [asked, {"key": "one 0", "model": "one", "texts": texts}]


MANIFEST = {
    "config": plain(replace(SMOKE, models=("one",))),
    "models": {"one": {"model": "One (Q4)", "note": "Small."}},
}
BETTER = {FREE: [False] * 20, LIFT: [False] * 20, CHOP: [True] * 15 + [False] * 5}


def differences_of(rows):
    from experiments.run.tables import frame

    return differences(answers_of(frame(rows), MANIFEST))


def test_differences_are_of_the_same_requests():
    found = {(one.method, one.to): one for one in differences_of(rows_of(BETTER))}
    assert {*found} == {(FREE, LIFT), (CHOP, LIFT), (CHOP, FREE)}
    value, low, high = found[CHOP, LIFT].value
    assert value == 0.75
    assert 0.5 < low < value < high < 1
    assert found[FREE, LIFT].value == (0, 0, 0)
    assert found[FREE, LIFT].p == 1
    assert found[CHOP, LIFT].p < 1e-3
    assert found[CHOP, LIFT].clear
    assert not found[FREE, LIFT].clear


def test_seeds_of_a_request_are_averaged():
    rows = rows_of({LIFT: [True, False]}, seed=0)
    rows[1]["texts"] += [row_of("r0", LIFT, False, seed=1), row_of("r1", LIFT, False, seed=1)]
    rows[1]["texts"] += [row_of("r0", CHOP, True, seed=0), row_of("r9", CHOP, True, seed=0)]
    (one,) = differences_of(rows)
    assert one.value[0] == 0.5  # 1 - 1/2, of the one request that both answered
    assert one.ids == "drawn"


def test_p_values():
    assert sign_flips(np.zeros(5)) == 1
    assert sign_flips(np.ones(5)) == pytest.approx(2 / 32, rel=0.1)
    assert sign_flips(-np.ones(5)) == sign_flips(np.ones(5))
    assert sign_flips(np.array([1.0, -1.0, 0.0])) == 1
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_headline_says_what_is_clear_and_what_is_not():
    one = Difference("One", "spaced", "drawn", CHOP, LIFT, (0.1, 0.05, 0.15), 0.001, 0.002)
    other = one._replace(method=SMC, holm=0.2)
    again = one._replace(model="Two", value=(-0.2, -0.3, -0.1))
    said = headline([one, other, again._replace(holm=0.05)])
    assert said.startswith("Of 3 differences in the share of right answers 1 are clear of 0")
    assert "chop to lift in 1 of 2 settings (One, spaced, drawn: +10.0 points)" in said
    assert said.endswith("; in no setting canonical SMC to lift.")
    assert "chop to lift in 2 of 2 settings (-20.0 to +10.0 points)." in headline([one, again])
    assert headline([]) == "No methods were compared."


def test_the_report():
    made = ARTEFACTS["accuracy"].report(rows_of(BETTER), MANIFEST)
    shares, compared = made.tables
    assert [row[:4] for row in shares.rows] == [
        ["One", "spaced", "likeliest", method] for method in (FREE, LIFT, CHOP)
    ]
    assert shares.rows[2][5].startswith("75.0 [")
    assert any("a long prompt (2)" in note for note in shares.notes)
    assert compared.rows[1][3:5] == [CHOP, LIFT]
    assert compared.rows[1][5].startswith("+75.0 [+")
    assert [figure.name for figure in made.figures] == ["accuracy"]
    assert made.facts["requests"] == 20
    told = report.readme(made.facts)
    assert "| One, spaced, likeliest | 0.0 | 0.0 | 75.0 | - | - |" in told["accuracy"]
    assert told["accuracy in short"] in told["accuracy"]
    assert told["accuracy"].endswith(": free 2.0, lift 2.0, chop 2.0 (One, likeliest).")
    assert report.readme({"answers": 0}) == {}


def test_what_was_measured_is_what_is_judged_now():
    """The rows in the repository, judged again, and their sums."""
    path = PAPER / "rows" / "accuracy.jsonl.gz"
    if not path.exists() or importlib.util.find_spec("bfcl_eval") is None:
        pytest.skip("no rows, or no requests")
    rows, _ = read_published(path)
    known = artefact.every_request(artefact.Config())
    texts = [text for row in rows for text in row.get("texts", ())]
    assert texts
    for text in texts:
        value = writing.value_in(text["text"]) if text["ended"] else None
        assert text["right"] == (value is not None and known[text["request"]].is_right(value))
        assert text["valid"] or text["method"] == FREE or not text["ended"]
        assert text["passes"] >= 1 or text["method"] != FREE


def test_nodes_are_told_apart():
    """Not by what they hold: two methods may be at one text."""
    matcher = constrain(TOKENIZER, "a", "lift", eos_ids=()).matcher()
    one, other = (Node(0, matcher, np.zeros(1, np.int32), 1, 0.0) for _ in range(2))
    assert len({one, other}) == 2
