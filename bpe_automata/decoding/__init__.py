"""Floor 3: constraints and the matcher that follows them; `verify` holds them against `encode`,
`explain` says why ids are not canonical."""

from typing import TYPE_CHECKING

from bpe_automata.lazy import on_demand

if TYPE_CHECKING:
    from bpe_automata.decoding.batches import batch_masks
    from bpe_automata.decoding.chopping import chop
    from bpe_automata.decoding.constraint import Constraint, Method, constrain
    from bpe_automata.decoding.drafts import accept, checked_draft, draft_masks
    from bpe_automata.decoding.explanation import Explanation, explain
    from bpe_automata.decoding.forced import Forced, forced_bytes, forced_tokens
    from bpe_automata.decoding.healing import Healed, heal
    from bpe_automata.decoding.matcher import Generation, Healing, Matcher, matcher_of
    from bpe_automata.decoding.removed import Removed
    from bpe_automata.decoding.token_table import TokenTable
    from bpe_automata.decoding.verification import Verification, verify

__all__ = [
    "Constraint",
    "Explanation",
    "Forced",
    "Generation",
    "Healed",
    "Healing",
    "Matcher",
    "Method",
    "Removed",
    "TokenTable",
    "Verification",
    "accept",
    "batch_masks",
    "checked_draft",
    "chop",
    "constrain",
    "draft_masks",
    "explain",
    "forced_bytes",
    "forced_tokens",
    "heal",
    "matcher_of",
    "verify",
]

_HOMES = {
    "decoding.batches": "batch_masks",
    "decoding.chopping": "chop",
    "decoding.constraint": "Constraint Method constrain",
    "decoding.drafts": "accept checked_draft draft_masks",
    "decoding.explanation": "Explanation explain",
    "decoding.forced": "Forced forced_bytes forced_tokens",
    "decoding.healing": "Healed heal",
    "decoding.matcher": "Generation Healing Matcher matcher_of",
    "decoding.removed": "Removed",
    "decoding.token_table": "TokenTable",
    "decoding.verification": "Verification verify",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, _HOMES)
