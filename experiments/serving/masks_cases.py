"""The constraints of the experiment on masks: short and long, narrow and wide, with texts of their
languages. Where a row is wide, and each of its counts is a state of its own, masks cost most."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bpe_automata.errors import ArgumentError
from experiments.schemas.inputs import Case

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
"""Those whose places a batch is made of."""


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
