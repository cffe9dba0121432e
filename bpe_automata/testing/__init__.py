"""Hypothesis strategies for testing tokenizers, your own among them.

    from hypothesis import given
    from bpe_automata.testing import texts

    @given(texts(my_tokenizer))
    def test_encode_is_canonical(text): ...

`texts`: adversarial text; `resegmentations`: other ids for the same bytes; `finite_regexes` and
`cyclic_regexes`: small regexes over given pieces of text; `byte_dfas`: small random automata;
`merge_tables`, `pretokenizers`, `split_patterns` and `bpe_tokenizers`: small random tokenizers,
complete with what goes wrong;
`trained_tokenizers`: ones trained by `tokenizers`, of every pipeline that is modelled, and
`tokenizer_files`: the same before anything is refused; `small_tokenizer`: one that is written down.

Raises MissingDependencyError where hypothesis is not installed.
"""

from bpe_automata.errors import MissingDependencyError

try:
    import hypothesis as _hypothesis  # noqa: F401
except ImportError as error:
    raise MissingDependencyError(
        "bpe_automata.testing needs hypothesis; install it with: pip install hypothesis"
    ) from error

from bpe_automata.testing.automata import byte_dfas
from bpe_automata.testing.regexes import cyclic_regexes, finite_regexes
from bpe_automata.testing.segmentations import resegmentations
from bpe_automata.testing.splits import pretokenizers, split_patterns
from bpe_automata.testing.tables import MergeTable, merge_tables
from bpe_automata.testing.texts import ADVERSARIAL, texts
from bpe_automata.testing.tokenizers import bpe_tokenizers
from bpe_automata.testing.trained import REFUSALS, tokenizer_files, trained_tokenizers
from bpe_automata.testing.written import (
    added_token,
    byte_level,
    byte_spelling,
    sequence,
    small_tokenizer,
    split,
)

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
