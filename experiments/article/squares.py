"""Masks along a text, as squares: a line per step, a column per token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ALLOWED, CHOSEN, FORBIDDEN = "#7fc4cc", "#00798c", "#f2f2f2"


@dataclass(frozen=True)
class Step:
    """so_far: what was read; allowed: the tokens that may come; chosen: the one that does ("": the
    end)."""

    so_far: str
    allowed: tuple[str, ...]
    chosen: str


@dataclass(frozen=True)
class Squares:
    """tokens: of the columns."""

    tokens: tuple[str, ...]
    steps: tuple[Step, ...]


def draw_squares(axes: Any, squares: Squares) -> None:
    """Into axes of matplotlib."""
    place = {"ha": "center", "va": "center", "fontsize": 10, "family": "monospace"}
    for line, step in enumerate(squares.steps):
        axes.text(-0.7, -line, step.so_far, **(place | {"ha": "right"}))
        for column, token in enumerate(squares.tokens):
            color, ink = _colors(step, token)
            axes.bar(column, 0.8, 0.9, -line - 0.4, color=color)
            axes.text(column, -line, token, color=ink, **place)
    axes.set_xlim(-3.4, len(squares.tokens))
    axes.set_ylim(-len(squares.steps) + 0.4, 0.6)
    axes.axis("off")


def _colors(step: Step, token: str) -> tuple[str, str]:
    if token == step.chosen:
        return CHOSEN, "white"
    return (ALLOWED, "#222222") if token in step.allowed else (FORBIDDEN, "#bbbbbb")
