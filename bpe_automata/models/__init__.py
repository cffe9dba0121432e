"""Floor 2: small models that give logits, for tests and for reading. Anything callable that takes
ids and gives logits will do in their place; see `bpe_automata.sampling.Model`."""

from bpe_automata.models.characters import character_tokenizer
from bpe_automata.models.compression import CompressionModel
from bpe_automata.models.ngram import NGramModel

__all__ = ["CompressionModel", "NGramModel", "character_tokenizer"]
