"""The cases of the JSON-Schema-Test-Suite, as far as they are followed: see `suite/README.md`.

A valid instance must be accepted as it stands, and an invalid one rejected in every order. What
differs is counted by its cause in DIFFERENCES, exactly, so that a change in either direction is
noticed.
"""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from referencing import Registry
from referencing.jsonschema import DRAFT202012
from support.values import orders

from bpe_automata.automata.linked import LinkedDFA
from bpe_automata.errors import (
    SchemaTooLargeError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from bpe_automata.schemas import json_schema

ARCHIVE = Path(__file__).parent / "suite" / "cases.tar.xz"
DRAFTS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
AGREED = "agreed"


@dataclass(frozen=True)
class Case:
    """A schema of the suite with its instances: (JSON text, whether it is valid)."""

    draft: str
    file: str
    schema: Any
    instances: tuple[tuple[str, bool], ...]


@cache
def files() -> dict[str, str]:
    """The texts of the archive by their paths."""
    with tarfile.open(ARCHIVE) as archive:
        members = [member for member in archive if member.isfile()]
        return {m.name: archive.extractfile(m).read().decode() for m in members}


def cases(draft: str) -> Iterator[Case]:
    """All cases of a draft."""
    for path, text in files().items():
        _, folder, *rest = path.split("/")
        if not path.startswith("tests/") or folder != draft:
            continue
        file = "/".join(rest).removesuffix(".json")
        for group in json.loads(text, parse_float=Number, parse_int=Number):
            schema = json.loads(spelled(group["schema"]))
            if isinstance(schema, dict):
                schema = {"$schema": DRAFTS[draft], **schema}
            told = ((spelled(test["data"]), test["valid"]) for test in group["tests"])
            yield Case(draft, file, schema, tuple(told))


@cache
def remotes() -> Registry[Any]:
    """The documents that schemas refer to, each by the URI under which it is served."""
    found = []
    for path, text in files().items():
        if path.startswith("remotes/"):
            uri = f"http://localhost:1234/{path.removeprefix('remotes/')}"
            found.append((uri, DRAFT202012.create_resource(json.loads(text))))
    return Registry().with_resources(found)


def spelled(value: Any, way: int = 0) -> str:
    """A JSON text of a value, with its numbers in one of their spellings."""
    if isinstance(value, Number):
        return spellings(value)[way]
    if isinstance(value, list):
        return f"[{','.join(spelled(inner, way) for inner in value)}]"
    if isinstance(value, dict):
        members = (f"{spelled(name)}:{spelled(inner, way)}" for name, inner in value.items())
        return f"{{{','.join(members)}}}"
    return json.dumps(value, ensure_ascii=False)


def compiled(case: Case) -> LinkedDFA | str | None:
    """The automaton; None if no instance is valid; or why there is none."""
    try:
        return json_schema(case.schema, registry=remotes(), order="any")
    except UnsatisfiableSchemaError:
        return None
    except UnsupportedSchemaError as error:
        return f"refused: {case.file if error.keyword == 'format' else error.keyword}"
    except SchemaTooLargeError as error:
        return f"refused: too many {error.resource}"


def outcomes(case: Case) -> Iterator[str]:
    """AGREED or the cause of a difference, for each instance of a case."""
    dfa = compiled(case)
    # In draft 4, 1.0 is no integer: an instance is invalid as it is spelled. A valid one must be
    # accepted in the order in which it stands.
    respelled = case.draft != "draft4"
    for text, valid in case.instances:
        if isinstance(dfa, str):
            yield dfa
        elif (dfa is not None and accepts(dfa, text, not valid, valid or respelled)) == valid:
            yield AGREED
        else:
            yield f"{'rejected' if valid else 'accepted'}: {case.file}"


# Whether an automaton accepts some text of a value: members in any order, numbers in any spelling.


class Number(str):
    """A number as it is spelled."""


def spellings(number: Number) -> tuple[str, str, str, str]:
    """As it stands, without exponent, without a fraction of zeros, and with one."""
    value = Decimal(number)
    if not value.is_finite() or abs(value.adjusted()) > 400:
        return (str(number),) * 4
    plain = f"{value:f}"
    whole = plain.rstrip("0").rstrip(".") if "." in plain else plain
    whole = whole if value else "0"
    return str(number), plain, whole, whole if "." in whole else f"{whole}.0"


def accepts(dfa: Any, text: str, reordered: bool, respelled: bool) -> bool:
    """reordered, respelled: may members and numbers be changed? Texts have no white space."""
    value = json.loads(text, parse_float=Number, parse_int=Number)
    return any(
        dfa.accepts(spelled(one, way).encode())
        for one in (orders(value) if reordered else [value])
        for way in range(4 if respelled else 1)
    )


_IDN = "the length of a label is that of its Punycode, which is not regular"
_LOOKED_AT = "which members anyOf, oneOf, if, contains look at depends on the instance"
_DYNAMIC = "where it leads depends on the way to it"
_LEAP = "leap seconds only in UTC: see `_formats`"
_UNIQUE = "whether items out of infinitely many values differ is not regular"
_NAMES = "whether names that are not listed differ is not regular"
_REGEX = "regexes without names of groups: see `_formats`"
DIFFERENCES: dict[str, tuple[tuple[int, ...], str]] = {
    "accepted: optional/content": ((0, 0, 4, 0, 0), "content keywords are annotations"),
    "refused: $dynamicRef": ((0, 0, 0, 0, 52), _DYNAMIC),
    "refused: $recursiveRef": ((0, 0, 0, 42, 0), _DYNAMIC),
    "refused: $schema": ((0, 0, 0, 5, 9), "metaschemas of one's own are not read"),
    "refused: format": ((0, 0, 6, 6, 7), _IDN),
    "refused: minProperties": ((7, 7, 7, 8, 8), _NAMES),
    "refused: optional/format/idn-hostname": ((0, 0, 89, 90, 90), _IDN),
    "refused: too many states": ((1, 1, 1, 1, 1), "multiples of 0.123456789: 123,456,789 states"),
    "refused: unevaluatedItems": ((0, 0, 0, 15, 32), _LOOKED_AT),
    "refused: unevaluatedProperties": ((0, 0, 0, 56, 56), _LOOKED_AT),
    "refused: uniqueItems": ((45, 45, 45, 41, 41), _UNIQUE),
    "rejected: format": ((0, 0, 0, 0, 18), "formats are asserted in every draft"),
    "rejected: optional/format/date-time": ((1, 1, 1, 1, 1), _LEAP),
    "rejected: optional/format/ecmascript-regex": ((0, 0, 2, 2, 2), _REGEX),
    "rejected: optional/format/hostname": ((1, 1, 15, 15, 15), "Punycode is not regular"),
    "rejected: optional/format/time": ((0, 0, 4, 4, 4), _LEAP),
}
"""Instances by the cause of a difference, in each draft of DRAFTS, and why it is so."""


@pytest.mark.parametrize("draft", DRAFTS)
def test_what_differs_from_the_suite_is_known(draft: str) -> None:
    found = Counter(outcome for case in cases(draft) for outcome in outcomes(case))
    assert found.pop(AGREED) > 850
    at = list(DRAFTS).index(draft)
    assert found == {cause: n[at] for cause, (n, _) in DIFFERENCES.items() if n[at]}
