"""What engines are asked about masks, and the process of one engine that answers:
`python -m experiments.serving.masks_child ENGINE TOKENIZER`.

The constraints are short and long, narrow and wide, with texts of their languages. Where a mask
admits much, and each count is a state of its own, masks cost most. The process says with its first
line how the engine came up, and answers each line of its input with a line. All lines are JSON.
Times are microseconds, the lesser of wall time and CPU time of the process, all its threads
together: what others on the machine take from it is not the engine's cost.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata.errors import ArgumentError, BpeAutomataError
from bpe_automata.kernels.bits import has
from experiments.engines.interface import (
    Begin,
    PeerError,
    Session,
    Whitespace,
    filling,
    may_end,
    refusals,
)
from experiments.engines.named import engine_of
from experiments.run.executors import Row
from experiments.schemas.inputs import Case
from experiments.shared.resources import forget_peak, resident, settled
from experiments.shared.watched import Answer, failure_of, serve

WHITESPACE: Whitespace = "spaced"
"""Of the texts of schemas: the one style that all engines know."""
MASKED = 300
"""Ids of a text before which masks are made; after them it is only read."""
REPEATS = 21
"""Of a batch."""
HELD_MB = 2000
"""What schemas may hold together, 10^6 bytes; then they are let go of."""


# ---------------------------------------------------------------- constraints


_OCTET = r"(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
_OBJECT = (
    r'\{"name": "[^"\\\n]{1,40}", "age": [0-9]{1,3}, "email": "[a-z0-9.]+@[a-z]+\.com", '
    r'"ok": (true|false), "score": -?[0-9]+(\.[0-9]+)?\}'
)
_PROSE = (
    "The keeper of the lighthouse wrote down the weather every evening, wind, clouds and the "
    "height of the waves, and once a month she rowed across with the whole list in an oilskin bag. "
    "Nobody had asked for it since the war, but the office still paid her for the paper."
)
_STRING = (
    'Dear Ms. O\'Neill,\\nyour order no. 4711 (2 x \\"Blue Danube\\", 1 x tea-pot) has left our '
    "warehouse at 08:45; it should reach you by Friday. Track it at https:\\/\\/post.example\\/t."
)
_LINE = (
    "2024-05-17 13:02:44,118 WARN  [worker-7] retrying request #3 to https://api.example.org/v2/"
    "items?limit=50 after 1.5 s: connection reset (errno=104); payload={'id': 'a81f', 'size': "
    "20480}, user=müller, note='not found — naïve fallback used', next attempt in 3 s, total=12"
)
_ASCII = (
    "if (x[i] >= 0 && y != NULL) { sum += w * x[i++]; } /* see [Knuth, vol. 3], p. 42 */ printf("
    '"%5.2f\\n", sum); // TODO: what if n == 0? Ask Bob & Eve @ 10 a.m.; ~50% done'
)
_ANY = "Première ligne : où ?\nSecond line, with tabs\tand dots...\n\n日本語の行、絵文字 🎉!\nfin"

REGEXES: dict[str, tuple[str, tuple[str, ...]]] = {
    "boolean": (r"(true|false)", ("true", "false")),
    "president": (r" (William|Theodore)", (" William", " Theodore")),
    "e-mail": (
        r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}",
        ("jane.doe@example.com", "info+test_2024@mail.Example.co.uk"),
    ),
    "URL": (
        r"https?://[a-z0-9.-]+(:[0-9]+)?(/[a-zA-Z0-9._~%-]*)*(\?[a-z0-9=&]*)?",
        ("https://www.example.com/a/path/to/Some-Page_2.html", "http://localhost:8080/?q=1&page=2"),
    ),
    "object of 5": (
        _OBJECT,
        ('{"name": "Zoë Smith", "age": 41, "email": "z.s@mail.com", "ok": true, "score": -3.75}',),
    ),
    "JSON string": (
        r'"([^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"',
        ('"A \\"quoted\\" word, a tab \\t and \\u00e9: c\'est la vie."', '""'),
    ),
    "date": (
        r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
        ("2024-02-29", "1999-12-31"),
    ),
    "UUID": (
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        ("123e4567-e89b-12d3-a456-426614174000",),
    ),
    "IPv4": (rf"({_OCTET}\.){{3}}{_OCTET}", ("192.168.0.1", "8.8.8.8")),
    "number": (
        r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?",
        ("-17", "3.14159", "6.022e23"),
    ),
    "word": (r"\w+", ("lighthouse", "Donaudampfschifffahrt", "日本語")),
    "words": (
        r"\w+( \w+)*",
        ("nine hundred ninety nine luftballons", "naïve café in São Paulo 2024"),
    ),
    "names": (r"[A-Z][a-z]+( [A-Z][a-z]+){1,2}", ("Ada Lovelace", "Johann Sebastian Bach")),
    "enum": (r"(red|green|blue|yellow|orange|purple|black|white)", ("red", "orange")),
    "code": (
        r"def [a-z_]+\(([a-z]+(, [a-z]+)*)?\):\n    return [a-z]+",
        ("def add_up(first, second, rest):\n    return total",),
    ),
    "string of 200": (r'([^"\\]|\\["\\/bfnrt]){0,200}', (_STRING,)),
    "prose of 300": (r"[a-zA-Z ,.]{10,300}", (_PROSE,)),
    "line of 500": (r".{0,500}", (_LINE,)),
    "500 of ASCII": (r"[ -~]{0,500}", (_ASCII,)),
    "200 of any": (r"(.|\n){0,200}", (_ANY,)),
    "500 letters": (r"[a-z]{500}", (("quickbrownfoxesjumpoverlazydogsand" * 15)[:500],)),
}
"""Regexes with texts of their languages, the wide counted ones last: they take the most time."""


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_TEXT, _NUMBER, _INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}
_FLIGHT = _object(
    origin=_TEXT,
    destination=_TEXT,
    date={"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
    passengers={"type": "integer", "minimum": 1, "maximum": 9},
    cabin={"enum": ["economy", "business", "first"]},
    remarks={"type": "string", "maxLength": 100},
)
_CALL = {
    "name": "book_flight",
    "arguments": {
        "origin": "Reykjavík (KEF)",
        "destination": "São Paulo",
        "date": "2024-11-05",
        "passengers": 2,
        "cabin": "business",
        "remarks": "Window seat, please; vegetarian meal.",
    },
}
_PERSON = _object(
    name=_TEXT,
    address=_object(street=_TEXT, city=_TEXT, place=_object(lat=_NUMBER, lon=_NUMBER)),
    active={"type": "boolean"},
)
_LIVES = {
    "name": "Jane Doe",
    "address": {
        "street": "12 Harbour Road",
        "city": "Cork",
        "place": {"lat": 51.898, "lon": -8.4756},
    },
    "active": True,
}
_ITEMS = {"type": "array", "items": _object(id=_INTEGER, label=_TEXT, score=_NUMBER)}
_LISTED = [
    {"id": 1, "label": "first prize", "score": 9.75},
    {"id": 22, "label": "runner-up", "score": 8.5},
]
SCHEMAS: dict[str, tuple[dict[str, Any], Any]] = {
    "function call": (_object(name={"const": "book_flight"}, arguments=_FLIGHT), _CALL),
    "nested object": (_PERSON, _LIVES),
    "array of objects": (_ITEMS, _LISTED),
}
"""Schemas, each with a valid instance."""

CONSTRAINT = "constraint"
"""The group of each of these cases."""
BATCHES = {
    "wide": ("string of 200", "prose of 300", "line of 500"),
    "mixed": ("boolean", "URL", "JSON string", "date", "UUID", "IPv4", "words", "code"),
}
"""By batch: the constraints whose prefixes it is made of."""


def constraints(names: Sequence[str]) -> list[Case]:
    """Those of these names, all for none. Raises ArgumentError."""
    found = {}
    for name, (schema, value) in SCHEMAS.items():
        text = json.dumps(value, ensure_ascii=False)
        found[name] = Case(name, CONSTRAINT, {"schema": schema}, (text,), (True,))
    for name, (regex, texts) in REGEXES.items():
        found[name] = Case(name, CONSTRAINT, {"regex": regex}, texts, (True,) * len(texts))
    unknown = [name for name in names if name not in found]
    if unknown:
        raise ArgumentError(f"no constraint is named {unknown[0]!r}; there are {', '.join(found)}")
    return [found[name] for name in names or found]


WARMING: tuple[tuple[dict[str, Any], str], ...] = (
    ({"regex": r"[a-f]{2}, (one|two)"}, "ab, one"),
    ({"regex": r'"([^"\\]|\\[nt]){0,14}"'}, '"a b\\n café 7"'),
    ({"regex": r"[a-p ]{3,12}|[0-9]+(\.[0-9]{1,9})?"}, "a big lake"),
    ({"schema": _object(a={"type": "string", "maxLength": 12})}, '{"a": "one two"}'),
    (
        {
            "schema": _object(
                b=_NUMBER,
                c={"type": "array", "items": {"enum": [1, "x"]}, "maxItems": 3},
                d={"anyOf": [{"type": "string", "pattern": "^a"}, {"type": "integer"}]},
            )
        },
        '{"b": 0.5, "c": [1, "x"], "d": "ab"}',
    ),
    ({"regex": r"(\w| ){0,5}!"}, "a 日本!"),
)
"""What every engine compiles and follows before anything is timed, with a text of it: all kinds,
but small, for some engines write them out."""


# ---------------------------------------------------------------- the process


def spent(call: Callable[..., object], *arguments: object) -> float:
    """Microseconds of a call."""
    cpu, wall = time.process_time_ns(), time.perf_counter_ns()
    call(*arguments)
    wall = time.perf_counter_ns() - wall
    return round(min(wall, time.process_time_ns() - cpu) / 1e3, 2)


class Worker:
    """An engine that has come up. ready: seconds that it took; process_mb, engine_mb: 10^6 bytes
    resident, before it and for it."""

    def __init__(self, name: str, tokenizer: Tokenizer) -> None:
        self._eos_ids, self._words = tokenizer.eos_ids, (tokenizer.n_ids + 31) // 32
        self._buffer = np.zeros((1, self._words), dtype=np.int32)
        before, started = settled(), time.perf_counter()
        self._engine = engine_of(name, tokenizer)
        self._held: list[Begin] = []
        for source, text in WARMING:  # kernels and tables that are made once are no one's cost
            with suppress(PeerError, BpeAutomataError), refusals():
                self._along([tokenizer.encode(text)], self._engine.prepared(source, WHITESPACE))
        seconds = time.perf_counter() - started
        self.ready: Row = {"ready": seconds, "process_mb": before, "engine_mb": settled() - before}
        gc.collect()
        gc.freeze()  # what is there by now stays; later collections need not look through it

    def answer(self, question: Row) -> Row:
        """Of a source with `ids` of texts, or of a `batch`. Raises PeerError, BpeAutomataError."""
        if "batch" in question:
            return {"batch": self._batch(question["batch"])}
        before = settled()
        forget_peak()
        begun: list[Begin] = []
        row: Row = {
            "compile": spent(
                lambda: begun.append(self._engine.prepared(question["source"], WHITESPACE))
            ),
            "first": spent(self._first, begun[0]),
        }
        row["texts"] = self._along(question["ids"], begun[0])
        row["peak_mb"] = max(0.0, (resident("VmHWM") or before) - before)
        if question["hold"]:
            row |= self._hold(begun[0])
        return row

    def _first(self, begin: Begin) -> None:
        begin().mask(self._buffer)

    def _hold(self, begin: Begin) -> Row:
        """held: how many schemas are alive by now; process_mb: what the process has."""
        self._held.append(begin)
        row = {"held": len(self._held), "process_mb": settled()}
        if row["process_mb"] > self.ready["process_mb"] + HELD_MB:
            self._held.clear()
        return row

    def _along(self, texts: Sequence[list[int]], begin: Begin) -> list[Row]:
        """Of each text: cold, microseconds of the masks at prefixes that are new;
        advance, of reading each id; warm, of all its masks by a second session; stopped, how many
        ids were read if it was not read to the end (as many as it has: it may not end there)."""
        seen: set[tuple[int, ...]] = {()}  # the very first mask came with compiling
        rows = []
        for ids in texts:
            session = begin()
            masks, steps, stopped = self._follow(session, ids)
            prefixes = [tuple(ids[:k]) for k in range(len(masks))]
            cold = [us for prefix, us in zip(prefixes, masks, strict=True) if prefix not in seen]
            seen.update(prefixes)
            again = getattr(session, "again", None)
            if again is None:
                session = begin()
            else:
                again()
            warm = self._follow(session, ids)[0]
            rows.append({"cold": cold, "advance": steps, "warm": warm, "stopped": stopped})
        return rows

    def _follow(
        self, session: Session, ids: Sequence[int]
    ) -> tuple[list[float], list[float], int | None]:
        """(microseconds of each mask, of each step, where it was stopped)."""
        fill, bits = filling(session, self._buffer), self._buffer[0]
        masks, steps = list[float](), list[float]()
        for k, token in enumerate(ids):
            if k < MASKED:
                masks.append(spent(fill))
                if not has(bits, token):
                    return masks, steps, k
            try:
                steps.append(spent(session.advance, token))
            except PeerError:
                return masks, steps, k
        masks.append(spent(fill))
        return masks, steps, None if may_end(session, bits, self._eos_ids) else len(ids)

    def _batch(self, prefixes: Sequence[Row]) -> list[float]:
        """Microseconds, wall time, of each of `REPEATS` times that all masks are made in one call,
        each where its own ids have led; all prefixes are known."""
        begins: dict[str, Begin] = {}
        sessions = list[Session]()
        for prefix in prefixes:
            key = json.dumps(prefix["source"])
            if key not in begins:
                begins[key] = self._engine.prepared(prefix["source"], WHITESPACE)
            sessions.append(begins[key]())
            stopped = self._follow(sessions[-1], prefix["ids"])[2]
            if stopped is not None and stopped < len(prefix["ids"]):
                raise PeerError(f"id {prefix['ids'][stopped]} is refused")
        out = np.zeros((len(prefixes), self._words), dtype=np.int32)
        fill = self._engine.batch(sessions, out)
        fill()
        return [_wall(fill) for _ in range(REPEATS)]


def _wall(call: Callable[[], object]) -> float:
    started = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - started) / 1e3


def answered(worker: Worker, question: Row) -> Row:
    """Its answer, or a failure."""
    try:
        with refusals():
            return worker.answer(question)
    except BpeAutomataError as error:
        return failure_of(error)


def opened(name: str, source: str) -> tuple[Row, Answer]:
    """What `serve` needs."""
    worker = Worker(name, Tokenizer.load(source))
    return worker.ready, partial(answered, worker)


if __name__ == "__main__":
    serve(partial(opened, *sys.argv[1:3]))
