"""Readers of every kind of tokenizer file; each returns a `Source`.

`read_path` reads a file or folder, `read_named` a tokenizer that is known by its name (`names`),
`read_encoding` a `tiktoken.Encoding`. The `..._origin` functions give an `Origin`: what would be
read, for the disk cache (`tokenizer.stored`).

`detect` tells the kinds of files apart; `tokenizer_json` (with `json_vocabulary`,
`json_normalizer`, `json_pretokenizer`), `sentencepiece`, `tiktoken` and `gguf` read one kind each;
`named` knows which packages contain which tokenizer, `published` what models publish beside their
files. `implied_merges` makes merge tables for vocabularies that list none.
"""

from typing import TYPE_CHECKING

from bpe_automata.lazy import on_demand

if TYPE_CHECKING:
    from bpe_automata.tokenizer.sources.detect import path_origin, read_path
    from bpe_automata.tokenizer.sources.named import (
        TABLE,
        Named,
        encoding_origin,
        is_encoding,
        name_origin,
        named_encoding_origin,
        names,
        read_encoding,
        read_named,
    )

__all__ = [
    "TABLE",
    "Named",
    "encoding_origin",
    "is_encoding",
    "name_origin",
    "named_encoding_origin",
    "names",
    "path_origin",
    "read_encoding",
    "read_named",
    "read_path",
]

_HOMES = {
    "tokenizer.sources.detect": "path_origin read_path",
    "tokenizer.sources.named": "TABLE Named encoding_origin is_encoding name_origin "
    "named_encoding_origin names read_encoding read_named",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, _HOMES)
