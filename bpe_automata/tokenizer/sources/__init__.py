"""Readers of every kind of tokenizer file. The way in is `read_path`, or `read_named` for the
tokenizers that are known by a name (`names`); each reader gives a `Source`.

`detect` tells the kinds apart; `json_file`, `sentencepiece_model`, `tiktoken_ranks`, `tekken` and
`gguf_file` read one each; `named` knows which packages bring which tokenizer.
"""

from bpe_automata.tokenizer.sources.detect import read_path
from bpe_automata.tokenizer.sources.named import TABLE, Named, names, read_named

__all__ = ["TABLE", "Named", "names", "read_named", "read_path"]
