"""What a decoding loop gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bpe_automata.decoding.healing import Healing

Reason = Literal["complete", "truncated"]


@dataclass(frozen=True)
class Generation:
    """What a model wrote under a constraint.

    `text`: the completion, without the prompt; `ids`: its ids, without end of sequence.
    `complete`: the text matches the whole regex (and `ids` are canonical, with that method).
    `finish_reason`: "complete" if the model ended the text or nothing could follow, "truncated" if
    it ran out of new tokens. A truncated text may happen to be complete.
    `healing`: the prompt's last ids that were given back, and why; `ids` then begin with what was
    written in their place, `text` does not.
    `log_weight`: natural log of the importance weight, the sum over the steps of the log mass that
    the mask left; None where the loop does not see the mass.
    `passes`: how often the model was called. `forced`: how many ids were not drawn, because no
    other was possible. None where they were not counted.
    """

    text: str
    ids: tuple[int, ...]
    complete: bool
    finish_reason: Reason
    healing: Healing | None = None
    log_weight: float | None = None
    passes: int | None = None
    forced: int | None = None
