"""Masks are those that were recorded: what a rewrite of the engines must leave as it was.

A small part by default; with --long all that is recorded, in five minutes of one core (`-k smollm2`
for one tokenizer). Tokenizers that are not installed are left out, and so are schemas where the
folder of MaskBench is not there: see SCHEMAS. `steps` gives the masks of a walk one by one.

`PYTHONPATH=tests python -m net.test_net` records what is not there yet: to record a case anew, take
it out of `digests.json`. With all tokenizers of TOKENIZERS installed.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from support import named

from bpe_automata import Tokenizer
from net.cases import (
    METHODS,
    SCHEMAS,
    SMOKE,
    TOKENIZERS,
    Case,
    chosen_schemas,
    digests,
    regex_cases,
    schema_case,
    source,
)

DIGESTS = Path(__file__).with_name("digests.json")
NET: dict[str, Any] = json.loads(DIGESTS.read_text(encoding="utf-8"))
"""tokenizers, sources: fingerprints of tokenizers and of cases, by name; of each part: by tokenizer
and case, the digests of the methods (schemas: for two in three of the first method alone)."""
PARTS = {"regex": TOKENIZERS, "schemas": ("smollm2", "llama-3")}
ALWAYS = [("regex", name) for name in (SMOKE, "smollm2")]
SOME = (
    *("function call (linked)", "boolean", "e-mail", "JSON string", "word", "prose of 300"),
    *("random 1", "random 7", "random 9", "random 20", "random 40"),
)
ALL = [
    pytest.param(part, name, marks=() if (part, name) in ALWAYS else pytest.mark.long)
    for part in PARTS
    for name in NET[part]
]


def cases_of(part: str, names: Collection[str]) -> dict[str, Case]:
    return {name: regex_cases()[name] if part == "regex" else schema_case(name) for name in names}


@pytest.mark.parametrize(("part", "name"), ALL)
def test_masks_are_as_they_were_recorded(part, name, pytestconfig, monkeypatch) -> None:
    whole = pytestconfig.getoption("--long")
    if whole:
        monkeypatch.setenv("BPE_AUTOMATA_CACHE", "off")
    tokenizer = named(source(name))
    if part == "schemas" and not SCHEMAS.is_dir():
        pytest.skip(f"{SCHEMAS} is missing")
    assert NET["tokenizers"][name] == tokenizer.fingerprint[:8]
    recorded = NET[part][name] if whole else {key: NET[part][name][key] for key in SOME}
    cases = cases_of(part, recorded)
    sources = {key: case.fingerprint for key, case in cases.items()}
    assert sources == {key: NET["sources"][key] for key in recorded}
    differences = {}
    for key, of in recorded.items():
        found = [digests(tokenizer, cases[key], method) for method in METHODS[: len(of)]]
        differences |= {} if found == of else {key: (of, found)}
    assert differences == {}


def record(part: str, name: str) -> None:
    """Add what is not there yet of a tokenizer that is the one of which digests are there."""
    cases = cases_of(part, list(regex_cases()) if part == "regex" else chosen_schemas())
    tokenizer, recorded = Tokenizer.load(source(name)), NET[part].setdefault(name, {})
    known = [(NET["tokenizers"], name, tokenizer.fingerprint[:8])]
    known += [(NET["sources"], key, case.fingerprint) for key, case in cases.items()]
    for fingerprints, key, own in known:
        if fingerprints.setdefault(key, own) != own:
            raise SystemExit(f"{key} is not the one that was recorded")
    for k, (key, case) in enumerate(cases.items()):
        if key not in recorded:
            methods = METHODS if part == "regex" or k % 3 == 0 else METHODS[:1]
            recorded[key] = [digests(tokenizer, case, method) for method in methods]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for part, names in PARTS.items():
        for name in names:
            record(part, name)
    text = json.dumps(NET, indent=1, ensure_ascii=False)  # a line for each case
    text = text.replace("[\n    ", "[").replace(",\n    ", ", ").replace("\n   ]", "]")
    DIGESTS.write_text(text + "\n", encoding="utf-8")
