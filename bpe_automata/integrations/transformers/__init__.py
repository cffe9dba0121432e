"""Hugging Face transformers: the constraint inside `model.generate`, and around it.

    processor = ConstraintLogitsProcessor(constraint, inputs.input_ids, inputs.attention_mask)
    model.generate(**inputs, logits_processor=[processor])

`generate` takes texts instead of ids, and says how each one ended. `ForcedDecoding` spares the
model the ids about which there is no choice; `prefix_allowed_tokens_fn` is the constraint as a
function; `CausalModel` is a model as a function; `only_plain_batching` refuses the one way of
generating in which transformers drops logits processors.
"""

from bpe_automata.errors import MissingDependencyError

try:
    import torch  # noqa: F401
    import transformers  # noqa: F401
except ImportError as error:
    message = f"{error.name} is missing; install it with: pip install 'bpe-automata[torch]'"
    raise MissingDependencyError(message) from error

from bpe_automata.decoding.matcher import Generation
from bpe_automata.integrations.transformers._forced import ForcedDecoding
from bpe_automata.integrations.transformers._generate import generate
from bpe_automata.integrations.transformers._model import CausalModel
from bpe_automata.integrations.transformers._processor import (
    ConstraintLogitsProcessor,
    only_plain_batching,
    prefix_allowed_tokens_fn,
)
from bpe_automata.integrations.transformers._rows import padded

__all__ = [
    "CausalModel",
    "ConstraintLogitsProcessor",
    "ForcedDecoding",
    "Generation",
    "generate",
    "only_plain_batching",
    "padded",
    "prefix_allowed_tokens_fn",
]
