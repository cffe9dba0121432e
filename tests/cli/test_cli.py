"""The command line: what it prints, its exit codes, and that no traceback is ever seen."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bpe_automata import TokenAutomaton, Tokenizer
from bpe_automata import _kernels as kernels
from bpe_automata._cli import main


def read(run, *argv: str) -> dict:
    _, out, _ = run(*argv, "--json")
    return json.loads(out)


SAID = [
    (("inspect", "PATH"), 0, ["bytes", "regex 's|'t|", "1: <eos>", "1: `xyz`", "% of the pairs"]),
    (("compile", "PATH", "--regex", "( order)+"), 0, ["1 id in the first", "4 ids in the first"]),
    (("verify", "PATH", "--regex", "( order|a)+", "-n", "50"), 0, ["no counterexample in 50 walk"]),
    (("explain", "PATH", "--ids", "30 31"), 1, ["token 1: `␣ord`+`er` would be `␣order`"]),
    (("explain", "PATH", "--ids", "32,0"), 0, ["canonical"]),
    (("explain", "PATH", "--text", "an order\n\nb"), 0, ["`a`\n", "`n`\n", "`␣order`\n"]),
]


@pytest.mark.parametrize(("argv", "code", "parts"), SAID, ids=[" ".join(e[0]) for e in SAID])
def test_what_a_command_says(run, path, argv, code, parts) -> None:
    found, out, err = run(*(path if part == "PATH" else part for part in argv))
    assert (found, err) == (code, "")
    assert [part for part in parts if part not in out] == []


def test_the_same_as_json(run, path) -> None:
    found = read(run, "inspect", path)
    assert (found["ids"], found["merges"], found["base_symbols"]) == (35, 5, 28)
    assert (len(found["missing_bytes"]), found["eos_ids"]) == (228, [34])
    assert found["unreachable_examples"] == ["`xyz`"]
    found = read(run, "compile", path, "--regex", "( order)+")
    assert found["methods"]["canonical"]["first_mask_ids"] == 1
    assert (found["methods"]["lift"]["first_mask_ids"], found["dfa_states"]) == (4, 8)
    found = read(run, "verify", path, "--regex", "[a-z]+", "-n", "20", "--prompt", "the ord")
    assert (found["ok"], found["counterexample"], found["walks"]) == (True, None, 20)


def test_compile_saves_the_whole_automaton(run, path, tmp_path) -> None:
    file = tmp_path / "orders.npz"
    found = read(run, "compile", path, "--regex", "( order){1,2}", "--save", str(file))["saved"]
    automaton = TokenAutomaton.load(file)
    assert (found["states"], found["transitions"]) == (automaton.n_states, automaton.n_transitions)
    assert (automaton.total(), automaton.shortest()) == (
        2,
        tuple(Tokenizer.load(path).encode(" order")),
    )
    code, out, _ = run("compile", path, "--regex", " order", "--save", str(tmp_path / "o.txt"))
    assert code == 0
    assert "canonical, 2 states, 1 transition\n" in out
    assert "␣order" in (tmp_path / "o.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("o.doc", "o.doc: a picture is saved as"),
        ("none/o.npz", "there is no folder"),
        ("folder.npz", "is a folder"),
    ],
)
def test_compile_refuses_what_cannot_be_saved_at_once(
    run, path, tmp_path, monkeypatch, name, message
) -> None:
    """Before the tokenizer is loaded and the regex compiled."""
    monkeypatch.setattr("bpe_automata._cli.constraints.load_tokenizer", None)
    (tmp_path / "folder.npz").mkdir()
    code, _, err = run("compile", path, "--regex", " order", "--save", str(tmp_path / name))
    assert (code, err.count("\n")) == (2, 1)
    assert message in err
    assert name.startswith("none") == (str(tmp_path / "none") in err)


def test_verify_tells_a_counterexample(run, path, monkeypatch) -> None:
    """An encoder that disagrees with the merge table, and that nobody has tried before."""
    monkeypatch.setattr("bpe_automata._core.canonical.try_automaton", lambda it: None)
    monkeypatch.setattr(
        Tokenizer, "encode_batch", lambda self, texts: [[*self.encode(text), 0] for text in texts]
    )
    code, out, _ = run("verify", path, "--regex", "[a-z]{2,}")
    assert code == 1
    assert "counterexample found" in out
    found = read(run, "verify", path, "--regex", "[a-z]{2,}")["counterexample"]
    assert [*found] == ["claim", "prompt_ids", "ids", "tokens", "text", "expected_ids"]


def test_generate(run, path, model) -> None:
    arguments = ("generate", "--model", model, "--tokenizer", path, "--prompt", "an")
    code, out, _ = run(*arguments, "--regex", " order(s|ed)")
    assert code == 0
    assert out in (" orders\n", " ordered\n")
    found = read(run, *arguments, "--regex", "( order)+", "--max-new-tokens", "3", "--sample")
    assert set(found) == {"prompt", "text", "ids", "complete", "finish_reason", "healing"}
    assert set(found["ids"]) == {32}


def test_generate_with_a_budget(run, path, model) -> None:
    arguments = ("generate", "--model", model, "--tokenizer", path, "--prompt", "an", "--close")
    regex = ("--regex", " order( order)*ed")
    code, out, _ = run(*arguments, *regex, "--max-new-tokens", "3")
    assert (code, out) == (0, " ordered\n")
    code, out, err = run(*arguments, *regex, "--max-new-tokens", "2")
    assert (code, out) == (2, "")
    assert "takes 3 ids, only 2" in err


def test_seconds_are_bounded(run, path, model) -> None:
    common = ("--regex", r"(\w| ){0,300}x[a-z]{0,99}", "--max-seconds", "1e-6")
    generate = ("generate", "--model", model, "--tokenizer", path, "--prompt", "an")
    for command in (("compile", path), ("verify", path), generate):
        code, out, err = run(*command, *common)
        assert (code, out) == (2, "")
        assert "budget of 1e-06 seconds exceeded" in err


# ---------------------------------------------------------------- warm


def called_from_python() -> set[tuple[str, str]]:
    """Module and name of each kernel that is used outside of the kernels."""
    found, package = set(), Path(kernels.__file__).parents[1]
    for file in package.rglob("*.py"):
        source = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if file.parent.name == "_kernels" or not isinstance(node, ast.ImportFrom):
                continue
            if node.module == kernels.__name__:
                for alias in node.names:
                    used = re.findall(rf"\b{alias.asname or alias.name}\.(\w+)", source)
                    found |= {(f"{kernels.__name__}.{alias.name}", name) for name in used}
            elif (node.module or "").startswith(f"{kernels.__name__}."):
                found |= {(str(node.module), alias.name) for alias in node.names}
    return found


def test_warm_asks_for_the_kernels(run) -> None:
    """All but those that make tables grow, that are written into others, that read what comes after
    an added token, or that ask what may not come before an id, which only laws and experiments
    do."""
    code, out, _ = run("warm", "--json")
    assert code == 0
    assert set(json.loads(out)) == {"kernels_compiled", "tokenizers_prepared", "seconds"}
    named = {(m, n): getattr(importlib.import_module(m), n, None) for m, n in called_from_python()}
    compiled = {n: kernel for (_, n), kernel in named.items() if hasattr(kernel, "py_func")}
    assert len(compiled) > 25
    left = {name for name, kernel in compiled.items() if not kernel.signatures}
    growing = {"slot_of", "spread", "known_step", "with_room", "rehashed", "longer"}
    assert left <= {*growing, "after_added", "nearest", "clear_intervals"}


# ---------------------------------------------------------------- errors

ERRORS = [
    (("generate", "--regex", "a", "--prompt", "b"), "no model: give --model"),
    (("generate", "--model", "MODEL", "--regex", "a", "--prompt", "b"), "--tokenizer"),
    (("generate", "--model", "./none", "--regex", "a", "--prompt", "b"), "no model at ./none"),
    (("inspect", "none.json"), "there is no tokenizer at none.json"),
    (("compile", "PATH", "--regex", "a("), "at position 1 of the regex"),
    (("compile", "PATH", "--regex", r"(a)\1"), "a backreference is not regular"),
    (("compile", "PATH", "--regex", ".*a.{9}", "--max-states", "9"), "budget of 9 states"),
    (("compile", "PATH", "--regex", r"[^\s\S]"), "no text matches"),
    (("verify", "PATH", "--regex", "er", "--prompt", "an ord"), "would merge with the answer"),
    (("explain", "PATH", "--ids", "1 99"), "id 99 is not in 0 .. 34"),
    (("explain", "PATH", "--text", "a\udcff"), "lone surrogate"),
]


@pytest.mark.parametrize(("argv", "message"), ERRORS, ids=[" ".join(e[0])[:40] for e in ERRORS])
def test_error_in_one_line(run, path, model, argv, message) -> None:
    code, out, err = run(*({"PATH": path, "MODEL": model}.get(part, part) for part in argv))
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err


def test_interrupt(run, path, monkeypatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bpe_automata._cli.examine.load_tokenizer", interrupted)
    code, _, err = run("inspect", path)
    assert (code, err) == (2, "error: interrupted\n")


def test_missing_package(run, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    code, _, err = run("inspect", "owner/name")
    assert code == 2
    assert "pip install 'bpe-automata[torch]'" in err


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("nonsense",),
        ("explain", "t.json"),
        ("verify", "t.json", "--regex", "a", "-n", "0"),
        ("compile", "t.json"),
        ("compile", "t.json", "--regex", "a", "--schema", "s.json"),
    ],
)
def test_usage_errors(run, argv, capsys) -> None:
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert "usage: bpe-automata" in capsys.readouterr().err


# ---------------------------------------------------------------- as a process


def test_as_a_process(path) -> None:
    def process(*argv: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "bpe_automata", *argv]
        return subprocess.run(command, capture_output=True, text=True, timeout=3600)

    done = process("explain", path, "--ids", "30 31")
    assert (done.returncode, done.stderr) == (1, "")
    assert "would be `␣order`" in done.stdout
    failed = process("inspect", "none.json")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr.startswith("error: there is no tokenizer at none.json")
    assert failed.stderr.count("\n") == 1


def test_broken_pipe(path) -> None:
    command = f"{sys.executable} -m bpe_automata explain {path} --ids '{'0 ' * 50_000}' | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=3600)
    assert done.stderr == ""
