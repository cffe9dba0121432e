"""The packaged models have the logits that transformers makes of the same files."""

import pytest

from bpe_automata.errors import MissingDependencyError
from experiments import models


@pytest.mark.long
@pytest.mark.parametrize("name", [models.SMOLLM2, models.GEMMA])
def test_logits_equal_those_of_transformers_own_reading(name, tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(tmp_path))
    source = tmp_path / "joined.gguf"
    try:
        source.write_bytes(b"".join(part.read_bytes() for part in models.packaged(name)))
    except MissingDependencyError as error:
        pytest.skip(str(error))
    folder = models.folder_of(name)
    ours = models.load_causal_lm(str(folder), torch.float32).eval()
    given = {"gguf_file": source.name}
    theirs = models.load_causal_lm(str(source.parent), torch.float32, **given).eval()
    ids = torch.arange(40).reshape(2, 20) * 997 % ours.config.vocab_size
    with torch.inference_mode():
        assert torch.equal(ours(ids).logits, theirs(ids).logits)
