"""Texts to try tokenizers on, of three kinds, and other ids that spell them.

"adversarial": pieces that trip tokenizers up, the tokenizer's own tokens among them;
"multilingual": all installed languages; "code": installed source code, JSON and prose about
programs. The last two are windows of random length into files of this machine, cut anywhere: inside
a word, inside CR LF, before a combining mark, in the middle of an indent.
"""

from __future__ import annotations

import gettext
import math
import os
import random
import sys
import sysconfig
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from bpe_automata import Tokenizer
from bpe_automata.testing import ADVERSARIAL

KINDS = ("adversarial", "multilingual", "code")
SMOKE_TOKENIZER = str(Path(__file__).with_name("smoke_tokenizer"))
"""A tokenizer of 400 tokens, part of the repository."""

# Texts of this machine.

CODE = (
    *(".py", ".pyi", ".json", ".md", ".toml", ".txt", ".rst", ".yaml", ".yml", ".ini", ".cfg"),
    *(".csv", ".html", ".css", ".js", ".ipynb", ".h", ".c", ".cpp", ".cu", ".f90", ".sh", ".xml"),
)
FILES_OF_A_SUFFIX, CATALOGUES, MADE_UP = 150, 300, 400
LONGEST_DOCUMENT = 16_384
LONGEST, LONGEST_MADE_UP = 200, 60
"""Characters of the longest window; lengths are log-uniform, so the mean is about 38. Made-up text
has about a token for each byte, and longer windows of it would be slow."""


def windows(kind: str, n: int, rng: random.Random) -> Iterator[str]:
    """`n` pieces of multilingual text or of code, from the sources in turn; every third begins at
    white space, most often at a line's end with the indent after it."""
    sources = documents(kind)
    for k in range(n):
        some, longest = sources[k % len(sources)]
        text = some[rng.randrange(len(some))]
        length, start = round(math.exp(rng.uniform(0, math.log(longest)))), rng.randrange(len(text))
        if rng.random() < 1 / 3:
            space = rng.choice("\n\n ")
            start = max(text.rfind(space, 0, start), 0)
            while start and text[start - 1] == space:
                start -= 1
        yield text[start : start + length]


@lru_cache(maxsize=2)
def documents(kind: str) -> list[tuple[list[str], int]]:
    """(documents, characters of the longest window) for each source that is installed."""
    rng = random.Random(kind)
    if kind == "code":
        found = [(code("purelib", rng), LONGEST), (code("stdlib", rng), LONGEST)]
    else:
        found = [(cjk_encodings(), LONGEST), (catalogues(rng), LONGEST)]
        found.append((made_up(rng), LONGEST_MADE_UP))
    return [(texts, longest) for texts, longest in found if texts]


def code(folder: str, rng: random.Random) -> list[str]:
    """A part of each of some files below a folder of Python, equally many of each suffix. Packages
    installed below the standard library are another source."""
    by_suffix: dict[str, list[Path]] = {}
    for here, folders, files in os.walk(sysconfig.get_path(folder)):
        folders[:] = sorted(set(folders) - {"__pycache__", "site-packages"})
        for name in sorted(files):
            if name.endswith(CODE):
                by_suffix.setdefault(Path(name).suffix, []).append(Path(here, name))
    chosen = [some(paths, FILES_OF_A_SUFFIX, rng) for _, paths in sorted(by_suffix.items())]
    return [cut(text, rng) for paths in chosen for path in paths if (text := text_of(path))]


def cjk_encodings() -> list[str]:
    """The texts of the standard library's tests of East Asian encodings."""
    root = Path(sysconfig.get_path("stdlib")) / "test" / "cjkencodings"
    return [text for path in sorted(root.glob("*-utf8.txt")) if (text := text_of(path))]


def catalogues(rng: random.Random) -> list[str]:
    """Translated messages of installed programs, a document for each of some catalogues."""
    folders = {Path(sys.base_prefix, "share/locale"), Path("/usr/share/locale")}
    paths = sorted(path for folder in folders for path in folder.glob("*/LC_MESSAGES/*.mo"))
    each = [messages_of(path) or {} for path in some(paths, CATALOGUES, rng)]
    return [cut("\n".join(messages.values()), rng) for messages in each if any(messages.values())]


def messages_of(path: Path) -> dict[object, str] | None:
    """The messages of a catalogue of gettext by their originals; None where it cannot be read."""
    try:
        with path.open("rb") as file:
            found: dict[object, str] = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    except (OSError, ValueError):  # UnicodeDecodeError among them
        return None
    return found


def made_up(rng: random.Random) -> list[str]:
    """Words of random characters, a document for each script (rare ones too) and some that mix
    scripts, which no other source has."""
    letters_of: dict[str, list[str]] = {}
    for character in map(chr, range(0x80, 0x20000)):
        if unicodedata.category(character)[0] in "LMN":
            script = unicodedata.name(character, "?").split()[0]
            letters_of.setdefault(script, []).append(character)
    scripts = [letters for _, letters in sorted(letters_of.items()) if len(letters) >= 20]
    found = []
    for k in range(MADE_UP):
        letters = [letter for some in rng.choices(scripts, k=1 + k % 2) for letter in some]
        words = ("".join(rng.choices(letters, k=rng.randrange(1, 9))) for _ in range(60))
        ends = (" ", " ", " ", "\n", ", ", "", "\u200d")
        found.append("".join(word + rng.choice(ends) for word in words))
    return found


def text_of(path: Path) -> str | None:
    """The file as it is, CR LF kept; None if it is no UTF-8 or cannot be read."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def cut(text: str, rng: random.Random) -> str:
    """At most `LONGEST_DOCUMENT` characters of a text, from a random position."""
    start = rng.randrange(max(1, len(text) - LONGEST_DOCUMENT))
    return text[start : start + LONGEST_DOCUMENT]


def some(items: list[Path], most: int, rng: random.Random) -> list[Path]:
    """All items, or `most` random ones."""
    return items if len(items) <= most else rng.sample(items, most)


# Pieces that trip tokenizers up.

MOST_PIECES, MOST_TOKENS_CHANGED, LONGEST_TOKEN = 14, 4, 16
FOREIGN: tuple[str, ...] = (
    *("\u2581", "\u2581\u2581", "<0x0A>", "<0xE6>", "<0x", "\ue000", "\U0010fffd"),
    *("\u212b", "\u2126", "ﬁ", "ẛ̣", "\u0344", "\u0958", "क", "़", "ि", "्", "அ", "ா", "ำ"),
    *("ᄒ", "ᅡ", "ᆫ", "각", "ᆨ", "が", "か\u3099", "ﬀ", "\u0323", "\u0307", "q\u0307\u0323"),
    *("\u0378", "𝔘", "ꙮ", "🜁", "\x85", "\x1b", "\x0b", "\x1c", "\u2009", "\u180e"),
)
"""Pieces that normalizers, metaspaces and byte fallback trip over."""


class Adversary:
    """Adversarial texts for one tokenizer and seed: four in five pieces are the same for all
    tokenizers, the others are its own tokens, its added tokens, and their halves."""

    def __init__(self, tokenizer: Tokenizer, rng: random.Random) -> None:
        self.tokenizer, self.rng = tokenizer, rng
        added = [token.content for token in tokenizer.description.added]
        halves = [text[: len(text) // 2] for text in added] + [t[len(t) // 2 :] for t in added]
        own = [spelled.decode("utf-8", "ignore") for spelled in tokenizer.spellings]
        common = [*ADVERSARIAL, *FOREIGN]
        groups = [common] * 16 + [own, own, added or common, halves or common]
        self.groups = groups
        self.ids_of: dict[bytes, list[int]] = {}
        for token, spelled in enumerate(tokenizer.spellings):
            if spelled:
                self.ids_of.setdefault(spelled, []).append(token)

    def text(self) -> str:
        """A text of up to `MOST_PIECES` pieces."""
        count = self.rng.randrange(1, MOST_PIECES + 1)
        return "".join(self.rng.choice(self.rng.choice(self.groups)) for _ in range(count))

    def texts(self, n: int) -> Iterator[str]:
        """`n` such texts."""
        return (self.text() for _ in range(n))

    def resegmented(self, ids: Sequence[int], text: str) -> list[int]:
        """Other ids for the same bytes: for a few tokens in a row, or for all. Sometimes the space
        that the tokenizer puts before a text is dropped, or the ids spell `text` as it was before
        normalization. ids: the text's own."""
        if self.rng.random() < 0.1:
            return self._spelled(text.encode("utf-8"))
        first, last = 0, len(ids)
        if ids and self.rng.random() < 0.7:
            first = self.rng.randrange(len(ids))
            last = min(last, first + self.rng.randrange(1, MOST_TOKENS_CHANGED + 1))
        changed = ids[first:last]
        data = b"".join(map(self.tokenizer.token_bytes, changed))
        if changed and not first and self.rng.random() < 0.2:
            own = self.tokenizer.token_bytes(changed[0])
            data = self.tokenizer.text_bytes(changed[:1]) + data[len(own) :]
        return [*ids[:first], *self._spelled(data), *ids[last:]]

    def _spelled(self, data: bytes) -> list[int]:
        found: list[int] = []
        at = 0
        while at < len(data):
            ends = range(at + 1, min(len(data), at + LONGEST_TOKEN) + 1)
            options = [i for end in ends for i in self.ids_of.get(data[at:end], ())]
            if not options:
                break
            near = options[-3:] if self.rng.random() < 0.8 else options
            found.append(self.rng.choice(near))
            at += len(self.tokenizer.token_bytes(found[-1]))
        return found
