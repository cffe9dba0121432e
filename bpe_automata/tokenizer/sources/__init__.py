"""Readers of every kind of tokenizer file; each returns a `Source`.

`path_origin` is for a file or folder, `name_origin` for a tokenizer that is known by its name
(`names`), `encoding_origin` for a `tiktoken.Encoding`. Each gives an `Origin`: what would be read,
with the key under which the disk cache knows it (`tokenizer.stored`), and how to read it.

`detect` tells the kinds of files apart; `tokenizer_json` (with `json_vocabulary`,
`json_normalizer`, `json_pretokenizer`), `sentencepiece`, `tiktoken` and `gguf` read one kind each;
`named` knows which packages contain which tokenizer, `published` what models publish beside their
files. `implied_merges` makes merge tables for vocabularies that list none.
"""
