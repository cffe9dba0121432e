"""Importing the package imports no host package, and the distribution plugs into none."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from bpe_automata.errors import MissingDependencyError

HOSTS = ["torch", "transformers", "vllm", "sglang", "llama_cpp", "outlines", "triton"]
LAZY = ["bpe_automata.integrations.bitmask", "bpe_automata.integrations.llama_cpp"]
"""Modules that work without their host until they are given one of its objects."""
STRICT = [
    ("vllm", "vllm.v1.sample.logits_processor"),
    ("vllm_runner", "vllm.v1.worker.gpu.sample.logits_processor"),
    ("sglang", "sglang.srt.constrained.base_grammar_backend"),
    ("outlines", "outlines.processors.base_logits_processor"),
    ("bitmask_triton", "triton"),
    ("bitmask_triton", "torch"),
    ("torch_table", "torch"),
    ("transformers", "torch"),
    ("transformers", "transformers"),
]
"""Modules that are written against a host, and what they import of it."""


def test_no_host_is_imported_at_import_time():
    modules = ["bpe_automata", "bpe_automata.integrations", "bpe_automata.decoding.drafts", *LAZY]
    script = f"""
import importlib, sys
for name in {modules!r}:
    importlib.import_module(name)
print(sorted(set({HOSTS!r}) & set(sys.modules)))
"""
    command = [sys.executable, "-c", script]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


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
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert "entry-points" not in project
