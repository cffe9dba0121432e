"""Regexes that grow: four families, each with a size n."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """name: with n as a variable; regex: of a size; sizes: those of a default run, ascending."""

    name: str
    regex: Callable[[int], str]
    sizes: tuple[int, ...]

    def chosen(self, largest: int | None) -> tuple[int, ...]:
        """The sizes up to `largest` (None: those of a default run)."""
        if largest is None:
            return self.sizes
        doubling = self.sizes[-1] > len(self.sizes)
        grown = range(self.sizes[-1] + 1, largest + 1)
        extra = tuple(n for n in grown if not doubling or not n & (n - 1))
        return (*(n for n in self.sizes if n <= largest), *extra)


def anything(n: int) -> str:
    """Any n characters but a line break. The article plots n = 1 .. 6."""
    return f".{{{n}}}"


def letters(n: int) -> str:
    """n small letters."""
    return f"[a-z]{{{n}}}"


def nested(n: int) -> str:
    """Boolean expressions whose operators nest n - 1 deep: alternations within alternations."""
    if n == 1:
        return "(true|false)"
    inner = nested(n - 1)
    return rf"(not {inner}|\({inner} (and|or) {inner}\))"


def fields(n: int) -> str:
    """A JSON object of n fields."""
    value = r'(true|false|null|-?(0|[1-9][0-9]*)|"(low|medium|high)")'
    return r"\{" + ", ".join(rf'"field{i}": {value}' for i in range(1, n + 1)) + r"\}"


FAMILIES = (
    Family(".{n}", anything, (1, 2, 3, 4, 5, 6)),
    Family("[a-z]{n}", letters, (1, 2, 3, 4, 5, 6, 7)),
    Family("alternations nested n deep", nested, (1, 2, 3, 4, 5)),
    Family("JSON object of n fields", fields, (1, 2, 4, 8, 16)),
)
