"""The cases of the JSON-Schema-Test-Suite, as far as they are followed: see `suite/README.md`.

A valid instance must be accepted as it stands, and an invalid one rejected in every order. What
differs is counted by its cause in DIFFERENCES, exactly, so that a change in either direction is
noticed. `python -m tests.schemas.test_official_suite` prints the table, and with the name of a
cause its cases.
"""

from __future__ import annotations

import json
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from bpe_automata._automata.linked import LinkedDFA
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
    """A schema of the suite with its instances: (description, JSON text, whether it is valid)."""

    draft: str
    file: str
    name: str
    schema: Any
    instances: tuple[tuple[str, str, bool], ...]


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
            tests = group["tests"]
            yield Case(
                draft,
                file,
                group["description"],
                _of_draft(json.loads(spelled(group["schema"])), draft),
                tuple((t["description"], spelled(t["data"]), t["valid"]) for t in tests),
            )


@cache
def remotes() -> Registry[Any]:
    """The documents that schemas refer to, each by the URI under which it is served."""
    found = []
    for path, text in files().items():
        if path.startswith("remotes/"):
            uri = f"http://localhost:1234/{path.removeprefix('remotes/')}"
            found.append((uri, DRAFT202012.create_resource(json.loads(text))))
    return Registry().with_resources(found)


def spelled(value: Any) -> str:
    """A JSON text of a value in which numbers are spelled as they were read."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, list):
        return f"[{','.join(map(spelled, value))}]"
    if isinstance(value, dict):
        members = (f"{json.dumps(name)}:{spelled(inner)}" for name, inner in value.items())
        return f"{{{','.join(members)}}}"
    return json.dumps(value)


def _of_draft(schema: Any, draft: str) -> Any:
    """The schema with the name of its draft."""
    if isinstance(schema, dict) and "$schema" not in schema:
        return {"$schema": DRAFTS[draft], **schema}
    return schema


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


def outcomes(case: Case) -> Iterator[tuple[str, str]]:
    """(description, AGREED or the cause of a difference) for each instance of a case."""
    dfa = compiled(case)
    # In draft 4, 1.0 is no integer: an instance is invalid as it is spelled. A valid one must be
    # accepted in the order in which it stands.
    respelled = case.draft != "draft4"
    for name, text, valid in case.instances:
        if isinstance(dfa, str):
            yield name, dfa
        elif (dfa is not None and accepts(dfa, text, not valid, valid or respelled)) == valid:
            yield name, AGREED
        else:
            yield name, f"{'rejected' if valid else 'accepted'}: {case.file}"


# Whether an automaton accepts some text of a value: members in any order, numbers in any spelling.


class Number(str):
    """A number as it is spelled."""


def accepts(dfa: Any, text: str, orders: bool, numbers: bool) -> bool:
    """orders, numbers: may they be changed? Texts have no white space."""
    value = json.loads(text, parse_float=Number, parse_int=Number)
    ends = Search(dfa, orders, numbers).after(value, dfa.start)
    return any(dfa.accepting[state] for state in ends)


@dataclass
class Search:
    """The states of the automaton after the texts of a value."""

    dfa: Any
    orders: bool
    numbers: bool
    known: dict[tuple[int, int], frozenset[int]] = field(default_factory=dict)

    def after(self, value: Any, state: int) -> frozenset[int]:
        """Live ones."""
        key = (id(value), state)
        if key not in self.known:
            self.known[key] = frozenset(end for end in self.ends(value, state) if end)
        return self.known[key]

    def ends(self, value: Any, state: int) -> Iterator[int]:
        if isinstance(value, dict):
            yield from self.members(value, tuple(value), self.walk("{", state), "", set())
        elif isinstance(value, list):
            states, comma = {self.walk("[", state)}, ""
            for item in value:
                begun = [self.walk(comma, q) for q in states]
                states = {end for q in begun for end in self.after(item, q)}
                comma = ","
            yield from (self.walk("]", q) for q in states)
        else:
            spelled = [json.dumps(value, ensure_ascii=False)]
            if isinstance(value, Number):
                spelled = spellings(value) if self.numbers else [str(value)]
            yield from (self.walk(text, state) for text in spelled)

    def members(
        self, value: dict[str, Any], left: tuple[str, ...], state: int, comma: str, seen: set[Any]
    ) -> Iterator[int]:
        """With those that are left, in whatever order leads on."""
        if not state or (state, left) in seen:
            return
        seen.add((state, left))
        if not left:
            yield self.walk("}", state)
        for name in left if self.orders else left[:1]:
            key = self.walk(f"{comma}{json.dumps(name, ensure_ascii=False)}:", state)
            others = tuple(other for other in left if other != name)
            for end in self.after(value[name], key):
                yield from self.members(value, others, end, ",", seen)

    def walk(self, text: str, state: int) -> int:
        return self.dfa.walk(text.encode(), state) if state else 0


def spellings(number: Number) -> list[str]:
    """The same number without exponent, without and with a fraction."""
    value = Decimal(number)
    if not value.is_finite() or abs(value.adjusted()) > 400:
        return [str(number)]
    plain = f"{value:f}"
    whole = plain.rstrip("0").rstrip(".") if "." in plain else plain
    found = [str(number), plain, whole]
    found += [f"{whole}.0"] if "." not in whole else []
    found += ["0", "0.0"] if not value else []
    return list(dict.fromkeys(found))


DIFFERENCES: dict[str, tuple[int, ...]] = {
    "accepted: optional/content": (0, 0, 4, 0, 0),
    "refused: $dynamicRef": (0, 0, 0, 0, 52),
    "refused: $recursiveRef": (0, 0, 0, 42, 0),
    "refused: $schema": (0, 0, 0, 5, 9),
    "refused: format": (0, 0, 6, 6, 7),
    "refused: minProperties": (7, 7, 7, 8, 8),
    "refused: optional/format/idn-hostname": (0, 0, 89, 90, 90),
    "refused: too many states": (1, 1, 1, 1, 1),
    "refused: unevaluatedItems": (0, 0, 0, 15, 32),
    "refused: unevaluatedProperties": (0, 0, 0, 56, 56),
    "refused: uniqueItems": (45, 45, 45, 41, 41),
    "rejected: format": (0, 0, 0, 0, 18),
    "rejected: optional/format/date-time": (1, 1, 1, 1, 1),
    "rejected: optional/format/ecmascript-regex": (0, 0, 2, 2, 2),
    "rejected: optional/format/hostname": (1, 1, 15, 15, 15),
    "rejected: optional/format/time": (0, 0, 4, 4, 4),
}
"""Instances by the cause of a difference, in each draft of DRAFTS."""
_IDN = "idn-hostname: the length of a label is that of its Punycode, which is not regular"
_LOOKED_AT = "which members anyOf, oneOf, if, contains look at depends on the instance"
_DYNAMIC = "where it leads depends on the way to it"
RULES = {
    "accepted: optional/content": "content keywords are annotations",
    "refused: $dynamicRef": _DYNAMIC,
    "refused: $recursiveRef": _DYNAMIC,
    "refused: $schema": "metaschemas of one's own are not read",
    "refused: format": _IDN,
    "refused: minProperties": "whether names that are not listed differ is not regular",
    "refused: optional/format/idn-hostname": _IDN,
    "refused: too many states": "multiples of 0.123456789 take 123,456,789 states",
    "refused: unevaluatedItems": _LOOKED_AT,
    "refused: unevaluatedProperties": _LOOKED_AT,
    "refused: uniqueItems": "whether items out of infinitely many values differ is not regular",
    "rejected: format": "formats are asserted in every draft, not only annotated",
    "rejected: optional/format/date-time": "leap seconds only in UTC: see `_formats`",
    "rejected: optional/format/ecmascript-regex": "regexes without names of groups: see `_formats`",
    "rejected: optional/format/hostname": "whether Punycode can be decoded is not regular",
    "rejected: optional/format/time": "leap seconds only in UTC: see `_formats`",
}
"""Why it is so."""


def test_every_difference_has_its_rule() -> None:
    assert RULES.keys() == DIFFERENCES.keys()


@pytest.mark.parametrize("draft", DRAFTS)
def test_what_differs_from_the_suite_is_known(draft: str) -> None:
    found = Counter(outcome for case in cases(draft) for _, outcome in outcomes(case))
    assert found.pop(AGREED) > 850
    at = list(DRAFTS).index(draft)
    assert found == {cause: n[at] for cause, n in DIFFERENCES.items() if n[at]}


def main(wanted: list[str]) -> None:
    """Print how many instances of each draft have each outcome, after those that are wanted."""
    table: dict[str, list[int]] = {}
    for at, draft in enumerate(DRAFTS):
        for case in cases(draft):
            for name, outcome in outcomes(case):
                table.setdefault(outcome, [0] * len(DRAFTS))[at] += 1
                if outcome in wanted:
                    print(f"{outcome} | {draft}/{case.file} | {case.name} | {name}")
    print(f"{'outcome':40}", *(f"{name.removeprefix('draft'):>8}" for name in DRAFTS), "     all")
    for outcome, row in sorted(table.items()):
        rule = RULES.get(outcome, "")
        print(f"{outcome:40}", *(f"{n:8,}" for n in (*row, sum(row))), f"  {rule}".rstrip())


if __name__ == "__main__":
    main(sys.argv[1:])
