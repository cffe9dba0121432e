"""Text to try tokenizers on: named sources of two kinds, real ones wherever they can be had.

"multilingual": every language that is at hand; "code": source code, JSON and prose about programs,
as installed. What is absent is left out and named, so that a table can say what it rests on.
Strings are windows of random length, cut anywhere: inside a word, inside CR LF, before a combining
mark, in the middle of an indent.
"""

from __future__ import annotations

import gettext
import html.parser
import importlib.util
import math
import os
import random
import re
import sys
import sysconfig
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from bpe_automata.errors import MissingFileError
from experiments.run.files import require

# Where the texts of the corpus come from. Nothing is downloaded.

T = TypeVar("T")
Reader = tuple[str, str, Callable[[random.Random], Iterable[str]], str]
"""(name, kind, what reads its documents, what to do where it is absent)."""

CODE = (
    *(".py", ".pyi", ".json", ".md", ".toml", ".txt", ".rst", ".yaml", ".yml", ".ini", ".cfg"),
    *(".csv", ".html", ".css", ".js", ".ipynb", ".h", ".c", ".cpp", ".cu", ".f90", ".sh", ".xml"),
)
FILES_OF_A_SUFFIX = 150
LONGEST_DOCUMENT = 16_384
MOST_DOCUMENTS = 1500
CATALOGUES = 300
MADE_UP, MADE_UP_DOCUMENTS = "made-up words of all scripts", 400


def readers(text: Path | None) -> Iterator[Reader]:
    """All sources in order."""
    if text is not None:
        name = f"text of {text.resolve().name}"
        yield name, "multilingual", partial(folder, text), "give another folder"
    yield (
        "faker",
        "multilingual",
        faker,
        "pip install faker (prose, names and addresses in about 80 languages)",
    )
    yield "cjkencodings", "multilingual", cjk_encodings, "Python was installed without its tests"
    yield "gettext catalogues", "multilingual", catalogues, "the system has no translations"
    yield MADE_UP, "multilingual", made_up, ""
    yield "site-packages", "code", partial(code, "purelib"), "no package is installed"
    yield "the standard library", "code", partial(code, "stdlib"), "it is not there as source"


def folder(root: Path, rng: random.Random) -> list[str]:
    """Every text file below `root`; of HTML its text. Raises `MissingFileError` without any."""
    paths = _some(sorted(p for p in root.rglob("*") if p.is_file()), MOST_DOCUMENTS, rng)
    texts = [(path, _text_of(path)) for path in paths]
    bare = [_without_tags(text) if p.suffix == ".html" else text for p, text in texts if text]
    documents = [_cut(text, rng) for text in bare if text.strip()]
    if not documents:
        raise MissingFileError(f"there is no text in {root}; --text takes a folder of UTF-8 files")
    return documents


def faker(rng: random.Random) -> Iterator[str]:
    """Prose, names and addresses in every locale of the package `faker`, if it is installed."""
    if importlib.util.find_spec("faker") is None:
        return
    package = require("faker")
    for locale in sorted(require("faker.config").AVAILABLE_LOCALES):
        yield _of_locale(package, locale, rng.randrange(1 << 30))


def _of_locale(package: ModuleType, locale: str, seed: int) -> str:
    with warnings.catch_warnings(action="ignore"):  # some locales are deprecated names of others
        fake = package.Faker(locale)
    fake.seed_instance(seed)
    blocks = [f"{fake.text(400)}\n{fake.name()}, {fake.address()}\n" for _ in range(5)]
    return "\n".join(blocks)


def cjk_encodings(rng: random.Random) -> Iterator[str]:
    """What the standard library's tests of East Asian encodings read."""
    root = Path(sysconfig.get_path("stdlib")) / "test" / "cjkencodings"
    for path in sorted(root.glob("*-utf8.txt")):
        yield from filter(None, [_text_of(path)])


def catalogues(rng: random.Random) -> Iterator[str]:
    """Translated messages of installed programs, a document for each of some catalogues."""
    places = {Path(sys.base_prefix, "share/locale"), Path("/usr/share/locale")}
    paths = sorted(path for place in places for path in place.glob("*/LC_MESSAGES/*.mo"))
    for path in _some(paths, CATALOGUES, rng):
        if (messages := messages_of(path)) is not None:
            yield _cut("\n".join(messages.values()), rng)


def messages_of(path: Path) -> dict[object, str] | None:
    """The messages of a catalogue of gettext by their originals; None where it cannot be read."""
    try:
        with path.open("rb") as file:
            found: dict[object, str] = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    except (OSError, ValueError):  # UnicodeDecodeError among them
        return None
    return found


def made_up(rng: random.Random) -> Iterator[str]:
    """Words of random characters, a document for each script and some that mix them: what no other
    source has, scripts that few people write among them."""
    scripts = _scripts()
    for i in range(MADE_UP_DOCUMENTS):
        of_these = rng.choices(scripts, k=1 + i % 2)
        letters = [letter for script in of_these for letter in script]
        words = ("".join(rng.choices(letters, k=rng.randrange(1, 9))) for _ in range(60))
        yield "".join(
            word + rng.choice((" ", " ", " ", "\n", ", ", "", "\u200d")) for word in words
        )


def _scripts() -> list[list[str]]:
    """Letters, marks and digits by the first word of their names, such as DEVANAGARI."""
    found: dict[str, list[str]] = {}
    for point in range(0x80, 0x20000):
        character = chr(point)
        if unicodedata.category(character)[0] in "LMN":
            script = unicodedata.name(character, "?").split()[0]
            found.setdefault(script, []).append(character)
    return [letters for script, letters in sorted(found.items()) if len(letters) >= 20]


def code(place: str, rng: random.Random) -> Iterator[str]:
    """A part of each of some files below a folder of Python, as many of each suffix."""
    by_suffix: dict[str, list[str]] = {}
    for path in _files(sysconfig.get_path(place)):
        by_suffix.setdefault(os.path.splitext(path)[1], []).append(path)
    chosen = [_some(paths, FILES_OF_A_SUFFIX, rng) for _, paths in sorted(by_suffix.items())]
    for path in (path for paths in chosen for path in paths):
        text = _text_of(Path(path))
        if text:
            yield _cut(text, rng)


def _files(root: str) -> Iterator[str]:
    """Paths by order of name. What is installed below the standard library is another source."""
    for here, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - {"__pycache__", "site-packages"})
        yield from (os.path.join(here, name) for name in sorted(files) if name.endswith(CODE))


def _text_of(path: Path) -> str | None:
    """The file as it is, CR LF kept; None if it is no UTF-8 or cannot be read."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _without_tags(markup: str) -> str:
    parser = _Text()
    parser.feed(markup)
    return re.sub(r"\s*\n\s*", "\n", "".join(parser.parts))


class _Text(html.parser.HTMLParser):
    """parts: the text between the tags."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def _cut(text: str, rng: random.Random) -> str:
    """At most `LONGEST_DOCUMENT` characters of a text, from a random place."""
    start = rng.randrange(max(1, len(text) - LONGEST_DOCUMENT))
    return text[start : start + LONGEST_DOCUMENT]


def _some(items: list[T], most: int, rng: random.Random) -> list[T]:
    return items if len(items) <= most else rng.sample(items, most)


KINDS = ("multilingual", "code")
LONGEST, LONGEST_MADE_UP = 200, 60
"""Characters of the longest window; lengths are log-uniform, so the mean is about 38. What is made
up has about a token for each byte, and to have much of it would be slow."""


@dataclass(frozen=True)
class Source:
    """name: what the table calls it; kind: one of `KINDS`; documents: its texts, none empty;
    longest: characters of the longest window."""

    name: str
    kind: str
    documents: tuple[str, ...]
    longest: int = LONGEST

    def window(self, rng: random.Random) -> str:
        """A piece of a random document; every third begins at white space, most often a line's
        end with the indent after it."""
        document = self.documents[rng.randrange(len(self.documents))]
        length = round(math.exp(rng.uniform(0, math.log(self.longest))))
        start = rng.randrange(len(document))
        if rng.random() < 1 / 3:
            start = _white_space_before(document, start, rng.choice("\n\n "))
        return document[start : start + length]


def _white_space_before(document: str, place: int, wanted: str) -> int:
    """Where the run of `wanted` that comes last before `place` begins; `place` without one."""
    found = document.rfind(wanted, 0, place)
    if found < 0:
        return place
    while found and document[found - 1] == wanted:
        found -= 1
    return found


@dataclass(frozen=True)
class Corpus:
    """sources: those that were found; missing: a line for each that was not."""

    sources: tuple[Source, ...]
    missing: tuple[str, ...] = ()

    def strings(self, kind: str, n: int, rng: random.Random) -> Iterator[str]:
        """`n` windows of one kind, its sources in turn."""
        sources = self.of(kind)
        for i in range(n if sources else 0):
            yield sources[i % len(sources)].window(rng)

    def of(self, kind: str) -> Sequence[Source]:
        """The sources of one kind."""
        return [source for source in self.sources if source.kind == kind]

    def described(self) -> dict[str, list[str]]:
        """For a manifest: kind -> its sources, each with the number of its documents."""
        return {
            kind: [f"{source.name} ({len(source.documents):,})" for source in self.of(kind)]
            for kind in KINDS
        }


def open_corpus(seed: int, text: Path | None = None) -> Corpus:
    """All sources that are there; the same for the same seed and the same installed packages.

    text: a folder of further multilingual text. Raises `MissingFileError` if it holds none.
    """
    found: list[Source] = []
    missing: list[str] = []
    for name, kind, read, remedy in readers(text):
        documents = tuple(d for d in read(random.Random(f"{seed} {name}")) if d)
        if documents:
            longest = LONGEST_MADE_UP if name == MADE_UP else LONGEST
            found.append(Source(name, kind, documents, longest))
        else:
            missing.append(f"{kind} text without {name}: {remedy}")
    return Corpus(tuple(found), tuple(missing))
