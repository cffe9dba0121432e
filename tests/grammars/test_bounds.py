"""Hostile grammars, and what is counted before lark is given one."""

import re
import sys

import pytest

from bpe_automata import Budget, compile_grammar
from bpe_automata.errors import BudgetExceededError, GrammarError
from bpe_automata.grammars.bounds import CHARACTERS

HOSTILE = {
    "alternatives": "start: " + " | ".join(f'"w{k}"' for k in range(100_000)),
    "nested": "start: " + "(" * 10_000 + '"a"' + ")" * 10_000,
    "doubled": "".join(f'a{k}: a{k + 1} a{k + 1} | "q"\n' for k in range(1_000)) + 'a1000: "z"',
    "regex": "a0: /(a|b)*a(a|b){30}/",
    "terminals that lark would compare": "a0: A | B\nA: /(a|b)*a(a|b){30}/\nB: /(a|b)*b(a|b){30}/",
    "ambiguous": 'a0: a0 a0 | a0 a0 a0 | "a" | "b" a0',
    "templates": 'a0: f{"a"}\nf{x}: f{g{x, x}} | x\ng{x, y}: x "b" y',
    "terminals": "".join(f"T{k}: T{k + 1} T{k + 1}\n" for k in range(400)) + 'T400: "x"',
    "large repeats": 'a0: ("a"? | "b"~0..1000000)~0..1000000',
    "regex without end": "a0: /" + "\\" * 121 + "/",
}
BOUNDS = {
    "alternatives": "characters",
    "nested": "steps of lark",
    "terminals": "steps of lark",
    "templates": "symbols in rules",
}
"""Of the hostile ones that lark is not given, what there is too much of."""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_grammars_are_answered_or_refused(name):
    """And what lark is not given is said, with the limit and what to do."""
    start = "start" if "start" in HOSTILE[name] else "a0"
    refused = None
    try:
        found = compile_grammar(HOSTILE[name], start=start, budget=Budget(max_seconds=1.5))
        assert found.live_bytes(found.start).size or found.accepts(b"")
        found.walk(b"ab" * 50)
    except BudgetExceededError as error:
        refused = error
    except GrammarError:
        assert name == "regex without end"
    if name in BOUNDS and refused.resource != "seconds":
        assert refused.resource == BOUNDS[name]
        assert re.search(r"comes to [\d,]+ or more.*: write", str(refused))


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
