"""The stand-in for vLLM 0.33.0 against the real files, wherever they are installed."""

from __future__ import annotations

import dataclasses

import pytest
import standin_sglang as host
import standin_vllm as standin
from standins import class_of, fields, methods, parameters, real_source

V1 = "v1/sample/logits_processor/"
V2 = "v1/worker/gpu/sample/logits_processor/interface.py"


@pytest.mark.parametrize(
    ("ours", "path", "name"),
    [
        (standin.LogitsProcessor, f"{V1}interface.py", "LogitsProcessor"),
        (standin.RunnerLogitsProcessor, V2, "LogitsProcessor"),
    ],
)
def test_methods_take_the_same_parameters(ours, path, name):
    theirs = class_of(real_source("vllm", path), name)
    for method, expected in methods(ours).items():
        assert parameters(theirs, method) == expected, method


@pytest.mark.parametrize(
    ("ours", "path"),
    [
        (standin.BatchUpdate, f"{V1}interface.py"),
        (standin.LogitsContext, V2),
        (standin.LogitsProcRequestState, V2),
    ],
)
def test_records_have_the_same_fields(ours, path):
    theirs = class_of(real_source("vllm", path), ours.__name__)
    assert set(fields(theirs)) == {field.name for field in dataclasses.fields(ours)}


def test_sampling_parameters_have_the_fields_that_are_read():
    theirs = fields(class_of(real_source("vllm", "sampling_params.py"), "SamplingParams"))
    assert {field.name for field in dataclasses.fields(standin.SamplingParams)} <= set(theirs)


def test_the_tokenizer_comes_from_the_model_config():
    theirs = real_source("vllm", "tokenizers/registry.py")
    assert parameters(theirs, "cached_tokenizer_from_config")[0] == "model_config"


def test_the_model_config_says_what_is_asked_of_it():
    theirs = class_of(real_source("vllm", "config/model.py"), "ModelConfig")
    assert parameters(theirs, "get_vocab_size") == ["self"]
    assert parameters(theirs, "try_get_generation_config") == ["self"]
    assert "tokenizer" in fields(theirs)


# The stand-in for SGLang 0.5.23 against the real files, wherever they are installed.

BASE = "srt/constrained/base_grammar_backend.py"


@pytest.mark.parametrize(
    "standin", [host.BaseGrammarObject, host.InvalidGrammarObject, host.BaseGrammarBackend]
)
def test_methods_of_sglang_take_the_same_parameters(standin):
    theirs = class_of(real_source("sglang", BASE), standin.__name__)
    for method, expected in methods(standin).items():
        assert parameters(theirs, method) == expected, method


def test_backends_are_made_with_four_arguments():
    tree = real_source("sglang", BASE)
    assert parameters(tree, "register_grammar_backend") == ["name", "init_func"]
    made = parameters(tree, "create_grammar_backend")
    assert made[:4] == ["server_args", "tokenizer", "vocab_size", "eos_token_ids"]
