"""What every artefact keeps to, in its smallest config: it measures and renders, goes on after a
kill, shows failures and missing rows as what they are, and renders the same twice."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from experiments.run import report
from experiments.run.artefact import ARTEFACTS
from experiments.run.executors import FAILURE
from experiments.run.measuring import NAME, Settings, read_run


@pytest.fixture(scope="module", params=[name for name, a in ARTEFACTS.items() if not a.on_gpu])
def measured(request, tmp_path_factory, smollm2_gguf) -> Iterator[tuple]:
    """(the artefact, its config, the settings), measured once."""
    folder = tmp_path_factory.mktemp(request.param)
    artefact = ARTEFACTS[request.param]
    settings = Settings(results=folder, paper=folder / "paper", executor="inline")
    artefact.measure(artefact.smoke(), settings)
    return artefact, artefact.smoke(), settings


def files(paths) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in paths}


def test_it_measures_and_renders_the_same_twice(measured):
    artefact, config, settings = measured
    rows, manifest = artefact.rows(config, settings)
    assert manifest["complete"]
    assert manifest["rows"] == len(rows) > manifest["failures"]
    made, paths = artefact.render(config, settings)
    assert [*made.wrong] == []
    assert made.tables or made.figures
    assert all(path.stat().st_size for path in paths)
    json.dumps(made.facts)
    first = files(paths)
    assert files(artefact.render(config, settings)[1]) == first
    assert not settings.paper.exists()


def test_it_goes_on_after_a_kill(measured):
    """The last row is cut in the middle: it is measured again, the others are not."""
    artefact, config, settings = measured
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


def test_a_failure_is_shown_as_one(measured):
    """Whichever row it is: nothing falls over, and the first table names it."""
    artefact, config, settings = measured
    rows, manifest = artefact.rows(config, settings)
    for k in {0, len(rows) // 2, len(rows) - 1}:
        failed = [*rows[:k], {"key": rows[k]["key"], FAILURE: "no luck"}, *rows[k + 1 :]]
        made = report.labelled(artefact.report(failed, manifest), failed, manifest)
        assert any("rows are failures" in note for note in made.tables[0].notes), rows[k]["key"]


def test_a_run_that_was_stopped_says_so(measured):
    """In every title, and the README takes no number from it; even of no rows there is a report."""
    artefact, config, settings = measured
    rows, manifest = artefact.rows(config, settings)
    manifest |= {"complete": False, "rows_expected": len(rows) + 3}
    for some in (rows, rows[: len(rows) // 2], []):
        made = report.labelled(artefact.report(some, manifest), some, manifest)
        assert not made.complete
        assert made.tables
        assert all(table.title.endswith("(incomplete)") for table in made.tables)
