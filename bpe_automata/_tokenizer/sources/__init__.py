"""Readers of every kind of tokenizer file; each returns a `Source`.

`read_path` reads a file or folder, `read_named` a tokenizer that is known by its name (`names`),
`read_encoding` a `tiktoken.Encoding`. The `..._origin` functions give an `Origin`: what would be
read, for the disk cache (`_tokenizer.stored`).

`detect` tells the kinds of files apart; `tokenizer_json` (with `json_vocabulary`,
`json_normalizer`, `json_pretokenizer`), `sentencepiece`, `tiktoken` and `gguf` read one kind each;
`named` knows which packages contain which tokenizer, `published` what models publish beside their
files. `implied_merges` makes merge tables for vocabularies that list none.
"""
