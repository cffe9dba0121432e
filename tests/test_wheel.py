"""The wheel that users install: complete, without what is only of this repository, and enough to
start with, in an environment that has nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = """
from bpe_automata import Tokenizer, __version__, constrain
tokenizer = Tokenizer.load(PATH)
matcher = constrain(tokenizer, "(true|false)").matcher()
while not matcher.is_accepting:
    matcher.advance(int(matcher.allowed_ids()[0]))
text = tokenizer.decode(matcher.ids)
print(__version__, text in ("true", "false"), tokenizer.encode(text) == [*matcher.ids])
"""


def run(*command: str, **more) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy, for building leaves files behind."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    hidden = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "bpe_automata", folder / "bpe_automata", ignore=hidden)
    made = [sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps", "-w", "dist", "."]
    done = subprocess.run(made, cwd=folder, capture_output=True, text=True, timeout=600)
    if "No matching distribution" in done.stderr:
        pytest.skip("setuptools cannot be fetched")
    assert done.returncode == 0, done.stderr
    (path,) = (folder / "dist").glob("*.whl")
    return path


def test_the_wheel_holds_the_package_alone(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"bpe_automata"}
    modules = {p.relative_to(ROOT).as_posix() for p in (ROOT / "bpe_automata").rglob("*.py")}
    assert modules <= set(names)
    assert "bpe_automata/py.typed" in names


def test_it_is_used_in_a_fresh_environment_without_extras(wheel, tmp_path):
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    done = subprocess.run(
        [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", str(wheel)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    if "No matching distribution" in done.stderr or "Failed to establish" in done.stderr:
        pytest.skip("the dependencies cannot be fetched")
    assert done.returncode == 0, done.stderr
    source = ROOT / "experiments" / "laws" / "smoke_tokenizer"
    script = SCRIPT.replace("PATH", repr(str(source)))
    version, *rest = run(python, "-c", script, cwd=tmp_path).split()
    assert rest == ["True", "True"]
    command = str(tmp_path / "env" / "bin" / "bpe-automata")
    assert run(command, "--version", cwd=tmp_path) == f"bpe-automata {version}\n"
