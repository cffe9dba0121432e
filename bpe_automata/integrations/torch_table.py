"""A token table on any device of torch: pure functions of states, ids and logits.

    states = table.begin(batch)
    ids = choose(table.mask(states, logits))
    states = table.advance(states, ids)

All rows go at once, nothing is kept between calls, and nothing waits for the device except the
check of the logits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bpe_automata._arguments import integer
from bpe_automata._decoding.token_table import TokenTable
from bpe_automata.errors import (
    BufferShapeError,
    LogitsError,
    MissingDependencyError,
    TokenOutOfRangeError,
)

try:
    import torch
except ImportError as error:
    message = f"{error.name} is missing; install it with: pip install 'bpe-automata[torch]'"
    raise MissingDependencyError(message) from error


@dataclass(frozen=True)
class TorchTable:
    """A `TokenTable` on a device. Make one with `of`.

    States are integers [B], 0 (dead) to n_states; any other number counts as 0. A row that has
    nothing to read, because it has ended or is dead, is *finished*: `mask` leaves it the ids
    `ends`, and while `advance` reads those it stays where it is.

    offsets: int64 [n_states + 2], where the transitions of each state begin; symbols: int64
    [m + 1], what they read, the last unused; keys, targets: as in `TokenTable.keys`; longest:
    transitions of one state at most; accepting, finished: bool [n_states + 1]; is_end: bool
    [n_ids + 1].
    """

    table: TokenTable
    offsets: torch.Tensor
    symbols: torch.Tensor
    keys: torch.Tensor
    targets: torch.Tensor
    longest: int
    accepting: torch.Tensor
    finished: torch.Tensor
    is_end: torch.Tensor

    @classmethod
    def of(
        cls,
        table: TokenTable,
        device: torch.device | str = "cpu",
        ends: Iterable[int] | None = None,
    ) -> TorchTable:
        """The table on `device`. ends: what finished rows may go on with; by default the table's
        end-of-sequence ids. Raises TokenOutOfRangeError, ArgumentError."""

        def there(array: np.ndarray) -> torch.Tensor:
            return torch.tensor(array, device=device)

        is_end = np.zeros(table.n_ids + 1, dtype=np.bool_)
        is_end[_checked(table.eos_ids if ends is None else ends, table.n_ids)] = True
        (keys, targets), offsets = table.keys, table.rows.offsets
        return cls(
            table,
            there(offsets),
            there(np.append(table.rows.symbols, 0).astype(np.int64)),
            there(keys),
            there(targets),
            int(np.diff(offsets).max()),
            there(table.accepting),
            there(table.finished),
            there(is_end),
        )

    @property
    def device(self) -> torch.device:
        """Where its tensors are."""
        return self.is_end.device

    def begin(self, batch: int) -> torch.Tensor:
        """int64 [batch]: the start, for each row."""
        return torch.full((batch,), self.table.start, device=self.device)

    def advance(self, states: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """int64 [B]: the state of each row after its id, 0 where that was not allowed. ids:
        integers [B], any; one that is not in the vocabulary is never allowed."""
        at, tokens = self._known(states), ids.long()
        tokens = torch.where((tokens >= 0) & (tokens < self.table.n_ids), tokens, self.table.n_ids)
        wanted = at * (self.table.n_ids + 1) + tokens
        found = torch.searchsorted(self.keys, wanted)
        after = torch.where(self.keys[found] == wanted, self.targets[found], 0).long()
        return torch.where(self.finished[at] & self.is_end[tokens], at, after)

    def allowed(self, states: torch.Tensor, width: int | None = None) -> torch.Tensor:
        """bool [B, width]: what each row may read, and `ends` for finished rows. width: by default
        n_ids; what is beyond those is not allowed. Raises BufferShapeError for a smaller one.

        Every row takes the room of the longest: only then is the size known without asking the
        device."""
        n_ids = self.table.n_ids
        at, wide = self._known(states), n_ids if width is None else width
        if wide < n_ids:
            raise BufferShapeError(f"{wide} columns for a table of {n_ids} ids")
        is_end = torch.nn.functional.pad(self.is_end[:-1], (0, wide - n_ids))
        edge = self.offsets[at, None] + torch.arange(self.longest, device=self.device)
        column = self.symbols[edge.clamp(max=len(self.symbols) - 1)]
        column = torch.where(edge < self.offsets[at + 1, None], column, wide)
        read = torch.zeros(len(at), wide + 1, dtype=torch.bool, device=self.device)
        read.scatter_(1, column, True)
        return read[:, :wide] | (self.finished[at, None] & is_end)

    def mask(
        self,
        states: torch.Tensor,
        logits: torch.Tensor,
        *,
        check: bool = True,
        beams: bool = False,
    ) -> torch.Tensor:
        """logits: floating [B, V], V at least n_ids, on this device; a new tensor with -inf where
        an id is not allowed.

        check: raise LogitsError where an allowed id has NaN or +inf, or all of them have -inf; the
        last not for finished rows, and not for beams, of which some may die while others go on.
        Finished rows without `ends` are refused too. That waits for the device, nothing else does.
        Raises LogitsError for what is no such tensor, BufferShapeError for another number of rows.
        """
        check_shape(logits, len(states), self.table.n_ids)
        allowed = self.allowed(states, logits.shape[1])
        masked = logits.masked_fill(~allowed, -torch.inf)
        if check:
            finished = self.finished[self._known(states)]
            if not beams:
                _check_ends(finished & ~allowed.any(1))
            check_masked(masked, torch.ones_like(finished) if beams else finished)
        return masked

    def _known(self, states: torch.Tensor) -> torch.Tensor:
        """int64 [B], each the number of a state."""
        at = states.long()
        return torch.where((at >= 0) & (at <= self.table.n_states), at, 0)


def _checked(ends: Iterable[int], n_ids: int) -> list[int]:
    found = [integer(token, "an id for finished rows") for token in ends]
    for token in found:
        if not 0 <= token < n_ids:
            raise TokenOutOfRangeError(f"id {token} for finished rows is not in 0 .. {n_ids - 1}")
    return found


def _check_ends(bare: torch.Tensor) -> None:
    """bare: bool [B], finished rows without any id that may fill them. Raises LogitsError."""
    if bare.any():
        row = int(bare.nonzero()[0])
        raise LogitsError(f"row {row} has ended: name the ids that may fill it as `ends`")


# What every mask over logits of torch needs, and the errors where it does not hold. The logits of
# ids that are not allowed are never looked at: whatever they are, the mask covers them.


def check_shape(logits: torch.Tensor, rows: int, n_ids: int) -> None:
    """logits: floating [rows, n_ids or more]. Waits for no device.

    Raises LogitsError for another kind or width, BufferShapeError for another number of rows."""
    shape = tuple(logits.shape)
    if logits.ndim != 2 or shape[1] < n_ids or not logits.is_floating_point():
        raise LogitsError(
            f"logits are {logits.dtype} of shape {shape}: {n_ids} ids need floating "
            f"[rows, {n_ids} or more]"
        )
    if shape[0] != rows:
        raise BufferShapeError(f"{shape[0]} rows of logits for {rows} rows of ids")


NOTHING_LEFT = "every id that is allowed has the logit -inf"


def check_masked(masked: torch.Tensor, spared: torch.Tensor) -> None:
    """masked: floating [rows, V], at least one column, -inf where an id is not allowed; spared:
    bool [rows], rows that may have no mass at all. One reduction, and a wait for the device.

    Raises LogitsError for NaN, +inf, or no mass at an allowed id, naming row and id."""
    best = masked.amax(1)  # NaN if one of them is
    wrong = ~(best < torch.inf) | ((best == -torch.inf) & ~spared)
    if not wrong.any():
        return
    row = int(wrong.nonzero()[0])
    if best[row] == -torch.inf:
        raise LogitsError(
            f"row {row}: {NOTHING_LEFT}: the model, or an option or logits processor before the "
            "mask (min_new_tokens, bad_words_ids, ...), forbids all that the constraint allows"
        )
    first = int((~(masked[row] < torch.inf)).nonzero()[0])
    raise LogitsError(
        f"row {row}: the logit of id {first}, which is allowed, is {float(masked[row, first])}"
    )
