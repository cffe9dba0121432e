"""Tiny random models of transformers over the tokenizer of these tests, and batches."""

from contextlib import contextmanager

import pytest
import tokenizers
import torch
import transformers
from served import END, PAD, V, constraint, tokenizer

from bpe_automata.integrations.transformers import ConstraintLogitsProcessor, padded

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
ON = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])

PROMPTS = ["ab ", "trf a0", "0", "a b ", "ab c yes "]
REGEXES = [
    "name (abc|yes){1,3} a [0-9]{2}",
    "(yes|no|null) [0-9]{1,3}(abc)?",
    "x(ab| )*x",
    "[a-d]{2} yes",
    "de (12|00)*z",
]
CONSTRAINTS = [constraint(regex) for regex in REGEXES]

COMMON = {"vocab_size": V, "bos_token_id": None, "eos_token_id": END}
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


def encoder_decoder():
    sizes = {"d_model": 8, "d_ff": 8, "num_layers": 1, "num_heads": 1, "d_kv": 8}
    config = transformers.T5Config(vocab_size=V, decoder_start_token_id=0, **sizes)
    return transformers.T5ForConditionalGeneration(config).eval()


def hosted(**names):
    """The tokenizer as transformers has it. names: `eos_token="<end>"` and the like."""
    backend = tokenizers.Tokenizer.from_str(tokenizer().to_json())
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **names)


def processor(numbers):
    """Prompts by number, padded on the left, and the processor of their constraints."""
    inputs = padded([tokenizer().encode(PROMPTS[k % len(PROMPTS)]) for k in numbers], PAD)
    constraints = [CONSTRAINTS[k % len(CONSTRAINTS)] for k in numbers]
    return inputs, ConstraintLogitsProcessor(constraints, **inputs)


@contextmanager
def counted(model):
    """The passes of the model inside, a list that grows."""
    passes = []
    with model.register_forward_pre_hook(lambda *_: passes.append(1)):
        yield passes
