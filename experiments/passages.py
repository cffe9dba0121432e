"""Passages that a model can continue, by kind of text: paragraphs of docstrings and functions of
the standard library, and paragraphs of translated messages.

All are installed; nothing is downloaded. The translations are those of the system's programs; a
system without them has no passages in these languages.
"""

from __future__ import annotations

import ast
import random
import re
import sysconfig
import textwrap
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from bpe_automata import Tokenizer
from bpe_automata.errors import MissingFileError
from experiments.texts import messages_of

LANGUAGES = {"german": "de", "french": "fr", "russian": "ru", "chinese": "zh_CN"}
"""The folder of each language's translations."""
KINDS = ("prose", "code", *LANGUAGES)
UNSPACED = ("chinese",)
"""Kinds whose words are not divided by spaces."""
SHORTEST, SHORTEST_UNSPACED = 300, 100
"""The fewest characters of a passage."""
MARKUP = re.compile(r"[{}<>\\|=_@`*\[\]%]|--|\.\.\.| -\w\b")
"""Marks of a list of options, a template or a table in prose about programs."""
SAME = 40
"""Passages with this many first characters in common count as one."""
CATALOGUES = Path("/usr/share/locale")


@cache
def passages(kind: str, seed: int) -> tuple[str, ...]:
    """All passages of a kind, in a random order. Raises MissingFileError if there are none."""
    shortest = SHORTEST_UNSPACED if kind in UNSPACED else SHORTEST
    found = {text[:SAME]: text for text in _all(kind) if len(text) >= shortest}
    if not found:
        raise MissingFileError(f"this system has no {kind} translations in {CATALOGUES}")
    return tuple(random.Random(f"{seed} {kind}").sample(sorted(found.values()), len(found)))


def _all(kind: str) -> Iterator[str]:
    if kind == "code":
        return functions()
    messages = docstrings() if kind == "prose" else translations(LANGUAGES[kind])
    return (text for text in paragraphs(messages) if not MARKUP.search(text))


def paragraphs(texts: Iterable[str]) -> Iterator[str]:
    """The paragraphs of texts, each in one line."""
    for text in texts:
        yield from (" ".join(part.split()) for part in re.split(r"\n[ \t]*\n", text))


def translations(language: str) -> Iterator[str]:
    """The messages of all catalogues that can be read."""
    for path in sorted(CATALOGUES.glob(f"{language}/LC_MESSAGES/*.mo")):
        yield from (text for original, text in (messages_of(path) or {}).items() if original != "")


def docstrings() -> Iterator[str]:
    """The docstrings of the modules of the standard library that are in no package."""
    for _, tree in _modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
                yield ast.get_docstring(node) or ""


def functions() -> Iterator[str]:
    """The functions of the same modules that have no docstring, from `def` to their end."""
    for text, tree in _modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is None:
                lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
                yield textwrap.dedent("\n".join(lines))


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield text, ast.parse(text)


# The end of a prompt.


def beginning(passage: str, tokenizer: Tokenizer, least: int, is_spaced: bool) -> str:
    """The shortest beginning of a passage that has `least` ids, with which the ids of the passage
    begin, and that ends a word (any character, if words are not divided by spaces); "" if there is
    none."""
    whole = tokenizer.encode(passage)
    for end in range(1, len(passage)):
        if is_spaced and (passage[end - 1].isspace() or not passage[end].isspace()):
            continue
        ids = tokenizer.encode(passage[:end])
        if len(ids) >= least and ids == whole[: len(ids)]:
            return passage[:end]
    return ""
