"""Kernels are compiled once, and again when any source has changed; those that are long end."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from support import process

from bpe_automata import _kernels as kernels
from bpe_automata._kernels import bits
from bpe_automata._kernels.hashing import EMPTY, build_table, look_up, table_size, with_room


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 600, 5000])
def test_tables_of_all_sizes_hold_their_keys(n):
    slots, values = build_table(np.arange(n) ** 2)
    for entries in (n, n + 1, 3 * n + 7, 8 * n):
        slots, values = with_room(slots, values, max(n, entries))
        assert len(slots) == table_size(max(n, entries)) >= 2 * n
        assert len(slots) & (len(slots) - 1) == 0  # a power of two, which the probes count on
        assert [look_up(slots, values, key * key) for key in range(n)] == [*range(n)]
        assert look_up(slots, values, 2) == EMPTY


INDEX = """
import sys
import numpy as np
from bpe_automata._kernels.bits import set_bits
set_bits(np.zeros(2, np.int32), np.array([int(sys.argv[1])]))
"""


def test_indices_are_checked_where_that_is_asked_for(tmp_path):
    """And what was compiled without the check is not taken for what was compiled with it."""

    def run(index, check):
        names = {"NUMBA_CACHE_DIR": tmp_path, "NUMBA_BOUNDSCHECK": check}
        return process(INDEX, index, check=False, **names)

    assert run(63, "0").returncode == 0
    outside = run(64, "1")
    assert outside.returncode == 1
    assert "IndexError" in outside.stderr
    assert run(63, "1").returncode == 0


COMPILED = """
import numpy as np
from bpe_automata._kernels import compiled
from bpe_automata._kernels.hashing import EMPTY, with_room
slots, values = with_room(np.full(16, EMPTY), np.zeros(16, np.int64), 100)
print(len(slots), (slots == EMPTY).all(), compiled() > 0)
"""


def test_what_is_compiled_is_kept_and_told_of_once(tmp_path):
    """By a logger, which can be silenced; not where kernels are loaded from the disk."""
    first, second = (process(COMPILED, NUMBA_CACHE_DIR=tmp_path) for _ in range(2))
    assert first.stdout.split() == ["256", "True", "True"]
    assert first.stderr.count("compiling kernels, once") == 1
    assert second.stdout.split() == ["256", "True", "False"]
    assert second.stderr == ""


def test_a_changed_source_has_a_folder_of_its_own(tmp_path, monkeypatch):
    """numba does not notice that what a kernel calls has changed. The folder of before is gone."""
    for name in ("_kernels", "_core"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one.py").write_text("")
    monkeypatch.setattr(kernels, "_PACKAGE", tmp_path)
    monkeypatch.setattr(kernels.numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    before = Path(kernels._folder())
    assert Path(kernels._folder()) == before
    assert before.is_dir()
    (tmp_path / "_core" / "one.py").write_text("# changed")
    after = Path(kernels._folder())
    assert after != before
    assert [*(tmp_path / "kept").iterdir()] == [after]


def test_without_a_place_for_compiled_kernels_the_package_works_and_says_so(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(kernels.numba.config, "CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(kernels, "cache_folder", lambda _: tmp_path / "file")
    with pytest.warns(kernels.KernelCacheWarning, match="NUMBA_CACHE_DIR"):
        assert Path(kernels._folder()).is_dir()


def test_a_logger_that_is_silenced_says_nothing(tmp_path):
    silent = 'import logging\nlogging.getLogger("bpe_automata").setLevel("ERROR")\n'
    assert process(silent + COMPILED, NUMBA_CACHE_DIR=tmp_path).stderr == ""


def _calls(tree: ast.AST) -> set[str]:
    """Names that are called in a piece of source."""
    called = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {name.id if isinstance(name, ast.Name) else getattr(name, "attr", "") for name in called}


def test_kernels_that_poll_are_called_through_watched():
    """Elsewhere nobody would stop them."""
    package = Path(kernels.__file__).parents[1]
    calls: dict[tuple[str, str], set[str]] = {}
    for path in sorted((package / "_kernels").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                calls[path.stem, node.name] = _calls(node)
    polling = {"poll"}
    while grown := {n for (_, n), names in calls.items() if names & polling} - polling:
        polling |= grown
    public = {name for name in polling if not name.startswith("_")} - {"poll"}
    assert {"determinize", "minimise", "expand"} <= public
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if path.parent.name == "_kernels" or "bpe_automata._kernels" not in text:
            continue
        tree = ast.parse(text)
        imported = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and "kernels" in (node.module or "")
            for alias in node.names
            if (node.module or "").rpartition(".")[2] in {m for m, n in calls if n == alias.name}
            and alias.name in public
        }
        called = {
            node.func.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not imported & called, path


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_members_are_the_bits_of_all_words(share):
    """Bit 31 is the sign of its word."""
    chosen = np.random.default_rng(7).random(64 * 32) < share
    ids = np.flatnonzero(chosen)
    packed = np.packbits(chosen, bitorder="little").view(np.int32)
    assert bits.members(packed).tolist() == ids.tolist()
