"""Readers that run parts of a pipeline over a text, for tests: split rules (`SplitMachine`), beside
the pieces that the libraries make of the text, and text filters (`Reader`).
"""

from __future__ import annotations

import numpy as np
from support.sources import CL100K

from bpe_automata._tokenizer import boundaries
from bpe_automata._tokenizer.alphabet import engine_class
from bpe_automata._tokenizer.boundaries import Splitter
from bpe_automata._tokenizer.filter_table import TableFilter
from bpe_automata._tokenizer.pattern import tree_of
from bpe_automata._tokenizer.pike import Program
from bpe_automata._tokenizer.sources.published import GPT2, LLAMA3, O200K, QWEN, TEKKEN

Cuts = tuple[int, ...]
DEPLOYED = {
    "gpt2": GPT2,
    "gpt2 of tiktoken": (
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
    ),
    "llama3": LLAMA3,
    "qwen2": QWEN,
    "cl100k": CL100K,
    "tekken": TEKKEN,
    "o200k": O200K,
}
"""Split patterns of published tokenizers."""


class SplitMachine:
    """`rules` over the classes of `engine`; `n`: how many hypotheses there are."""

    def __init__(self, rules, engine):
        programs = [Program(tree_of(rule, engine.dialect), rule.pattern) for rule in rules]
        sources = list(dict.fromkeys(c for program in programs for c in program.classes))
        classes = [engine_class(engine, *source) for source in sources]
        self._starts = np.unique(np.concatenate([[0], *(c.ravel() for c in classes)]))
        inside = np.array([[_holds(c, p) for p in self._starts] for c in classes], dtype=bool)
        inside = inside.reshape(len(classes), len(self._starts))
        self._atoms = np.unique(inside, axis=1, return_inverse=True)[1].ravel()
        members = [frozenset(self._atoms[row].tolist()) for row in inside]
        for program in programs:
            program.bind([members[sources.index(source)] for source in program.classes])
        splitters = tuple(
            Splitter(p, rule.behavior, rule.invert) for p, rule in zip(programs, rules, strict=True)
        )
        self._table = boundaries.tabulate_boundaries(splitters, int(self._atoms.max()) + 1)
        self.n = self._table.n

    def readings(self, text: str) -> list[Cuts]:
        """The boundaries (character indexes, 0 included) of each reading of `text`."""
        alive: list[tuple[int, Cuts]] = [(0, ())]
        for place, character in enumerate(text):
            index = np.searchsorted(self._starts, ord(character), side="right") - 1
            steps = self._table.follow[:, :, self._atoms[index], :]
            alive = [
                (int(after), (*cuts, place) if boundary else cuts)
                for hypothesis, cuts in alive
                for boundary in (0, 1)
                for after in np.flatnonzero(steps[boundary, hypothesis])
            ]
        return [cuts for hypothesis, cuts in alive if self._table.ends[hypothesis]]


def _holds(ranges, point) -> bool:
    index = np.searchsorted(ranges[:, 0], point, side="right") - 1
    return bool(index >= 0 and point < ranges[index, 1])


def readings_of(pieces: list[str], text: str) -> list[Cuts]:
    """What a machine must say of `text`, whose pieces these are: nothing if some text is lost."""
    if "".join(pieces) != text:
        return []
    lengths = [len(piece) for piece in pieces]
    return [tuple(sum(lengths[:k]) for k in range(len(lengths)))]


def own_pieces(pretokenizer, text: str) -> list[str]:
    """What a pretokenizer of `tokenizers` that only splits makes of `text`."""
    return [text[start:end] for _, (start, end) in pretokenizer.pre_tokenize_str(text)]


def tiktoken_pieces(pattern: str, text: str) -> list[str]:
    """What `tiktoken` splits `text` into. It does not say; but a piece that is in the vocabulary
    becomes one token, so the vocabulary holds every part of the text."""
    import tiktoken

    data = text.encode()
    parts = {data[i:j] for i in range(len(data)) for j in range(i + 1, len(data) + 1)}
    ranks = {part: k for k, part in enumerate(sorted(parts | {bytes([b]) for b in range(256)}))}
    encoding = tiktoken.Encoding("parts", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    ids = encoding.encode_ordinary(text)
    return [encoding.decode_single_token_bytes(i).decode() for i in ids]


# ---------------------------------------------------------------- text filters


class Reader:
    """Do all of these filters accept a text?"""

    def __init__(self, filters: tuple[TableFilter, ...]) -> None:
        self.filters = filters
        self.columns = [_columns(made) for made in filters]

    def accepts(self, text: str) -> bool:
        pairs = zip(self.filters, self.columns, strict=True)
        return all(_accepts(made, columns, text) for made, columns in pairs)


def _columns(made: TableFilter) -> np.ndarray:
    columns = np.full(0x110000, -1)
    for number, ranges in enumerate(made.classes):
        for low, high in ranges:
            assert (columns[low:high] == -1).all(), "two classes overlap"
            columns[low:high] = number
    return columns


def _accepts(made: TableFilter, columns: np.ndarray, text: str) -> bool:
    state = 0
    for character in text:
        state = int(made.table[state, columns[ord(character)]])
        if state < 0:
            return False
    return bool(made.accepting[state])


def representatives(made: TableFilter) -> list[str]:
    """A character of each class, and one of none."""
    columns = _columns(made)
    firsts = np.unique(columns, return_index=True)[1]
    return [chr(first) for first in firsts.tolist()]
