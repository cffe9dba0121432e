"""Packages whose names are imported when they are asked for (PEP 562): who wants one thing does not
wait for all others. Type checkers read the imports under TYPE_CHECKING instead.

No module of such a package may be called like a name in it: importing the module would put it in
the name's place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module


def on_demand(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], Iterable[str]]]:
    """The `__getattr__` and the `__dir__` of a package. homes: module, relative to bpe_automata ->
    its names."""
    home = {name: module for module, names in homes.items() for name in names.split()}

    def find(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f"bpe_automata.{home[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return find, lambda: {*vars(sys.modules[package]), *home}
