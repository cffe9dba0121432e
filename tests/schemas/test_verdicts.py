"""Which instances of MaskBench's schemas are accepted, as it was recorded: any change shows.

`verdicts.json` names, by schema, the refusal, or the instances of which the automaton says another
thing than the data. `python -m tests.schemas.test_verdicts` records.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from bpe_automata.errors import SchemaError, UnsupportedSchemaError
from bpe_automata.schemas import json_schema

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("BPE_AUTOMATA_DATA") or ROOT.parent / "shared" / "data") / "maskbench"
RECORDED = Path(__file__).with_name("verdicts.json")
FILES = tuple(sorted(DATA.glob("*.jsonl.gz")))


def verdicts(path: Path, every: int = 1) -> dict[str, Any]:
    """Of every so many schemas: the keyword or the error by which one is refused, or the numbers of
    the instances that are accepted though invalid, or rejected though valid."""
    found: dict[str, Any] = {}
    for line in gzip.decompress(path.read_bytes()).decode().splitlines()[::every]:
        row = json.loads(line)
        try:
            dfa = json_schema(row["schema"], order="any")
        except SchemaError as error:
            known = isinstance(error, UnsupportedSchemaError)
            found[row["id"]] = error.keyword if known else type(error).__name__
            continue
        found[row["id"]] = [
            number
            for number, test in enumerate(row["tests"])
            if dfa.accepts(_spelled(test["data"])) != test["valid"]
        ]
    return found


def _spelled(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")


@pytest.mark.skipif(not FILES, reason="the data of MaskBench is not there: see experiments")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.split(".")[0])
def test_no_verdict_has_changed(path: Path, request: pytest.FixtureRequest) -> None:
    """Of each schema with --long, of each fourth otherwise."""
    found = verdicts(path, 1 if request.config.getoption("--long") else 4)
    known = json.loads(RECORDED.read_text())[path.name]
    assert found == {schema: known.get(schema, []) for schema in found}


if __name__ == "__main__":
    whole = {path.name: verdicts(path) for path in FILES}
    told = {name: {k: v for k, v in found.items() if v} for name, found in whole.items()}
    RECORDED.write_text(json.dumps(told, indent=1) + "\n")
