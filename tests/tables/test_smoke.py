"""Everything, in its smallest config: each artefact measures and renders, and none is wrong."""

from __future__ import annotations

import json

import pytest

from experiments.run.artefact import ARTEFACTS, Artefact
from experiments.run.measuring import Settings


@pytest.mark.parametrize("name", ARTEFACTS)
def test_smoke(name, tmp_path, smollm2_gguf):
    artefact: Artefact = ARTEFACTS[name]
    settings = Settings(results=tmp_path, paper=tmp_path / "paper", executor="inline")
    config = artefact.smoke()
    artefact.measure(config, settings)
    made, paths = artefact.render(config, settings)
    assert [*made.wrong] == []
    manifest = json.loads((artefact.folder(config, tmp_path) / "manifest.json").read_text())
    assert manifest["complete"]
    assert manifest["rows"] > manifest["failures"]
    assert made.tables or made.figures
    assert all(path.stat().st_size for path in paths)
    assert not (tmp_path / "paper").exists()
