"""Random adversarial text, and other ids for the same text, many and fast."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from bpe_automata import Tokenizer
from bpe_automata.testing import ADVERSARIAL
from experiments.shared.walks import adds

MOST_PIECES, MOST_TOKENS_CHANGED, LONGEST_TOKEN = 14, 4, 16
FOREIGN: tuple[str, ...] = (
    *("\u2581", "\u2581\u2581", "<0x0A>", "<0xE6>", "<0x", "\ue000", "\U0010fffd"),
    *("\u212b", "\u2126", "ﬁ", "ẛ̣", "\u0344", "\u0958", "क", "़", "ि", "्", "அ", "ா", "ำ"),
    *("ᄒ", "ᅡ", "ᆫ", "각", "ᆨ", "が", "か\u3099", "ﬀ", "\u0323", "\u0307", "q\u0307\u0323"),
    *("\u0378", "𝔘", "ꙮ", "🜁", "\x85", "\x1b", "\x0b", "\x1c", "\u2009", "\u180e"),
)
"""What normalizers, metaspaces and byte fallback trip over."""


class Adversary:
    """Draws from one tokenizer with one seed: four in five pieces are common to all tokenizers, the
    others are its own tokens, its added tokens, and their halves."""

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
        """Up to `MOST_PIECES` pieces."""
        count = self.rng.randrange(1, MOST_PIECES + 1)
        return "".join(self.rng.choice(self.rng.choice(self.groups)) for _ in range(count))

    def texts(self, n: int) -> Iterator[str]:
        """`n` of them."""
        return (self.text() for _ in range(n))

    def resegmented(self, ids: Sequence[int], text: str) -> list[int]:
        """Other ids for the same bytes: on a few tokens in a row, or throughout. Sometimes the
        space that the tokenizer puts before a text is lost, or the ids spell `text` as it was
        before it was normalized (`ids` are its own)."""
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
            data = adds(self.tokenizer, changed[0], ()) + data[len(own) :]
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
