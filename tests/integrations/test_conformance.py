"""The laws that hold for every host of a constraint; what only one host does has files of its own.

A row goes on with what the definition allows, a fresh matcher that reads its ids, wherever the row
was before: so no id that the constraint forbids is emitted, a text ends only where it is accepted,
and whatever is masked, no other logit changes.
"""

import json
import random

import numpy as np
import pytest
import torch
from hf_tiny import encoder_decoder, tiny
from hosts import HOSTS, Row, Sglang, Vllm, VllmRunner, vllm_config
from hypothesis import given
from hypothesis import strategies as st
from served import END, REGEXES, START, V, bools, constraint, tokenizer
from support import examples

from bpe_automata import constrain, join, repeat, text_until, text_without
from bpe_automata.errors import (
    ArgumentError,
    BufferShapeError,
    DecodingError,
    TokenizerError,
    UnsupportedFeatureError,
)
from bpe_automata.integrations import transformers as hf
from bpe_automata.integrations.llama_cpp import ConstraintProcessor

PROMPTS = [[START], [START, *tokenizer().encode("de a")]]
OPTIONS = st.fixed_dictionaries(
    {"regex": st.sampled_from(REGEXES), "method": st.sampled_from(["canonical", "lift"])}
)
ROWS = st.lists(st.builds(Row, OPTIONS, st.sampled_from(PROMPTS)), min_size=1, max_size=4)


@pytest.mark.parametrize("name", HOSTS)
@given(rows=ROWS, prefix=st.booleans(), rng=st.randoms(use_true_random=False))
@examples(25)
def test_masks_are_the_definition_wherever_the_rows_go(name, servers, rows, prefix, rng):
    """Rows go on with ids that are mostly allowed, or back to where they were."""
    host = HOSTS[name](servers, rows, prefix)
    ids = [[] for _ in rows]
    for _ in range(rng.randint(1, 8)):
        expected = np.stack([row.definition(prefix, own) for row, own in zip(rows, ids)])  # noqa: B905
        assert np.array_equal(host.masks(ids), expected)
        for mask, own in zip(expected, ids, strict=True):
            allowed = np.flatnonzero(mask if rng.random() < 0.9 else mask | True).tolist()
            own.append(rng.choice(allowed))
        if rng.random() < 0.4:
            left = rng.randint(0, len(ids[0]))
            ids = [own[:left] for own in ids]


TAG = {"triggers": ["x"], "structures": [{"begin": "xa", "schema": {"const": 7}, "end": "b"}]}
CALL = [{"type": "function", "function": {"name": "yes"}}]
TAGGED = join(repeat(join(text_until("x"), "a7b")), text_without("x"))
LANGUAGES = [
    ({"regex": "yes"}, "yes"),
    ({"schema": '{"const": 7}'}, "7"),
    ({"schema": {"enum": [[], [7]]}, "whitespace": "spaced"}, r"\[7?\]"),
    ({"grammar": 'root ::= "no" | "ye"', "format": "gbnf"}, "no|ye"),
    ({"structural_tag": json.dumps(TAG)}, TAGGED),
    ({"choices": ["node", "no"]}, "node|no"),
    ({"grammar": 'start: "no"'}, "no"),
    ({"tools": CALL, "format": "llama-python", "choice": "yes"}, r"\[yes\(\)\]"),
    ({"tools": json.dumps(CALL), "format": "llama-python", "choice": "yes"}, r"\[yes\(\)\]"),
    ({"structural_tag": TAG}, TAGGED),
    ({"structured_outputs": {"json": {"const": 7}, "disable_any_whitespace": True}}, "7"),
    ({"structured_outputs": {"choice": ["node"], "regex": None}}, "node"),
    ({"structured_outputs": {"structural_tag": json.dumps(TAG)}}, TAGGED),
]
TAKES = [(host, *pair) for host in (Vllm, VllmRunner) for pair in LANGUAGES]
TAKES += [(Sglang, *pair) for pair in LANGUAGES[:5]]


@pytest.mark.parametrize(("host", "asked", "language"), TAKES)
def test_what_constrain_takes_a_server_takes(host, asked, language, servers):
    """Along ids of which each may follow."""
    ids, rng = list[int](), random.Random(0)
    made = host(servers, [Row(asked, [START])], True)
    matcher = constrain(tokenizer(), language, eos_ids=(END,)).matcher([START])
    for _ in range(6):
        if matcher.is_finished:
            break
        assert np.array_equal(made.masks([ids])[0], bools(matcher.allowed_ids()))
        ids.append(int(rng.choice(matcher.allowed_ids())))
        matcher.advance(ids[-1])


def test_an_answer_within_so_many_ids(servers):
    asked = {"regex": "(no)*|yes yes", "within": 2}
    for host in (Vllm, VllmRunner):
        made = host(servers, [Row(asked, [START])], True)
        (no,) = tokenizer().encode("no")
        for ids in ([], [no], [no, no]):
            expected = [END] + [no] * (len(ids) < 2)
            assert np.array_equal(made.masks([ids])[0], bools(expected)), ids


NO_END = constrain(tokenizer(), "ab", eos_ids=())


def vllm(servers, drafting=None, **model):
    config = vllm_config(**model)
    config.speculative_config = drafting
    return servers.vllm.ConstraintLogitsProcessor(config, torch.device("cpu"), False)


def sglang(servers, vocab_size=V, ends=END, **options):
    return servers.sglang.RegexBackend(tokenizer(), vocab_size, ends, **options)


def generate(model):
    return hf.generate(model, "0", constraint("a"))


def of_outlines():
    pytest.importorskip("outlines", reason="outlines is missing: pip install outlines")
    from bpe_automata.integrations import outlines

    return outlines


def narrow():
    made = of_outlines().ConstraintLogitsProcessor(constraint("ab"))
    return made(torch.zeros(1, 1).long(), torch.zeros(1, 9))


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda s: ConstraintProcessor(NO_END), DecodingError, "eos_ids"),
        (lambda s: vllm(s, drafting=1), UnsupportedFeatureError, "vllm_runner"),
        (lambda s: vllm(s, vocab_size=9), ArgumentError, "the model gives 9 logits"),
        (lambda s: vllm(s, generation={}), ArgumentError, "end-of-sequence ids"),
        (lambda s: vllm(s, hosted=None), TokenizerError, "skip_tokenizer_init"),
        (lambda s: sglang(s, 9), ArgumentError, "9 logits"),
        (lambda s: sglang(s, ends=None), ArgumentError, "end-of-sequence ids"),
        (lambda s: sglang(s, ends=[V + 1]), ArgumentError, "end-of-sequence ids"),
        (lambda s: sglang(s, prefix="yes"), ArgumentError, "prefix of bpe_automata is 'yes'"),
        (lambda s: sglang(s, method="both"), ArgumentError, "method of bpe_automata is 'both'"),
        (lambda s: of_outlines().ConstraintLogitsProcessor(constraint("ab"), "mlx"),
         UnsupportedFeatureError, "mlx"),
        (lambda s: of_outlines().ConstraintLogitsProcessor(NO_END), DecodingError, "eos_ids"),
        (lambda s: of_outlines().Generator(object(), int), UnsupportedFeatureError,
         "tokenizer is not known"),
        (lambda s: narrow(), BufferShapeError, "9 logits"),
        (lambda s: generate(encoder_decoder()), UnsupportedFeatureError, "T5.*encoder-decoder"),
        (lambda s: hf.CausalModel(encoder_decoder()), UnsupportedFeatureError, "encoder-decoder"),
        (lambda s: hf.CausalModel(tiny().train()), UnsupportedFeatureError, "training"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_at_the_start(make, error, match, servers):
    with pytest.raises(error, match=match):
        make(servers)
