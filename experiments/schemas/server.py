"""The worker of an engine: what crashes, takes too long or too much memory is an answer too."""

from __future__ import annotations

from collections.abc import Sequence

from bpe_automata.errors import BpeAutomataError
from experiments.run.executors import Row
from experiments.shared.watched import Limits, LostError, WatchedProcess

WORKER = "experiments.schemas.worker"


class MissingEngineError(BpeAutomataError):
    """An engine is not installed, or does not take the tokenizer; the message says why."""


class WorkerServer:
    """A context; the process is started when it is first needed, and again after it was ended."""

    def __init__(self, arguments: Sequence[str], limits: Limits, module: str = WORKER) -> None:
        self._process = WatchedProcess(module, arguments, limits)
        self.began_mb: float | None = None

    def ask(self, question: Row) -> Row:
        """Its answer, or {"status": "over time" | "over memory" | "crashed", ...}. Raises
        MissingEngineError."""
        self.start()
        try:
            return self._process.answer(question)
        except LostError as lost:
            message = lost.message if lost.status == "crashed" else ""
            ended = {"status": lost.status, "message": message, "keyword": None}
            return ended | {"peak_mb": lost.mb}

    def start(self) -> None:
        """Have a process ready. Raises MissingEngineError."""
        if self._process.running:
            return
        ready = self._begun()
        if not ready["ready"]:
            self._process.close()
            raise MissingEngineError(ready["message"])
        self.began_mb = ready["peak_mb"] if self.began_mb is None else self.began_mb

    def _begun(self) -> Row:
        """What a new process says first."""
        try:
            return self._process.begin()
        except LostError as lost:
            raise MissingEngineError(f"the process of the engine did not start: {lost}") from lost

    def __enter__(self) -> WorkerServer:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.close()
