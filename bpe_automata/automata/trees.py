"""How a language was joined, as far as parts of it have names. A leaf is an automaton, or what
makes one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Named:
    """A part with a name."""

    name: str
    inner: JoinTree


@dataclass(frozen=True, eq=False)
class Joined:
    """Parts one after another."""

    inner: tuple[JoinTree, ...]


@dataclass(frozen=True, eq=False)
class OneOf:
    """One of several parts."""

    inner: tuple[JoinTree, ...]


@dataclass(frozen=True, eq=False)
class Rounds:
    """A part from `least` to `most` times."""

    inner: JoinTree
    least: int
    most: int | None


JoinTree = Named | Joined | OneOf | Rounds | Any
