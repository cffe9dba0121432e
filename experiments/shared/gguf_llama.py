"""A llama-architecture GGUF file, dequantized into a plain transformers folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments.shared import gguf_tensors
from experiments.shared.gguf_tensors import Fields

_BLOCK_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_TOP_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}


def transformers_name(gguf_name: str) -> str:
    """`blk.3.attn_q.weight` -> `model.layers.3.self_attn.q_proj.weight`."""
    return gguf_tensors.transformers_name(gguf_name, _TOP_NAMES, _BLOCK_NAMES)


def undo_rotary_permutation(weight: np.ndarray, n_heads: int) -> np.ndarray:
    """Rows of a q or k projection, from GGUF's order back to that of transformers.

    llama.cpp rotates the coordinates (0, 1), (2, 3), ... of a head, transformers (i, i + d/2); the
    converter to GGUF interleaves the two halves of each head's rows, and this undoes it.
    `weight`: float[n_heads * d, n_in].
    """
    n_out, n_in = weight.shape
    pairs = weight.reshape(n_heads, n_out // n_heads // 2, 2, n_in)
    return pairs.swapaxes(1, 2).reshape(n_out, n_in)


def llama_config(field: Fields, *, tied: bool, n_ids: int) -> dict[str, Any]:
    """The config.json of the model; `field` maps GGUF metadata keys to their values."""
    n_heads = field["llama.attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": n_ids,
        "hidden_size": field["llama.embedding_length"],
        "intermediate_size": field["llama.feed_forward_length"],
        "num_hidden_layers": field["llama.block_count"],
        "num_attention_heads": n_heads,
        "num_key_value_heads": field.get("llama.attention.head_count_kv", n_heads),
        "max_position_embeddings": field["llama.context_length"],
        "rms_norm_eps": field["llama.attention.layer_norm_rms_epsilon"],
        "rope_theta": field.get("llama.rope.freq_base", 10000.0),
        **gguf_tensors.special_ids(field),
        "tie_word_embeddings": tied,
        "dtype": "float32",
    }


def convert(source: Path, folder: Path) -> None:
    """Write `source` (a llama GGUF) into the existing `folder` as config.json + safetensors.

    Weights are float32. Raises `MissingFileError` if the file is not a llama GGUF.
    """
    field, found = gguf_tensors.read(source, "llama")
    tensors = {transformers_name(name): _restored(name, values, field) for name, values in found}
    n_ids = tensors["model.embed_tokens.weight"].shape[0]
    config = llama_config(field, tied="lm_head.weight" not in tensors, n_ids=n_ids)
    gguf_tensors.save(folder, config, tensors)


def _restored(name: str, weight: np.ndarray, field: Fields) -> np.ndarray:
    n_heads = field["llama.attention.head_count"]
    if name.endswith("attn_k.weight"):
        n_heads = field.get("llama.attention.head_count_kv", n_heads)
    elif not name.endswith("attn_q.weight"):
        return weight
    return np.ascontiguousarray(undo_rotary_permutation(weight, n_heads))
