"""Finds every schema of a document, resolves references between them, and checks keyword values.

A schema is identified by its JSON pointer. `$id` gives it a URI, which is the base of references
inside it; `$anchor` gives it a name inside the nearest `$id`. Other documents come from a registry
of the package `referencing`, the metaschemas from `jsonschema-specifications`. References inside a
document are resolved here, since `referencing` takes -1 and 01 for indices of a pointer, and fails
at malformed parts that nothing refers to (see `tests/schemas/test_references.py`).

Where a `$dynamicRef` or a `$recursiveRef` leads depends on the way to it, so they are refused.

Source: JSON Schema Core (2020-12), sections 7.1, 8 and 9.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urljoin

from bpe_automata._arguments import short
from bpe_automata._budget import check
from bpe_automata._optional import require
from bpe_automata.errors import (
    ArgumentError,
    InvalidSchemaError,
    SchemaTooLargeError,
    UnsupportedSchemaError,
)
from bpe_automata.schemas._drafts import (
    ASSERTING,
    DEFINITIONS,
    DRAFT_2020,
    TYPES,
    Draft,
    below,
    draft_of,
    fault_of,
    is_schema,
    near_keyword,
    parts,
    tokens_of,
)
from bpe_automata.schemas._formats import SUPPORTED
from bpe_automata.schemas._sources import MAX_NESTING, OfModel, as_json, too_deep

if TYPE_CHECKING:
    from referencing import Registry

MAX_PARTS = 50_000
_DYNAMIC = ("$dynamicRef", "$recursiveRef")
_NAMES = ("$anchor", "$dynamicAnchor")
_HOLDING = ASSERTING | DEFINITIONS  # the keywords whose values hold schemas
_METASCHEMAS = re.compile(r"https?://json-schema\.org/draft[-/]")
_MAX_DOCUMENTS = 1000
_ANCHOR = re.compile(r"[A-Za-z_][-A-Za-z0-9._:]*")


@dataclass(frozen=True, eq=False)
class Part:
    """A schema somewhere in the document. schema: its keywords, without those that its draft takes
    for notes. base: the URI against which its references are resolved. given: all its keywords, for
    pointers that go through it. inside: pointers to its subschemas that apply to instances."""

    pointer: str
    schema: Any
    base: str
    draft: Draft
    given: Any = None
    inside: tuple[str, ...] = ()


class Document:
    """All schemas of one document, and of those that it refers to. all_formats: whether formats
    that the draft of a schema does not define are asserted too. registry: of other documents.
    Raises InvalidSchemaError, UnsupportedSchemaError, SchemaTooLargeError, MissingDependencyError,
    and ArgumentError for a registry that holds what is no schema.
    """

    def __init__(
        self, schema: Any, all_formats: bool = False, registry: Registry[Any] | None = None
    ) -> None:
        if not is_schema(schema):
            kind = type(schema).__name__
            raise InvalidSchemaError("#", f"a schema is an object or a boolean, not a {kind}")
        self._parts: dict[str, Part] = {}
        self._targets: dict[tuple[str, str], Part] = {}  # by reference and base
        self._documents = 0  # loaded from registries
        self._resources: dict[str, str] = {}  # URI -> pointer
        self._anchors: dict[tuple[str, str], str] = {}  # (base, name) -> pointer
        self.root, self._all_formats, self._registry = schema, all_formats, registry
        draft = replace(DRAFT_2020, agreed=isinstance(schema, OfModel))
        self._scan("#", schema, "", self._draft("#", schema, draft))

    def part(self, pointer: str) -> Part:
        """The schema at a pointer that was found to lead to one."""
        return self._parts[pointer]

    def target(self, part: Part) -> Part:
        """The schema that the `$ref` of another one refers to."""
        key = part.schema["$ref"], part.base
        found = self._targets.get(key)
        if found is None:
            found = self._targets[key] = self._target(part, *key)
        return found

    def _target(self, part: Part, reference: str, base: str) -> Part:
        uri, fragment = urldefrag(reference)
        base = urldefrag(urljoin(base, uri))[0] if uri else base
        where, name = below(part.pointer, "$ref"), unquote(fragment)
        if base not in self._resources:
            self._load(base, part.draft, where, reference)
        if name and not name.startswith("/"):
            anchored = self._anchors.get((base, name))
            if anchored is None:
                raise InvalidSchemaError(where, f"{reference!r} leads nowhere: no such $anchor")
            return self._parts[anchored]
        start = self._parts[self._resources[base]]
        return self._at(start, tokens_of(fragment), where, reference)

    def _load(self, uri: str, draft: Draft, where: str, reference: str) -> None:
        """Add the document with a URI. draft: for one that does not name its own. where: the
        pointer of the reference, for messages."""
        found = self._retrieved(uri)
        if found is None:
            why = f"{reference!r} is another document: give it in the registry, or under $defs"
            raise UnsupportedSchemaError("$ref", where, why)
        if not is_schema(found):
            raise InvalidSchemaError(where, f"{uri!r} is no schema")
        self._documents += 1
        if self._documents > _MAX_DOCUMENTS:
            advice = "the schema refers to more documents; put what is needed into fewer"
            raise SchemaTooLargeError(where, "documents", _MAX_DOCUMENTS, advice)
        self._resources[uri] = f"{uri}#"
        self._scan(f"{uri}#", as_json(found), uri, self._draft(f"{uri}#", found, draft))

    def _retrieved(self, uri: str) -> Any:
        """The document with a URI, from the registry or the metaschemas; None if neither has it."""
        registries = [self._registry] if self._registry is not None else []
        if _METASCHEMAS.match(uri):
            install = "pip install jsonschema-specifications"
            registries.append(require("jsonschema_specifications", install).REGISTRY)
        for registry in registries:
            try:
                return registry.get_or_retrieve(uri).value.contents
            except LookupError:  # of `referencing`, where nothing can be retrieved
                continue
            except (AttributeError, TypeError) as error:  # of `referencing`, as it goes through all
                why = f"a document of the registry is no schema: {error}"
                raise ArgumentError(why) from error
        return None

    def _draft(self, pointer: str, schema: Any, above: Draft) -> Draft:
        """The draft that `$schema` names, else that of the schema around it."""
        uri = schema.get("$schema") if isinstance(schema, dict) else None
        if uri is None:
            return above
        where = below(pointer, "$schema")
        if not isinstance(uri, str):
            raise InvalidSchemaError(where, f"$schema is {uri!r}, not a string")
        found = draft_of(uri)
        if found is None:
            why = f"{uri!r} is none of the drafts 4, 6, 7, 2019-09 and 2020-12"
            raise UnsupportedSchemaError("$schema", where, why)
        return replace(found, agreed=above.agreed)

    def _at(self, start: Part, tokens: list[str], where: str, reference: str) -> Part:
        """The schema at the end of a pointer. It may stand where no keyword expects a schema."""
        here, pointer, nearest = start.given, start.pointer, start
        for token in tokens:
            here = _step(here, token)
            if here is _NOWHERE:
                raise InvalidSchemaError(where, f"{reference!r} leads nowhere")
            pointer = below(pointer, token)
            nearest = self._parts.get(pointer, nearest)
        if pointer not in self._parts:
            if not is_schema(here):
                raise InvalidSchemaError(where, f"{reference!r} leads to what is no schema")
            self._scan(pointer, here, nearest.base, nearest.draft)
        return self._parts[pointer]

    def _scan(self, pointer: str, schema: Any, base: str, draft: Draft) -> None:
        """Add a schema and all its subschemas to the tables. base, draft: those around it."""
        waiting = [(pointer, schema, base, draft, 0)]
        while waiting:
            pointer, given, base, draft, level = waiting.pop()
            if len(self._parts) + len(waiting) >= MAX_PARTS:
                advice = "the schema has more parts; take out what is not needed"
                raise SchemaTooLargeError(pointer, "schemas", MAX_PARTS, advice)
            if level > MAX_NESTING:
                raise too_deep(pointer)
            schema, base, draft = self._noted(pointer, given, base, draft)
            inner = list(islice(_inner(pointer, schema), MAX_PARTS))
            inside = tuple(at for at, _, applies in inner if applies)
            self._parts[pointer] = Part(pointer, schema, base, draft, given, inside)
            if inner:
                check()
                waiting += [(at, found, base, draft, level + 1) for at, found, _ in inner]

    def _noted(self, pointer: str, given: Any, base: str, draft: Draft) -> tuple[Any, str, Draft]:
        """(the keywords of a schema without notes, its own base, its own draft). Its names are
        added to the tables."""
        if pointer == "#":  # the root has an entry without a name, too
            self._resources[""] = "#"
        if not isinstance(given, dict):
            return given, base, draft
        base, draft = self._named(pointer, given, base, draft)
        schema = self._without_notes(given, draft)
        for keyword in _NAMES:
            name = schema.get(keyword)
            if isinstance(name, str) and _ANCHOR.fullmatch(name):
                self._anchors[base, name] = pointer
        return schema, base, draft

    def _without_notes(self, given: dict[str, Any], draft: Draft) -> dict[str, Any]:
        """The keywords that are no notes in the draft of the schema; in older drafts, all keywords
        next to a `$ref` are notes."""
        if draft.ref_alone and "$ref" in given:
            return {"$ref": given["$ref"]}
        name = given.get("format")
        noted = isinstance(name, str) and not (self._all_formats or draft.defines(name))
        if not noted and draft.notes.isdisjoint(given):
            return given
        notes = draft.notes | {"format"} if noted else draft.notes
        return {keyword: value for keyword, value in given.items() if keyword not in notes}

    def _named(
        self, pointer: str, schema: dict[str, Any], base: str, draft: Draft
    ) -> tuple[str, Draft]:
        """The base that the `$id` of a schema sets, and the draft that it has there."""
        name = schema.get(draft.id_keyword)
        if pointer == "#" and not isinstance(name, str):
            name = schema.get("id") or schema.get("$id")  # the keyword of another draft
        if not isinstance(name, str) or (draft.ref_alone and "$ref" in schema):
            return base, draft
        uri, anchor = urldefrag(urljoin(base, name))
        if anchor and name.startswith("#"):  # how drafts up to 7 spell an $anchor
            self._anchors[base, anchor] = pointer
            return base, draft
        self._resources.setdefault(uri, pointer)
        return uri, self._draft(pointer, schema, draft)


_NOWHERE = object()


def _step(here: Any, token: str) -> Any:
    """The member or item that one token of a pointer leads to."""
    if isinstance(here, dict):
        return here.get(token, _NOWHERE)
    if isinstance(here, list) and re.fullmatch("0|[1-9][0-9]{0,8}", token):
        return here[int(token)] if int(token) < len(here) else _NOWHERE
    return _NOWHERE


def _inner(pointer: str, schema: Any) -> Iterator[tuple[str, Any, bool]]:
    """(pointer, schema, does it apply to instances?) of the direct subschemas of a schema."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if keyword in _HOLDING:
            applies = keyword in ASSERTING
            for path, inner in parts(keyword, value):
                if is_schema(inner):
                    yield below(pointer, keyword, *path), inner, applies


def refers(part: Part) -> bool:
    """Has a schema a `$ref`?"""
    return isinstance(part.schema, dict) and "$ref" in part.schema


def check_reached(document: Document) -> list[str]:
    """Check each schema that the root leads to, once, depth first. Returns warnings about keywords
    that look misspelled. Raises what `check_keywords` and `Document.target` raise."""
    seen, waiting = dict[str, Part](), [document.part("#")]
    while waiting:
        check()
        part = waiting.pop()
        if part.pointer in seen:
            continue
        seen[part.pointer] = part
        check_keywords(part)
        found = [document.target(part)] if refers(part) else []
        waiting += reversed([*found, *map(document.part, part.inside)])
    return [
        f"{name} is no keyword and ignored, at {part.pointer}: is {near} meant?"
        for part in seen.values()
        for name in (part.schema if isinstance(part.schema, dict) else ())
        if (near := near_keyword(name))
    ]


# Checks of a schema before it is read: the value of each keyword, and keywords that are not
# supported. A keyword that the specification does not define is a note, and ignored.


def check_keywords(part: Part) -> None:
    """Raises InvalidSchemaError, UnsupportedSchemaError with the pointer of the first fault."""
    schema = part.schema
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if keyword in _DYNAMIC:
            why = "where it leads depends on the way to it. Use $ref"
            raise UnsupportedSchemaError(keyword, below(part.pointer, keyword), why)
        if wanted := fault_of(keyword, value):
            where = below(part.pointer, keyword)
            raise InvalidSchemaError(where, f"{keyword} is {short(value)}, not {wanted}")
    if isinstance(schema.get("items"), list) and "prefixItems" in schema:
        where = below(part.pointer, "items")
        raise InvalidSchemaError(where, "next to prefixItems, items is one schema, not a list")
    _check_format(part.pointer, schema)


def _check_format(pointer: str, schema: dict[str, Any]) -> None:
    name = schema.get("format")
    if name is None or name in SUPPORTED:
        return
    if name != "idn-hostname":
        supported = ", ".join(sorted(SUPPORTED))
        why = f"{short(name)} is none of {supported}. formats='draft' takes it for a note"
        raise UnsupportedSchemaError("format", below(pointer, "format"), why)
    if "string" in types_of(schema):
        why = f"{name!r} is no regular set: a label may be as long as its Punycode is short"
        raise UnsupportedSchemaError("format", below(pointer, "format"), why)


def types_of(schema: dict[str, Any]) -> frozenset[str]:
    """The types that a schema's own `type` allows."""
    types = schema.get("type", TYPES)
    return frozenset((types,) if isinstance(types, str) else types)
