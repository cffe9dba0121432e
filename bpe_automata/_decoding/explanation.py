"""Why a sequence of ids is, or is not, what the tokenizer itself makes of its text.

    explain(tokenizer, ids).canonical  <=>  encode(decode(ids)) == ids

That equation decides; the automaton says where the sequence leaves the canonical ones, and
`faults` which of their rules it breaks there.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from bpe_automata._core.canonical import CanonicalAutomaton, canonical_automaton
from bpe_automata._decoding.visible import visible, visible_tokens
from bpe_automata._sharing import cached
from bpe_automata._tokenizer.alphabet import is_utf8
from bpe_automata._tokenizer.derivation import bpe
from bpe_automata._tokenizer.description import AddedToken
from bpe_automata._tokenizer.pipeline import Pipeline
from bpe_automata._tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class Explanation:
    """canonical: is it; ids, tokens: the sequence, and the bytes of each id; expected_ids: what
    `encode` makes of its text; position: index of the first token with which no canonical sequence
    goes on, whatever follows (where only the end of the text shows it: of the token that is wrong
    there), None if canonical; reason: one sentence without a full stop."""

    canonical: bool
    ids: tuple[int, ...]
    tokens: tuple[bytes, ...]
    expected_ids: tuple[int, ...]
    position: int | None
    reason: str

    @property
    def text(self) -> str:
        """What the ids spell; broken UTF-8 becomes U+FFFD."""
        return b"".join(self.tokens).decode("utf-8", "replace")

    def __str__(self) -> str:
        if self.canonical:
            return self.reason
        return f"not canonical at token {self.position}: {self.reason}"


def explain(tokenizer: Tokenizer, ids: Iterable[int]) -> Explanation:
    """Say whether `ids` are canonical, and if not, at which token and why.

    Raises TokenOutOfRangeError, and what `canonical_automaton` raises.
    """
    sequence = tuple(ids)
    tokens = tuple(tokenizer.token_bytes(token) for token in sequence)
    expected = tuple(tokenizer.encode(tokenizer.decode(sequence)))
    if sequence == expected and is_utf8(b"".join(tokens)):
        reason = f"canonical: encode makes these {len(sequence)} token(s) of their text"
        return Explanation(True, sequence, tokens, expected, None, reason)
    automaton = canonical_automaton(tokenizer)
    fault = find_fault(automaton, sequence) or _difference(tokenizer, sequence, expected)
    position, reason = _dead_end(automaton, sequence), fault.reason
    if position is None:
        position, reason = fault.position, f"the text cannot end here: {reason}"
    elif fault.position < position:
        reason = f"{reason} (token {fault.position}, settled by {visible(tokens[position])})"
    return Explanation(False, sequence, tokens, expected, position, reason)


def _dead_end(automaton: CanonicalAutomaton, ids: tuple[int, ...]) -> int | None:
    """The first token that no canonical sequence has after those before it; None if only the end
    of the text is at fault."""
    state = automaton.start
    for position, token in enumerate(ids):
        after = automaton.step(state, token)
        if after is None:
            return position
        state = after
    return None


def _difference(tokenizer: Tokenizer, ids: tuple[int, ...], expected: tuple[int, ...]) -> Fault:
    """For a sequence that breaks no rule and still is not what `encode` makes."""
    pairs = enumerate(zip(ids, expected, strict=False))
    first = next((i for i, (a, b) in pairs if a != b), min(len(expected), len(ids) - 1))
    ours, theirs = (visible_tokens(tokenizer, part[first : first + 1]) for part in (ids, expected))
    return Fault(first, f"encode makes {theirs} where {ours} stands")


# How the tokenizer divides a text before BPE: added tokens, and the pretokens between them. The one
# reading of the text that survives in the automaton of boundary hypotheses says where pretokens
# begin.


@dataclass(frozen=True)
class Divided:
    """A text in pieces, by byte offsets. added: (begin, end, id) of each added token that is cut
    out; starts: where each piece begins, ascending (a pretoken or an added token); size: bytes in
    the text."""

    added: tuple[tuple[int, int, int], ...]
    starts: tuple[int, ...]
    size: int

    @cached
    def is_start(self) -> frozenset[int]:
        """`starts`, to look in."""
        return frozenset(self.starts)

    def pretokens(self) -> Iterator[tuple[int, int]]:
        """(begin, end) of each piece."""
        yield from pairwise((*self.starts, self.size))


def divide(pipeline: Pipeline, added: tuple[AddedToken, ...], text: str) -> Divided | None:
    """Divide a text as `encode` does; None if its splitters remove part of it. `text` may hold only
    characters that tokens can spell."""
    ids = {token.content: token.id for token in added}
    longest_first = sorted(ids, key=len, reverse=True)
    cuts: list[tuple[int, int, int]] = []
    starts: list[int] = []
    at = offset = 0  # in characters, in bytes
    pieces: list[tuple[str, int]] = []
    for match in re.finditer("|".join(map(re.escape, longest_first)) or r"(?!)", text):
        pieces.append((text[at : match.start()], offset))
        begin = offset + len(_encoded(text[at : match.start()]))
        offset, at = begin + len(_encoded(match.group())), match.end()
        cuts.append((begin, offset, ids[match.group()]))
        starts.append(begin)
    pieces.append((text[at:], offset))
    for piece, offset in pieces:
        found = _pretokens(pipeline, piece, offset)
        if found is None:
            return None
        starts += found
    return Divided(tuple(cuts), tuple(sorted(starts)), len(_encoded(text)))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _pretokens(pipeline: Pipeline, text: str, offset: int) -> list[int] | None:
    """Byte offsets at which pretokens begin in a text without added tokens; None if part of it is
    removed."""
    if not text:
        return []
    letters, follow = pipeline.alphabet, pipeline.boundaries.follow
    points = np.array([ord(c) for c in text])
    atoms = pipeline.coarse[
        letters.atoms[np.searchsorted(letters.starts, points, side="right") - 1]
    ]
    boundary = _reading(follow, pipeline.boundaries.ends, atoms.tolist())
    if boundary is None:
        return None
    sizes = np.cumsum([0, *(len(_encoded(c)) for c in text[:-1])])
    return (offset + sizes[boundary]).tolist()


def _reading(follow: np.ndarray, ends: np.ndarray, atoms: list[int]) -> np.ndarray | None:
    """bool [len(atoms)]: is there a boundary before each character, in the one reading that
    survives to the end; None if none does. follow, ends: as in `Boundaries`."""
    alive: list[np.ndarray] = [np.arange(len(ends)) == 0]
    for atom in atoms:
        alive.append(np.asarray(follow[:, alive[-1], atom].any(axis=(0, 1))))
    boundary = np.zeros(len(atoms), dtype=bool)
    here = alive[-1] & ends
    if not here.any():
        return None
    for index in range(len(atoms) - 1, -1, -1):
        sources = follow[:, :, atoms[index]][:, :, here].any(axis=2) & alive[index]
        boundary[index] = sources[1].any()
        here = sources.any(axis=0)
    return boundary


# The first rule of canonical sequences that a sequence breaks. Ids are canonical iff, for their
# text as the tokenizer divides it,
#   - the bytes are UTF-8, and added tokens are read exactly where they are cut out of the text,
#   - each other token is one that BPE makes, and holds no pretoken boundary inside,
#   - adjacent tokens of one pretoken are a canonical pair,
#   - with `ignore_merges`, a pretoken that is in the vocabulary is that one token.


@dataclass(frozen=True)
class Fault:
    """position: index of the token at which a rule is broken; reason: how, as half a sentence."""

    position: int
    reason: str


def find_fault(automaton: CanonicalAutomaton, ids: tuple[int, ...]) -> Fault | None:
    """The first broken rule; None if there is none."""
    data = b"".join(map(automaton.tokenizer.token_bytes, ids))
    if ids and automaton.tokenizer.puts_space(ids[0]) and not data.startswith(b" "):
        return Fault(0, f"encode puts a space before {visible(data[:12])}, and here is none")
    try:
        text, broken = data.decode("utf-8"), None
    except UnicodeDecodeError as error:
        text, broken = data[: error.start].decode("utf-8"), error
    divided = divide(automaton.pipeline, automaton.tokenizer.description.cut_out, text)
    if divided is None:
        return Fault(len(ids) - 1, "the pretokenizer removes part of this text")
    search = _Search(automaton, ids, text, divided)
    found = next(search.faults(), None) or _unsettled(automaton, search, text)
    if broken is None:
        return found
    unreadable = search.unreadable(broken)
    return found if found and found.position < unreadable.position else unreadable


def _unsettled(automaton: CanonicalAutomaton, search: _Search, text: str) -> Fault | None:
    """Text that a normalizer changes."""
    for step in automaton.tokenizer.description.normalizers:
        changed = step.apply(text)
        if changed != text:
            pairs = enumerate(zip(text, changed, strict=False))
            at = next((k for k, (a, b) in pairs if a != b), min(len(text), len(changed)))
            at = min(at, len(text) - 1)
            position = bisect_right(search.joints, len(text[:at].encode())) - 1
            return Fault(position, f"normalization ({step.kind}) changes {text[at]!r} here")
    return None


class _Search:
    """The text of a sequence, divided, with the sequence's own joints beside it. Where the bytes
    are no UTF-8, the text is what comes before."""

    def __init__(
        self, automaton: CanonicalAutomaton, ids: tuple[int, ...], text: str, divided: Divided
    ) -> None:
        self.automaton, self.ids = automaton, ids
        self.tokenizer = automaton.tokenizer
        self.data = text.encode("utf-8")
        self.divided = divided
        lengths = [len(self.tokenizer.token_bytes(token)) for token in ids]
        self.joints = list(accumulate(lengths, initial=0))

    def faults(self) -> Iterator[Fault]:
        """All broken rules but that of UTF-8, in order of the tokens."""
        for position, token in enumerate(self.ids):
            begin, end = self.joints[position : position + 2]
            found = self._added(position, begin, end)
            if found is None and not self.automaton.is_added(token):
                found = self._ordinary(position, begin, end)
            if found:
                yield found

    def unreadable(self, broken: UnicodeDecodeError) -> Fault:
        """The fault of bytes that are no UTF-8."""
        start = visible(broken.object[broken.start : broken.end])
        if broken.reason == "unexpected end of data":
            return Fault(len(self.ids) - 1, f"it is inside a character, after {start}")
        wrong = broken.start if broken.reason == "invalid start byte" else broken.end
        position = bisect_right(self.joints, wrong) - 1
        where = "" if wrong == broken.start else f" after {start}"
        return Fault(position, f"{self._shown(position)}{where} is not valid UTF-8")

    def _added(self, position: int, begin: int, end: int) -> Fault | None:
        token = self.ids[position]
        for low, high, added in self.divided.added:
            if (low, high, added) == (begin, end, token):
                return None
            if low < end and begin < high:
                last = min(bisect_left(self.joints, high), len(self.ids)) - 1
                name = visible(self.tokenizer.token_bytes(added))
                return Fault(last, f"these tokens spell the added token {name}")
        if self.automaton.is_added(token):
            return Fault(position, f"{self._shown(position)} is not cut out of this text")
        return None

    def _ordinary(self, position: int, begin: int, end: int) -> Fault | None:
        starts = self.divided.starts
        inside = starts[bisect_right(starts, begin) : bisect_left(starts, end)]
        if not self.automaton.usable[self.ids[position]]:
            return Fault(position, self._unreachable(position))
        if inside:
            parts = (self.data[a:b] for a, b in pairwise((begin, *inside, end)))
            reason = f"the pretokenizer splits inside {self._shown(position)}: "
            return Fault(position, reason + " | ".join(map(visible, parts)))
        return self._joint(position, begin) or self._whole(position, begin, end)

    def _joint(self, position: int, begin: int) -> Fault | None:
        """The joint before the token, when it lies inside a pretoken."""
        if position == 0 or begin in self.divided.is_start or begin == self.divided.size:
            return None
        left, right = self.ids[position - 1 : position + 1]
        if self.automaton.allowed(left, right):
            return None
        pair = visible_tokens(self.tokenizer, (left, right))
        made = visible_tokens(self.tokenizer, self._bpe(left, right))
        return Fault(position, f"{pair} would be {made}")

    def _whole(self, position: int, begin: int, end: int) -> Fault | None:
        """`ignore_merges`: the pretoken that ends with this token, when it is in the vocabulary;
        and a token that no merge reaches, when it is not the whole pretoken."""
        starts = self.divided.starts
        if begin >= self.divided.size:
            return None
        number = bisect_right(starts, begin) - 1
        low = starts[number]
        high = (*starts, self.divided.size)[number + 1]
        token = self.ids[position]
        if not self.automaton.derivation.reachable[token] and (low, high) != (begin, end):
            reason = f"{self._shown(position)} is legal only as a whole pretoken, not in "
            return Fault(position, reason + visible(self.data[low:high]))
        if high == end and low < begin and self.data[low:high] in self._whole_spellings():
            reason = f"the pretoken {visible(self.data[low:high])} is a token of its own"
            return Fault(position, f"{reason} (ignore_merges)")
        return None

    def _whole_spellings(self) -> set[bytes]:
        return {self.tokenizer.token_bytes(token) for token in self.automaton.whole.tokens}

    def _unreachable(self, position: int) -> str:
        token = self.ids[position]
        if self.tokenizer.description.tokens[token] is None:
            return f"id {token} is no token that BPE could make"
        if token in self.tokenizer.description.byte_tokens.values():
            return f"byte token {self._shown(position)} where the character has a token of its own"
        missing = [symbol for symbol in self._symbols(token) if symbol not in self._base]
        if missing:
            return f"{self._shown(position)} is unreachable: no token spells {visible(missing[0])}"
        made = visible_tokens(self.tokenizer, self._bpe(token))
        return f"{self._shown(position)} is unreachable: BPE never makes it, but {made}"

    def _bpe(self, *tokens: int) -> list[int]:
        """What BPE makes of the tokens' bytes as one pretoken."""
        fallback = self.tokenizer.description.byte_tokens.values()
        symbols = (
            [token] if token in fallback else [self._base[s] for s in self._symbols(token)]
            for token in tokens
        )
        return bpe(self.automaton.derivation, [symbol for some in symbols for symbol in some])

    @property
    def _base(self) -> dict[bytes, int]:
        return self.tokenizer.description.base

    def _symbols(self, *tokens: int) -> list[bytes]:
        """The base symbols that the tokens' bytes are made of."""
        data = b"".join(map(self.tokenizer.token_bytes, tokens))
        if self.tokenizer.description.byte_level:
            return [bytes([byte]) for byte in data]
        return [character.encode("utf-8") for character in data.decode("utf-8")]

    def _shown(self, position: int) -> str:
        return visible(self.tokenizer.token_bytes(self.ids[position]))
