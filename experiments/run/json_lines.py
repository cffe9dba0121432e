"""Files of JSON objects, one a line, gzipped or not."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bpe_automata.errors import MissingFileError


def lines_of(path: Path) -> Iterator[Any]:
    """What the lines hold; empty ones are passed over. Raises MissingFileError."""
    opened: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.strip())
    except (OSError, ValueError) as error:
        raise MissingFileError(f"{path} cannot be read as JSON lines: {error}") from error
