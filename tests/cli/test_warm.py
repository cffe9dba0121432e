"""What `bpe-automata warm` shows while it compiles, and what it keeps of tokenizers."""

from __future__ import annotations

import io

from numba.core import event

from bpe_automata import Tokenizer, constrain
from bpe_automata.cli.warm import Progress, all_kernels, clear, prepare
from bpe_automata.constructions import collapsed
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


def test_what_a_tokenizer_is_prepared_with_serves_other_constraints(
    smollm2_gguf, monkeypatch, tmp_path
):
    """Collapsed vocabularies and hypothesis sets are on the disk, and a process that begins anew
    makes none of a language of the same classes."""
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(tmp_path))
    prepare(Tokenizer.load(smollm2_gguf))
    assert len([*(tmp_path / "collapsed").iterdir()]) >= 8
    assert len([*(tmp_path / "sets").iterdir()]) == 1
    made, collapse = [], collapsed.collapse
    monkeypatch.setattr(collapsed, "collapse", lambda *a: made.append(a) or collapse(*a))
    tokenizer = Tokenizer.load(smollm2_gguf)
    matcher = constrain(tokenizer, r"[\s\S]{5,90}", eos_ids=()).matcher([])
    for token in tokenizer.encode("Jänner, 30 Tage!"):
        matcher.mask()
        matcher.advance(token)
    assert not made
