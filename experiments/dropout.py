"""A text to train small models on, in a tokenizer's own ids or in those of BPE-dropout.

The text is the source of the running interpreter's standard library. The hash of a file's path
decides whether it is held out; on the other files a byte-level BPE is trained, with the
pretokenizer of GPT-2. Each pretoken is spelled by itself; BPE-dropout skips each possible merge of
a step with a given probability. Source: Provilkov, Emelianenko and Voita, *BPE-Dropout*, 2020,
algorithm 1 (the library `tokenizers` has it too, but takes no seed).
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import tokenizers

from bpe_automata import Tokenizer
from bpe_automata.errors import MissingFileError
from experiments.words import OrdinaryTokens

LEFT_OUT = frozenset({"site-packages", "__pycache__", "test", "tests", "encodings"})
"""Folders that are skipped: installed packages, tests, and tables of characters."""
HELD_OUT_EVERY = 12
END = "<|endoftext|>"
"""The special token between two files."""


@lru_cache(maxsize=2)
def files(most: int) -> dict[str, str]:
    """{path: text} in order of the paths; at most `most`, evenly spread over all files in UTF-8. A
    file that says how this interpreter was built is skipped."""
    root = Path(sysconfig.get_path("stdlib"))
    paths = {path.relative_to(root).as_posix(): path for path in root.rglob("*.py")}
    names = sorted(
        name
        for name, path in paths.items()
        if not LEFT_OUT & {*name.split("/")} and not path.name.startswith("_sysconfigdata")
    )
    read = ((name, paths[name].read_bytes()) for name in names[:: -(-len(names) // most)])
    found = ((name, data.decode("utf-8", "ignore"), data) for name, data in read)
    return {name: text for name, text, data in found if text.encode() == data}


def is_held_out(path: str) -> bool:
    """Is the file held out? The hash of its path decides alone, whatever other files there are."""
    digest = hashlib.sha256(path.encode()).digest()
    return int.from_bytes(digest[:8], "big") % HELD_OUT_EVERY == 0


class Speller:
    """Pretokens, written in the byte alphabet, as ids of a byte-level BPE."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        data = json.loads(tokenizer.to_json())
        self._ids: dict[str, int] = data["model"]["vocab"]
        self._added = {token["content"]: token["id"] for token in data["added_tokens"]}
        self._merges = dict[tuple[int, int], tuple[int, int]]()  # two ids -> (rank, their merge)
        for rank, (left, right) in enumerate(data["model"]["merges"]):
            self._merges[self._ids[left], self._ids[right]] = rank, self._ids[left + right]
        self._own = dict[str, list[int]]()

    def own(self, pretokens: Iterable[str]) -> Iterator[int]:
        """The tokenizer's ids of several pretokens, one after the other."""
        for pretoken in pretokens:
            if pretoken not in self._own:
                self._own[pretoken] = self.spell(pretoken, 0.0, random.Random(0))
            yield from self._own[pretoken]

    def spelled(
        self, pretokens: Iterable[str], dropout: float, rng: random.Random
    ) -> Iterator[int]:
        """Ids of several pretokens, one after the other. dropout: the probability, 0 to 1, that a
        merge is skipped at a step."""
        for pretoken in pretokens:
            yield from self.spell(pretoken, dropout, rng) if dropout else self.own([pretoken])

    def spell(self, pretoken: str, dropout: float, rng: random.Random) -> list[int]:
        """Ids that spell one pretoken."""
        if pretoken in self._added:
            return [self._added[pretoken]]
        ids = [self._ids[character] for character in pretoken]
        while True:
            best, position = None, 0
            for k in range(len(ids) - 1):
                merge = self._merges.get((ids[k], ids[k + 1]))
                # A merge later than the best one so far would not be chosen: it needs no draw.
                if merge and (best is None or merge < best) and rng.random() >= dropout:
                    best, position = merge, k
            if best is None:
                return ids
            ids[position : position + 2] = [best[1]]


Passage = tuple[tuple[str, ...], tuple[str, ...]]
"""Consecutive pretokens from anywhere in a file: those before a position, and those after it."""


class CutWord(NamedTuple):
    """before, after: ids of the tokenizer; token: its own id between them; parts: two ids that
    spell the same as the token."""

    before: list[int]
    token: int
    parts: tuple[int, ...]
    after: list[int]


WORD = re.compile("Ġ?[A-Za-z]{2,}")
"""A word in the byte alphabet, where Ġ is a space."""


class Corpus:
    """training: pretokens in order, END after each file; held_out: pretokens by path."""

    def __init__(self, most: int, n_ids: int) -> None:
        """most: files; n_ids: of the tokenizer, without END."""
        texts = files(most)
        library = _trained([texts[path] for path in texts if not is_held_out(path)], n_ids)

        def divided(path: str) -> Iterator[str]:
            found = library.pre_tokenizer.pre_tokenize_str(texts[path])
            return (sys.intern(pretoken) for pretoken, _ in found)

        self.training = [
            p for path in texts if not is_held_out(path) for p in (*divided(path), END)
        ]
        self.held_out = {path: tuple(divided(path)) for path in texts if is_held_out(path)}
        data = json.loads(library.to_str())
        self.tokenizer = Tokenizer.from_json(data, [library.token_to_id(END)], "standard library")
        self.speller = Speller(self.tokenizer)

    def windows(self, length: int) -> list[int]:
        """Starts in `training`, each about `length` of the tokenizer's own ids after the last."""
        starts, position = list[int](), 0
        for k, pretoken in enumerate(self.training):
            if position >= len(starts) * length:
                starts.append(k)
            position += len([*self.speller.own([pretoken])])
        return starts[:-2]

    def ids_from(self, start: int, count: int, dropout: float, rng: random.Random) -> list[int]:
        """The first `count` ids from a pretoken of `training` on."""
        rest = self.speller.spelled(self.training[start : start + count], dropout, rng)
        return [token for token, _ in zip(rest, range(count), strict=False)]

    def words(self, before: int, after: int, rng: random.Random) -> Iterator[CutWord]:
        """Endless random words of two letters or more, with or without a space before them, that
        are one token, and are cut in two at random."""
        ordinary = OrdinaryTokens(self.tokenizer)
        for start, (word, *rest) in self.passages(before, after + 1, rng):
            token, *others = self.speller.own([word])
            if WORD.fullmatch(word) and not others:
                for parts in islice(ordinary.cut_once((token,), rng), 1):
                    # The word takes one of the ids that the passage has.
                    own = [*self.speller.own(rest)][:after]
                    yield CutWord([*self.speller.own(start)], token, parts, own)

    def passages(self, before: int, after: int, rng: random.Random) -> Iterator[Passage]:
        """Endless random passages of held-out files, each file in proportion to its length; they
        have as few pretokens as give so many of the tokenizer's own ids. Raises MissingFileError if
        no file is long enough."""
        long = {p: own for p, own in self.held_out.items() if len(own) > 2 * (before + after)}
        if not long:
            raise MissingFileError("no file that is held out is long enough; take more --files")
        paths = sorted(long)
        weights = [len(long[path]) for path in paths]
        while True:
            pretokens = long[rng.choices(paths, weights)[0]]
            start = rng.randrange(len(pretokens))
            middle = self._end(pretokens, start, before)
            end = self._end(pretokens, middle, after)
            if end < len(pretokens):
                yield pretokens[start:middle], pretokens[middle:end]

    def _end(self, pretokens: Sequence[str], start: int, least: int) -> int:
        """The end of the fewest pretokens from `start` on with `least` ids, or the end of all."""
        ids, end = 0, start
        while ids < least and end < len(pretokens):
            ids += len([*self.speller.own(pretokens[end : end + 1])])
            end += 1
        return end


corpus = lru_cache(maxsize=1)(Corpus)
"""A corpus is cached, as it depends on the files alone."""


def _trained(texts: Sequence[str], n_ids: int) -> Any:
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


# Positions in held-out files where one of a few answers comes next.

QUESTIONS: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)
"""after: a regex of the text before; answers: one of them follows as a whole word. Both were chosen
without looking at what models make of them. Most questions have answers of more than one id."""


def contexts(
    most: int, encode: Callable[[str], list[int]], count: int, longest: int, seed: int
) -> Iterator[tuple[str, list[str]]]:
    """(prompt, answers) at `count` random positions for each question, in at most `most` files. A
    prompt is whole lines and the beginning of the last one, of at most `longest` ids."""
    texts = [text for path, text in files(most).items() if is_held_out(path)]
    for name, asked in QUESTIONS.items():
        regex = rf"{asked['after']}(?=(?:{'|'.join(asked['answers'])})(?![A-Za-z0-9]))"
        places = [text[: m.end()] for text in texts for m in re.finditer(regex, text)]
        random.Random(f"{seed} {name}").shuffle(places)
        prompts = (_last_lines(text, encode, longest) for text in places)
        for prompt in islice(filter(None, prompts), count):
            yield prompt, asked["answers"]


def _last_lines(text: str, encode: Callable[[str], list[int]], longest: int) -> str:
    """The most last lines that have at most `longest` ids; "" if the last line has more."""
    found = ""
    for line in reversed(text.splitlines(keepends=True)):
        if len(encode(line + found)) > longest:
            break
        found = line + found
    return found
