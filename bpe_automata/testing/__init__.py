"""Hypothesis strategies for testing tokenizers, including your own.

    from hypothesis import given
    from bpe_automata.testing import texts

    @given(texts(my_tokenizer))
    def test_encode_is_canonical(text): ...

`texts`: adversarial text; `resegmentations`: other ids for the same bytes; `finite_regexes` and
`cyclic_regexes`: small regexes over given strings; `byte_dfas`: small random automata;
`merge_tables`, `pretokenizers`, `split_patterns` and `bpe_tokenizers`: small random tokenizers with
all known difficulties; `trained_tokenizers`: tokenizers trained by `tokenizers`, with every
pipeline that is modelled, and `tokenizer_files`: their files, including those that are refused;
`small_tokenizer`: a tokenizer from an explicit vocabulary.

Raises MissingDependencyError where hypothesis is not installed.
"""

from bpe_automata.errors import MissingDependencyError

try:
    import hypothesis as _hypothesis  # noqa: F401
except ImportError as error:
    raise MissingDependencyError(
        "bpe_automata.testing needs hypothesis; install it with: pip install hypothesis"
    ) from error

from bpe_automata.testing._inputs import (
    ADVERSARIAL,
    byte_dfas,
    cyclic_regexes,
    finite_regexes,
    resegmentations,
    texts,
)
from bpe_automata.testing._small import (
    MergeTable,
    added_token,
    bpe_tokenizers,
    byte_level,
    byte_spelling,
    merge_tables,
    pretokenizers,
    sequence,
    small_tokenizer,
    split,
    split_patterns,
)
from bpe_automata.testing._trained import REFUSALS, tokenizer_files, trained_tokenizers

__all__ = [
    "ADVERSARIAL",
    "REFUSALS",
    "MergeTable",
    "added_token",
    "bpe_tokenizers",
    "byte_dfas",
    "byte_level",
    "byte_spelling",
    "cyclic_regexes",
    "finite_regexes",
    "merge_tables",
    "pretokenizers",
    "resegmentations",
    "sequence",
    "small_tokenizer",
    "split",
    "split_patterns",
    "texts",
    "tokenizer_files",
    "trained_tokenizers",
]
