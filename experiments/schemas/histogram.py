"""Many durations in little space: counts by logarithmic buckets, and the exact largest.

It stands alone because workers whose memory is measured count with it: `run.statistics` would load
all of scipy.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

_LEAST = 1e-8  # seconds: bucket 0 and below
_PER_DECADE = 200
"""A bucket is 1.2 % wide."""


@dataclass
class Histogram:
    """counts: by bucket; largest: seconds, exact."""

    counts: Counter[int] = field(default_factory=Counter)
    largest: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.counts[_bucket(seconds)] += 1
        self.largest = max(self.largest, seconds)

    @property
    def n(self) -> int:
        """How many were counted."""
        return self.counts.total()

    def quantile(self, q: float) -> float:
        """Seconds that at least the share `q` does not exceed, to 1.2 %; nan of nothing."""
        if not self.counts:
            return math.nan
        before = max(0, math.ceil(q * self.n - 1e-9) - 1)
        for bucket in sorted(self.counts):
            before -= self.counts[bucket]
            if before < 0:
                return min(self.largest, _LEAST * 10 ** ((bucket + 1) / _PER_DECADE))
        return self.largest

    def row(self) -> dict[str, Any]:
        """For a JSON file; `of_rows` reads it."""
        return {"largest": self.largest, "counts": {str(k): n for k, n in self.counts.items()}}


def of_rows(rows: Iterable[dict[str, Any]]) -> Histogram:
    """All of them together."""
    total = Histogram()
    for row in rows:
        total.counts.update({int(k): n for k, n in row["counts"].items()})
        total.largest = max(total.largest, row["largest"])
    return total


def _bucket(seconds: float) -> int:
    return max(0, int(_PER_DECADE * math.log10(max(seconds, _LEAST) / _LEAST)))
