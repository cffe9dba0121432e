"""The laboratory: it resumes; a cell that raises, dies or hangs is a row; artefacts measure and
show; the numbers on the pages are those of the rows, and every page is linked."""

import json
import re
import sys

import matplotlib.pyplot as plt
import pytest
import squares
from squares import Config

from experiments import lab, show
from experiments.lab import FAILURE, NAMES, PAPER, ROOT, Run

PAGES = [ROOT / "README.md", *sorted(PAPER.glob("*.md"))]


@pytest.fixture
def run(tmp_path):
    return Run(on="here", results=tmp_path, paper=tmp_path / "paper")


def measured(config, run):
    return lab.measure("squares", squares, config, run)[1]


def test_a_run_goes_on_where_it_was_stopped(run):
    """The last line is cut in the middle: its cell is measured again, the others are not."""
    first = measured(Config(), run)
    assert [row["square"] for row in first] == [0, 1, 4, 9]
    path = lab.place("squares", squares, Config(), run)
    path.write_text(path.read_text()[:-9])
    squares_of = {row["k"]: row for row in measured(Config(raises=()), run)}
    assert [squares_of[k] == first[k] for k in range(3)] == [True] * 3
    assert squares_of[3]["square"] == 9
    path.write_text(path.read_text()[:20])
    assert [row["square"] for row in measured(Config(), run)] == [0, 1, 4, 9]
    assert lab.read(path)[0]["artefact"] == "squares"


def test_a_cell_that_raises_is_a_row_and_names_no_path(run):
    rows = measured(Config(raises=(1,)), run)
    assert rows[1][FAILURE] == "ValueError: 1 has no square, see ..."
    assert len(lab.good(rows)) == 3


@pytest.mark.parametrize("on", ["processes", pytest.param("ray", marks=pytest.mark.long)])
def test_a_process_that_dies_takes_its_own_cell_alone(run, on):
    config = Config(n=5, dies=(1,), raises=(2,))
    rows = measured(config, Run(on=on, results=run.results))
    assert [FAILURE in row for row in rows] == [False, True, True, False, False]


def test_a_cell_that_is_too_slow_is_a_row(run):
    (row,) = measured(Config(n=1, hangs=(0,)), Run(results=run.results, seconds=1))
    assert "Timeout" in row[FAILURE]


@pytest.mark.parametrize("given", ["", "--progress", "--no-progress"])
@pytest.mark.parametrize("is_terminal", [False, True])
def test_progress_is_shown_on_a_terminal_or_where_it_is_asked_for(
    run, monkeypatch, capsys, given, is_terminal
):
    monkeypatch.setattr(lab, "load", lambda _: squares)
    monkeypatch.setattr(squares, "SMOKE", Config(n=2), raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    options = ["--on", "here", "--results", str(run.results), *filter(None, [given])]
    assert lab.main(["figures", "--smoke", *options]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("\n# Squares\n")
    bars = ["figures", "figures: tables and figures"]
    is_wanted = given == "--progress" or (is_terminal and not given)
    assert [f" {bar} " in shown.err for bar in bars] == [is_wanted] * 2
    assert is_wanted or not shown.err


def test_failures_are_measured_again_when_asked(run, monkeypatch):
    config = Config(raises=(1,))
    before = measured(config, run)
    monkeypatch.setattr(squares, "measure", lambda config, k: {"square": k * k})
    assert measured(config, run) == before
    again = measured(config, Run(on="here", results=run.results, retry=True))
    assert [row["square"] for row in again] == [0, 1, 4, 9]


def test_a_page_has_the_failures_and_the_paper_its_rows(run):
    manifest, rows = lab.measure("squares", squares, Config(raises=(1,)), run)
    lab.write("squares", squares, manifest, rows, run, is_paper=True)
    text = (run.paper / "squares.md").read_text()
    assert "1 of 4 rows are failures: 1 x ValueError" in text
    assert "| 3 | 9 |" in text
    lab.place("squares", squares, Config(), run).unlink(missing_ok=True)
    assert lab.rows_there("squares", squares, Config(), run) == (manifest, rows)
    assert {"commit", "code", "config", "versions", "machine"} <= set(manifest)


def test_pages_take_numbers_of_whole_rows_alone(run):
    page = "a\n<!-- numbers: squares -->\nold\n<!-- /numbers: squares -->\nb\n"
    run.paper.mkdir()
    (run.paper / "page.md").write_text(page)
    rows = measured(Config(), run)
    lab.update("squares", squares, [*rows, {FAILURE: lab.NOT_MEASURED}], run.paper)
    assert (run.paper / "page.md").read_text() == page
    lab.update("squares", squares, rows, run.paper)
    assert (run.paper / "page.md").read_text() == page.replace("old", "Their sum is 14.")


@pytest.mark.parametrize("given", [["cake"], ["run"], ["masks", "cake"], ["all", "cake"]])
def test_bad_commands_run_nothing(given, capsys):
    assert lab.main(given) == 2
    assert capsys.readouterr().err.startswith("error: ")


SLOW = (
    *("accuracy", "banned", "figures", "forced", "free-text", "growth", "masks", "poisoning"),
    *("schemas", "table2"),
)
"""They take more than ten seconds each."""
MEASURED = [
    pytest.param(name, marks=pytest.mark.long if name in SLOW else ())
    for name in NAMES
    if not name.endswith(lab.GPU)
]


@pytest.mark.parametrize("name", MEASURED)
def test_every_artefact_measures_shows_and_resumes(name, run, smollm2_gguf):
    module = lab.load(name)
    manifest, rows = lab.measure(name, module, module.SMOKE, run)
    assert [row[FAILURE] for row in rows if FAILURE in row] == []
    json.dumps(manifest)
    lab.write(name, module, manifest, rows, run, is_paper=False)
    plt.close("all")
    text = (run.results / name / f"{name}.md").read_text()
    assert text.startswith(f"# {module.TITLE}")
    assert rows == lab.measure(name, module, module.SMOKE, run)[1]
    if hasattr(module, "numbers"):
        assert all(isinstance(said, str) for said in module.numbers(lab.good(rows)).values())


@pytest.mark.parametrize("name", NAMES)
def test_the_numbers_of_the_pages_are_those_of_the_rows(name):
    module = lab.load(name)
    _, rows = lab.rows_there(name, module, lab.default(name), Run(results=ROOT / "no results"))
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES}
    for place, said in lab.spoken(name, module, rows).items():
        there = [f"<!-- numbers: {place} -->" in text for text in texts.values()]
        assert any(there) or name.endswith(lab.GPU), place
        for page, text in texts.items():
            inside = show.seen_from(page.parent, ROOT, show.wrapped(said))
            assert show.with_numbers(text, place, inside) == text
    shown = [table.markdown() for table in module.tables(lab.good(rows))]
    assert all(table in (PAPER / f"{name}.md").read_text() for table in shown)


def test_every_page_is_linked_from_the_readme_or_from_what_it_links():
    found, left = set(), [PAGES[0]]
    while left:
        page = left.pop()
        links = re.findall(r"\]\(([^)\s#]+)", page.read_text(encoding="utf-8"))
        there = {(page.parent / link).resolve() for link in links} - found
        found |= there
        left += [path for path in there if path.suffix == ".md" and path.parent == PAPER]
    assert {path for path in PAPER.iterdir() if path.is_file()} <= found
    rows = {f"{name}.jsonl.gz" for name in NAMES}
    assert {path.name for path in (PAPER / "rows").iterdir()} == rows
