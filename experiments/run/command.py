"""`python -m experiments`: list the artefacts, measure and render some of them, or all.

    python -m experiments list
    python -m experiments run NAME... [--FIELD VALUE]...
    python -m experiments all [--smoke | --long]

`all` measures what fits into two hours on two cores. Artefacts that take long (`LONG = True` in
their modules) are rendered from the rows that exist, those in `results` or else those in the
repository; `all --long` and `run NAME` measure them, and `--smoke` is short for all. A run goes on
where an earlier one with the same config and the same code stopped. `--FIELD` is any field of the
artefacts' configs (`run NAME --help` lists them); tables of other than the default config stay
beside their rows in `results`.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from bpe_automata.errors import ArgumentError, BpeAutomataError
from experiments.run import readme, report
from experiments.run.artefact import ARTEFACTS, Artefact
from experiments.run.config import Config, changed
from experiments.run.files import PAPER
from experiments.run.measuring import Settings

LIST, RUN, ALL = "list", "run", "all"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0; 1 if something measured is wrong; 2 with one line of error for whatever the
    user can mend. Of several artefacts that are named, one that cannot be made is the last; `all`
    goes on without it."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        names, chosen, fields = parse(given)
        if LIST in names and len(names) > 1:
            raise ArgumentError(f"`{LIST}` stands alone, not in {' '.join(names)!r}")
        if names == [LIST]:
            print("\n".join(f"{name:18} {a.summary()}" for name, a in ARTEFACTS.items()))
            return 0
        settings = _settings(chosen)
        configs = {name: _config(ARTEFACTS[name], chosen.smoke, fields) for name in names}
    except (BpeAutomataError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    is_all = ALL in _before_options(given)
    codes, began = [], time.perf_counter()
    for name, config in configs.items():
        artefact, render_only = ARTEFACTS[name], chosen.render
        if is_all and artefact.on_gpu:
            if chosen.smoke or not artefact.has_rows(config, settings):
                continue
            render_only = True
        elif is_all and artefact.is_long() and not (render_only or chosen.long or chosen.smoke):
            print(f"{name} takes long: rendered from the rows that exist; `--long` measures it")
            render_only = True
        codes.append(one(artefact, config, settings, render_only))
        if codes[-1] == 2 and not is_all:
            break
    if is_all:
        minutes = (time.perf_counter() - began) / 60
        print(f"{len(codes)} artefacts in {minutes:.1f} minutes")
    return max(codes)


def one(artefact: Artefact, config: Config, settings: Settings, render_only: bool) -> int:
    """Measure unless told to render only, and write; the exit code."""
    try:
        if not render_only:
            artefact.measure(config, settings)
        made, paths = artefact.render(config, settings)
        report.show(made, paths)
        if artefact.home(config, settings) == PAPER and made.complete:
            readme.update(artefact.name, artefact.load(), made.facts)
    except (BpeAutomataError, OSError) as error:
        print(f"error: {artefact.name}: {error}", file=sys.stderr)
        return 2
    except Exception:  # a fault of one must not end `all`
        traceback.print_exc()
        return 2
    return 1 if made.wrong else 0


def parse(given: list[str]) -> tuple[list[str], argparse.Namespace, dict[str, str]]:
    """(names, settings, fields of configs as text). Raises ArgumentError."""
    words = [word for word in _before_options(given) if word != RUN]
    names = [name for word in words for name in (ARTEFACTS if word == ALL else [word])]
    if not names and "-h" not in given and "--help" not in given:
        raise ArgumentError("no experiment is named; `python -m experiments list` names them")
    unknown = [name for name in names if name not in (*ARTEFACTS, LIST)]
    if unknown:
        raise ArgumentError(f"there is no {unknown[0]!r}; see `python -m experiments list`")
    known = [ARTEFACTS[name] for name in names if name in ARTEFACTS]
    parsed = _parser(known).parse_args(given[len(_before_options(given)) :])
    fields = {
        name: text
        for name in _fields(known)
        if (text := getattr(parsed, f"field_{name}")) is not None
    }
    return names, parsed, fields


def _before_options(given: Sequence[str]) -> list[str]:
    first = next((k for k, word in enumerate(given) if word.startswith("-")), len(given))
    return list(given[:first])


def _fields(artefacts: Sequence[Artefact]) -> dict[str, str]:
    found: dict[str, str] = {}
    for artefact in artefacts:
        for field in dataclasses.fields(artefact.default()):
            text = field.metadata.get("help", "")
            found.setdefault(field.name, f"{text} (default: {_shown(field.default)})".strip())
    return found


def _shown(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value).replace("%", "%%")


def _parser(artefacts: Sequence[Artefact]) -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = result.add_argument
    add("--smoke", action="store_true", help="the smallest config of each: seconds, no meaning")
    add("--long", action="store_true", help="`all`: measure those that take long, too")
    add("--render", action="store_true", help="measure nothing; write what the rows on disk say")
    add("--again", action="store_true", help="put the rows aside and measure anew")
    add("--retry", action="store_true", help="measure the failures again")
    where = "where cells run; those that measure time run here, one by one (default: %(default)s)"
    choices = ("inline", "processes", "ray")
    add("--executor", choices=choices, default=Settings.executor, help=where)
    add("--jobs", type=int, default=Settings.jobs, help="cells at a time (default: %(default)s)")
    add("--results", type=Path, default=Settings.results, help="folder of the rows")
    add("--paper", type=Path, default=Settings.paper, help="folder of tables and figures")
    for name, text in _fields(artefacts).items():
        flag = f"--{name.replace('_', '-')}"
        add(flag, dest=f"field_{name}", metavar="VALUE", help=text)
    return result


def _config(artefact: Artefact, smoke: bool, fields: dict[str, str]) -> Config:
    """With those of the fields that it has."""
    config = artefact.smoke() if smoke else artefact.default()
    own = {field.name for field in dataclasses.fields(config)}
    return changed(config, {name: text for name, text in fields.items() if name in own})


def _settings(chosen: argparse.Namespace) -> Settings:
    if chosen.jobs < 1:
        raise ArgumentError(f"--jobs {chosen.jobs}: at least one cell at a time")
    return Settings(
        results=chosen.results,
        paper=chosen.paper,
        executor=chosen.executor,
        jobs=chosen.jobs,
        retry=chosen.retry,
        again=chosen.again,
    )
