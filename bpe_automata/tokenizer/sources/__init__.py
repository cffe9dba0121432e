"""Readers of every kind of tokenizer file. The way in is `read_path`, or `read_named` for the
tokenizers that are known by a name (`names`); `read_encoding` for the encodings of tiktoken. Each
reader gives a `Source`. What begins with `at_` says what would be read: see `tokenizer.kept`.

`detect` tells the kinds apart; `json_file`, `sentencepiece_model`, `tiktoken_ranks`, `tekken`,
`gguf_file` and `encodings` read one each; `named` knows which packages bring which tokenizer.
"""

from typing import TYPE_CHECKING

from bpe_automata.lazy import on_demand

if TYPE_CHECKING:
    from bpe_automata.tokenizer.sources.detect import at_path, read_path
    from bpe_automata.tokenizer.sources.encodings import (
        at_encoding,
        at_named_encoding,
        is_encoding,
        read_encoding,
    )
    from bpe_automata.tokenizer.sources.named import TABLE, Named, at_name, names, read_named

__all__ = [
    "TABLE",
    "Named",
    "at_encoding",
    "at_name",
    "at_named_encoding",
    "at_path",
    "is_encoding",
    "names",
    "read_encoding",
    "read_named",
    "read_path",
]

_HOMES = {
    "tokenizer.sources.detect": "at_path read_path",
    "tokenizer.sources.encodings": "at_encoding at_named_encoding is_encoding read_encoding",
    "tokenizer.sources.named": "TABLE Named at_name names read_named",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, _HOMES)
