"""Runs `encode` from a `Description` alone, step by step, without automata or tables.

    cut out added tokens, normalize, cut out those that are looked for after it, put a space before,
    split, BPE on each piece

Splitting is done by the regex engine that the tokenizer runs on: by
`tokenizers.pre_tokenizers.Split` for Oniguruma; by tiktoken itself for fancy-regex, which is asked
for one match at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from tokenizers import Regex, pre_tokenizers

from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.reference._bpe import Ranks, bpe, merge_ranks
from bpe_automata.tokenizer.description import AddedToken, Description, Prefix, SplitRule

Split = Callable[[SplitRule, str], list[str]]


class Encoder:
    """The description as a function from text to ids, with None for each character or byte that
    BPE has no symbol for."""

    def __init__(self, description: Description, dialect: str = "oniguruma") -> None:
        """`dialect`: that of the backend's engine. Raises UnsupportedTokenizerError for options of
        added tokens that are not implemented here."""
        if any(t.lstrip or t.rstrip or t.single_word for t in description.cut_out):
            raise UnsupportedTokenizerError("added tokens", "lstrip, rstrip, single_word", "")
        self._description = description
        self._split: Split = _tiktoken_split if dialect == "fancy-regex" else _tokenizers_split
        self._ranks: Ranks = merge_ranks(description)
        spelled = enumerate(description.tokens)
        self._whole = {token: number for number, token in spelled if token is not None}
        self._first = _finder([t for t in description.cut_out if not t.normalized])
        self._second = _finder([t for t in description.cut_out if t.normalized])

    def __call__(self, text: str) -> list[int | None]:
        prefix = self._description.prefix
        if prefix is Prefix.TEXT and text:
            text = " " + text
        ids: list[int | None] = []
        for at, piece in self._pieces(text):
            if isinstance(piece, AddedToken):
                ids.append(piece.id)
            else:
                ids += self._ordinary(_prefixed(piece, prefix, begins=at == 0))
        return ids

    def _pieces(self, text: str) -> Iterator[tuple[int, str | AddedToken]]:
        """Added tokens and normalized text between them, numbered."""
        pieces: list[str | AddedToken] = []
        for piece in self._first(text):
            if isinstance(piece, AddedToken):
                pieces.append(piece)
            else:
                for step in self._description.normalizers:
                    piece = step.apply(piece)
                pieces += self._second(piece)
        return iter(enumerate(pieces))

    def _ordinary(self, text: str) -> list[int | None]:
        pieces = [text] if text else []
        for rule in self._description.splitters:
            pieces = [part for piece in pieces for part in self._split(rule, piece)]
        return [number for piece in pieces for number in self._bpe(piece)]

    def _bpe(self, piece: str) -> list[int | None]:
        data = piece.encode("utf-8")
        if self._description.ignore_merges and data in self._whole:
            return [self._whole[data]]
        ids: list[int | None] = []
        run: list[int] = []
        for symbol in self._symbols(piece):
            if symbol is not None:
                run.append(symbol)
                continue
            ids += [*bpe(run, self._ranks), None]
            run = []
        return [*ids, *bpe(run, self._ranks)]

    def _symbols(self, piece: str) -> Iterator[int | None]:
        """The base symbol of each character, else those of its bytes; None for a missing one."""
        base, fallback = self._description.base, self._description.byte_tokens
        for character in piece:
            data = character.encode("utf-8")
            if self._description.byte_level:
                yield from (base.get(bytes([byte])) for byte in data)
            elif data in base or not fallback:
                yield base.get(data)
            else:
                yield from (fallback.get(byte) for byte in data)


def _prefixed(piece: str, prefix: Prefix, begins: bool) -> str:
    if not piece or prefix in (Prefix.NONE, Prefix.TEXT):
        return piece
    if prefix is not Prefix.PIECE and piece.startswith(" "):
        return piece
    if prefix is Prefix.FIRST_UNLESS_SPACE and not begins:
        return piece
    return " " + piece


def _finder(added: list[AddedToken]) -> Callable[[str], list[str | AddedToken]]:
    """A function that cuts the added tokens out of a text, the leftmost first, and the longest of
    those that begin at one position."""
    by_content = {token.content: token for token in added}
    longest_first = sorted(by_content, key=len, reverse=True)
    pattern = re.compile(f"({'|'.join(map(re.escape, longest_first))})")

    def cut(text: str) -> list[str | AddedToken]:
        parts = pattern.split(text) if by_content else [text]
        return [by_content.get(part, part) for part in parts if part]

    return cut


# ---------------------------------------------------------------- engines


def _tokenizers_split(rule: SplitRule, text: str) -> list[str]:
    return [piece for piece, _ in _splitter(rule).pre_tokenize_str(text)]


@lru_cache(maxsize=64)
def _splitter(rule: SplitRule) -> pre_tokenizers.PreTokenizer:
    if rule.kind == "digits":
        return pre_tokenizers.Digits(individual_digits=rule.behavior == "isolated")
    if rule.kind not in ("regex", "literal"):
        raise UnsupportedTokenizerError("splitter", rule.kind, "it is not written out here")
    pattern = Regex(rule.pattern) if rule.kind == "regex" else rule.pattern
    return pre_tokenizers.Split(pattern, rule.behavior, rule.invert)


def _tiktoken_split(rule: SplitRule, text: str) -> list[str]:
    """The matches of the pattern. It looks at nothing before a match, so the next match is the one
    at the start of the remaining text; if there is none, a character is dropped."""
    pieces = []
    while text:
        piece = bytes(_at_the_start(rule.pattern)(text)).decode("utf-8")
        if piece:
            pieces.append(piece)
        text = text[len(piece) or 1 :]
    return pieces


@lru_cache(maxsize=64)
def _at_the_start(pattern: str) -> Callable[[str], list[int]]:
    import tiktoken

    ranks = {bytes([byte]): byte for byte in range(256)}
    anchored = rf"\A(?:{pattern})"
    return tiktoken.Encoding(
        "bytes", pat_str=anchored, mergeable_ranks=ranks, special_tokens={}
    ).encode_ordinary
