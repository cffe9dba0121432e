"""The action of each token on the boundary hypotheses. Tokens that act alike form one class.

A token is a leading fragment of a character, some whole characters, and a trailing fragment. No
boundary lies inside a token, so its whole characters act on hypotheses as a relation: the product
of the steps `follow[0]`, except that before the first character there may be a boundary or not.
Such relations are the elements of a small monoid; every token's word is folded in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from bpe_automata._budget import check
from bpe_automata._limits import check_fits
from bpe_automata.canonical.vocabulary import Trie
from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.alphabet import is_utf8
from bpe_automata.tokenizer.derivation import Derivation, bpe
from bpe_automata.tokenizer.description import Description
from bpe_automata.tokenizer.pipeline import Pipeline

BROKEN = -1
_MOST_LEADING = 3  # continuation bytes of a character
JOINT, INSIDE = 0, 1
"""The elements that words start from: at the token's beginning, or after its leading fragment."""


@dataclass(frozen=True)
class TokenClass:
    """lead: the bytes that complete a character begun before; element: number of the relation;
    tail: UTF-8 row at the end (0: at a character's end); own: the token's id if it needs a class of
    its own, else -1."""

    lead: bytes
    element: int
    tail: int
    own: int


@dataclass(frozen=True)
class TokenActions:
    """of_token: int32 [n_ids], number of each token's class (0: not readable at all); classes: the
    classes, classes[0] unused; relations: for each element a bool [2n, n] (JOINT words: row b*n+h)
    or [n, n] (INSIDE words) matrix over the n hypotheses; text: int32 [n_ids], state of the text
    automaton after the token from state 0 (-1: never); first: int32 [n_ids], atom of the token's
    first character (-1: it begins with a part of one)."""

    of_token: np.ndarray
    classes: tuple[TokenClass, ...]
    relations: tuple[np.ndarray, ...]
    text: np.ndarray
    first: np.ndarray


def classify(
    trie: Trie,
    usable: np.ndarray,
    told_apart: np.ndarray,
    byte_tokens: np.ndarray,
    pipeline: Pipeline,
) -> TokenActions:
    """usable: bool [n_ids], tokens that may occur; told_apart: bool [n_ids], tokens that get a
    class of their own; byte_tokens: their ids."""
    lead, atom_start, atoms, tail, text = _spelled(trie, usable, byte_tokens, pipeline)
    first_atom = np.full(len(usable), -1, dtype=np.int32)
    begins = (np.diff(atom_start) > 0) & (lead == 0)
    first_atom[begins] = atoms[atom_start[:-1][begins]]
    monoid = _Monoid(pipeline)
    element = monoid.fold(np.where(lead > 0, INSIDE, JOINT), atom_start, pipeline.coarse[atoms])
    readable = np.flatnonzero(tail != BROKEN)
    fragments = {b"": 0}
    fragment = np.zeros(len(lead), dtype=np.int64)
    for token in readable[lead[readable] > 0]:
        begin = int(trie.start[token])
        data = trie.data[begin : begin + int(lead[token])].tobytes()
        fragment[token] = fragments.setdefault(data, len(fragments))
    own = np.where(told_apart, np.arange(len(lead)), -1)
    keys = np.stack([fragment, element, tail, own], axis=1)[readable]
    rows, inverse = np.unique(_packed(keys), return_inverse=True)
    first = np.zeros(len(rows), dtype=np.int64)
    first[inverse] = np.arange(len(keys))
    names = list(fragments)
    classes = [TokenClass(b"", -1, 0, -1)]
    classes += [TokenClass(names[f], e, t, o) for f, e, t, o in keys[first].tolist()]
    of_token = np.zeros(len(lead), dtype=np.int32)
    of_token[readable] = inverse.ravel() + 1
    return TokenActions(of_token, tuple(classes), tuple(monoid.relations), text, first_atom)


def _spelled(
    trie: Trie, usable: np.ndarray, byte_tokens: np.ndarray, pipeline: Pipeline
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Every usable token read by the UTF-8 automaton (see `tokenizer.alphabet`): lead uint8 [n],
    how many continuation bytes it begins with; atom_start int32 [n + 1] and atoms int32: CSR of its
    whole characters; tail int32 [n]: the UTF-8 row where it ends (0: at a character's end, BROKEN:
    it is no part of any readable text, or not usable); after int32 [n]: state of the text automaton
    after it from state 0 (-1: no text goes on so), for tokens that begin where a character does."""
    utf8, text_next, n = pipeline.alphabet.utf8, pipeline.text.next, len(usable)
    root = np.zeros(n, dtype=np.int32)
    root[byte_tokens] = pipeline.alphabet.fallback_root
    at, end = trie.start[:-1].copy(), np.where(usable, trie.start[1:], trie.start[:-1])
    leads = np.flatnonzero(at < end)
    for _ in range(_MOST_LEADING + 1):
        leads = leads[trie.data[at[leads]] & 0xC0 == 0x80]
        at[leads] += 1
        leads = leads[at[leads] < end[leads]]
    lead = (at - trie.start[:-1]).astype(np.uint8)
    row, after, found = root.copy(), np.zeros(n, dtype=np.int32), [np.zeros((2, 0), np.int32)]
    open_ = np.flatnonzero(at < end)
    while len(open_):
        check()
        entry = utf8[row[open_], trie.data[at[open_]]]
        whole, atom = open_[entry <= -2], -2 - entry[entry <= -2]
        found.append(np.stack([whole, atom]))
        goes_on = after[whole] >= 0
        after[whole[goes_on]] = text_next[after[whole[goes_on]], atom[goes_on]]
        row[open_] = np.where(entry <= -2, root[open_], entry)
        at[open_] += 1
        open_ = open_[(row[open_] >= 0) & (at[open_] < end[open_])]
    broken = ~usable | (row < 0) | (lead > _MOST_LEADING)
    owner, atoms = np.concatenate(found, axis=1)
    owner, atoms = owner[~broken[owner]], atoms[~broken[owner]]
    atom_start = np.zeros(n + 1, dtype=np.int32)
    np.cumsum(np.bincount(owner, minlength=n), out=atom_start[1:])
    tail = np.where(broken, BROKEN, np.where(row == root, 0, row))
    by_token = np.argsort(owner, kind="stable")
    return lead, atom_start, atoms[by_token].astype(np.int32), tail.astype(np.int32), after


def _packed(keys: np.ndarray) -> np.ndarray:
    """Rows of small integers from -1 on as one int64 each, without collision. Raises
    BudgetExceededError if 64 bits are too few."""
    code = np.zeros(len(keys), dtype=np.int64)
    widths = [int(column.max(initial=0)) + 2 for column in keys.T]
    check_fits("token classes", prod(widths), 2**63 - 1, "more than are told apart")
    for column, width in zip(keys.T, widths, strict=True):
        code = code * width + column + 1
    return code


class _Monoid:
    """Relations over hypotheses, interned; `table[element, atom]` is the product with a step."""

    def __init__(self, pipeline: Pipeline) -> None:
        follow = pipeline.boundaries.follow
        n, n_atoms = follow.shape[1], follow.shape[2]
        self.steps = np.ascontiguousarray(follow[0].transpose(1, 0, 2)).astype(np.float32)
        # Before any character: boundary or not is still open, so the first step is either.
        self.first = np.concatenate([follow[0], follow[1]]).transpose(1, 0, 2).copy()
        self.relations = [np.zeros((2 * n, n), dtype=bool), np.eye(n, dtype=bool)]
        self.numbers: dict[bytes, int] = {}
        self.table = np.full((64, n_atoms), -1, dtype=np.int32)

    def fold(self, current: np.ndarray, atom_start: np.ndarray, atoms: np.ndarray) -> np.ndarray:
        """The element of each token's word, starting from `current`."""
        element, sizes = current.astype(np.int64), np.diff(atom_start)
        tokens, k = np.flatnonzero(sizes), 0
        while len(tokens):
            check()
            here, atom = element[tokens], atoms[atom_start[tokens] + k]
            unknown = self.table[here, atom] < 0
            for pair in sorted({*zip(here[unknown].tolist(), atom[unknown].tolist(), strict=True)}):
                self.table[pair] = self._product(*pair)
            element[tokens] = self.table[here, atom]
            k += 1
            tokens = tokens[sizes[tokens] > k]
        return element

    def _product(self, element: int, atom: int) -> int:
        if element == JOINT:
            relation = self.first[atom]
        else:
            relation = (self.relations[element].astype(np.float32) @ self.steps[atom]) > 0
        key = relation.shape[0].to_bytes(4, "little") + np.packbits(relation).tobytes()
        if key not in self.numbers:
            self.numbers[key] = len(self.relations)
            self.relations.append(relation)
            if len(self.relations) > len(self.table):
                unknown = np.full_like(self.table, -1)
                self.table = np.concatenate([self.table, unknown])
        return self.numbers[key]


# `ignore_merges`: a pretoken that is in the vocabulary becomes that token.
#
# That changes nothing for tokens that BPE makes anyway. A token x that no merge reaches is legal
# only as a whole pretoken; and its BPE spelling, legal anywhere else, is illegal as one.
# So every hypothesis has a position in the trie of those spellings, read since its pretoken began:
#
#     OFF        in none of them           MUST_END   x itself was read: the pretoken ends here
#     k >= 0     at node k of the trie; at a spelling's end the pretoken must go on

OFF, MUST_END, ILLEGAL = -1, -2, -3


@dataclass(frozen=True)
class Unmade:
    """The tokens that no merge reaches and that are legal as a whole pretoken all the same.

    ids: int32 [k], ascending; start: int32 [k + 1] and spelled: int32, CSR of the ids that BPE
    makes of each. There are none without `ignore_merges`."""

    ids: np.ndarray
    start: np.ndarray
    spelled: np.ndarray


class WholePretokens:
    """The trie. `tokens`: the ids that are legal only as a whole pretoken; `told_apart`: bool
    [n_ids], the ids whose reading moves the trie."""

    def __init__(self, n_ids: int, unmade: Unmade) -> None:
        self.children: list[dict[int, int]] = [{}]
        self.complete: set[int] = set()
        self.tokens: list[int] = unmade.ids.tolist()
        for spelling in np.split(unmade.spelled, unmade.start[1:-1]) if self.tokens else []:
            self._insert(spelling.tolist())
        self.told_apart = np.zeros(n_ids, dtype=bool)
        self.told_apart[[*self.tokens, *{t for node in self.children for t in node}]] = True

    def _insert(self, spelling: list[int]) -> None:
        node = 0
        for token in spelling:
            if token not in self.children[node]:
                self.children[node][token] = len(self.children)
                self.children.append({})
            node = self.children[node][token]
        self.complete.add(node)


def find_unmade(description: Description, derivation: Derivation) -> Unmade:
    """The unmade tokens. Raises UnsupportedTokenizerError if a symbol of one is no token."""
    tokens = _unreachable(description, derivation) if description.ignore_merges else []
    spelled = [_spelling(description, derivation, token) for token in tokens]
    return Unmade(
        np.array(tokens, dtype=np.int32),
        np.cumsum([0, *map(len, spelled)]).astype(np.int32),
        np.array([token for spelling in spelled for token in spelling], dtype=np.int32),
    )


def _unreachable(description: Description, derivation: Derivation) -> list[int]:
    added = {token.id for token in description.added}
    numbers = np.flatnonzero(~derivation.reachable).tolist()
    tokens = [(number, description.tokens[number]) for number in numbers if number not in added]
    return [number for number, token in tokens if token and is_utf8(token)]


def _spelling(description: Description, derivation: Derivation, token: int) -> list[int]:
    data = description.tokens[token] or b""
    if description.byte_level:
        symbols = [bytes([byte]) for byte in data]
    else:
        symbols = [
            c.encode("utf-8", "surrogatepass") for c in data.decode("utf-8", "surrogatepass")
        ]
    missing = [s for s in symbols if s not in description.base]
    if missing:
        raise UnsupportedTokenizerError(
            "ignore_merges",
            data,
            f"this token holds {missing[0]!r}, which is no token of its own; not modelled",
        )
    return bpe(derivation, [description.base[s] for s in symbols])
