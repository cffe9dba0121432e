"""The process of an engine: what it says, and how it was lost if it was, are rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.run.executors import FAILURE, Row
from experiments.shared.watched import Limits, LostError, WatchedProcess


class Process:
    """A context; see `WatchedProcess`. The next question after it was lost starts it anew."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        limits: Limits,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._process = WatchedProcess(module, arguments, limits, environment)
        self._first: Row = {}

    def start(self) -> Row:
        """Its first line; it is started if it is not there."""
        if not self._process.running:
            try:
                self._first = self._process.begin()
            except LostError as lost:
                self._first = {FAILURE: str(lost)}
            if FAILURE in self._first:
                self._process.close()
        return self._first

    def ask(self, question: Any) -> Row:
        """Its answer, or a failure."""
        first = self.start()
        if FAILURE in first:
            return first
        try:
            return self._process.answer(question)
        except LostError as lost:
            return {FAILURE: str(lost)}

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.close()
