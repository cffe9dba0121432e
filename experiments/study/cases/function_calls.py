"""Function calls in JSON: words of enumerations, booleans, numbers, the next key, the function.

The functions are real ones; see `function_docs` for their source and licence.
"""

from __future__ import annotations

from experiments.study.cases.chat import ASSISTANT
from experiments.study.cases.function_docs import DOCS
from experiments.study.cases.function_enums import CHAT, QUOTED, SPACED, CallRow
from experiments.study.cases.making import one
from experiments.study.study_case import StudyCase

_CALL = "\nCall: "

_BOOLEANS: tuple[CallRow, ...] = (
    ("lockDoors", "unlock", "Lock all four doors.", "", "false"),
    ("setCruiseControl", "activate", "Switch the cruise control off.", '"speed": 0, ', "false"),
    ("ls", "a", "List everything, hidden files too.", "", "true"),
    ("du", "human_readable", "How many bytes does this folder take? Just the number.", "", "false"),
    (
        "EFSNIOResource.copy",
        "force",
        "Copy it to /backup and overwrite what is there.",
        '"destination": "/backup", ',
        "true",
    ),
    ("dvRangeQuery", "includeTo", "All x with x < 10.", '"field": "x", "to": 10, ', "false"),
    (
        "map_routing.fastest_route",
        "avoid_tolls",
        "From Nice to Turin, and I do not want to pay for the road.",
        '"start_location": "Nice", "end_location": "Turin", ',
        "true",
    ),
    ("open_project", "read_only", "Open ./demo, I have to edit it.", '"path": "./demo", ', "false"),
    (
        "connect_to_server",
        "use_ssl",
        "Connect to 'home', encrypted.",
        '"nickname": "home", ',
        "true",
    ),
    ("statistics.variance", "population", "The sample variance.", '"data": [1, 5], ', "false"),
    ("supermarket.find_in_city", "openNow", "Where can I buy milk right now?", "", "true"),
    ("list_files", "recursive", "Only the files of this folder itself.", "", "false"),
    ("Trains_1_GetTrainTickets", "trip_protection", "Two tickets from Boston.", "", ""),
    ("sort_array", "reverse", "Sort 3, 1, 2 in falling order.", '"array": [3, 1, 2], ', "true"),
)

_NUMBERS: tuple[CallRow, ...] = (
    ("Buses_3_FindBus", "num_passengers", "For me and my two sisters.", "", "3"),
)

_NEXT = (
    (
        "todo.add",
        "Add 'buy milk', and that is all.",
        '"content": "buy milk", "completed": false',
        '}|, "priority|, "due',
        "}",
    ),
    ("ls", "Show the files, the hidden ones too.", '"a": true', '}|, "', "}"),
    (
        "sort_array",
        "Sort 2 and 1, largest first.",
        '"array": [2, 1',
        ']}|], "reverse',
        '], "reverse',
    ),
    ("get_museum_hours", "The Prado.", '"museum_name": "Prado', '"}|", "day', '", "day'),
    ("get_current_weather", "Weather in Rome.", '"location": "Rome', '"}|, Italy"|", "unit', ""),
)
"""Function, request, what is written, how it can go on, the right way."""

_WHICH = (
    ("lockDoors|setCruiseControl", "Drive at a constant 100 km/h.", "setCruiseControl"),
    ("ls|du|sort_array", "How much disk space does this folder take?", "du"),
    ("sort_array|filter_list|array_sort", "Keep only the words with an 'a'.", "filter_list"),
    ("get_movies|get_shopping|get_museum_hours", "What does a kettle cost?", "get_shopping"),
)
"""Functions to choose from, request, the right one."""


def signature(function: str) -> str:
    """As a reader of types would write it: f(unit: "celsius" | "fahrenheit", days: integer)."""
    fields = (field.split(" ", 1) for field in DOCS[function].split("; "))
    return f"{function}({', '.join(f'{name}: {_type(kind)}' for name, kind in fields)})"


def options(function: str, parameter: str) -> str:
    """The words of a parameter's enumeration, divided by "|"."""
    return dict(field.split(" ", 1) for field in DOCS[function].split("; "))[parameter]


def _type(kind: str) -> str:
    """An enumeration with its strings in quotes; its integers, and the name of a type, as is."""
    words = kind.split("|")
    quoted = len(words) > 1 and not all(word.isdigit() for word in words)
    return " | ".join(f'"{word}"' if quoted else word for word in words)


def _asked(functions: str, request: str, turn: str) -> str:
    """The prompt up to the call; `turn` stands between the request and the call."""
    known = "\n".join(signature(function) for function in functions.split("|"))
    return f'{known}\nRequest: {request}{turn}{{"name": "'


def _call(row: CallRow, boundary: str, style: str, words: str, before: str, end: str) -> StudyCase:
    """One argument of one call; `before` and `end` stand around each word of the answers."""
    function, parameter, request, written, truth = row
    turn = ASSISTANT if style == "chat" else _CALL
    name = f"{function}_{parameter}".replace(".", "_")
    space = ' "' if boundary == "quote" else ""
    prompt = f'{_asked(function, request, turn)}{function}", "arguments": {{{written}"{parameter}":'
    answers, right = (
        "|".join(before + word + end for word in part.split("|")) if part else ""
        for part in (words, truth)
    )
    return one("function_calls", boundary, (name, prompt + space, answers, right), style)


def _next(row: tuple[str, str, str, str, str]) -> StudyCase:
    """How a call goes on after one of its arguments."""
    function, request, written, words, truth = row
    prompt = f'{_asked(function, request, _CALL)}{function}", "arguments": {{{written}'
    name = f"{function}_next".replace(".", "_")
    return one("function_calls", "word", (name, prompt, words, truth), "json")


def _which(row: tuple[str, str, str]) -> StudyCase:
    """Which function is called."""
    functions, request, truth = row
    prompt = _asked(functions, request, _CALL)
    return one(
        "function_calls", "quote", (f"{truth}_is_called", prompt, functions, truth), "json", '"'
    )


CASES = (
    *(_call(row, "quote", "json", options(*row[:2]), "", '"') for row in QUOTED),
    *(_call(row, "space", "json", options(*row[:2]), '"', '"') for row in SPACED),
    *(_call(row, "quote", "chat", options(*row[:2]), "", '"') for row in CHAT),
    *(_call(row, "space", "json", "true|false", "", "") for row in _BOOLEANS),
    *(_call(row, "space", "json", options(*row[:2]), "", "") for row in _NUMBERS),
    *map(_next, _NEXT),
    *map(_which, _WHICH),
)
