"""What the twins read: the source of the standard library, and a tokenizer of its own.

A file is held out or not by a hash of its path. On the text of the others a byte-level BPE is
trained, with the pretokenizer of GPT-2. A text is a sequence of pretokens, and each is spelled for
itself: by BPE, or by BPE-dropout, which at each step leaves out each merge that is possible with a
probability, so that other tokens come out that spell the same. Source: Provilkov, Emelianenko and
Voita, *BPE-Dropout*, 2020, algorithm 1. The library `tokenizers` has it too, but takes no seed.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from bpe_automata import Tokenizer
from bpe_automata.errors import MissingFileError
from experiments.answers.cases import check_prefix_free
from experiments.run.files import require
from experiments.words import OrdinaryTokens

LEFT_OUT = frozenset({"site-packages", "__pycache__", "test", "tests", "encodings"})
"""Folders: what is installed there, tests, and tables of characters."""
GENERATED = "_sysconfigdata"
"""What a file begins with that says how this interpreter was built, and where."""
HELD_OUT_EVERY = 12
"""One in so many files is held out."""
END = "<|endoftext|>"
"""Stands between two files; a special token."""


class File(NamedTuple):
    """path: below the standard library, with slashes."""

    path: str
    text: str


def is_held_out(path: str) -> bool:
    """By the hash of the path alone: what else there is changes nothing."""
    digest = hashlib.sha256(path.encode()).digest()
    return int.from_bytes(digest[:8], "big") % HELD_OUT_EVERY == 0


@lru_cache(maxsize=2)
def files(most: int) -> tuple[File, ...]:
    """The files of the running interpreter's standard library in order of their paths; so many at
    most, evenly spread over them. Those that are no UTF-8 are left out."""
    root = Path(sysconfig.get_path("stdlib"))
    paths = {path.relative_to(root).as_posix(): path for path in root.rglob("*.py")}
    names = sorted(
        name
        for name, path in paths.items()
        if not LEFT_OUT & set(name.split("/")) and not path.name.startswith(GENERATED)
    )
    found = []
    for name in names[:: -(-len(names) // most)]:
        try:
            text = paths[name].read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            continue
        found.append(File(name, text))
    return tuple(found)


def digest(most: int) -> str:
    """Hex SHA-256 of the files, with their paths."""
    made = hashlib.sha256()
    for path, text in files(most):
        made.update(f"{path}\0{text}\0".encode())
    return made.hexdigest()


# Spelling.


class Speller:
    """Pretokens as ids. tokenizer: a byte-level BPE of the library `tokenizers`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        data = json.loads(tokenizer.to_json())
        self._vocabulary: dict[str, int] = data["model"]["vocab"]
        self._added = {token["content"]: token["id"] for token in data["added_tokens"]}
        self._merges = dict[tuple[int, int], tuple[int, int]]()  # two ids -> (rank, their merge)
        for rank, (left, right) in enumerate(data["model"]["merges"]):
            pair = self._vocabulary[left], self._vocabulary[right]
            self._merges[pair] = rank, self._vocabulary[left + right]
        self._own = dict[str, tuple[int, ...]]()

    def own(self, pretoken: str) -> tuple[int, ...]:
        """The tokenizer's ids."""
        if pretoken not in self._own:
            self._own[pretoken] = tuple(self.drawn(pretoken, 0.0, random.Random(0)))
        return self._own[pretoken]

    def drawn(self, pretoken: str, dropout: float, rng: random.Random) -> list[int]:
        """Ids that spell the pretoken, which is written in the byte alphabet. dropout: the
        probability that a merge is left out at a step, 0 to 1."""
        if pretoken in self._added:
            return [self._added[pretoken]]
        ids = [self._vocabulary[character] for character in pretoken]
        while True:
            best, place = None, 0
            for k in range(len(ids) - 1):
                merge = self._merges.get((ids[k], ids[k + 1]))
                # Of merges that come too late anyway it does not matter whether they are left out.
                if merge and (best is None or merge < best) and rng.random() >= dropout:
                    best, place = merge, k
            if best is None:
                return ids
            ids[place : place + 2] = [best[1]]

    def own_of(self, pretokens: Sequence[str]) -> Iterator[int]:
        """The tokenizer's ids of several, one after the other."""
        for pretoken in pretokens:
            yield from self.own(pretoken)

    def spelled(
        self, pretokens: Sequence[str], dropout: float, rng: random.Random
    ) -> Iterator[int]:
        """Ids of several, one after the other; without dropout the tokenizer's."""
        for pretoken in pretokens:
            yield from self.drawn(pretoken, dropout, rng) if dropout else self.own(pretoken)


# The text of a run.


@dataclass(frozen=True)
class Corpus:
    """training: pretokens in order, END after each file; held_out: pretokens by path."""

    tokenizer: Tokenizer
    training: tuple[str, ...]
    held_out: dict[str, tuple[str, ...]]

    @cached_property
    def speller(self) -> Speller:
        return Speller(self.tokenizer)

    @property
    def eos_id(self) -> int:
        """The id of END."""
        return self.tokenizer.eos_ids[0]

    def windows(self, length: int) -> list[int]:
        """Where in `training` to begin, so that the tokenizer's own ids from there on are about
        `length` for each, and one more."""
        starts, place = list[int](), 0
        for k, pretoken in enumerate(self.training):
            if place >= len(starts) * length:
                starts.append(k)
            place += len(self.speller.own(pretoken))
        return starts[:-2]

    def ids_from(self, start: int, count: int, dropout: float, rng: random.Random) -> list[int]:
        """The first `count` ids from a pretoken of `training` on."""
        rest = self.speller.spelled(self.training[start : start + count], dropout, rng)
        return [token for token, _ in zip(rest, range(count), strict=False)]


@lru_cache(maxsize=1)
def corpus(most: int, n_ids: int) -> Corpus:
    """Of so many files at most, with a tokenizer of `n_ids` ids and END; the same each time."""
    parts: dict[bool, list[File]] = {True: [], False: []}
    for file in files(most):
        parts[is_held_out(file.path)].append(file)
    library = trained_tokenizer([file.text for file in parts[False]], n_ids)
    divide = library.pre_tokenizer.pre_tokenize_str
    known = dict[str, str]()  # one object for all pretokens that are equal

    def divided(text: str) -> Iterator[str]:
        return (known.setdefault(pretoken, pretoken) for pretoken, _ in divide(text))

    training = [p for file in parts[False] for p in (*divided(file.text), END)]
    held_out = {file.path: tuple(divided(file.text)) for file in parts[True]}
    data = json.loads(library.to_str())
    tokenizer = Tokenizer.from_json(data, [library.token_to_id(END)], "standard library")
    return Corpus(tokenizer, tuple(training), held_out)


def trained_tokenizer(texts: Sequence[str], n_ids: int) -> Any:
    """A byte-level BPE of the library `tokenizers`, with GPT-2's pretokenizer, and END after its
    other ids."""
    tokenizers = require("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=n_ids,
        show_progress=False,
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
    )
    made.train_from_iterator(texts, trainer)
    made.add_special_tokens([END])
    return made


# Passages that were held out.


class Passage(NamedTuple):
    """before, after: pretokens; `before` begins anywhere in a file."""

    path: str
    before: tuple[str, ...]
    after: tuple[str, ...]


def passages(text: Corpus, before: int, after: int, rng: random.Random) -> Iterator[Passage]:
    """Drawn at random from what was held out, without end, each file as often as it is long: as few
    pretokens as have at least so many of the tokenizer's own ids. Raises MissingFileError where
    nothing is long enough."""
    files_, needed = text.held_out, 2 * (before + after)
    paths = sorted(path for path, pretokens in files_.items() if len(pretokens) > needed)
    if not paths:
        raise MissingFileError("no file that is held out is long enough; take more --files")
    weights = [len(files_[path]) for path in paths]
    while True:
        path = rng.choices(paths, weights)[0]
        pretokens = files_[path]
        start = rng.randrange(len(pretokens))
        middle = _end(text, pretokens, start, before)
        end = _end(text, pretokens, middle, after)
        if end < len(pretokens):
            yield Passage(path, pretokens[start:middle], pretokens[middle:end])


def _end(text: Corpus, pretokens: Sequence[str], start: int, least: int) -> int:
    """The end of the fewest pretokens from `start` on that have so many ids, or that of all."""
    ids, end = 0, start
    while ids < least and end < len(pretokens):
        ids += len(text.speller.own(pretokens[end]))
        end += 1
    return end


class CutToken(NamedTuple):
    """before, after: ids of the tokenizer; token: its own id in between; parts: two ids that spell
    the same."""

    before: tuple[int, ...]
    token: int
    parts: tuple[int, ...]
    after: tuple[int, ...]


WORD = re.compile("Ġ?[A-Za-z]{2,}")
"""In the byte alphabet, which writes a space so."""


def cut_tokens(text: Corpus, before: int, after: int, rng: random.Random) -> Iterator[CutToken]:
    """Words of two letters or more, with a space before them or not, that are one token of the
    tokenizer and were cut in two at random; at least `before` ids stand before, and `after` come
    after. Without end."""
    own, ordinary = text.speller.own_of, OrdinaryTokens(text.tokenizer)
    for _, start, (word, *rest) in passages(text, before, after + 1, rng):
        token, *others = own([word])
        if WORD.fullmatch(word) and not others:
            for parts in islice(ordinary.cut_once((token,), rng), 1):
                # The word was one id of those that the passage has.
                yield CutToken(tuple(own(start)), token, parts, tuple(own(rest))[:after])


# Places in files that were held out where one of a few answers comes next.


class Question(NamedTuple):
    """before: a regex of what the prompt ends with; answers: prefix-free, the text of one of which
    follows it as a whole word."""

    before: str
    answers: tuple[str, ...]


def _spaced(words: str) -> tuple[str, ...]:
    return tuple(f" {word}" for word in words.split())


_ERRORS = _spaced(
    "ValueError TypeError KeyError OSError AttributeError ImportError IndexError StopIteration "
    "UnicodeDecodeError OverflowError SyntaxError EOFError"
)
QUESTIONS = {
    "import": Question(
        r"(?m)^import",
        _spaced("os sys re io time types warnings itertools contextlib linecache codecs errno"),
    ),
    "from": Question(
        r"(?m)^ *from",
        _spaced("collections os functools types test typing itertools concurrent asyncio lib2to3"),
    ),
    "return": Question(
        r"\breturn",
        _spaced("None True False self NotImplemented result super isinstance len retval"),
    ),
    "except": Question(r"\bexcept", _ERRORS),
    "raise": Question(r"\braise", _ERRORS),
    "def": Question(
        r"\bdef __",
        ("init", "repr", "eq", "len", "iter", "exit", "getitem", "setitem", "delitem", "setattr"),
    ),
    "for": Question(
        r"\bfor \w+ in", _spaced("range zip sorted self list args enumerate reversed itertools")
    ),
    "is": Question(r"\bis", _spaced("None not True False MISSING")),
    "isinstance": Question(
        r"\bisinstance\(\w+,",
        _spaced("str int bytes list dict tuple float type bytearray complex frozenset Mapping"),
    ),
    "if": Question(
        r"(?m)^ +if", _spaced("not self isinstance hasattr len callable sys os issubclass")
    ),
}
"""Chosen without looking at what models make of them; in most, some answers are more than one id of
the tokenizer."""


class Context(NamedTuple):
    """name: of the question; prompt: whole lines, and the last as far as it goes."""

    name: str
    prompt: str
    answers: tuple[str, ...]


def contexts(most: int, tokenizer: Tokenizer, count: int, longest: int, seed: int) -> list[Context]:
    """Of each question so many places at random, where there are as many, in the held-out of so
    many files at most; prompts have at most `longest` ids."""
    texts = [file.text for file in files(most) if is_held_out(file.path)]
    found = []
    for name, (before, answers) in QUESTIONS.items():
        check_prefix_free(name, answers)
        follows = "|".join(map(re.escape, answers))
        places = [
            (text, match.end())
            for text in texts
            for match in re.finditer(rf"{before}(?=(?:{follows})(?![A-Za-z0-9]))", text)
        ]
        random.Random(f"{seed} {name}").shuffle(places)
        prompts = (_last_lines(text[:end], tokenizer, longest) for text, end in places)
        good = (prompt for prompt in prompts if prompt)
        found += [Context(name, prompt, answers) for prompt in islice(good, count)]
    return found


def _last_lines(text: str, tokenizer: Tokenizer, longest: int) -> str:
    """As many as have so many ids at most; empty where the last one has more."""
    found = ""
    for line in reversed(text.splitlines(keepends=True)):
        if len(tokenizer.encode(line + found)) > longest:
            break
        found = line + found
    return found
