"""Decoding loops for any model that gives logits, and faithful sampling.

`decode` draws one text under the mask. It and `weighted` do not sample from the model's
distribution conditioned on the language, but their samples have weights that correct for this (see
`estimate`, `distribution`, `log_normaliser`). `smc` spends its sequences better; `adaptive` needs
no masks; `rejection` is exact where it is fast enough. `decode_allowed` and `decode_without` obey a
`banning.AppliedBan`: by the mask, or by rolling back banned text.
"""

from bpe_automata.sampling._banned import BannedGeneration, Rollback, decode_allowed
from bpe_automata.sampling._logits import Model, draw, log_probabilities
from bpe_automata.sampling._loop import decode
from bpe_automata.sampling._rejection import Adaptive, Rejections, adaptive, rejection
from bpe_automata.sampling._rollback import decode_without
from bpe_automata.sampling._smc import Population, smc, weighted
from bpe_automata.sampling._weights import (
    Estimate,
    LogNormaliser,
    distribution,
    effective_sample_size,
    estimate,
    log_normaliser,
    log_weights,
    normalised,
)

__all__ = [
    "Adaptive",
    "BannedGeneration",
    "Estimate",
    "LogNormaliser",
    "Model",
    "Population",
    "Rejections",
    "Rollback",
    "adaptive",
    "decode",
    "decode_allowed",
    "decode_without",
    "distribution",
    "draw",
    "effective_sample_size",
    "estimate",
    "log_normaliser",
    "log_probabilities",
    "log_weights",
    "normalised",
    "rejection",
    "smc",
    "weighted",
]
