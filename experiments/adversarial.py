"""Random adversarial text, and other ids for the same text, many and fast."""

from __future__ import annotations

import random
from collections.abc import Sequence

from bpe_automata import Tokenizer
from bpe_automata.testing import ADVERSARIAL

MOST_PIECES, MOST_TOKENS_CHANGED, LONGEST_TOKEN = 14, 4, 16


class Adversary:
    """Draws from one tokenizer with one seed: `pieces` are what text is joined from."""

    def __init__(self, tokenizer: Tokenizer, rng: random.Random) -> None:
        self.tokenizer, self.rng = tokenizer, rng
        added = [token.content for token in tokenizer.description.added]
        self.pieces = [*ADVERSARIAL, *added, *(text[: len(text) // 2] for text in added)]
        self.ids_of: dict[bytes, list[int]] = {}
        for token, spelled in enumerate(tokenizer.spellings):
            if spelled:
                self.ids_of.setdefault(spelled, []).append(token)

    def text(self) -> str:
        """Up to `MOST_PIECES` pieces."""
        return "".join(self.rng.choices(self.pieces, k=self.rng.randrange(1, MOST_PIECES + 1)))

    def resegmented(self, ids: Sequence[int]) -> list[int]:
        """Other ids for the same bytes: on a few tokens in a row, or throughout."""
        first, last = 0, len(ids)
        if ids and self.rng.random() < 0.7:
            first = self.rng.randrange(len(ids))
            last = min(last, first + self.rng.randrange(1, MOST_TOKENS_CHANGED + 1))
        data = b"".join(map(self.tokenizer.token_bytes, ids[first:last]))
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
