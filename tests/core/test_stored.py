"""The disk cache of a tokenizer's automaton: what is loaded is what was built, or it is rebuilt."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples, named, process

from bpe_automata import Tokenizer
from bpe_automata._storage import (
    CorruptCacheWarning,
    CorruptFileError,
    UntrustedCacheWarning,
    arrays_path,
    load_arrays,
    store_arrays,
)
from bpe_automata.canonical import stored
from bpe_automata.canonical.canonical import (
    CanonicalAutomaton,
    build_parts,
    canonical_automaton,
)
from bpe_automata.canonical.stored import (
    Parts,
    cache_path,
    cached,
    flattened,
    restored,
)
from bpe_automata.testing._small import (
    bpe_tokenizers,
    small_tokenizer,
)
from bpe_automata.tokenizer import alphabet
from bpe_automata.tokenizer.engines import Oniguruma
from bpe_automata.tokenizer.unicode_forms import form_filters, python_form

REAL = ("smollm2", "whisper", "mistral-v3")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "FEWEST_IDS", 0)


def tiny(*merges: tuple[str, str]) -> Tokenizer:
    letters = ["a", "b", "c"]
    return small_tokenizer([*letters, *(one + other for one, other in merges)], list(merges))


def tied() -> Tokenizer:
    """bb, bb is broken, and no rectangle of a merge tells."""
    return small_tokenizer(["b", "bb", "bbb"], [("bb", "b"), ("b", "b")])


def assert_same(one: Parts, other: Parts) -> None:
    """Also in what decides whether a kernel takes an array."""
    first, second = flattened(one), flattened(other)
    assert first.keys() == second.keys()
    for name, array in first.items():
        back = second[name]
        assert array.dtype == back.dtype, name
        assert np.array_equal(array, back), name
        assert array.flags.c_contiguous, name
        assert back.flags.c_contiguous, name
        assert array.flags.writeable == back.flags.writeable, name
    assert one.pipeline.boundaries.hypotheses == other.pipeline.boundaries.hypotheses
    assert one.actions.classes == other.actions.classes


def never_built() -> Parts:
    raise AssertionError("built, although it is in the cache")


# ---------------------------------------------------------------- round trips


@pytest.mark.parametrize("name", REAL)
def test_a_real_tokenizer_comes_back_as_it_was(name: str) -> None:
    tokenizer = named(name)
    built = cached(Parts, tokenizer, lambda: build_parts(tokenizer))
    loaded = cached(Parts, tokenizer, never_built)
    assert loaded is not built
    assert_same(built, loaded)


@given(bpe_tokenizers())
@examples(30)
def test_any_tokenizer_comes_back_as_it_was(tokenizer: Tokenizer) -> None:
    parts = canonical_automaton(tokenizer).parts
    back = restored(Parts, flattened(parts))
    assert_same(parts, back)
    whole, restored_whole = (CanonicalAutomaton(tokenizer, p).whole for p in (parts, back))
    assert (whole.children, whole.complete) == (restored_whole.children, restored_whole.complete)


# ---------------------------------------------------------------- what is wrong with a file


def stored_file(tokenizer: Tokenizer) -> Path:
    cached(Parts, tokenizer, lambda: build_parts(tokenizer))
    return cache_path(Parts, tokenizer)


DAMAGES = {
    "truncated": lambda data, _: data[: len(data) // 2],
    "foreign": lambda data, _: b"PK\3\4" + data[4:],
    "of another tokenizer": lambda _, other: other,
}


@pytest.mark.usefixtures("every_size")
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("ties", [False, True])
def test_a_damaged_entry_is_rebuilt_and_said_so(ties, damage) -> None:
    tokenizer, other = tied() if ties else tiny(("a", "b")), tiny(("b", "c"), ("a", "bc"))
    path, other_path = stored_file(tokenizer), stored_file(other)
    whole = path.read_bytes()
    path.unlink()  # what is mapped elsewhere stays as it is
    path.write_bytes(DAMAGES[damage](whole, other_path.read_bytes()))
    with pytest.warns(CorruptCacheWarning, match=path.name):
        again = cached(Parts, tokenizer, lambda: build_parts(tokenizer))
    assert_same(again, build_parts(tokenizer))
    assert path.read_bytes() == whole
    assert_same(cached(Parts, tokenizer, never_built), again)


@pytest.mark.usefixtures("every_size")
def test_an_entry_of_another_algorithm_is_no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = tiny(("a", "b"))
    path = stored_file(tokenizer)
    old = path.read_bytes()
    monkeypatch.setattr(stored, "ALGORITHM", stored.ALGORITHM + 1)
    newer = stored_file(tokenizer)
    assert newer != path
    newer.unlink()
    newer.write_bytes(old)
    with pytest.warns(CorruptCacheWarning, match="algorithm"):
        cached(Parts, tokenizer, lambda: build_parts(tokenizer))


@pytest.mark.parametrize(
    "entry",
    [
        ["a", "<i8", [1 << 60], 0, True],
        ["a", "O", [1], 0, True],
        ["a", "<i8", [1], -64, True],
        ["a", "<i8", "xx", 0, True],
        ["a"],
    ],
    ids=str,
)
def test_a_header_with_a_right_checksum_that_lies(entry, monkeypatch) -> None:
    dumps = json.dumps
    lie = {"key": "key", "stamp": "", "arrays": [entry]}
    with monkeypatch.context() as lying:
        lying.setattr(json, "dumps", lambda _: dumps(lie))
        store_arrays("lies", "key", "", {"a": np.arange(3)})
    with pytest.raises(CorruptFileError):
        load_arrays("lies", "key", "")


def a_class() -> list[list[int]]:
    alphabet.class_cache.clear()
    return alphabet.engine_class(Oniguruma(), "regex", "[a-m]").tolist()


def filters() -> list[list[object]]:
    made = form_filters(python_form("nfc"))
    return [[array.tolist() for array in (f.table, f.accepting, *f.classes)] for f in made]


@pytest.mark.parametrize("made", [a_class, filters])
def test_what_is_kept_besides_is_the_same_and_made_again_if_damaged(made, cache: Path) -> None:
    first = made()
    kept = list(cache.rglob("*.arrays"))
    assert kept
    for path in kept:
        whole = path.read_bytes()
        for damaged in (whole[:-1] + bytes([whole[-1] ^ 1]), whole[: len(whole) // 2], b""):
            path.unlink()
            path.write_bytes(damaged)
            with pytest.warns(CorruptCacheWarning, match="rebuilt"):
                assert made() == first
            assert path.read_bytes() == whole
            assert made() == first


# ---------------------------------------------------------------- the folder


def test_folders_are_made_private_and_those_of_others_are_not_used(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_arrays("some", "key", "", {"a": np.arange(3)})
    folder = cache / "some"
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    assert load_arrays("some", "key", "") is not None
    assert folder.stat().st_mode & 0o777 == 0o700
    shared = tmp_path / "shared"
    (shared / "some").mkdir(parents=True)
    shared.chmod(0o777)
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(shared))
    with pytest.warns(UntrustedCacheWarning, match="can be written to by others"):
        store_arrays("some", "key", "", {"a": np.arange(3)})
    assert load_arrays("some", "key", "") is None
    assert list((shared / "some").iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can chown")
def test_what_another_user_made_is_not_read(cache: Path) -> None:
    store_arrays("some", "key", "", {"a": np.arange(3)})
    path = arrays_path("some", "key")
    elsewhere = cache / "elsewhere"
    (cache / "some").rename(elsewhere)
    for made, entry in ((elsewhere / path.name, path), (elsewhere, path.parent)):
        (cache / "some").symlink_to(elsewhere)
        os.chown(made, 12345, 12345)
        with pytest.warns(UntrustedCacheWarning, match="another user"):
            assert load_arrays("some", "key", "") is None, entry
        os.chown(made, 0, 0)
        assert load_arrays("some", "key", "") is not None
        (cache / "some").unlink()


def test_a_write_that_fails_half_way_leaves_nothing(cache: Path, monkeypatch) -> None:
    store_arrays("some", "first", "", {"a": np.arange(3)})
    before = sorted(cache.rglob("*"))

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    store_arrays("some", "second", "", {"a": np.arange(3)})
    assert sorted(cache.rglob("*")) == before
    assert load_arrays("some", "second", "") is None


@pytest.mark.usefixtures("every_size")
def test_a_folder_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(tmp_path / "file"))
    tokenizer = tiny(("a", "b"))
    assert canonical_automaton(tokenizer).allowed(0, 0)
    assert not cache_path(Parts, tokenizer).exists()


@pytest.mark.usefixtures("every_size")
def test_off_means_that_nothing_is_read_or_written(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = tiny(("a", "b"))
    stored_file(tokenizer)
    store_arrays("some", "key", "", {"a": np.arange(3)})
    files = sorted(cache.rglob("*"))
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", "off")
    with pytest.raises(AssertionError, match="in the cache"):
        cached(Parts, tokenizer, never_built)
    assert load_arrays("some", "key", "") is None
    store_arrays("some", "other", "", {"a": np.arange(3)})
    assert load_arrays("some", "other", "") is None
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(cache))
    assert sorted(cache.rglob("*")) == files
    assert load_arrays("some", "other", "") is None


# ---------------------------------------------------------------- arrays in a file


def test_equal_names_share_memory_and_writing_stays_in_the_process() -> None:
    array, fixed = np.arange(5, dtype=np.int32), np.frombuffer(b"abc", dtype=np.uint8)
    stored_as = {"one": array, "two": array, "fixed": fixed, "none": np.empty((0, 3))}
    store_arrays("kind", "key", "stamp", stored_as)
    loaded = load_arrays("kind", "key", "stamp")
    assert loaded is not None
    assert np.shares_memory(loaded["one"], loaded["two"])
    assert loaded["none"].shape == (0, 3)
    loaded["one"][0] = 9
    with pytest.raises(ValueError, match="read-only"):
        loaded["fixed"][0] = 1
    again = load_arrays("kind", "key", "stamp")
    assert again is not None
    assert again["one"].tolist() == [0, 1, 2, 3, 4]


@given(st.integers(0, 7), st.integers(0, 10_000))
@examples(50)
def test_any_flipped_bit_is_noticed(bit: int, place: int) -> None:
    store_arrays("flip", "key", "", {"a": np.arange(50), "b": np.ones(3, dtype=bool)})
    path = arrays_path("flip", "key")
    data = bytearray(path.read_bytes())
    data[place % len(data)] ^= 1 << bit
    path.unlink()
    path.write_bytes(data)
    with pytest.raises(CorruptFileError):
        load_arrays("flip", "key", "")


_WRITER = """
import sys
import numpy as np
from bpe_automata._storage import load_arrays, store_arrays
number = int(sys.argv[1])
for turn in range(150):
    store_arrays("both", "key", "", {"a": np.full(20_000, number), "b": np.full(7, number)})
    arrays = load_arrays("both", "key", "")
    values = {int(v) for array in arrays.values() for v in np.unique(array)}
    assert len(values) == 1, values
"""


def test_two_processes_may_write_at_once(cache: Path) -> None:
    """Each of them always reads a file that one of them has written whole."""
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(partial(process, _WRITER), (1, 2)))
    assert [path.suffix for path in (cache / "both").iterdir()] == [".arrays"]
