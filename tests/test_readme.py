"""What the README shows is what happens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from bpe_automata.cli import _parser

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


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
    assert len(EXAMPLES) == 7


def test_the_test_command_is_what_ci_runs() -> None:
    assert "make test" in TEXT
    assert "make test" in (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_pictures_are_there() -> None:
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", TEXT):
        assert (ROOT / picture).is_file(), picture


COMMANDS = re.findall(r"^bpe-automata .*$", TEXT, re.MULTILINE)


@pytest.mark.parametrize("line", COMMANDS)
def test_command_lines_parse(line: str) -> None:
    assert callable(_parser().parse_args(shlex.split(line)[1:]).run)


def test_there_are_command_lines() -> None:
    assert len(COMMANDS) == 5
    named = set(re.findall(r"`bpe-automata (\w+)", TEXT))
    assert "warm" in named
    for name in named:  # what is said of them in passing
        with pytest.raises(SystemExit) as caught:
            _parser().parse_args([name, "--help"])
        assert caught.value.code == 0
