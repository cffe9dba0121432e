"""The modules for servers that need a GPU build, imported while stand-ins are in their place."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import standins

if not (find_spec("torch") and find_spec("transformers")):
    of_models = ("conformance", "hf_*", "outlines", "sglang", "vllm")
    collect_ignore_glob = [f"test_{name}.py" for name in of_models]
OURS = ("vllm", "vllm_runner", "sglang")


@pytest.fixture(scope="module")
def servers() -> Iterator[SimpleNamespace]:
    """`servers.vllm` is `bpe_automata.integrations.vllm`, and so on. At the end everything is as it
    was."""
    pytest.importorskip("torch")
    names = {name: f"bpe_automata.integrations.{name}" for name in OURS}
    with pytest.MonkeyPatch.context() as patch:
        for name, module in standins.modules().items():
            patch.setitem(sys.modules, name, module)
        for name in names.values():
            patch.delitem(sys.modules, name, raising=False)
        yield SimpleNamespace(**{n: importlib.import_module(name) for n, name in names.items()})
        for name in names.values():
            sys.modules.pop(name, None)
