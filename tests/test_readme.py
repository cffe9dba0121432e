"""What users get: what the README shows is what happens, and the wheel is complete."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from bpe_automata._cli import _parser

ROOT = Path(__file__).parents[1]
WRITTEN = ("using_it", "how_it_works", "findings", "report", "supported")
PAGES = [ROOT / "README.md", *(ROOT / "paper_figures" / f"{name}.md" for name in WRITTEN)]
TEXTS = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
TEXT = "\n".join(TEXTS.values())

COMMANDS = re.findall(r"^bpe-automata .*$", TEXT, re.MULTILINE)
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
def test_the_examples_print_what_they_say(code: str, printed: str, smollm2_gguf, capsys) -> None:
    lines = [line for line in code.splitlines() if line and not line.startswith(("from", "import"))]
    assert len(lines) < 14
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == printed


def test_the_readme_is_read_in_five_minutes() -> None:
    assert len(TEXTS["README.md"].splitlines()) <= 200
    assert "```python" in TEXTS["README.md"]
    assert (len(EXAMPLES), len(COMMANDS)) == (16, 5)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_linked_is_there(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", TEXTS[page.name]):
        path, _, heading = link.partition("#")
        found = page.parent / path if path else page
        assert found.is_file(), link
        if heading:
            headings = re.findall(r"^#+ (.*)$", found.read_text(encoding="utf-8"), re.M)
            assert heading in [
                re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings
            ]


@pytest.mark.parametrize("line", COMMANDS)
def test_command_lines_parse(line: str) -> None:
    assert callable(_parser().parse_args(shlex.split(line)[1:]).run)


# ---------------------------------------------------------------- the wheel

SCRIPT = """
import sys
from bpe_automata import Tokenizer, __version__, constrain
tokenizer = Tokenizer.load(sys.argv[1])
matcher = constrain(tokenizer, "(true|false)").matcher()
while not matcher.is_accepting:
    matcher.advance(int(matcher.allowed_ids()[0]))
text = tokenizer.decode(matcher.ids)
same = tokenizer.encode(text) == [*matcher.ids]
print(__version__, text in ("true", "false"), same)
"""


@pytest.mark.long
def test_the_wheel_is_complete_and_enough_in_an_environment_of_its_own(tmp_path) -> None:
    """Without what is only of this repository. It is built from a copy, for that leaves files."""

    def said(*command: object) -> str:
        options = {"capture_output": True, "text": True, "timeout": 3600, "cwd": tmp_path}
        done = subprocess.run([*map(str, command)], **options)
        if "No matching distribution" in done.stderr or "Failed to establish" in done.stderr:
            pytest.skip("what is needed cannot be fetched")
        assert done.returncode == 0, done.stderr
        return done.stdout

    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    hidden = shutil.ignore_patterns("__pycache__", "*.c", "*.cpp", "*.so")
    shutil.copytree(ROOT / "bpe_automata", tmp_path / "bpe_automata", ignore=hidden)
    said(sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps", "-w", "dist", ".")
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"bpe_automata"}
    modules = {p.relative_to(ROOT).as_posix() for p in (ROOT / "bpe_automata").rglob("*.py")}
    assert modules | {"bpe_automata/py.typed"} <= set(names)

    venv.create(tmp_path / "env", with_pip=True)
    bin_ = tmp_path / "env" / "bin"
    said(bin_ / "pip", "--quiet", "--disable-pip-version-check", "install", wheel)
    smoke = ROOT / "experiments" / "smoke_tokenizer"
    version, *rest = said(bin_ / "python", "-I", "-c", SCRIPT, smoke).split()
    assert rest == ["True"] * 2
    assert said(bin_ / "bpe-automata", "--version") == f"bpe-automata {version}\n"
