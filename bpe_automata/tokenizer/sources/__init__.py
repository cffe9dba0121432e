"""Readers of every kind of tokenizer file; each returns a `Source`.

`path_origin` is for a file or folder, `name_origin` for one of the tokenizers with a name
(`names`), `encoding_origin` for a `tiktoken.Encoding`. Each returns an `Origin`, which has the key
of the tokenizer in the disk cache (`tokenizer.stored`), and the function that reads it.

`detect` finds out the kind of a file; `tokenizer_json` (with `json_vocabulary`, `json_normalizer`,
`json_pretokenizer`), `sentencepiece`, `tiktoken` and `gguf` read one kind each. `named` lists which
packages contain which tokenizer, and `published` what models publish in addition to their files.
`implied_merges` makes merge tables for vocabularies that list none.
"""
