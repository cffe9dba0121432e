"""Function calls: what is right, as the checker of BFCL says too, and what is written in a tree."""

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
from bpe_automata.sampling import decode
from bpe_automata.testing import byte_level, small_tokenizer
from experiments.answers import bfcl
from experiments.models import causal
from experiments.run.files import PAPER
from experiments.run.report import read_published
from experiments.study.accuracy import artefact, writing
from experiments.study.accuracy.report import FREE
from experiments.study.accuracy.writing import Population, Tree, opened, write

SMOKE = artefact.SMOKE


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
