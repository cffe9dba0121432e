"""The constraints of the table of peers, with texts of their languages and texts of none."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product


@dataclass(frozen=True)
class Case:
    """inside: texts of the language, all of it where `is_small`; outside: texts that are not."""

    regex: str
    inside: tuple[str, ...]
    outside: tuple[str, ...]
    is_small: bool = False


_CALL = (
    r'\{"name": "(get_weather|get_time)", '
    r'"arguments": \{"city": "[A-Z][a-z ]{1,30}", "days": [1-9][0-9]?\}\}'
)
_SUBJECTS = ("I", "you", "we", "they")
_SHORT = ("", "'m", "'re", "'ve", "'ll", "'d")
_CITIES = ("Paris", "London", "New York", "Rome", "San José", "Reykjavík")

CASES: dict[str, Case] = {
    "answer": Case(r"(yes|no)", ("yes", "no"), ("maybe", "ye", "yesno", "Yes"), True),
    "city": Case(
        rf"({'|'.join(_CITIES)})\.",
        tuple(f"{city}." for city in _CITIES),
        ("Paris", "New  York.", "San Jose.", "Berlin."),
        True,
    ),
    "prefixes": Case(
        r"(foo|foobar|foobarbaz)",
        ("foo", "foobar", "foobarbaz"),
        ("fo", "foob", "barbaz", "foobarb"),
        True,
    ),
    "space": Case(
        r"[ \n]{1,4}x",
        tuple("".join(run) + "x" for n in range(1, 5) for run in product(" \n", repeat=n)),
        ("x", "     x", " \t x", "  "),
        True,
    ),
    "contraction": Case(
        rf"({'|'.join(_SUBJECTS)})({'|'.join(_SHORT[1:])})? (go|going)",
        tuple(f"{a}{b} {c}" for a in _SUBJECTS for b in _SHORT for c in ("go", "going")),
        ("you'rego", "we 'll go", "I'm gone", "they's go"),
        True,
    ),
    "date": Case(
        r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
        ("2024-02-29", "1999-12-31", "0001-01-01", "2030-10-07"),
        ("2024-13-01", "2024-1-01", "24-01-01", "2024-01-32"),
    ),
    "number": Case(
        r"-?(0|[1-9][0-9]*)(\.[0-9]+)?",
        ("0", "-17", "3.14159", "1000000", "-0.5", "20240229.75"),
        ("01", "1.", "-", ".5", "1e9"),
    ),
    "identifier": Case(
        r"[a-z_][a-z0-9_]{0,30}",
        ("x", "_private_name", "get_weather_2", "snake_case_identifier"),
        ("2x", "camelCase", "a-b", "a" * 32),
    ),
    "e-mail": Case(
        r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}",
        ("jane.doe@example.com", "x@y.org", "info+test@mail.example.co.uk"),
        ("jane.doe", "@example.com", "jane@example", "jane doe@example.com"),
    ),
    "call": Case(
        _CALL,
        (
            '{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}',
            '{"name": "get_time", "arguments": {"city": "New delhi", "days": 14}}',
        ),
        (
            '{"name": "get_news", "arguments": {"city": "Paris", "days": 3}}',
            '{"name": "get_time", "arguments": {"city": "Paris", "days": 0}}',
            '{"name": "get_time", "arguments": {"city": "Paris"}}',
        ),
    ),
    "string": Case(
        r"[ -~]{0,200}",
        ("", "Hello, world!", "  two spaces, don't they?", "x = [1, 2, 3]; print(x)"),
        ("tab\there", "naïve", "a" * 201),
    ),
    "words": Case(
        r"\w+( \w+){0,4}",
        ("naïve café", "日本語", "привет мир", "one two three four five", "ÅNGSTRÖM"),
        ("two  spaces", "semi;colon", "one two three four five six", "dash-ed"),
    ),
}
