"""The laboratory. An artefact (tables or figures that can be made again) is one file in
`experiments/artefacts`, which has

    Config, SMOKE            a frozen dataclass, its fields are options; a Config that takes seconds
    TITLE                    of its page, which begins with the module's docstring
    TIMED, LONG              (optional) cells must run alone; `all` measures it only with --long
    ON_GPU                   (optional) the Config of NAME-gpu: the same, measured on a GPU
    cells(config)            -> dicts: the cells, each of which is measured by itself
    measure(config, **cell)  -> a row, or several (dicts that JSON can hold)
    tables(rows)             -> list of Tables, from a data frame of rows without failures
    figure(rows)             -> (optional) a Figure, or several
    numbers(rows)            -> (optional) {marker: Markdown} for the README and the pages

    python -m experiments list
    python -m experiments [run] NAME... [--smoke] [--on ray] [--no-progress] [--FIELD VALUE]
    python -m experiments NAME... --render          the same from rows measured before
    python -m experiments all [--smoke | --long | --render]

A run continues an earlier one of the same config and the same code of the package; after a change
of an artefact's `measure`, remove its rows. A cell that raises, dies or is too slow is a row that
says so under "failure". `all` renders what is measured on a GPU, and without --long what is LONG,
from the rows in the repository. If a Config has a `device`, "auto" is a GPU if there is one.
"""

from __future__ import annotations

import ast
import dataclasses
import gzip
import hashlib
import importlib
import json
import multiprocessing
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pandas as pd
import pebble
import tyro
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

from bpe_automata.errors import BpeAutomataError, MissingFileError
from experiments import show
from experiments.files import ROOT, lines_of, version_of

Row = dict[str, Any]
RESULTS, PAPER = ROOT / "results", ROOT / "paper_figures"
FOLDER = ROOT / "experiments" / "artefacts"
GPU = "-gpu"
NAMES = sorted(
    p.stem.replace("_", "-") + suffix
    for p in FOLDER.glob("*.py")
    if p.stem != "__init__"
    for suffix in ("", *[GPU] * ("\nON_GPU =" in p.read_text(encoding="utf-8")))
)
FAILURE = "failure"
"""The key of a row that says why there is no measurement."""
NOT_MEASURED = "not measured"
LACKS = (NOT_MEASURED, "Missing", "ModuleNotFoundError")
"""The beginnings of failures for which rows, data or a package are missing."""
PACKAGES = ("numpy", "tokenizers", "torch", "transformers", "gguf")


@dataclasses.dataclass(frozen=True)
class Run:
    """The options that change no number. on: where cells run, "here" is this process; jobs:
    processes; seconds: the most for one cell in "processes" (elsewhere there is no limit); retry:
    measure failures again; progress: show a bar on stderr; results, paper: folders."""

    on: Literal["processes", "ray", "here"] = "processes"
    jobs: int = 2
    seconds: float = 7200.0
    retry: bool = False
    progress: bool = dataclasses.field(default_factory=lambda: sys.stderr.isatty())
    results: Path = RESULTS
    paper: Path = PAPER


@contextmanager
def progress(run: Run, what: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Shows a bar on stderr, if the run asks for it, until the block ends. Yields a function to be
    called once for each step."""
    console = Console(stderr=True, force_terminal=run.progress)
    columns = (SpinnerColumn(), *Progress.get_default_columns(), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, redirect_stdout=False, disable=not run.progress
    ) as bar:
        yield partial(bar.advance, bar.add_task(what, total=total))


# Where cells run.

Submit: TypeAlias = Callable[..., "Future[list[Row]]"]


def one(module: str, config: Any, cell: Row) -> list[Row]:
    """The rows of a cell; an exception becomes a row that says so."""
    began = time.perf_counter()
    try:
        made = plain(importlib.import_module(module).measure(config, **cell))
    except Exception as error:  # a failure of one cell must not end the others
        made = failed(error)
    cell = cell | {"seconds": round(time.perf_counter() - began, 4)}
    return [cell | row for row in (made if isinstance(made, list) else [made])]


def failed(error: BaseException) -> Row:
    """The row of a failure; it names no path of this machine."""
    said = re.sub(r"(?<![\w#])[~.]*/[^\s'\",;]+", "...", f"{type(error).__name__}: {error}")
    return {FAILURE: said[:300]}


@contextmanager
def processes(run: Run) -> Iterator[Submit]:
    """Cells run in processes; one that dies, or is too slow, ends no other cell."""
    fresh = multiprocessing.get_context("spawn")
    with pebble.ProcessPool(run.jobs, context=fresh) as pool:
        try:
            yield lambda *given: pool.schedule(one, given, timeout=run.seconds)
        except BaseException:
            pool.stop()
            raise


@contextmanager
def cluster(run: Run) -> Iterator[Submit]:
    """Cells run in Ray, on the cluster that RAY_ADDRESS names or on this machine; each has a GPU if
    there are any."""
    import ray

    del run
    paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    environment, address = {"env_vars": {"PYTHONPATH": paths}}, os.environ.get("RAY_ADDRESS")
    ray.init(address, log_to_driver=False, runtime_env=environment)
    try:
        gpus = 1 if ray.cluster_resources().get("GPU") else 0
        task = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=2)(one)
        yield lambda *given: task.remote(*given).future()
    finally:
        ray.shutdown()


def measured(
    module: str, config: Any, cells: list[Row], run: Run
) -> Iterator[tuple[Row, list[Row]]]:
    """(cell, its rows), in the order in which cells finish."""
    if run.on == "here":
        yield from ((cell, one(module, config, cell)) for cell in cells)
        return
    with (cluster if run.on == "ray" else processes)(run) as submit:
        asked = {submit(module, config, cell): cell for cell in cells}
        for future in as_completed(asked):
            cell = asked[future]
            try:
                yield cell, future.result()
            except Exception as error:  # the cell's process died, or its time was up
                yield cell, [{**cell, **failed(error)}]


# Rows.


def made_by(name: str, module: Any, config: Any) -> Row:
    """The config, the hash of the package's code, and versions: rows that differ in them are not
    mixed. Of a path only the name counts: whoever changes the data there removes the rows."""
    folder = ROOT / "bpe_automata"
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in (".py", ".pyx", ".pxd")]
    sources = b"".join(path.read_bytes() for path in files)
    packages = (*PACKAGES, *getattr(module, "PACKAGES", ()))
    versions = {"python": platform.python_version()}
    versions |= {package: version_of(package) or "none" for package in packages}
    given = {k: v.name if isinstance(v, Path) else v for k, v in vars(config).items()}
    digest = hashlib.sha256(sources).hexdigest()[:16]
    return plain({"artefact": name, "config": given, "code": digest, "versions": versions})


def plain(value: Any) -> Any:
    """The value after a round trip through JSON, as rows from a file have it."""
    return json.loads(json.dumps(value))


def machine() -> Row:
    """The machine where rows are measured, and the commit."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    load = [round(value, 2) for value in os.getloadavg()]
    found = {"machine": platform.machine(), "cores": os.cpu_count(), "load_average": load}
    return found | {"commit": commit or "unknown"}


def place(name: str, module: Any, config: Any, run: Run) -> Path:
    """The file of a config's rows: a line for the manifest, then one for each cell with its
    rows."""
    digest = hashlib.sha256(json.dumps(made_by(name, module, config), sort_keys=True).encode())
    return run.results / name / f"{digest.hexdigest()[:10]}.jsonl"


def read(path: Path) -> tuple[Row, dict[str, list[Row]]]:
    """(manifest, rows by cell) of a file of rows; lines that were cut off are skipped."""
    found = list[Row]()
    for line in path.read_text(encoding="utf-8").split("\n") if path.exists() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    manifest = found.pop(0) if found and "code" in found[0] else {}
    return manifest, {json.dumps(entry["cell"]): entry["rows"] for entry in found}


def measure(name: str, module: Any, config: Any, run: Run) -> tuple[Row, list[Row]]:
    """(manifest, rows), with those of earlier runs of the same config and code."""
    path = place(name, module, config, run)
    manifest, cached = read(path)
    cells = plain(module.cells(config))
    missing = [
        cell
        for cell in cells
        if (rows := cached.get(json.dumps(cell))) is None
        or (run.retry and any(FAILURE in row for row in rows))
    ]
    if getattr(module, "TIMED", False):
        run = dataclasses.replace(run, jobs=1, on="here" if run.on == "here" else "processes")
    if not manifest:
        manifest = made_by(name, module, config) | machine()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(manifest), encoding="utf-8")
    found = measured(module.__name__, config, missing, run) if missing else ()
    with path.open("a", encoding="utf-8") as file, progress(run, name, len(missing)) as advance:
        for cell, rows in found:
            cached[json.dumps(cell)] = rows
            file.write("\n" + json.dumps({"cell": cell, "rows": rows}, ensure_ascii=False))
            file.flush()
            advance()
    return manifest, ordered(cells, cached)


def ordered(cells: list[Row], cached: dict[str, list[Row]]) -> list[Row]:
    """The rows of all cells in their order; a cell without any is a failure."""
    none = [{FAILURE: NOT_MEASURED}]
    return [{**cell, **row} for cell in cells for row in cached.get(json.dumps(cell), none)]


def rows_there(name: str, module: Any, config: Any, run: Run) -> tuple[Row, list[Row]]:
    """(manifest, rows) that were measured before: those in `results`, or else, of the default
    config, those of the paper. Raises MissingFileError."""
    path = place(name, module, config, run)
    if path.exists():
        manifest, cached = read(path)
        return manifest, ordered(plain(module.cells(config)), cached)
    published = run.paper / "rows" / f"{name}.jsonl.gz"
    if config != default(name, module) or not published.exists():
        raise MissingFileError(f"no rows of {name} are there: `python -m experiments {name}`")
    manifest, *rows = lines_of(published)
    return manifest, rows


def good(rows: Sequence[Row]) -> pd.DataFrame:
    """A frame of the rows without failures."""
    return pd.DataFrame([row for row in rows if FAILURE not in row])


# Pages, rows and figures.


def write(name: str, module: Any, manifest: Row, rows: list[Row], run: Run, is_paper: bool) -> None:
    """Writes NAME.md and its figures; for the paper also the rows, and the numbers on the pages."""
    home, found = run.paper if is_paper else run.results / name, good(rows)
    bad = pd.Series([row[FAILURE] for row in rows if FAILURE in row], dtype=object)
    counts = bad.value_counts().head(5).items()
    said = f"{len(bad)} of {len(rows)} rows are failures: "
    said += "; ".join(f"{n} x {why}" for why, n in counts)
    if found.empty:
        raise MissingFileError(f"nothing was measured. {said}")
    with progress(run, f"{name}: tables and figures"):
        tables, drawings = module.tables(found), getattr(module, "figure", lambda _: ())(found)
    about = (module.__doc__ or "").strip()
    parts = [f"# {module.TITLE}\n", f"{about}\n", *[f"{said}\n"] * bool(len(bad))]
    if not manifest.get("complete", True):  # older rows say so; now a cell without any is a failure
        parts.append("Incomplete: some rows are missing.\n")
    home.mkdir(parents=True, exist_ok=True)
    for figure in drawings if isinstance(drawings, Sequence) else [drawings]:
        file = f"{figure.name or name.replace('-', '_')}.png"
        figure.write(home / file)
        parts.append(f"![{figure.headline.replace(chr(10), ' ')}]({file})\n")
    text = "\n".join([*parts, *(table.markdown() for table in tables)])
    (home / f"{name}.md").write_text(text, encoding="utf-8")
    print(f"\n{text}\n{home / name}.md")
    if is_paper:
        lines = [json.dumps(line, ensure_ascii=False) + "\n" for line in (manifest, *rows)]
        (home / "rows").mkdir(exist_ok=True)
        (home / "rows" / f"{name}.jsonl.gz").write_bytes(
            gzip.compress("".join(lines).encode(), mtime=0)
        )
        with progress(run, f"{name}: numbers on the pages"):
            update(name, module, rows, run.paper)


def spoken(name: str, module: Any, rows: Sequence[Row]) -> dict[str, str]:
    """The module's `numbers`; the markers of those from a GPU end as its name does."""
    said = module.numbers(good(rows)) if hasattr(module, "numbers") else {}
    end = GPU if name.endswith(GPU) else ""
    return {marker + end: text for marker, text in said.items()}


def update(name: str, module: Any, rows: Sequence[Row], paper: Path) -> None:
    """Replaces the numbers on the pages; if rows or packages are missing, they stay as they are."""
    if any(row.get(FAILURE, "").startswith(LACKS) for row in rows):
        why = "rows or packages are missing"
        print(f"The pages keep the numbers that they have: {why}.", file=sys.stderr)
        return
    said = spoken(name, module, rows)
    for page in [*[ROOT / "README.md"] * (paper == PAPER), *sorted(paper.glob("*.md"))]:
        text = changed = page.read_text(encoding="utf-8")
        for where, inside in said.items():
            inside = show.seen_from(page.parent, ROOT, show.wrapped(inside))
            changed = show.with_numbers(changed, where, inside)
        if changed != text:
            page.write_text(changed, encoding="utf-8")


# The command line.


def load(name: str) -> Any:
    """The module of an artefact."""
    return importlib.import_module(f"experiments.artefacts.{path_of(name).stem}")


def path_of(name: str) -> Path:
    return FOLDER / f"{name.removesuffix(GPU).replace('-', '_')}.py"


def headline(name: str) -> str:
    """The first line of an artefact's docstring, without importing it."""
    return (ast.get_docstring(ast.parse(path_of(name).read_text("utf-8"))) or "").partition("\n")[0]


def default(name: str, module: Any = None) -> Any:
    """The config of the paper."""
    module = module or load(name)
    return module.ON_GPU if name.endswith(GPU) else module.Config()


def run_one(name: str, flags: set[str], options: Sequence[str], is_read: bool) -> int:
    """Measure, or read rows, and write. Returns the exit code."""
    module = load(name)
    chosen: Any = (module.SMOKE if "--smoke" in flags else default(name), Run())
    kind: Any = tyro.conf.OmitArgPrefixes[tuple[type(chosen[0]), Run]]  # type: ignore[misc]
    config, run = tyro.cli(kind, args=options, default=chosen, prog=f"experiments {name}")
    try:
        manifest, rows = (rows_there if is_read else measure)(name, module, config, run)
        write(name, module, manifest, rows, run, config == default(name))
    except (BpeAutomataError, OSError) as error:
        print(f"error: {name}: {error}", file=sys.stderr)
        return 2
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0, or 2 with one line of error for anything that the user can mend."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    flags = {"--smoke", "--long", "--render"} & {*given}
    given = [word for word in given if word not in flags]
    first = next((k for k, word in enumerate(given) if word.startswith("-")), len(given))
    words, options = given[given[:1] == ["run"] : first], given[first:]
    if words == ["list"]:
        for name in NAMES:
            print(f"{name:18} {headline(name)}")
        return 0
    is_all, codes = words == ["all"], [0]
    unknown = [repr(word) for word in words if word not in NAMES]
    if not is_all and (unknown or not words):
        said = f"there is no {unknown[0]}" if unknown else "no artefact is named"
        print(f"error: {said}: `python -m experiments list` lists them", file=sys.stderr)
        return 2
    for name in NAMES if is_all else words:
        is_kept = name.endswith(GPU) or (getattr(load(name), "LONG", False) and not flags)
        if not (is_all and name.endswith(GPU) and "--smoke" in flags):
            is_read = "--render" in flags or (is_all and is_kept)
            codes.append(run_one(name, flags, options, is_read))
    return max(codes)
