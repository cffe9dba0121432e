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
it is FOLDER/maskbench. Nothing but compiled kernels is read from the
disk's cache or written there, unless BPE_AUTOMATA_CACHE names it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
import warnings
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from bpe_automata import Method, Tokenizer
from bpe_automata.errors import BpeAutomataError, EndlessTextWarning, MissingDependencyError

from .cases import (
    METHODS,
    OF_SCHEMAS,
    SCHEMAS,
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
MOST_SECONDS = 20.0
"""CPU time of a case and a method, beyond which it is left out."""
LEFT_OUT = "left out"

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


def recorded_of(net: Net, part: str, name: str, only: Collection[str] | None) -> Net:
    """The digests of a tokenizer, by case; only: of these cases, None or nothing for all."""
    return {key: of for key, of in net[part].get(name, {}).items() if not only or key in only}


def known_cases(net: Net, part: str, name: str) -> dict[str, Case]:
    """The cases of a part that are recorded of a tokenizer, as far as they are there."""
    recorded = net[part].get(name, {})
    cases = regex_cases() if part == "regex" else schema_cases(list(recorded))
    return {key: cases[key] for key in recorded if key in cases}


# ---------------------------------------------------------------- check


def differences(
    net: Net, part: str, name: str, only: Collection[str] | None = None
) -> Iterator[str]:
    """What is not as it was recorded, in words. Raises MissingDependencyError."""
    tokenizer, cases = loaded(name), known_cases(net, part, name)
    if name in net["tokenizers"] and net["tokenizers"][name] != tokenizer.fingerprint[:8]:
        yield f"{name}: this is not the tokenizer that was recorded"
        return
    for key, recorded in recorded_of(net, part, name, only).items():
        case = cases.get(key)
        if case is None or case.fingerprint != net["sources"][key]:
            yield f"{name} | {key}: this case is gone, or not the one that was recorded"
            continue
        for method, was in zip(METHODS, recorded, strict=False):
            if was.startswith(LEFT_OUT):
                continue
            now = digests(tokenizer, case, method)
            if now != was:
                yield f"{name} | {key} | {method}: {_told(case, was, now)}"


def _told(case: Case, was: str, now: str) -> str:
    """Which walks differ, where there are walks."""
    pairs = list(zip(was.split(), now.split(), strict=False))
    if not len(was.split()) == len(now.split()) == len(case.walks):
        return f"was {was}, is {now}"
    return "; ".join(
        f"{way if isinstance(way, int) else way[:30]!r} after {prompt!r} was {old}, is {new}"
        for (old, new), (prompt, way) in zip(pairs, case.walks, strict=True)
        if old != new
    )


def check(net: Net, part: str, name: str, only: list[str] | None) -> bool:
    """Is all as it was? Prints what is not."""
    started, found = time.process_time(), 0
    for line in differences(net, part, name, only):
        print(line, flush=True)
        found += 1
    recorded = recorded_of(net, part, name, only)
    out = sum(one.startswith(LEFT_OUT) for of in recorded.values() for one in of)
    seconds = time.process_time() - started
    print(
        f"{name}, {part}: {len(recorded)} cases, {found} differences, {out} left out when they "
        f"were recorded; {seconds:.0f} s",
        flush=True,
    )
    return not found


# ---------------------------------------------------------------- record, show


def record(net: Net, part: str, name: str, only: list[str] | None) -> bool:
    """Add what is not there yet."""
    names = list(regex_cases()) if part == "regex" else chosen_schemas()
    cases = regex_cases() if part == "regex" else schema_cases(names)
    tokenizer = loaded(name)
    recorded = net[part].setdefault(name, {})
    if not _is_same(net["tokenizers"], name, tokenizer.fingerprint[:8]):
        return False
    started, good = time.process_time(), True
    for k, key in enumerate(names):
        if key in recorded or (only and key not in only):
            continue
        if not _is_same(net["sources"], key, cases[key].fingerprint):
            good = False
            continue
        methods = METHODS if part == "regex" or k % 3 == 0 else METHODS[:1]
        recorded[key] = [_recorded(tokenizer, cases[key], method) for method in methods]
        write(net)
    write(net)
    print(f"{name}, {part}: {len(recorded)} cases; {time.process_time() - started:.0f} s")
    return good


def _is_same(known: dict[str, str], name: str, fingerprint: str) -> bool:
    """Is it the one of which digests are there, or a new one?"""
    if known.setdefault(name, fingerprint) == fingerprint:
        return True
    print(f"{name} is not the one of which digests are there: take these out first")
    return False


def _recorded(tokenizer: Tokenizer, case: Case, method: Method) -> str:
    started = time.process_time()
    found = digests(tokenizer, case, method)
    seconds = time.process_time() - started
    if seconds > 2:
        print(f"  {case.name} | {method}: {seconds:.1f} s", flush=True)
    return found if seconds <= MOST_SECONDS else f"{LEFT_OUT}: {seconds:.0f} s"


def show(net: Net, part: str, name: str, only: list[str] | None) -> bool:
    """Print each step."""
    tokenizer = loaded(name)
    for key, case in known_cases(net, part, name).items():
        if only and key not in only:
            continue
        for method in METHODS:
            try:
                constraint = case.constraint(tokenizer, method)
            except BpeAutomataError as error:
                print(f"{key} | {method}: {error!r}")
                continue
            for prompt, way in case.walks:
                print(f"{key} | {method} | {prompt!r} | {way!r}")
                try:
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
    parser.add_argument("--only", nargs="+", metavar="CASE", help="names of cases")
    given = parser.parse_args(arguments)
    os.environ.setdefault("BPE_AUTOMATA_CACHE", "off")
    warnings.simplefilter("ignore", EndlessTextWarning)
    warnings.filterwarnings("ignore", ".* is no keyword and ignored")
    net, good, n = read(), True, 0
    for part in [given.part] if given.part else PARTS:
        known = TOKENIZERS if part == "regex" else OF_SCHEMAS
        if part == "schemas" and not list(SCHEMAS.glob("*.jsonl.gz")):
            print(f"no schemas: {SCHEMAS} is not there, or has no files; see BPE_AUTOMATA_DATA")
            good = good and given.part is None
            continue
        for name in [one for one in given.tokenizers or known if one in known]:
            try:
                good &= {"check": check, "record": record, "show": show}[given.what](
                    net, part, name, given.only
                )
                n += len(recorded_of(net, part, name, given.only))
            except MissingDependencyError as error:
                print(f"{name} is left out: {error}")
    if not n:
        print("nothing of that is recorded")
    return 0 if good and n else 1


if __name__ == "__main__":
    sys.exit(main())
