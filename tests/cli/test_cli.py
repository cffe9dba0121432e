"""The command line: what it prints, its exit codes, and that no traceback is ever seen."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
from support import tiny_llama

import bpe_automata
from bpe_automata import TokenAutomaton, Tokenizer
from bpe_automata._cli import main
from bpe_automata._cli.progress import step
from bpe_automata.testing import byte_level, byte_spelling, small_tokenizer

MERGES = [("o", "r"), ("Ġ", "or"), ("Ġor", "d"), ("e", "r"), ("Ġord", "er")]
DIGIT = {"type": "integer", "minimum": 0, "maximum": 9}
SCHEMAS = {
    "ORDER": '{"enum": ["an order", "er"], "maxLength": 8}',
    "OBJECT": json.dumps(
        {"properties": {"a": DIGIT, "b": {"type": "boolean"}}, "type": "object", "required": ["a"]}
    ),
    "BROKEN": "{",
    "LANGUAGE": json.dumps({"grammar": 'root ::= " order" | "er"', "format": "gbnf"}),
    "NULL": '{"type": "null"}',
    "NOTHING": '{"allOf": [{"type": "null"}, {"type": "string"}]}',
}


G = "generate --model ./MODEL --tokenizer TOKENIZER --prompt an"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """TOKENIZER: letters, space, newline and ` order`; `xyz` is never made. PRINTABLE: single
    characters. MODEL: a llama of nearly no size. And the schemas."""
    made = tmp_path_factory.mktemp("files")
    letters = [byte_spelling(c.encode()) for c in "abcdefghijklmnopqrstuvwxyz \n"]
    vocabulary = [*letters, *map("".join, MERGES), "xyz"]
    symbols = [byte_spelling(bytes((byte,))) for byte in [10, *range(32, 127)]]
    tokenizers = {
        "TOKENIZER": small_tokenizer(vocabulary, MERGES, byte_level(use_regex=True), ["<eos>"]),
        "PRINTABLE": small_tokenizer(symbols, [], byte_level(), ["<eos>"]),
    }
    for name, tokenizer in tokenizers.items():
        (made / name).mkdir()
        (made / name / "tokenizer.json").write_text(tokenizer.to_json(), encoding="utf-8")
        (made / name / "tokenizer_config.json").write_text('{"eos_token": "<eos>"}')
    heads = {"num_attention_heads": 1, "num_key_value_heads": 1}
    model = tiny_llama(0, 40, size=8, **heads, eos_token_id=34, bos_token_id=None)
    model.save_pretrained(made / "MODEL")
    for name, content in SCHEMAS.items():
        (made / name).write_text(content, encoding="utf-8")
    (made / "folder.npz").mkdir()
    return made


@pytest.fixture
def run(capsys, folder, monkeypatch):
    """Run in this process, in that folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(folder)

    def call(line: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(shlex.split(line))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


SAID = [
    ("inspect TOKENIZER", 0, ["bytes", "regex 's|'t|", "1: <eos>", "1: `xyz`", "% of the pairs"]),
    ("compile TOKENIZER --regex '( order)+'", 0, ["1 id in the first", "4 ids in the first"]),
    ("compile TOKENIZER --regex ' order' --save o.txt", 0, ["2 states, 1 transition\n"]),
    ("compile TOKENIZER --schema ORDER --yaml", 0, ["ORDER", "states as texts lead to them"]),
    ("compile TOKENIZER --language LANGUAGE", 0, ["LANGUAGE", "2 ids in the first"]),
    ("verify TOKENIZER --regex '( order|a)+' -n 50", 0, ["no counterexample in 50 walk"]),
    ("explain TOKENIZER --ids '30 31'", 1, ["token 1: `␣ord`+`er` would be `␣order`"]),
    ("explain TOKENIZER --ids 32,0", 0, ["canonical"]),
    ("explain TOKENIZER --text 'an order\n\nb'", 0, ["`a`\n", "`n`\n", "`␣order`\n"]),
    (f"{G} --regex ' orders'", 0, [" orders\n"]),
    (f"{G} --close --regex ' order( order)*ed' --max-new-tokens 3", 0, [" ordered\n"]),
    ("inspect TOKENIZER --json", 0,
     ['"ids": 35', '"merges": 5', '"base_symbols": 28', '"eos_ids": [34]']),
    ("compile TOKENIZER --schema ORDER --yaml --depth 0 --json", 0, ['"dfa_states": 11']),
    ("verify TOKENIZER --regex '[a-z]+' -n 20 --prompt 'the ord' --json", 0,
     ['"ok": true', '"walks": 20']),
    (f"{G} --regex '( order){{2}}' --sample --json", 0, ['"ids": [32, 32]', '"healing": null']),
    (f"{G} --schema ORDER --yaml --json", 0, ['"complete": true', '"finish_reason": "complete"']),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code", "parts"), SAID, ids=[line for line, *_ in SAID])
def test_what_a_command_says(run, line, code, parts) -> None:
    found, out, err = run(line)
    assert (found, err) == (code, "")
    assert [part for part in parts if part not in out] == []


LINE = "verify TOKENIZER --regex '( order|a)+' -n 50"
STEPS = ["reading TOKENIZER", "making its automaton", "compiling the constraint"]


@pytest.mark.parametrize("given", ["--progress", "--no-progress", ""])
def test_progress_is_told_where_it_is_asked_for(run, given) -> None:
    """And otherwise on a terminal alone, which stderr is not here."""
    pytest.importorskip("rich")
    code, _, err = run(f"{LINE} {given}")
    shown = [*STEPS, "verifying"] if given == "--progress" else []
    assert (code, err.splitlines()) == (0, shown)


def test_progress_on_a_terminal_is_gone_at_the_end(run, monkeypatch) -> None:
    """What is printed there goes up and erases the line at last."""
    pytest.importorskip("rich")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    code, out, err = run(LINE)
    assert code == 0
    assert "no counterexample" in out
    assert [one for one in [*STEPS, "verifying"] if one not in err] == []
    assert err.endswith("\x1b[2K")


def test_progress_shows_a_path_as_it_is(capsys, monkeypatch) -> None:
    pytest.importorskip("rich")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with step(Namespace(progress=None), "reading [abc]/[/x].json"):
        print("what a command prints")
    out, err = capsys.readouterr()
    assert out == "what a command prints\n"
    assert "reading [abc]/[/x].json" in err


def texts_of(run, tokenizer, options) -> set[str]:
    """All texts of the automaton that `compile` saves."""
    found = json.loads(run(f"compile {tokenizer} --save saved.npz --json {options}")[1])["saved"]
    automaton, loaded = TokenAutomaton.load("saved.npz"), Tokenizer.load(Path(tokenizer))
    assert (found["states"], found["transitions"]) == (automaton.n_states, automaton.n_transitions)
    return {loaded.decode(ids) for ids in automaton.enumerate(200)}


def test_the_whole_automaton_is_saved_as_the_options_say(run) -> None:
    assert texts_of(run, "TOKENIZER", "--regex '( order){1,2}'") == {" order", 2 * " order"}
    objects = [{"a": n, **more} for n in range(10) for more in ({}, {"b": True}, {"b": False})]
    options = "--schema OBJECT --closed"
    compact = {json.dumps(value, separators=(",", ":")) for value in objects}
    assert texts_of(run, "PRINTABLE", options) == compact
    spaced = texts_of(run, "PRINTABLE", f"{options} --whitespace spaced")
    assert spaced == set(map(json.dumps, objects))
    in_yaml = texts_of(run, "PRINTABLE", f"{options} --yaml")
    assert len(in_yaml) == 30
    assert {"a: 0\n", "a: 9\nb: true\n"} <= in_yaml


def test_verify_tells_a_counterexample(run, monkeypatch) -> None:
    """An encoder that disagrees with the merge table, and that nobody has tried before."""
    monkeypatch.setattr("bpe_automata.canonical.canonical.try_automaton", lambda it: None)
    monkeypatch.setattr(
        Tokenizer, "encode_batch", lambda self, texts: [[*self.encode(text), 0] for text in texts]
    )
    code, out, _ = run("verify TOKENIZER --regex '[a-z]{2,}' --json")
    assert code == 1
    found = json.loads(out)["counterexample"]
    assert [*found] == ["claim", "prompt_ids", "ids", "tokens", "text", "expected_ids"]


def test_warm_keeps_what_masks_need_of_tokenizers(run, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(tmp_path))
    monkeypatch.setattr("bpe_automata.canonical.stored.FEWEST_IDS", 0)
    assert run("warm TOKENIZER PRINTABLE")[0] == 0
    kept = {*(tmp_path / "automaton").iterdir()}
    code, out, _ = run("warm PRINTABLE --json")
    assert (code, json.loads(out)["tokenizers_prepared"]) == (0, ["PRINTABLE"])
    assert {*(tmp_path / "automaton").iterdir()} == kept != set()


# ---------------------------------------------------------------- errors

ERRORS = {
    "generate --regex a --prompt b": "no model: give --model",
    "generate --model ./MODEL --regex a --prompt b": "--tokenizer",
    "generate --model ./none --regex a --prompt b": "no model at ./none",
    f"{G} --close --regex ' order( order)*ed' --max-new-tokens 2": "takes 3 ids, only 2",
    f"{G} --language '[]'": "cannot read []",
    f"{G} --language '{{}}'": "in place of the regex",
    f"{G} --language NULL --yaml": "need --schema FILE",
    f"{G} --schema none.json": "cannot read none.json",
    "inspect none.json": "there is no tokenizer at none.json",
    "compile TOKENIZER --regex 'a('": "at position 1 of the regex",
    r"compile TOKENIZER --regex '(\w| ){0,300}x[a-z]{0,99}' --max-seconds 1e-6": "1e-06 seconds",
    "compile none --regex a --save o.doc": "o.doc: a picture is saved as",
    "compile none --regex a --save none/o.npz": "there is no folder",
    "compile none --regex a --save folder.npz": "is a folder",
    **{f"compile TOKENIZER --regex a {option}": "need --schema FILE"
       for option in ("--yaml", "--closed", "--depth 1")},
    "compile TOKENIZER --schema BROKEN": "is no JSON",
    "compile TOKENIZER --schema NOTHING": "no value is valid",
    "compile TOKENIZER --schema NULL --yaml --whitespace spaced": "--whitespace is of JSON",
    "explain TOKENIZER --text 'a\udcff'": "lone surrogate",
}  # fmt: skip


@pytest.mark.parametrize("line", ERRORS, ids=ascii)
def test_error_in_one_line(run, line) -> None:
    """What cannot be saved is said before the tokenizer is loaded."""
    code, out, err = run(line)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert ERRORS[line] in err


def test_interrupt_and_a_missing_package(run, monkeypatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("bpe_automata._cli.common.load_tokenizer", interrupted)
        assert run("inspect TOKENIZER") == (2, "", "error: interrupted\n")
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert "pip install 'bpe-automata[torch]'" in run("inspect owner/name")[2]


USAGE = ("", "nonsense", "warm", "explain t.json", "verify t.json --regex a -n 0", "compile t.json")


@pytest.mark.parametrize("line", [*USAGE, "compile t.json --regex a --schema s.json"])
def test_usage_errors(line, capsys) -> None:
    with pytest.raises(SystemExit) as caught:
        main(shlex.split(line))
    assert caught.value.code == 2
    assert "usage: bpe-automata" in capsys.readouterr().err


def test_as_a_process(folder) -> None:
    """Also into a pipe that is closed early."""

    def process(line: str) -> tuple[int, str, str]:
        line = f"{shlex.quote(sys.executable)} -m bpe_automata {line}"
        done = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=3600)
        return done.returncode, done.stdout, done.stderr

    explain = f"explain {folder}/TOKENIZER --ids"
    code, said, error = process(f"{explain} '30 31'")
    assert (code, "would be `␣order`" in said, error) == (1, True, "")
    assert process("--version")[1] == f"bpe-automata {bpe_automata.__version__}\n"
    assert process(f"{explain} '{'0 ' * 50_000}' | head -n 1")[2] == ""
