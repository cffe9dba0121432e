"""Readers of every kind of tokenizer file. The way in is `read_path`, or `read_named` for the
tokenizers that are known by a name (`names`); `read_encoding` and `read_encoding_named` for the
encodings of tiktoken. Each reader gives a `Source`.

`detect` tells the kinds apart; `json_file`, `sentencepiece_model`, `tiktoken_ranks`, `tekken` and
`gguf_file` read one each; `named` knows which packages bring which tokenizer.
"""

from bpe_automata.tokenizer.sources.detect import read_path
from bpe_automata.tokenizer.sources.named import TABLE, Named, names, read_named
from bpe_automata.tokenizer.sources.tiktoken_ranks import (
    is_encoding,
    read_encoding,
    read_encoding_named,
)

__all__ = [
    "TABLE",
    "Named",
    "is_encoding",
    "names",
    "read_encoding",
    "read_encoding_named",
    "read_named",
    "read_path",
]
