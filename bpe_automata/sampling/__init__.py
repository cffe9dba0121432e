"""Floor 4: decoding loops for any model that gives logits, and faithful sampling."""

from bpe_automata.sampling.logits import Model, draw, log_probabilities
from bpe_automata.sampling.loop import decode

__all__ = ["Model", "decode", "draw", "log_probabilities"]
