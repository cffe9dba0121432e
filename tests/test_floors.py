"""A module imports only from floors below its own, and torch only above the library. Among files,
imports never lead back, those inside functions and for type checkers included."""

from __future__ import annotations

import ast
from pathlib import Path

import networkx
import pytest

PACKAGE = Path(__file__).parents[1] / "bpe_automata"
FLOORS = {
    "errors": -4,
    "limits": -3,
    "optional": -3,
    "budget": -2,
    "sharing": -1,
    "storage": 0,
    "version": -4,
    "arguments": 0,
    "kernels": 0,
    "viz": 0,
    "token_automata": 1,
    "automata": 1,
    "tokenizer": 1,
    "schemas": 2,
    "constructions": 2,
    "models": 2,
    "decoding": 3,
    "banning": 4,
    "reference": 4,
    "sampling": 5,
    "integrations": 6,
    "testing": 7,
    "cli": 7,
    "__init__": 7,
    "__main__": 8,
}
MODULES = sorted(PACKAGE.rglob("*.py")) + sorted(PACKAGE.rglob("*.pyi"))


def floor(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].partition(".")[0]


def imported(path: Path) -> list[tuple[str, str]]:
    """(module, name in it, "" if the module itself is imported)."""
    folder = path.relative_to(PACKAGE.parent).parent.as_posix().replace("/", ".")
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = f"{folder}.{node.module}" if node.level else str(node.module)
            found += [(module, alias.name) for alias in node.names]
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down(path: Path) -> None:
    own = floor(path)
    for name, _ in imported(path):
        top, *rest = name.split(".")
        if top in ("torch", "transformers"):
            assert FLOORS[own] >= 6, f"{name} is for integrations and above"
        if top != "bpe_automata":
            assert top != "experiments"
            continue
        target = rest[0] if rest else "__init__"
        lower = FLOORS[target] < FLOORS[own]
        assert lower or target == own, f"{path.name} of floor {own} imports {name}"


def test_the_list_of_floors_is_complete() -> None:
    assert {floor(path) for path in MODULES} == set(FLOORS)


def test_no_file_imports_itself_by_way_of_others() -> None:
    """In the package and in the experiments."""
    root = PACKAGE.parent
    files = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in [*MODULES, *(root / "experiments").rglob("*.py")]  # a stub after its package
    }
    graph = networkx.DiGraph()
    for name, path in files.items():
        for module, inside in imported(path):
            found = f"{module}.{inside}" if f"{module}.{inside}" in files else module
            if found in files and found != name:
                graph.add_edge(name, found)
    circles = [sorted(part) for part in networkx.strongly_connected_components(graph)]
    assert [part for part in circles if len(part) > 1] == []
