"""A matcher whose state is that after the ids of a row.

Servers reorder rows, restart preempted requests, propose ids and take them back. So no steps are
counted: the state of a row is always derived from the ids that the row has now. The ids of the last
call are kept, and the beginning that both calls share is not read again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bpe_automata._kernels.bits import packed
from bpe_automata.decoding.batches import Asked
from bpe_automata.decoding.constraint import Constraint
from bpe_automata.decoding.drafts import common_length
from bpe_automata.errors import DecodingError, TokenNotAllowedError, TokenOutOfRangeError


class Follower:
    """The masks of one row. `prompt`: the ids before the constrained text.

    `refused`: the error for an id of the last call that the constraint did not allow, or None.
    Raises PromptError if the prompt makes the constraint impossible, DecodingError without an
    end-of-sequence id.
    """

    def __init__(self, constraint: Constraint, prompt: Sequence[int] = ()) -> None:
        if not constraint.eos_ids:
            raise DecodingError("no end-of-sequence id is known: pass eos_ids")
        self._ended_row = packed(constraint.eos_ids, constraint.n_ids)
        self._matcher = constraint.matcher(prompt)
        self._ids: list[int] = []
        self.refused: DecodingError | None = None

    def mask(self, ids: Sequence[int]) -> np.ndarray:
        """int32 [words], new: what may follow the generated `ids`. After an end of sequence, or
        after an id that was not allowed, only end-of-sequence ids may, since a row of -inf would
        make softmax NaN."""
        asked = self.asked(ids)
        found = asked if isinstance(asked, np.ndarray) else asked[0].mask(asked[1])
        return self.row(found).copy()

    def asked(self, ids: Sequence[int]) -> Asked:
        """For a batch: what `found_masks` makes a mask of, from which `row` then makes a row."""
        self._go_to(list(ids))
        return self._ended_row if self.refused else self._matcher.asked()

    def row(self, found: np.ndarray) -> np.ndarray:
        """The row for such a mask; where nothing may follow, the end-of-sequence ids."""
        return found if np.count_nonzero(found) else self._ended_row

    def _go_to(self, ids: list[int]) -> None:
        """Let the matcher read `ids` up to an end of sequence, or up to the id that it refuses."""
        kept = common_length(self._ids, ids)
        self._matcher.rollback(len(self._ids) - kept)
        del self._ids[kept:]
        self.refused = None
        for token in ids[kept:]:
            if self._matcher.is_finished:
                break
            try:
                self._matcher.advance(token)
            except (TokenNotAllowedError, TokenOutOfRangeError) as error:
                self.refused = error
                break
            self._ids.append(token)
