"""Regexes that grow: four families, each with a size n."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bpe_automata.errors import ArgumentError


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
    """Any n characters but a line break. The article's companion notebook plots n = 1 .. 6."""
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


ANYTHING, LETTERS, NESTED, FIELDS = FAMILIES = (
    Family(".{n}", anything, (1, 2, 3, 4, 5, 6)),
    Family("[a-z]{n}", letters, (1, 2, 3, 4, 5, 6, 7)),
    Family("alternations nested n deep", nested, (1, 2, 3, 4, 5)),
    Family("JSON object of n fields", fields, (1, 2, 4, 8, 16)),
)
NAMES = tuple(family.name for family in FAMILIES)


def named(names: Sequence[str]) -> list[Family]:
    """The families of these names. Raises ArgumentError."""
    known = dict(zip(NAMES, FAMILIES, strict=True))
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        wrong = f"{unknown[0]!r} is none of them" if unknown else "none is given"
        raise ArgumentError(f"--families: {wrong}; they are: {', '.join(NAMES)}")
    return [known[name] for name in names]
