"""What every artefact keeps to, in its smallest config: it measures and renders, shows failures and
missing rows as what they are, and goes on after a kill."""

from __future__ import annotations

import json

import pytest

from experiments.run import report
from experiments.run.artefact import ARTEFACTS
from experiments.run.executors import FAILURE
from experiments.run.measuring import NAME, Settings, read_run

EVERY = [name for name, artefact in ARTEFACTS.items() if not artefact.on_gpu]


@pytest.fixture
def settings(tmp_path, smollm2_gguf) -> Settings:
    return Settings(results=tmp_path, paper=tmp_path / "paper", executor="inline")


@pytest.mark.parametrize("name", EVERY)
def test_it_measures_and_renders(name, settings):
    artefact, config = ARTEFACTS[name], ARTEFACTS[name].smoke()
    artefact.measure(config, settings)
    rows, manifest = artefact.rows(config, settings)
    assert manifest["complete"]
    assert manifest["rows"] == len(rows) > manifest["failures"]
    made, paths = artefact.render(config, settings)
    assert [*made.wrong] == []
    assert all(path.stat().st_size for path in paths)
    json.dumps(made.facts)
    assert not settings.paper.exists()
    failed = [*rows[:-1], {"key": rows[-1]["key"], FAILURE: "no luck"}]
    stopped = manifest | {"complete": False, "rows_expected": len(rows) + 3}
    for some in (failed, rows[: len(rows) // 2], []):
        made = report.labelled(artefact.report(some, stopped), some, stopped)
        assert not made.complete
        assert all(table.title.endswith("(incomplete)") for table in made.tables)
        said = any("rows are failures" in note for note in made.tables[0].notes)
        assert said == any(row.get(FAILURE) for row in some)


@pytest.mark.long
@pytest.mark.parametrize("name", EVERY)
def test_it_goes_on_after_a_kill(name, settings):
    """The last row is cut in the middle: it is measured again, the others are not."""
    artefact, config = ARTEFACTS[name], ARTEFACTS[name].smoke()
    artefact.measure(config, settings)
    folder = artefact.folder(config, settings.results)
    path, (before, _) = folder / NAME, read_run(folder)
    whole = path.read_bytes()
    last = whole[:-1].rfind(b"\n") + 1
    path.write_bytes(whole[: last + (len(whole) - last) // 2])
    artefact.measure(config, settings)
    after, manifest = read_run(folder)
    assert manifest["complete"]
    assert {row["key"] for row in after} == {row["key"] for row in before}
    kept = {row["key"]: row for row in after}
    assert all(kept[row["key"]] == row for row in before[:-1])
