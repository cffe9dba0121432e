"""The default model: dequantized once, equal to what transformers makes of the same file."""

from __future__ import annotations

import numpy as np
import pytest

from bpe_automata.errors import MissingDependencyError, MissingFileError
from experiments import models
from experiments.gguf_llama import transformers_name, undo_rotary_permutation
from experiments.optional import package_file, require


def test_names():
    assert transformers_name("blk.12.attn_k.weight") == "model.layers.12.self_attn.k_proj.weight"
    assert transformers_name("token_embd.weight") == "model.embed_tokens.weight"
    with pytest.raises(MissingFileError, match="ssm_a"):
        transformers_name("blk.0.ssm_a")


def test_rotary_permutation_is_undone(rng):
    """llama.cpp pairs row i of a head with row i + d/2; here that is done row by row."""
    heads, half, n_in = 3, 4, 5
    original = rng.normal(size=(heads * 2 * half, n_in))
    permuted = np.empty_like(original)
    for head in range(heads):
        for i in range(half):
            for part in range(2):
                start = head * 2 * half
                permuted[start + 2 * i + part] = original[start + part * half + i]
    assert np.array_equal(undo_rotary_permutation(permuted, heads), original)


def test_missing_packages_and_files_say_what_to_do(tmp_path):
    with pytest.raises(MissingDependencyError, match="pip install this"):
        require("no_such_package_at_all", "pip install this")
    with pytest.raises(MissingDependencyError, match="pip install that"):
        package_file("no_such_package_at_all", "*", "pip install that")
    with pytest.raises(MissingFileError, match="found 0"):
        package_file("json", "*.gguf", "nothing")
    with pytest.raises(MissingFileError, match="cannot load a causal LM"):
        models.load_causal_lm(str(tmp_path / "none"), None)


def test_an_interrupted_conversion_leaves_nothing(tmp_path, monkeypatch):
    def fail(source, folder):
        (folder / "config.json").write_text("half")
        raise MissingFileError("interrupted")

    source = tmp_path / "Tiny.gguf"
    source.write_bytes(b"x")
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(models.gguf_llama, "convert", fail)
    with pytest.raises(MissingFileError, match="interrupted"):
        models.default_folder(source)
    assert list((tmp_path / "cache" / "models").iterdir()) == []


@pytest.mark.long
def test_logits_equal_those_of_transformers_own_reading(smollm2_gguf, tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(tmp_path))
    ours = models.load_causal_lm(str(models.default_folder(smollm2_gguf)), torch.float32)
    folder, name = str(smollm2_gguf.parent), smollm2_gguf.name
    theirs = models.load_causal_lm(folder, torch.float32, gguf_file=name)
    ids = torch.arange(40).reshape(2, 20) * 997
    with torch.inference_mode():
        assert torch.equal(ours.eval()(ids).logits, theirs.eval()(ids).logits)
