"""The regexes of the speed experiment: short and long, narrow and wide."""

from __future__ import annotations

from collections.abc import Sequence

from bpe_automata.errors import ArgumentError

_OCTET = r"(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
_OBJECT = (
    r'\{"name": "[^"\\\n]{1,40}", "age": [0-9]{1,3}, "email": "[a-z0-9.]+@[a-z]+\.com", '
    r'"ok": (true|false), "score": -?[0-9]+(\.[0-9]+)?\}'
)

REGEXES: dict[str, str] = {
    "boolean": r"(true|false)",
    "500 of ASCII": r"[ -~]{0,500}",
    "object, 5 fields": _OBJECT,
    "e-mail": r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}",
    "URL": r"https?://[a-z0-9.-]+(:[0-9]+)?(/[a-zA-Z0-9._~%-]*)*(\?[a-z0-9=&]*)?",
    "date": r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
    "UUID": r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "IPv4": rf"({_OCTET}\.){{3}}{_OCTET}",
    "number": r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?",
    "word": r"\w+",
    "JSON string": r'"([^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"',
    "200 of any": r"(.|\n){0,200}",
    "names": r"[A-Z][a-z]+( [A-Z][a-z]+){1,2}",
    "enum": r"(red|green|blue|yellow|orange|purple|black|white)",
    "500 letters": r"[a-z]{500}",
    "code": r"def [a-z_]+\(([a-z]+(, [a-z]+)*)?\):\n    return [a-z]+",
    "line of 500": r".{0,500}",
}


def chosen(names: Sequence[str]) -> dict[str, str]:
    """Those of these names, all for none. Raises ArgumentError."""
    unknown = [name for name in names if name not in REGEXES]
    if unknown:
        raise ArgumentError(f"no regex is named {unknown[0]!r}; there are {', '.join(REGEXES)}")
    return {name: REGEXES[name] for name in names or REGEXES}
