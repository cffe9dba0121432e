"""Stand-in hosts: put in place for one test module, and held against the real files."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def imported_with(modules: dict[str, ModuleType], names: list[str]) -> Any:
    """The modules `names` of this package, imported anew while `modules` stand in. A generator for
    a fixture: at the end everything is as it was."""
    with pytest.MonkeyPatch.context() as patch:
        for name, module in modules.items():
            module.__spec__ = ModuleSpec(name, None)
            patch.setitem(sys.modules, name, module)
        for name in names:
            patch.delitem(sys.modules, name, raising=False)
        yield [importlib.import_module(name) for name in names]
        for name in names:
            sys.modules.pop(name, None)


def real_source(package: str, path: str) -> ast.Module:
    """A file of an installed host, parsed and not run; the test is skipped without it."""
    spec = importlib.util.find_spec(package)
    folders = list(spec.submodule_search_locations or []) if spec else []
    found = [Path(folder) / path for folder in folders if (Path(folder) / path).exists()]
    if not found:
        pytest.skip(f"{package} is missing: pip install {package}")
    return ast.parse(found[0].read_text(encoding="utf-8"))


def class_of(tree: ast.Module, name: str) -> ast.ClassDef:
    return next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)


def parameters(tree: ast.ClassDef | ast.Module, name: str) -> list[str]:
    """The parameters of a method, or of a function of a module."""
    found = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name)
    given = found.args
    return [arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def fields(tree: ast.ClassDef) -> list[str]:
    return [n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)]


def methods(standin: type) -> dict[str, list[str]]:
    """The methods that a stand-in class defines itself, with their parameters."""
    found = {}
    for name, member in vars(standin).items():
        function = getattr(member, "__func__", member)
        if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
            found[name] = list(inspect.signature(function).parameters)
    return found
