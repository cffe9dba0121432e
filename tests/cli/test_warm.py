"""What `bpe-automata warm` shows while it compiles."""

from __future__ import annotations

import io

from numba.core import event

from bpe_automata.cli.warm import Progress, all_kernels, clear
from bpe_automata.kernels.bits import members


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_counts_the_kernels_that_are_at_hand(monkeypatch):
    kernels = all_kernels()
    assert members in kernels
    assert len(kernels) > 200
    screen, file = Screen(), io.StringIO()
    for drawn_on in (screen, file):
        with event.install_listener("numba:compile", Progress(drawn_on)):
            for _ in range(2):
                event.end_event("numba:compile")
        clear(drawn_on)
    ready = sum(bool(kernel.overloads) for kernel in kernels)
    assert screen.getvalue().count(f"] {ready} of {len(kernels)} kernels, ") == 2
    assert screen.getvalue().endswith("\r\x1b[K")
    assert file.getvalue() == ""
