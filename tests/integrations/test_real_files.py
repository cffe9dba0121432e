"""The names that integrations and stand-ins use are those of the real vLLM and SGLang, where those
are installed: their files are parsed and not run."""

from __future__ import annotations

import ast
import importlib.util
import inspect
from pathlib import Path

import pytest

from bpe_automata.integrations._vllm_requests import CLASHING

V1 = "vllm/v1/sample/logits_processor/interface.py"
V2 = "vllm/v1/worker/gpu/sample/logits_processor/interface.py"
SGLANG = "sglang/srt/constrained/base_grammar_backend.py"


def real(path: str, name: str = "") -> ast.Module | ast.ClassDef:
    """The file, or a class of it."""
    package, _, rest = path.partition("/")
    spec = importlib.util.find_spec(package)
    folders = list(spec.submodule_search_locations or []) if spec else []
    found = [Path(folder) / rest for folder in folders if (Path(folder) / rest).exists()]
    if not found:
        pytest.skip(f"{package} is missing: pip install {package}")
    tree = ast.parse(found[0].read_text(encoding="utf-8"))
    return next(n for n in [*tree.body, tree] if getattr(n, "name", "") == name)


def parameters(tree: ast.ClassDef | ast.Module) -> dict[str, list[str]]:
    """Of each method of a class, or function of a module."""
    found = {n.name: n.args for n in tree.body if isinstance(n, ast.FunctionDef)}
    return {
        name: [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
        for name, args in found.items()
    }


@pytest.mark.parametrize(
    ("module", "ours", "path", "name"),
    [
        ("vllm", "ConstraintLogitsProcessor", V1, "LogitsProcessor"),
        ("vllm_runner", "ConstraintLogitsProcessor", V2, "LogitsProcessor"),
        ("sglang", "RegexGrammar", SGLANG, "BaseGrammarObject"),
        ("sglang", "RegexBackend", SGLANG, "BaseGrammarBackend"),
    ],
)
def test_methods_take_the_parameters_of_those_that_they_override(module, ours, path, name, servers):
    theirs = parameters(real(path, name))
    made = vars(getattr(getattr(servers, module), ours))
    own = {
        key: getattr(member, "__func__", member) for key, member in made.items() if key[0] != "_"
    }
    for key, member in filter(lambda item: inspect.isfunction(item[1]), own.items()):
        assert list(inspect.signature(member).parameters) == theirs[key], key


@pytest.mark.parametrize(
    ("path", "name", "read"),
    [
        (V1, "BatchUpdate", {"removed", "added", "moved"}),
        (V2, "LogitsContext", {"expanded_idx_mapping", "idx_mapping_np", "input_ids", "pos"}),
        (V2, "LogitsProcRequestState", {"all_token_ids", "prompt_len", "total_len"}),
        ("vllm/sampling_params.py", "SamplingParams", {"extra_args", "min_tokens", *CLASHING}),
    ],
)
def test_records_have_the_fields_that_are_read(path, name, read):
    body = real(path, name).body
    assert read <= {node.target.id for node in body if isinstance(node, ast.AnnAssign)}


def test_functions_take_the_arguments_that_they_are_given():
    registry = parameters(real("vllm/tokenizers/registry.py"))
    assert registry["cached_tokenizer_from_config"][0] == "model_config"
    made = parameters(real(SGLANG))
    assert made["register_grammar_backend"] == ["name", "init_func"]
    expected = ["server_args", "tokenizer", "vocab_size", "eos_token_ids"]
    assert made["create_grammar_backend"][:4] == expected
