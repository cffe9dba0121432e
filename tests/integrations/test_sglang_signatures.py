"""The stand-in for SGLang 0.5.23 against the real files, wherever they are installed."""

from __future__ import annotations

import pytest
import standin_sglang as host
from standins import class_of, methods, parameters, real_source

BASE = "srt/constrained/base_grammar_backend.py"


@pytest.mark.parametrize(
    "standin", [host.BaseGrammarObject, host.InvalidGrammarObject, host.BaseGrammarBackend]
)
def test_methods_take_the_same_parameters(standin):
    theirs = class_of(real_source("sglang", BASE), standin.__name__)
    for method, expected in methods(standin).items():
        assert parameters(theirs, method) == expected, method


def test_backends_are_made_with_four_arguments():
    tree = real_source("sglang", BASE)
    assert parameters(tree, "register_grammar_backend") == ["name", "init_func"]
    made = parameters(tree, "create_grammar_backend")
    assert made[:4] == ["server_args", "tokenizer", "vocab_size", "eos_token_ids"]
