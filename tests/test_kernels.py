"""Kernels are compiled once, and again when what they call has changed."""

from __future__ import annotations

import ast
import gc
import importlib
import pickle
import pkgutil
import re
import sys
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import types
from numba.core import event
from numba.core.caching import IndexDataCacheFile
from support import process

from bpe_automata import _kernels as kernels
from bpe_automata._kernels import bits, linking, references
from bpe_automata._kernels.hashing import (
    EMPTY,
    build_table,
    look_up,
    slot_of,
    table_size,
    with_room,
)

# A hang in a kernel answers no signal: it is looked for in a process of its own.
# With a folder of kernels that were shipped: `with_room` and what it calls, or a caller of it.
SHIPPED = """
import sys
from pathlib import Path
import numba, numpy as np
from bpe_automata._kernels import linking
linking.SHIPPED = Path(sys.argv[1])
from bpe_automata._kernels.hashing import build_table, look_up, with_room
slots, values = with_room(*build_table(np.array([3, 8])), 100)
print(look_up(slots, values, 8), linking.compiled())
"""
MODULES = [module.name for module in pkgutil.iter_modules(kernels.__path__)]


def test_one_version_for_all_integers():
    slots, values = build_table(np.array([3, 8], dtype=np.int64))
    for key in (8, np.int32(8), np.int64(8), np.uint8(8), np.int16(8)):
        assert look_up(slots, values, key) == 1
    for signature in (*look_up.signatures, *slot_of.signatures):
        assert signature[-1] == types.int64


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 600, 5000])
def test_tables_of_all_sizes_hold_their_keys(n):
    slots, values = build_table(np.arange(n) ** 2)
    for entries in (n, n + 1, 3 * n + 7, 8 * n):
        slots, values = with_room(slots, values, max(n, entries))
        assert len(slots) == table_size(max(n, entries)) >= 2 * n
        assert len(slots) & (len(slots) - 1) == 0  # a power of two, which the probes count on
        assert [look_up(slots, values, key * key) for key in range(n)] == [*range(n)]
        assert look_up(slots, values, 2) == EMPTY


def test_what_was_shipped_is_not_compiled(tmp_path, monkeypatch):
    """Where the processor knows the instructions, the sources are the same, and nothing else is
    kept; damaged files are compiled anew."""
    monkeypatch.setattr(linking, "SHIPPED", tmp_path)
    linking._shipped_runs_here.cache_clear()
    if not linking._shipped_runs_here() or not sys.platform.startswith("linux"):
        pytest.skip("another kind of processor")
    linking._shipped_runs_here.cache_clear()

    def said(cache, **more):
        folder = tmp_path / "compiled"
        return process(SHIPPED, folder, NUMBA_CACHE_DIR=tmp_path / cache, **more).stdout.split()

    built = said("built", NUMBA_CPU_NAME=linking.SHIPPED_FOR, NUMBA_CPU_FEATURES="")
    assert built[0] == "1"
    assert int(built[1]) > 3
    (folder,) = (tmp_path / "built").iterdir()
    folder.rename(tmp_path / "compiled")
    assert said("own") == ["1", "0"]
    for file in (tmp_path / "compiled").glob("*look_up*.nbc"):
        file.write_bytes(file.read_bytes()[:-1])
    assert said("own") == ["1", "1"]  # calls what was shipped
    assert said("own") == ["1", "0"]
    for file in (tmp_path / "compiled").glob("*.nbc"):
        file.unlink()
    assert int(said("own")[1]) > 2


@pytest.mark.parametrize("name", MODULES)
def test_all_kernels_that_are_called_are_known(name):
    module = importlib.import_module(f"{kernels.__name__}.{name}")
    source = (linking.resources.files(kernels.__name__) / f"{name}.py").read_text()
    homes = [getattr(value, "py_func", value) for value in vars(module).values() if callable(value)]
    called = {home.__module__.rpartition(".")[2] for home in homes if _is_kernel(home)}
    assert called - {name, "_kernels"} <= {*linking._IMPORT.findall(source)}


def _is_kernel(function):
    return getattr(function, "__module__", "").startswith(kernels.__name__)


def test_a_change_is_seen_by_all_that_call_it(tmp_path, monkeypatch):
    for name in ("__init__", *MODULES):
        source = (linking.resources.files(kernels.__name__) / f"{name}.py").read_text()
        (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.setattr(linking.resources, "files", lambda _: tmp_path)
    before = stamps()
    with (tmp_path / "hashing.py").open("a") as file:
        file.write("# another way to hash\n")
    changed = {name for name, stamp in stamps().items() if stamp != before[name]}
    assert {"hashing", "product", "status", "masks"} <= changed  # at several removes
    assert "distance" not in changed


def test_numba_keeps_its_stamp_where_we_put_ours():
    assert IndexDataCacheFile("folder", "file", "stamp")._source_stamp == "stamp"
    kept_as = look_up._cache._cache_file._source_stamp
    assert kept_as.removesuffix(" checked") == linking.stamp("hashing")


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


GROWN = """
import sys
import numpy as np
from bpe_automata._kernels import compiled
from bpe_automata._kernels.hashing import EMPTY, with_room
slots, values = with_room(np.full(16, EMPTY), np.zeros(16, np.int64), 100)
print(len(slots), (slots == EMPTY).all(), compiled(), "numba.typed.typeddict" in sys.modules)
"""


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """Runs a kernel that calls a large one, in a process of its own: what it returns is right, how
    many kernels were compiled, whether numba was made ready to compile."""
    folder = tmp_path_factory.mktemp("compiled")

    def run():
        size, empty, n_compiled, ready = process(GROWN, NUMBA_CACHE_DIR=folder).stdout.split()
        assert (int(size), empty) == (256, "True")
        return int(n_compiled), ready == "True"

    n_compiled, _ = run()
    assert n_compiled >= 2
    return run, folder


def test_what_is_compiled_is_loaded_without_what_compiling_needs(grown):
    run, _ = grown
    assert run() == (0, False)


def test_large_kernels_are_kept_once_and_found_by_those_that_call_them(grown):
    _, folder = grown
    (caller,) = folder.rglob("hashing.with_room-*.nbc")
    (callee,) = folder.rglob("hashing.keys_with_room-*.nbc")
    kept = [pickle.loads(pickle.loads(path.read_bytes())[1]) for path in (caller, callee)]
    (_, _, needed, code, *_), (symbol, digest, _, own_code, *_) = kept
    assert [(each.symbol, each.digest, each.file) for each in needed] == [
        (symbol, digest, callee.name)
    ]
    assert len(code) < len(own_code) + 8000  # numba's own way would have it in both


@pytest.mark.parametrize("name", ["with_room-*.nbc", "with_room-*.nbi", "keys_with_room-*.nbc"])
@pytest.mark.parametrize("change", ["flipped", "cut", "gone", "of another kind"])
def test_kernels_whose_files_are_damaged_are_compiled_again(grown, name, change):
    run, folder = grown
    for path in folder.rglob(f"hashing.{name}"):
        data = path.read_bytes()
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]
        other = pickle.dumps((("a", "object", b""), None))
        if change == "gone":
            path.unlink()
        else:
            path.write_bytes(
                {"flipped": flipped, "cut": data[:middle], "of another kind": other}[change]
            )
    n_compiled, _ = run()
    assert n_compiled >= 1
    assert run() == (0, False)


def test_that_kernels_are_compiled_is_told_once(caplog):
    """By a logger, which can be silenced; not where they are loaded from the disk."""
    with event.install_listener("numba:compile", linking._Compiling()) as listener:
        for function in (bits.set_bits.py_func, bits.set_bits.py_func):
            numba.njit(function)(np.zeros(2, np.int32), np.array([3]))
        numba.njit(lambda x: x + 1)(1)  # of somebody else
        numba.njit(eval("lambda x: x + 2", {}))(1)  # of no module
    assert listener.count == 2
    told = [record for record in caplog.records if record.name == "bpe_automata"]
    assert sum("compiling kernels, once" in record.message for record in told) in (1, 2)
    bits.set_bits(np.zeros(2, np.int32), np.array([3]))
    assert listener.count == 2


def stamps():
    linking.stamp.cache_clear()
    return {name: linking.stamp(name) for name in MODULES}


@pytest.fixture(autouse=True)
def _as_before():
    yield
    linking.stamp.cache_clear()


def _calls(tree: ast.AST) -> set[str]:
    """Names that are called in a piece of source."""
    called = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {name.id if isinstance(name, ast.Name) else getattr(name, "attr", "") for name in called}


def test_kernels_that_poll_are_called_through_watched():
    """Elsewhere nobody would arm their watch, nor raise what stopped them."""
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
    assert {"determinize", "minimise", "readable_ids", "settle", "narrow"} <= public
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


_WITHOUT_A_PLACE = """
import warnings
from numba.core.caching import CacheImpl
CacheImpl._locator_classes = []
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    from bpe_automata._kernels.bits import members
    import numpy as np
    print(members(np.array([5], dtype=np.int32)).tolist())
print([w.category.__name__ for w in seen], "NUMBA_CACHE_DIR" in str(seen[0].message))
"""


def test_without_a_place_for_compiled_kernels_the_package_works_and_says_so():
    """Read-only packages and no home that can be written to: numba finds no place of its own."""
    done = process(_WITHOUT_A_PLACE, check=False)
    assert done.stdout.splitlines() == ["[0, 2]", "['KernelCacheWarning'] True"], done.stderr


# ---------------------------------------------------------------- tuples by reference


@references.by_reference
class Inner(NamedTuple):
    table: np.ndarray
    factor: int


@references.by_reference
class Outer(NamedTuple):
    inner: Inner
    counts: np.ndarray
    flag: bool


@numba.njit
def _weighed(i, given):
    return given.inner.table[i, 0] * given.inner.factor


@numba.njit
def _count(given):
    """What is written into arrays is seen, also where another function reads it."""
    total = 0
    for i in range(len(given.counts)):
        given.counts[i] += 1
        given.inner.table[i, 0] = given.counts[i]
        total += _weighed(i, given) + (100 if given.flag else 0)
    return total


def test_tuples_by_reference_are_read_and_their_arrays_written():
    for table in (np.zeros((5, 2)), np.zeros((10, 4))[::2, ::2]):
        counts = np.arange(5)
        given = Outer(Inner(table, 3), counts, True)
        for n in (1, 2):
            assert _count(given) == 3 * sum(range(n, 5 + n)) + 500
            assert counts.tolist() == [*range(n, 5 + n)]
        assert table[:, 0].tolist() == counts.tolist()
    assert all(isinstance(kind, references.Reference) for (kind,) in _count.signatures)
    assert len({kind for (kind,) in _count.signatures}) == 2  # of contiguous arrays, and of others


def test_kernels_keep_no_reference_to_what_they_were_given():
    counts, table = np.arange(5), np.zeros((5, 1))
    given = Outer(Inner(table, 1), counts, False)
    _count(given)
    before = sys.getrefcount(counts), sys.getrefcount(table), sys.getrefcount(given)
    for _ in range(100):
        _count(given)
    assert (sys.getrefcount(counts), sys.getrefcount(table), sys.getrefcount(given)) == before


def test_what_is_packed_is_what_the_tuple_is():
    """Also when nobody else holds its arrays any more, and beside tuples that are not packed."""
    for table in (np.zeros((5, 2)), np.zeros((10, 4))[::2, ::2]):
        for flag in (True, False):
            counts = np.arange(5)
            plain = Outer(Inner(table, 3), np.arange(5), flag)
            given = references.packed(Outer(Inner(table, 3), counts, flag))
            compiled = len(_count.signatures)
            gc.collect()
            for _ in range(2):
                assert _count(given) == _count(plain)
                assert counts.tolist() == plain.counts.tolist()
            assert len(_count.signatures) <= compiled + 1  # no other than for the tuple
    assert len(_count.signatures) == 2
    before = sys.getrefcount(counts)
    del given
    gc.collect()
    assert sys.getrefcount(counts) == before - 1


def test_what_cannot_be_packed_is_refused():
    given = Inner(np.zeros((5, 2)), np.float32(3))
    assert _factor(given) == 3
    with pytest.raises(TypeError, match="float32"):
        references.packed(given)


@numba.njit
def _factor(given):
    return given.factor


def test_what_a_tuple_does_not_hold_is_refused():
    given = Outer(Inner(np.zeros((5, 1)), 1), np.arange(5), False)
    with pytest.raises(numba.TypingError, match="nothing"):
        numba.njit(lambda given: given.nothing)(given)
    with pytest.raises(numba.TypingError, match="object"):
        _count(given._replace(counts=object()))


def test_tuples_that_kernels_do_not_make_are_handed_on_by_reference():
    trees = [
        ast.parse((linking.resources.files(kernels.__name__) / f"{name}.py").read_text())
        for name in set(MODULES) - {"linking"}
    ]
    made = set().union(*map(_calls, trees))
    classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    tuples = {node.name: node for node in classes if "NamedTuple" in map(ast.unparse, node.bases)}
    assert {"Product", "Memo", "Trie"} <= set(tuples)
    for name, node in tuples.items():
        by_reference = "by_reference" in map(ast.unparse, node.decorator_list)
        assert by_reference == (name not in made), name


def test_no_named_tuple_is_returned_inside_another_tuple():
    """numba makes one by a call of Python, where the handler of a signal may run. What that raises
    leaves a hole in the tuple around it, which is a crash if that is a named one too."""
    trees = [
        ast.parse((linking.resources.files(kernels.__name__) / f"{name}.py").read_text())
        for name in set(MODULES) - {"linking"}
    ]
    bodies = [node for tree in trees for node in tree.body]
    fields = {
        node.name: {ast.unparse(at.annotation) for at in node.body if isinstance(at, ast.AnnAssign)}
        for node in bodies
        if isinstance(node, ast.ClassDef) and "NamedTuple" in map(ast.unparse, node.bases)
    }
    returned = {
        node.name: ast.unparse(node.returns)
        for node in bodies
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.returns
        if "kernel" in map(ast.unparse, node.decorator_list)
    }
    assert "Met" in returned.values()
    called = python_calls()
    for name, kind in returned.items():
        inside = fields.get(kind, set(re.findall(r"\w+", kind)) - {kind})
        assert name not in called or not inside & set(fields), name


def python_calls():
    """The kernels that the rest of the package names."""
    package = Path(kernels.__file__).parents[1]
    sources = [path for path in package.rglob("*.py") if path.parent.name != "_kernels"]
    found = set()
    for node in (node for path in sources for node in ast.walk(ast.parse(path.read_text()))):
        if isinstance(node, ast.ImportFrom) and "kernels" in (node.module or ""):
            found |= {alias.name for alias in node.names}
    return found


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_members_are_the_bits_of_all_words(share):
    """Bit 31 is the sign of its word."""
    chosen = np.random.default_rng(7).random(64 * 32) < share
    ids = np.flatnonzero(chosen)
    packed = np.packbits(chosen, bitorder="little").view(np.int32)
    assert bits.members(packed).tolist() == ids.tolist()
