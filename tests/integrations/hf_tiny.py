"""A small tokenizer, tiny random models over it, and batches, for the tests of transformers."""

from __future__ import annotations

import pytest
import torch
import transformers

from bpe_automata import constrain
from bpe_automata.integrations.transformers import ConstraintLogitsProcessor, padded
from bpe_automata.testing import byte_level, small_tokenizer

LETTERS = list('abcdemntrufl{}":,Ġ0123456789')
"""As a ByteLevel tokenizer spells them: `Ġ` is the space."""
MERGES = ["a b", "ab c", "t r", "tr u", "tru e", "f a", "l e", "n a", '" :', '": ,', "n n", "1 2"]
TOKENS = [*LETTERS, *(merge.replace(" ", "") for merge in MERGES)]
TOKENIZER = small_tokenizer(
    TOKENS,
    [tuple(merge.split()) for merge in MERGES],
    byte_level(),
    added=["<end>", "<stop>", "<pad>"],
)
END, STOP, PAD = len(TOKENS), len(TOKENS) + 1, len(TOKENS) + 2
N = TOKENIZER.n_ids
PADDING = 5
"""Logits beyond the tokenizer's ids, as padded vocabularies have them."""

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
ON = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])

PROMPTS = ["ab ", "a,b,", "0", "trf a0", "ab c,ab}"]
REGEXES = [
    r'\{"name":(abc|true){1,3},"a":[0-9]{2}\}',
    r"(true|false|null), [0-9]{1,3}(abc)?",
    r"\{(ab|, )*\}",
    r"[a-d]{2}, true",
    r'"l":(12|00)*"',
]


def constraint(regex, ends=(END,), method="canonical"):
    return constrain(TOKENIZER, regex, method=method, eos_ids=ends)


CONSTRAINTS = [constraint(regex) for regex in REGEXES]

COMMON = {"vocab_size": N + PADDING, "bos_token_id": None, "eos_token_id": END}
SIZES = {"hidden_size": 16, "num_hidden_layers": 2}
LLAMA = {
    **{**COMMON, **SIZES, "intermediate_size": 16, "num_attention_heads": 2},
    **{"num_key_value_heads": 1, "pad_token_id": PAD, "max_position_embeddings": 128},
    "initializer_range": 0.5,
}
GPT2 = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 128, "initializer_range": 0.5}
KINDS = {
    "llama": ("Llama", LLAMA),
    "gpt2": ("GPT2", COMMON | GPT2),
    "mistral": ("Mistral", LLAMA | {"sliding_window": 4}),  # every test outgrows it
    "mamba": ("Mamba", COMMON | SIZES | {"state_size": 4, "pad_token_id": PAD}),
}


def tiny(kind="llama", seed=0):
    """In float64, so that one pass over several ids and several passes round alike enough."""
    name, options = KINDS[kind]
    config = getattr(transformers, f"{name}Config")(**options)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return transformers.AutoModelForCausalLM.from_config(config).double().eval()


def batch(numbers):
    """Prompts and constraints by number, padded on the left."""
    ids = [TOKENIZER.encode(PROMPTS[number % len(PROMPTS)]) for number in numbers]
    return padded(ids, PAD), [CONSTRAINTS[number % len(CONSTRAINTS)] for number in numbers]


def processor(numbers, **options):
    inputs, constraints = batch(numbers)
    return inputs, ConstraintLogitsProcessor(constraints, **inputs, **options)
