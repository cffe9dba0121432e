"""The tensors and the metadata of a GGUF file, and the transformers folder that they become.

transformers can read some GGUF files itself, but it takes 12 s and more each time and the result
cannot be saved. A folder (config.json + safetensors) loads in a second. Quantized weights stay what
they are: dequantizing gives the values that the quantized file stands for, not the values of the
model before quantization.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bpe_automata.errors import MissingFileError
from experiments.run.files import require

Fields = dict[str, Any]


def read(source: Path, architecture: str) -> tuple[Fields, Iterator[tuple[str, np.ndarray]]]:
    """(metadata by key, (name, float32 values) of each tensor, one at a time).

    Raises `MissingFileError` if the file holds a model of another architecture.
    """
    gguf = require("gguf")
    reader = gguf.GGUFReader(source)
    fields = {key: value.contents() for key, value in reader.fields.items() if _is_wanted(key)}
    found = fields.get("general.architecture")
    if found != architecture:
        message = f"{source} holds a model of type {found!r}, expected {architecture!r}"
        raise MissingFileError(message)
    tensors = (
        (tensor.name, np.asarray(gguf.dequantize(tensor.data, tensor.tensor_type), np.float32))
        for tensor in reader.tensors
    )
    return fields, tensors


def _is_wanted(key: str) -> bool:
    """The tokenizer's long lists are skipped: reading them takes seconds and nobody asks here."""
    short = ("_token_id", "add_bos_token")
    return not key.startswith("tokenizer.") or key.endswith(short)


def transformers_name(gguf_name: str, top: Mapping[str, str], block: Mapping[str, str]) -> str:
    """`blk.3.attn_q.weight` -> `model.layers.3.self_attn.q_proj.weight`.

    top: whole names; block: names inside a layer. Raises `MissingFileError` for any other.
    """
    if gguf_name in top:
        return top[gguf_name]
    parts = gguf_name.split(".")
    if len(parts) != 4 or parts[0] != "blk" or parts[2] not in block:
        raise MissingFileError(f"tensor {gguf_name!r} is not part of a model of this kind")
    return f"model.layers.{parts[1]}.{block[parts[2]]}.{parts[3]}"


def special_ids(fields: Fields) -> dict[str, int | None]:
    """The ids that config.json names."""
    names = {"bos": "bos", "eos": "eos", "pad": "padding"}
    return {
        f"{ours}_token_id": fields.get(f"tokenizer.ggml.{theirs}_token_id")
        for ours, theirs in names.items()
    }


def save(folder: Path, config: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    """Write config.json and model.safetensors into the existing folder."""
    save_file = require("safetensors.numpy").save_file
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
