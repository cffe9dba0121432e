"""Records digests of masks, and checks them: what a rewrite of the engines must leave as it was.

    python -m tests.net check                           # all that is recorded
    python -m tests.net check --tokenizers smollm2      # some tokenizers, of any part
    python -m tests.net check --part regex --only boolean "random 7"
    python -m tests.net show --tokenizers smollm2 --only boolean
    python -m tests.net record                          # what is not recorded yet

`check` prints what differs, and then ends with 1; so it does where there was nothing to check.
`show` prints an id, a digest of the mask and whether the text may end, for each step: `diff` of
what two checkouts print finds the first step that differs. `record` writes each case as it is done,
so that it can be interrupted, and keeps what is there: to record a case anew, take it out of
`digests.json`. All of it takes five minutes of one core; a tokenizer takes half a minute at most
without schemas, and two minutes with them.

Tokenizers that are not installed are left out, and so are the schemas where the folder of MaskBench
is not there: by default `shared/data/maskbench` beside the checkout; BPE_AUTOMATA_DATA=FOLDER, if
it is FOLDER/maskbench. Nothing but compiled kernels is read from the disk's cache or written there,
unless BPE_AUTOMATA_CACHE names it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import warnings
from collections.abc import Collection, Iterator
from itertools import product
from pathlib import Path
from typing import Any

from bpe_automata.errors import BpeAutomataError, EndlessTextWarning, MissingDependencyError

from .cases import (
    METHODS,
    OF_SCHEMAS,
    TOKENIZERS,
    Case,
    chosen_schemas,
    digests,
    loaded,
    regex_cases,
    schema_cases,
    steps,
)

DIGESTS = Path(__file__).with_name("digests.json")
PARTS = ("regex", "schemas")

Net = dict[str, Any]
"""tokenizers, sources: fingerprints of tokenizers and of cases, by name; of each part: by tokenizer
and case, the digests of the methods (schemas: for two in three of the first method alone)."""


def read() -> Net:
    """What is recorded."""
    if not DIGESTS.exists():
        return {"tokenizers": {}, "sources": {}} | {part: {} for part in PARTS}
    return json.loads(DIGESTS.read_text(encoding="utf-8"))


def write(net: Net) -> None:
    """At once, and a line for each case."""
    whole = json.dumps(net, indent=1, ensure_ascii=False)
    lines = whole.replace("[\n    ", "[").replace(",\n    ", ", ").replace("\n   ]", "]")
    made = DIGESTS.with_suffix(".new")
    made.write_text(lines + "\n", encoding="utf-8")
    made.replace(DIGESTS)


def cases_of(part: str, names: Collection[str]) -> dict[str, Case]:
    """Those cases, as far as they are there."""
    known = regex_cases() if part == "regex" else schema_cases(list(names))
    return {name: known[name] for name in names if name in known}


def recorded_of(net: Net, part: str, name: str, only: Collection[str] = ()) -> Net:
    """The digests of a tokenizer, by case; only: of these cases, nothing for all."""
    return {key: of for key, of in net[part].get(name, {}).items() if not only or key in only}


def differences(net: Net, part: str, name: str, only: Collection[str] = ()) -> Iterator[str]:
    """What is not as it was recorded, in words. Raises MissingDependencyError."""
    tokenizer, recorded = loaded(name), recorded_of(net, part, name, only)
    cases = cases_of(part, recorded)
    if net["tokenizers"].get(name) != tokenizer.fingerprint[:8]:
        yield f"{name}: this is not the tokenizer that was recorded"
        return
    for key, of in recorded.items():
        if key not in cases or cases[key].fingerprint != net["sources"][key]:
            yield f"{name} | {key}: this case is gone, or not the one that was recorded"
            continue
        for method, was in zip(METHODS, of, strict=False):
            now = digests(tokenizer, cases[key], method)
            if now != was:
                walks = cases[key].walks
                yield f"{name} | {key} | {method}: was {was}, is {now}; the walks are {walks}"


def check(net: Net, part: str, name: str, only: Collection[str]) -> bool:
    """Is all as it was? Prints what is not."""
    found = list(differences(net, part, name, only))
    print(*found, sep="\n", end="\n" * bool(found))
    n = len(recorded_of(net, part, name, only))
    print(f"{name}, {part}: {n} cases, {len(found)} differences", flush=True)
    return not found


def record(net: Net, part: str, name: str, only: Collection[str]) -> bool:
    """Add what is not there yet; False for what is not the one of which digests are there."""
    names = list(regex_cases()) if part == "regex" else chosen_schemas()
    cases, tokenizer = cases_of(part, names), loaded(name)
    recorded, own = net[part].setdefault(name, {}), tokenizer.fingerprint[:8]
    good = net["tokenizers"].setdefault(name, own) == own
    for k, key in enumerate(names if good else ()):
        if key in recorded or (only and key not in only):
            continue
        own = cases[key].fingerprint
        if net["sources"].setdefault(key, own) != own:
            good = False
            continue
        methods = METHODS if part == "regex" or k % 3 == 0 else METHODS[:1]
        recorded[key] = [digests(tokenizer, cases[key], method) for method in methods]
        write(net)
    print(f"{name}, {part}: {len(recorded)} cases" + ", others than those recorded" * (not good))
    return good


def show(net: Net, part: str, name: str, only: Collection[str]) -> bool:
    """Print each step."""
    tokenizer = loaded(name)
    for key, case in cases_of(part, recorded_of(net, part, name, only)).items():
        for method, (prompt, way) in product(METHODS, case.walks):
            print(f"{key} | {method} | {prompt!r} | {way!r}")
            try:
                constraint = case.constraint(tokenizer, method)
                for token, state in steps(tokenizer, constraint, prompt, way):
                    digest = hashlib.sha256(state[:-1]).hexdigest()[:12]
                    print("   ", token, digest, "may end" if state[-1] else "")
            except BpeAutomataError as error:
                print("   ", repr(error))
    return True


def main(arguments: list[str] | None = None) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser("python -m tests.net", description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("check", "record", "show"))
    parser.add_argument("--tokenizers", nargs="+", metavar="NAME", choices=TOKENIZERS)
    parser.add_argument("--part", choices=PARTS, help="none: both")
    parser.add_argument("--only", nargs="+", metavar="CASE", help="names of cases", default=())
    given = parser.parse_args(arguments)
    os.environ.setdefault("BPE_AUTOMATA_CACHE", "off")
    warnings.simplefilter("ignore", EndlessTextWarning)
    warnings.filterwarnings("ignore", ".* is no keyword and ignored")
    net, good, n = read(), True, 0
    verb = {"check": check, "record": record, "show": show}[given.what]
    for part in [given.part] if given.part else PARTS:
        known = TOKENIZERS if part == "regex" else OF_SCHEMAS
        if part == "schemas" and not chosen_schemas():
            print("no schemas: the folder of MaskBench is not there; see BPE_AUTOMATA_DATA")
            good = good and given.part is None
            continue
        for name in [one for one in given.tokenizers or known if one in known]:
            try:
                good &= verb(net, part, name, given.only)
                n += len(recorded_of(net, part, name, given.only))
            except MissingDependencyError as error:
                print(f"{name} is left out: {error}")
    if not n:
        print("nothing of that is recorded")
    return 0 if good and n else 1


if __name__ == "__main__":
    sys.exit(main())
