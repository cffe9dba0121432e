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
    "lazy": -4,
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
MODULES = sorted(PACKAGE.rglob("*.py"))


def floor(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down(path: Path) -> None:
    own = floor(path)
    for name in imports(path):
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
        for folder in (PACKAGE, root / "experiments")
        for path in folder.rglob("*.py")
    }
    graph = networkx.DiGraph()
    for name, path in files.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                graph.add_edges_from((name, a.name) for a in node.names if a.name in files)
            elif isinstance(node, ast.ImportFrom) and node.module in files:
                inner = [f"{node.module}.{alias.name}" for alias in node.names]
                found = [one if one in files else node.module for one in inner]
                graph.add_edges_from((name, one) for one in found if one != name)
    circles = [sorted(part) for part in networkx.strongly_connected_components(graph)]
    assert [part for part in circles if len(part) > 1] == []
