"""Stand-ins and integrations have the names of the real vLLM and SGLang, where those are installed:
their files are parsed and not run."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import inspect
from pathlib import Path

import pytest
import standins

V1 = "vllm/v1/sample/logits_processor/interface.py"
V2 = "vllm/v1/worker/gpu/sample/logits_processor/interface.py"
SGLANG = "sglang/srt/constrained/base_grammar_backend.py"


def real(path: str) -> ast.Module:
    package, _, rest = path.partition("/")
    spec = importlib.util.find_spec(package)
    folders = list(spec.submodule_search_locations or []) if spec else []
    found = [Path(folder) / rest for folder in folders if (Path(folder) / rest).exists()]
    if not found:
        pytest.skip(f"{package} is missing: pip install {package}")
    return ast.parse(found[0].read_text(encoding="utf-8"))


def class_of(path: str, name: str) -> ast.ClassDef:
    return next(n for n in real(path).body if isinstance(n, ast.ClassDef) and n.name == name)


def parameters(tree: ast.ClassDef | ast.Module) -> dict[str, list[str]]:
    """Of each method of a class, or function of a module."""
    found = {n.name: n.args for n in tree.body if isinstance(n, ast.FunctionDef)}
    return {
        name: [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
        for name, args in found.items()
    }


@pytest.mark.parametrize(
    ("ours", "path", "name"),
    [
        (("vllm", "ConstraintLogitsProcessor"), V1, "LogitsProcessor"),
        (("vllm_runner", "ConstraintLogitsProcessor"), V2, "LogitsProcessor"),
        (("sglang", "RegexGrammar"), SGLANG, "BaseGrammarObject"),
        (("sglang", "RegexBackend"), SGLANG, "BaseGrammarBackend"),
    ],
)
def test_methods_take_the_parameters_of_those_that_they_override(ours, path, name, servers):
    theirs = parameters(class_of(path, name))
    made = getattr(getattr(servers, ours[0]), ours[1])
    public = {key: getattr(member, "__func__", member) for key, member in vars(made).items()}
    public = {key: member for key, member in public.items() if inspect.isfunction(member)}
    overridden = {key for key in public if not key.startswith("_")}
    assert overridden <= set(theirs)
    for key in overridden:
        assert list(inspect.signature(public[key]).parameters) == theirs[key], key


@pytest.mark.parametrize(
    ("ours", "path"),
    [
        (standins.BatchUpdate, V1),
        (standins.LogitsContext, V2),
        (standins.LogitsProcRequestState, V2),
        (standins.SamplingParams, "vllm/sampling_params.py"),
    ],
)
def test_records_have_the_fields_that_are_read(ours, path):
    body = class_of(path, ours.__name__).body
    theirs = {node.target.id for node in body if isinstance(node, ast.AnnAssign)}
    assert {field.name for field in dataclasses.fields(ours)} <= theirs


def test_functions_take_the_arguments_that_they_are_given():
    registry = parameters(real("vllm/tokenizers/registry.py"))
    assert registry["cached_tokenizer_from_config"][0] == "model_config"
    made = parameters(real(SGLANG))
    assert made["register_grammar_backend"] == ["name", "init_func"]
    expected = ["server_args", "tokenizer", "vocab_size", "eos_token_ids"]
    assert made["create_grammar_backend"][:4] == expected
