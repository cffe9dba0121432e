"""Small models that give logits, for tests and as examples. Anything callable that takes
ids and gives logits can replace them; see `bpe_automata.sampling.Model`.
"""

from bpe_automata.models._examples import CompressionModel, NGramModel, character_tokenizer

__all__ = ["CompressionModel", "NGramModel", "character_tokenizer"]
