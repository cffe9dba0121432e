"""Which instances of MaskBench's schemas are accepted, as it was recorded: any change shows.

`verdicts.json` names, by schema, the refusal, or the instances of which the automaton says another
thing than the data. `python -m tests.schemas.test_verdicts` prints what changed, `... record`
records.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from bpe_automata.errors import SchemaError, UnsupportedSchemaError
from bpe_automata.schemas import json_schema

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("BPE_AUTOMATA_DATA") or ROOT.parent / "shared" / "data") / "maskbench"
RECORDED = Path(__file__).with_name("verdicts.json")
FILES = tuple(sorted(DATA.glob("*.jsonl.gz")))


def verdicts(path: Path) -> dict[str, Any]:
    """By schema: the keyword or the error by which it is refused, or the numbers of the instances
    that are accepted though invalid, or rejected though valid; without those that all agree on."""
    found: dict[str, Any] = {}
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        row = json.loads(line)
        try:
            dfa = json_schema(row["schema"], order="any")
        except SchemaError as error:
            known = isinstance(error, UnsupportedSchemaError)
            found[row["id"]] = error.keyword if known else type(error).__name__
            continue
        other = [
            number
            for number, test in enumerate(row["tests"])
            if dfa.accepts(_spelled(test["data"])) != test["valid"]
        ]
        if other:
            found[row["id"]] = other
    return found


def _spelled(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")


@pytest.mark.skipif(not FILES, reason="the data of MaskBench is not there: see experiments")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.split(".")[0])
def test_no_verdict_has_changed(path: Path) -> None:
    assert verdicts(path) == json.loads(RECORDED.read_text())[path.name]


def main(recording: bool) -> None:
    found = {path.name: verdicts(path) for path in FILES}
    if recording:
        RECORDED.write_text(json.dumps(found, indent=1) + "\n")
        return
    for name, known in json.loads(RECORDED.read_text()).items():
        for schema in sorted(known.keys() | found[name].keys()):
            before, now = known.get(schema), found[name].get(schema)
            if before != now:
                print(f"{schema}: {before} -> {now}")


if __name__ == "__main__":
    main(sys.argv[1:] == ["record"])
