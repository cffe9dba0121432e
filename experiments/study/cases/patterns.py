"""Languages that are too large to be listed: bounded in length, with an end that is clear.

No string of a language begins another one, so a complete answer has one way to go on: to end.
`truth` names some right answers where there are any.
"""

from __future__ import annotations

from experiments.study.cases.chat import ASSISTANT
from experiments.study.cases.function_calls import signature
from experiments.study.study_case import StudyCase

_PatternRow = tuple[str, str, str, str, str, tuple[str, ...]]
"""Family, name, boundary, prompt, pattern, right answers."""

_ISO = r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_MONTH = "(January|February|March|April|May|June|July|August|September|October|November|December)"
_BYTE = r"(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_TEXT = r"[A-Za-z0-9 ,.?!-]{1,24}"

_DATES_NUMBERS: tuple[_PatternRow, ...] = (
    (
        "dates_numbers",
        "date_iso",
        "space",
        "Apollo 11 landed on (YYYY-MM-DD)",
        rf" {_ISO}\.",
        (" 1969-07-20.",),
    ),
    (
        "dates_numbers",
        "date_words",
        "space",
        "The Berlin Wall fell on",
        rf" {_MONTH} ([1-9]|[12][0-9]|3[01]), (1[0-9]|20)[0-9]{{2}}\.",
        (" November 9, 1989.",),
    ),
    (
        "dates_numbers",
        "time",
        "space",
        "The last bus leaves at",
        r" ([01][0-9]|2[0-3]):[0-5][0-9]\.",
        (),
    ),
    (
        "dates_numbers",
        "price",
        "space",
        "A cup of coffee in New York costs",
        r" \$(0|[1-9][0-9]{0,3})\.[0-9]{2}\n",
        (),
    ),
    (
        "dates_numbers",
        "product",
        "space",
        "23 * 17 =",
        r" (0|[1-9][0-9]{0,5})\n",
        (" 391\n",),
    ),
    (
        "dates_numbers",
        "version",
        "space",
        "The current version of the library is",
        r" [0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,2}\n",
        (),
    ),
    (
        "dates_numbers",
        "phone",
        "space",
        "Call our office in New York at",
        r" \(212\) 555-01[0-9]{2}\.",
        (),
    ),
    (
        "dates_numbers",
        "scientific",
        "space",
        "The speed of light in m/s is about",
        r" [1-9]\.[0-9]{1,3}e[1-9][0-9]?\n",
        (" 3.0e8\n", " 2.998e8\n"),
    ),
    (
        "dates_numbers",
        "ipv4",
        "space",
        "The address of localhost is",
        rf" {_BYTE}(\.{_BYTE}){{3}}\n",
        (" 127.0.0.1\n",),
    ),
    ("dates_numbers", "colour", "space", "p { color:", r" #[0-9a-f]{6};", ()),
)

_NAMES: tuple[_PatternRow, ...] = (
    (
        "names",
        "city",
        "space",
        "The capital of Hungary is",
        r" [A-Z][a-z]{1,14}\.",
        (" Budapest.",),
    ),
    (
        "names",
        "full_name",
        "space",
        "The first president of the United States was",
        r" [A-Z][a-z]{1,11} [A-Z][a-z]{1,11}\.",
        (" George Washington.",),
    ),
    (
        "names",
        "initials",
        "space",
        "The author of The Hobbit is",
        r" ([A-Z]\.){1,3} ?[A-Z][a-z]{1,11}\n",
        (" J.R.R. Tolkien\n",),
    ),
    (
        "names",
        "two_words",
        "space",
        "The chemical name of table salt is",
        r" [a-z]{2,12} [a-z]{2,12}\.",
        (" sodium chloride.",),
    ),
)

_CODE: tuple[_PatternRow, ...] = (
    (
        "identifiers",
        "snake_case",
        "space",
        "# the number of users\nint",
        r" [a-z]{1,10}(_[a-z]{1,10}){0,2};",
        (),
    ),
    (
        "identifiers",
        "function",
        "space",
        "# add two numbers\ndef",
        r" [a-z_]{1,16}\([a-z], [a-z]\):\n",
        (),
    ),
    (
        "identifiers",
        "assignment",
        "newline",
        "# ten in hexadecimal\n",
        r"[a-z]{1,8} = 0x[0-9a-f]{1,4}\n",
        (),
    ),
    (
        "identifiers",
        "select",
        "space",
        "-- names of all users\nSELECT",
        r" [a-z_]{1,12} FROM [a-z_]{1,12};",
        (" name FROM users;",),
    ),
    (
        "identifiers",
        "uuid",
        "quote",
        '{"id": "',
        r'[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"',
        (),
    ),
    (
        "identifiers",
        "option",
        "space",
        "# show all files, long format\nls",
        r" (-[a-zA-Z]{1,4}|--[a-z]{2,10})\n",
        (" -la\n", " -al\n"),
    ),
)

_STRINGS: tuple[_PatternRow, ...] = (
    (
        "strings",
        "email",
        "space",
        "Write to the support at",
        r" [a-z]{2,12}(\.[a-z]{2,12})?@example\.(com|org)\n",
        (),
    ),
    (
        "strings",
        "sentence",
        "space",
        "The weather today:",
        r" [A-Z][a-z]{0,9}( [a-z]{1,10}){2,6}\.",
        (),
    ),
    (
        "strings",
        "title",
        "quote",
        'She wrote a novel called "',
        r'[A-Z][a-z]{1,10}( [A-Za-z][a-z]{1,10}){0,3}"',
        (),
    ),
    (
        "strings",
        "list",
        "space",
        "Three fruits:",
        r" [a-z]{3,10}, [a-z]{3,10}, [a-z]{3,10}\.",
        (" apple, banana, orange.",),
    ),
    ("strings", "path", "quote", 'with open("', r'(/?[a-z_]{1,8}){1,3}\.(txt|csv|json)"', ()),
    ("strings", "json_text", "quote", '{"city": "Paris", "summary": "', rf'{_TEXT}"', ()),
    (
        "strings",
        "slogan",
        "newline",
        "A short slogan for a bakery.\n",
        r"[A-Z][a-z]{1,9}( [a-z]{1,9}){1,4}!",
        (),
    ),
)

_OTHERS: tuple[_PatternRow, ...] = (
    (
        "yes_no",
        "reason",
        "space",
        "Is it healthy to sleep eight hours? Answer:",
        r" (Yes|No), because( [a-z]{1,9}){2,6}\.",
        (),
    ),
    (
        "choices",
        "several",
        "space",
        "Even: A. 2 B. 3 C. 4 D. 5\nAll that are right:",
        r" [A-D](, [A-D]){0,3}\.",
        (" A, C.",),
    ),
    ("whitespace", "indent", "mixed", "def f(x):", r"\n[ ]{2,8}(return|raise) [a-z]{1,8}\n", ()),
    (
        "scripts",
        "zh_sentence",
        "word",
        "问题:你为什么喜欢春天?答案:",
        "[\u4e00-\u9fff]{2,12}。",
        (),
    ),
    (
        "scripts",
        "ja_sentence",
        "word",
        "質問:趣味は何ですか。答え:",
        "[ぁ-んァ-ヶ一-龯]{2,12}。",
        ("読書です。",),
    ),
    (
        "scripts",
        "ru_sentence",
        "space",
        "Сегодня погода хорошая.",
        r" [А-ЯЁ][а-яё]{1,9}( [а-яё]{1,9}){1,4}\.",
        (),
    ),
    (
        "scripts",
        "el_word",
        "space",
        "Η πρωτεύουσα της Γαλλίας είναι το",
        r" [Α-ΡΣ-Ω][ά-ώ]{1,9}\.",
        (" Παρίσι.",),
    ),
)

_SPEED = "(0|[1-9][0-9]{0,2})"

_CALLS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (
        "uber.ride",
        "A comfortable car to 5 Elm Street in ten minutes.",
        rf' {{"loc": "{_TEXT}", "type": "(plus|comfort|black)", "time": [1-9][0-9]?}}',
        (' {"loc": "5 Elm Street", "type": "comfort", "time": 10}',),
    ),
    (
        "todo.add",
        "I must not forget to buy milk.",
        rf' {{"content": "{_TEXT}"(, "priority": "(low|medium|high)")?}}',
        (),
    ),
    (
        "setCruiseControl",
        "Drive at 90, 50 metres behind the next car.",
        rf' {{"speed": {_SPEED}, "activate": (true|false), "distanceToNextVehicle": {_SPEED}}}',
        (' {"speed": 90, "activate": true, "distanceToNextVehicle": 50}',),
    ),
    (
        "language_translator.translate",
        "How do I say 'good night' in Spanish?",
        rf' {{"source_language": "en", "target_language": "(hi|id|es|fr|de)", "text": "{_TEXT}"}}',
        (' {"source_language": "en", "target_language": "es", "text": "good night"}',),
    ),
)
"""Function, request, pattern of the arguments, right answers."""


def _case(row: _PatternRow) -> StudyCase:
    family, name, boundary, prompt, pattern, truth = row
    full = f"{family}_any_{name}"
    return StudyCase(full, family, full, "plain", boundary, prompt, pattern=pattern, truth=truth)


def _call(row: tuple[str, str, str, tuple[str, ...]]) -> StudyCase:
    """All arguments of a call, by the assistant in a chat."""
    function, request, pattern, truth = row
    full = f"function_calls_any_{function.replace('.', '_')}"
    prompt = f"{signature(function)}\nCall it: {request}{ASSISTANT}Arguments:"
    return StudyCase(
        full, "function_calls", full, "chat", "space", prompt, pattern=pattern, truth=truth
    )


CASES = (
    *map(_case, _DATES_NUMBERS),
    *map(_case, _NAMES),
    *map(_case, _CODE),
    *map(_case, _STRINGS),
    *map(_case, _OTHERS),
    *map(_call, _CALLS),
)
