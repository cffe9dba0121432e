"""A tiny tokenizer, a model of nearly no size, and the command line in this process."""

from __future__ import annotations

import pytest
from support import tiny_llama

from bpe_automata._cli import main
from bpe_automata.testing import byte_level, byte_spelling, small_tokenizer

LETTERS = "abcdefghijklmnopqrstuvwxyz"
MERGES = [("o", "r"), ("Ġ", "or"), ("Ġor", "d"), ("e", "r"), ("Ġord", "er")]


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    """A tokenizer.json: letters, space, newline and ` order`; `xyz` is never made."""
    bytes_ = [byte_spelling(letter.encode()) for letter in f"{LETTERS} \n"]
    vocabulary = [*bytes_, *("".join(pair) for pair in MERGES), "xyz"]
    tokenizer = small_tokenizer(vocabulary, MERGES, byte_level(use_regex=True), ["<eos>"])
    folder = tmp_path_factory.mktemp("tokenizer")
    (folder / "tokenizer.json").write_text(tokenizer.to_json(), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<eos>"}', encoding="utf-8")
    return str(folder / "tokenizer.json")


@pytest.fixture
def run(capsys):
    """Run in this process: (exit code, stdout, stderr)."""

    def call(*argv: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(argv)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture(scope="module")
def model(tmp_path_factory, path) -> str:
    """A llama of nearly no size over the tokenizer, as a local folder."""
    heads = {"num_attention_heads": 1, "num_key_value_heads": 1}
    made = tiny_llama(0, 40, size=8, **heads, eos_token_id=34, bos_token_id=None)
    folder = tmp_path_factory.mktemp("model")
    made.save_pretrained(folder)
    return str(folder)
