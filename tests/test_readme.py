"""What the README shows is what happens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from bpe_automata.cli import _parser

ROOT = Path(__file__).parents[1]
WRITTEN = ("using_it", "how_it_works", "findings", "measuring_again", "supported")
PAGES = [ROOT / "README.md", *(ROOT / "paper_figures" / f"{name}.md" for name in WRITTEN)]
TEXTS = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
TEXT = "\n".join(TEXTS.values())


EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
def test_the_examples_print_what_they_say(
    code: str, printed: str, smollm2_gguf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line for line in code.splitlines() if line and not line.startswith(("from", "import"))]
    assert len(lines) < 14
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == printed


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 8
    assert "```python" in TEXTS["README.md"]


def test_the_readme_is_read_in_five_minutes() -> None:
    assert len(TEXTS["README.md"].splitlines()) <= 250


def test_the_test_command_is_what_ci_runs() -> None:
    assert "make test" in TEXTS["README.md"]
    assert "make test" in (ROOT / ".ci/run").read_text(encoding="utf-8")


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


COMMANDS = re.findall(r"^bpe-automata .*$", TEXT, re.MULTILINE)


@pytest.mark.parametrize("line", COMMANDS)
def test_command_lines_parse(line: str) -> None:
    assert callable(_parser().parse_args(shlex.split(line)[1:]).run)


def test_there_are_command_lines() -> None:
    assert len(COMMANDS) == 6
    named = set(re.findall(r"`bpe-automata (\w+)", TEXT))
    assert "warm" in named
    for name in named:  # what is said of them in passing
        with pytest.raises(SystemExit) as caught:
            _parser().parse_args([name, "--help"])
        assert caught.value.code == 0
