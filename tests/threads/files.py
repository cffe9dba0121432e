"""Small tokenizers, each as the content of its `tokenizer.json`, that can spell any text."""

from __future__ import annotations

import json
from typing import Any

import tokenizers
from hypothesis import HealthCheck, Phase, given, settings
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, trainers

from bpe_automata.testing import tokenizer_files
from bpe_automata.testing.trained import accepted

_TEXT = """the cat sat on the mat. the dog barks, and the cats sleep: "a" is 1, "b" is null.
{"a": "abab", "b": 1} {"a": "", "b": null} boolean: true, false or maybe; 12 aab ba é A
café latte, café noir; 日本 日本語; 2012-12-21, it's the cat's  \n\n the end
""".splitlines()
_BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
_DIGITS = pre_tokenizers.Sequence(
    [
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
    ]
)
_PIPELINES = (
    (None, pre_tokenizers.ByteLevel(add_prefix_space=False)),
    (None, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)),
    (None, pre_tokenizers.ByteLevel(add_prefix_space=True)),
    (normalizers.NFC(), pre_tokenizers.ByteLevel(add_prefix_space=False)),
    (normalizers.Lowercase(), _DIGITS),
)
_FEWEST = 40  # ids of a random one: what is smaller spells next to nothing


def trained() -> list[dict[str, Any]]:
    """Of some 500 ids, one for each kind of pipeline."""
    return [_trained(*pipeline, 300 + 60 * k) for k, pipeline in enumerate(_PIPELINES)]


def _trained(normalizer: Any, pretokenizer: Any, size: int) -> dict[str, Any]:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pretokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, show_progress=False, initial_alphabet=_BYTES, min_frequency=1
    )
    tokenizer.train_from_iterator(_TEXT, trainer)
    tokenizer.add_tokens([AddedToken("<|end|>", special=True), AddedToken("the cat")])
    data: dict[str, Any] = json.loads(tokenizer.to_str())
    return data


def random(n: int) -> list[dict[str, Any]]:
    """What `testing.tokenizer_files` draws first, and is accepted and not too small."""
    found: list[dict[str, Any]] = []

    @settings(
        max_examples=n,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(tokenizer_files())
    def collect(data: dict[str, Any]) -> None:
        if len(data["model"]["vocab"]) >= _FEWEST and accepted(data):
            found.append(data)

    collect()
    return found
