"""Floor 1: what a tokenizer does, read completely or refused.

`Tokenizer` reads one; `Description` is what it is made of; `derivation` runs BPE on each token;
`alphabet`, `splitter` and `boundaries` model the pretokenizer.
"""

from bpe_automata.tokenizer.description import AddedToken, Description, SplitRule
from bpe_automata.tokenizer.tokenizer import AddedTokens, Tokenizer

__all__ = ["AddedToken", "AddedTokens", "Description", "SplitRule", "Tokenizer"]
