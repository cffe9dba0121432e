"""Hostile grammars, and what is counted before lark is given one."""

from __future__ import annotations

import sys
from importlib.resources import files
from types import SimpleNamespace

import pytest
from grammar_texts import GRAMMARS
from lark.load_grammar import GrammarBuilder

from bpe_automata import Budget, _budget, compile_grammar
from bpe_automata._grammars.bounds import CHARACTERS, STEPS, Bounds
from bpe_automata._grammars.reading import _loaded
from bpe_automata.errors import BudgetExceededError, GrammarError

HOSTILE = {
    "alternatives": "start: " + " | ".join(f'"w{k}"' for k in range(100_000)),
    "nested": "start: " + "(" * 10_000 + '"a"' + ")" * 10_000,
    "options": "start: " + " ".join(f'["w{k}"]' for k in range(30)),
    "rules": "start: a0\n" + "\n".join(f'a{k}: "x" a{k + 1} "y"' for k in range(10_000)),
    "doubled": "".join(f'a{k}: a{k + 1} a{k + 1} | "q"\n' for k in range(1_000)) + 'a1000: "z"',
    "longest": "".join(f"a{k}: a{k + 1} a{k + 1}\n" for k in range(1_000)) + 'a1000: "z"',
    "circle": "".join(f'a{k}: a{(k + 1) % 2_000} "x" | "y"\n' for k in range(2_000)),
    "empty": "a0: " + "b " * 1_000 + '\nb: "x" | ',
    "regex": "a0: /(a|b)*a(a|b){30}/",
    "ambiguous": 'a0: a0 a0 | a0 a0 a0 | "a" | "b" a0',
    "templates": 'a0: f{"a"}\nf{x}: f{g{x, x}} | x\ng{x, y}: x "b" y',
    "doubled terminals": "".join(f"T{k}: T{k + 1} T{k + 1}\n" for k in range(40)) + 'T40: "x"',
    "terminals": "".join(f"T{k}: T{k + 1} T{k + 1}\n" for k in range(400)) + 'T400: "x"',
    "repeats": "a0: " + "(" * 40 + '"a"' + ")~2" * 40,
    "stars": "a0: " + "a0* " * 10_000,
    "large repeats": 'a0: ("a"? | "b"~0..1000000)~0..1000000',
    "lines": 'a0: "a"' + "\n" * 100_000 + 'a1: "b"',
    "string without end": 'a0: "' + "\\" * 120 + "\n",
    "regex without end": "a0: /" + "\\" * 121 + "/",
}
BOUNDS = {
    **dict.fromkeys(("alternatives", "rules"), "characters"),
    **dict.fromkeys(("nested", "terminals", "doubled terminals", "lines"), "steps of lark"),
    "templates": "symbols in rules",
}
"""Of the hostile ones that lark is not given, what there is too much of."""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_grammars_are_answered_or_refused(name):
    start = "start" if "start" in HOSTILE[name] else "a0"
    try:
        found = compile_grammar(HOSTILE[name], start=start, budget=Budget(max_seconds=1.5))
        assert found.live_bytes(found.start).size or found.accepts(b"")
        found.walk(b"ab" * 50)
    except BudgetExceededError:
        pass
    except GrammarError:
        assert name not in BOUNDS


@pytest.mark.parametrize(("name", "resource"), BOUNDS.items())
def test_what_lark_is_not_given_is_said_with_the_limit_and_what_to_do(name, resource):
    with pytest.raises(BudgetExceededError, match=r"comes to [\d,]+ or more.*: write") as error:
        compile_grammar(HOSTILE[name], budget=Budget(max_seconds=1e9))
    assert error.value.resource == resource


@pytest.mark.parametrize("name", ["string without end", "regex without end"])
def test_a_literal_without_end_is_not_searched_for_one(name):
    with pytest.raises(GrammarError, match="line 1 has no end"):
        compile_grammar(HOSTILE[name])


def test_grammars_that_people_write_are_far_within_the_bounds():
    folder = files("lark") / "grammars"
    larks = [(folder / f"{name}.lark").read_text() for name in ("python", "lark")]
    for text in (*GRAMMARS.values(), *larks):
        bounds = Bounds()
        bounds.text(text)
        assert bounds._steps < STEPS / 8


def test_imported_files_count(tmp_path, monkeypatch):
    monkeypatch.setattr(
        sys.modules["__main__"], "__file__", str(tmp_path / "main.py"), raising=False
    )
    (tmp_path / "one.lark").write_text('a: "x" | "y"\n')
    (tmp_path / "large.lark").write_text('a: "x"\n// ' + "c" * CHARACTERS)
    (tmp_path / "round.lark").write_text("%import .round.a -> b\na: b")
    (tmp_path / "terminal.lark").write_text("T0: /x/\n" + "T1: " + "T0 " * 400)
    doubled = "start: A0\n%import .terminal.T1 -> A8\n"
    doubled += "".join(f"A{k}: A{k + 1} A{k + 1}\n" for k in range(8))
    with pytest.raises(BudgetExceededError, match="steps of lark"):
        compile_grammar(doubled)
    assert compile_grammar("start: a\n%import .one.a").accepts(b"y")
    for name, resource in (("large", "characters"), ("round", "imports")):
        with pytest.raises(BudgetExceededError, match=resource):
            compile_grammar(f"start: a\n%import .{name}.a")


@pytest.mark.parametrize(
    ("owner", "step"), [(GrammarBuilder, "load_grammar"), (GrammarBuilder, "build")]
)
def test_after_each_step_of_lark_the_clock_is_looked_at(owner, step, monkeypatch):
    """And it reads without a hook: from one that is called in a finalizer no error comes out."""
    clock, read, hook = SimpleNamespace(now=0), getattr(owner, step), sys.getprofile()
    clock.thread_time_ns = clock.perf_counter_ns = lambda: clock.now

    def late(*given):
        assert sys.getprofile() is hook
        clock.now += 2 * 10**9
        return read(*given)

    monkeypatch.setattr(_budget, "time", clock)
    monkeypatch.setattr(owner, step, late)
    with pytest.raises(BudgetExceededError, match="budget of 1 seconds"):
        compile_grammar('start: "a"', budget=Budget(max_seconds=1))
    monkeypatch.setattr(owner, step, read)
    assert compile_grammar('start: "a"', budget=Budget(max_seconds=1)).accepts(b"a")


def test_terminals_are_not_compared_with_each_other():
    """As by lark's lexer where `interegular` is installed, in exponential time."""
    both = "start: A | B\nA: /(a|b)*a(a|b){30}/\nB: /(a|b)*b(a|b){30}/"
    assert len(_loaded(both)[0]) == 2
