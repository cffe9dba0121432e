"""A drawing that shows itself: SVG in notebooks, a table without Graphviz, text in terminals."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bpe_automata.sharing import cached
from bpe_automata.viz.dot import GraphvizError, to_dot, to_svg
from bpe_automata.viz.drawing import Drawing
from bpe_automata.viz.files import check_target, page, save_figure, with_remark
from bpe_automata.viz.table import to_html, to_text


@dataclass(frozen=True)
class Picture:
    """A drawing in every form; each is made when it is asked for."""

    drawing: Drawing

    def dot(self) -> str:
        """The source for Graphviz."""
        return to_dot(self.drawing)

    def svg(self) -> str | None:
        """An `<svg>` element, None where Graphviz is not installed. Raises GraphvizError."""
        return self._svg

    def text(self) -> str:
        """For a terminal: each state and, under it, where its labels lead."""
        return to_text(self.drawing)

    def html(self) -> str:
        """A table, for where there is no Graphviz."""
        return to_html(self.drawing)

    def best(self) -> tuple[str, str]:
        """The mime type and the text of the best form at hand: SVG or HTML. Never raises."""
        try:
            svg = self.svg()
        except GraphvizError as error:
            return "text/html", with_remark(self.html(), str(error))
        return ("text/html", self.html()) if svg is None else ("image/svg+xml", svg)

    def save(self, path: str | Path) -> Path:
        """Write .dot, .txt, .html, .svg, .png or .pdf, by the suffix; returns the path.

        .png and .pdf are drawn by matplotlib, .svg by Graphviz or, without it, by matplotlib.
        Raises what `check_target` raises (before anything is drawn), GraphvizError,
        MissingDependencyError.
        """
        path = check_target(path)
        text = self._file(path.suffix)
        if text is None:
            save_figure(self.drawing, path)
        else:
            path.write_text(text, encoding="utf-8")
        return path

    def _file(self, suffix: str) -> str | None:
        """What stands in a file of text; None if matplotlib draws it."""
        if suffix == ".html":
            return page(self.drawing.caption or "automaton", self.best()[1])
        makers = {".dot": self.dot, ".txt": lambda: f"{self.text()}\n", ".svg": self.svg}
        return makers[suffix]() if suffix in makers else None

    @cached
    def _svg(self) -> str | None:
        return to_svg(self.dot())

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        kind, shown = self.best()
        return {"text/plain": self.text(), kind: shown}

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__
