"""What is known of segments, in memory and on disk."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest
from shared_segments import PLAIN_JSON, SMALL_JSON, engine_of, named, segments_of

from bpe_automata.constructions import SegmentCache, segments_cache, stored
from bpe_automata.constructions.segments_eager import SharedRows, assembled, prepared
from bpe_automata.errors import ArgumentError
from bpe_automata.storage import CorruptCacheWarning, arrays_path


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    """Segments go there; what is known of named tokenizers stays where it is."""
    monkeypatch.setattr(segments_cache, "_FOLDER", str(tmp_path))


@pytest.fixture
def engine():
    return engine_of(named("smollm2"), SMALL_JSON)


def first_row(engine, cache):
    state = engine.initial()
    return SharedRows(engine, cache).row(state.place, state.hypotheses)


def test_on_disk(engine):
    cache, later = SegmentCache(on_disk=True), SegmentCache(on_disk=True)
    whole = assembled(engine, engine.initial(), cache)
    count = prepared(engine, engine.initial(), cache)
    assert cache.save() > 3
    assert cache.save() == 0
    other = engine_of(named("smollm2"), SMALL_JSON)
    assert assembled(other, other.initial(), later).identical(whole)
    assert prepared(other, other.initial(), later) == count
    assert later.counts.loaded > 0
    assert later.counts.made == 0
    assert later.save() == 0
    for key, known in cache._known.items():
        restored = later.of(key)
        assert (restored.closures, restored.n_bytes) == (known.closures, known.n_bytes)
        assert all(map(np.array_equal, restored.rows.values(), known.rows.values()))


def test_files_of_segments_are_not_held_open():
    cache, later = SegmentCache(on_disk=True), SegmentCache(on_disk=True)
    first, second = (engine_of(named("smollm2"), PLAIN_JSON) for _ in range(2))
    prepared(first, first.initial(), cache)
    assert cache.save() > 3
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("open files are not listed here")
    before = len(os.listdir("/proc/self/fd"))
    prepared(second, second.initial(), later)
    for key in cache._known:
        later.of(key)
    assert later.counts.loaded > 3
    assert len(os.listdir("/proc/self/fd")) - before < 3


def test_a_damaged_file_is_made_again(engine):
    cache, later, again = (SegmentCache(on_disk=True) for _ in range(3))
    right = first_row(engine, cache)
    cache.save()
    (key,) = cache._known
    path = arrays_path(segments_cache._FOLDER, key.hex())
    path.write_bytes(path.read_bytes()[:-3] + b"xyz")
    with pytest.warns(CorruptCacheWarning, match="rebuilt"):
        row = first_row(engine, later)
    assert all(map(np.array_equal, row, right))
    assert later.counts.made == 1
    later.save()
    assert all(map(np.array_equal, first_row(engine, again), right))
    assert (again.counts.made, again.counts.loaded) == (0, 1)


def test_what_other_sources_made_is_not_read(engine, monkeypatch):
    cache, later = SegmentCache(on_disk=True), SegmentCache(on_disk=True)
    first_row(engine, cache)
    assert cache.save() == 1
    monkeypatch.setattr(stored, "_stamp", lambda: "of another version")
    first_row(engine, later)
    assert later.counts.loaded == 0


def test_memory_is_bounded():
    engine, cache = engine_of(named("smollm2"), PLAIN_JSON), SegmentCache(max_bytes=40_000)
    prepared(engine, engine.initial(), cache)
    assert cache.n_segments < len({segment.key for segment in segments_of(engine)})
    largest = max(known.n_bytes for known in cache._known.values())
    assert cache.n_bytes == sum(known.n_bytes for known in cache._known.values())
    assert cache.n_bytes <= max(40_000, largest)
    with pytest.raises(ArgumentError):
        SegmentCache(max_bytes=-1)


def test_what_is_known_already_takes_no_more_memory(engine):
    """Two threads may make the same at once."""
    cache = SegmentCache()
    row = first_row(engine, cache)
    ((key, known),) = cache._known.items()
    before = cache.n_bytes
    for at in known.rows:
        cache.add(key, at, row)
    assert (cache.n_bytes, known.n_bytes) == (before, before)


def test_a_copy_begins_with_nothing(engine):
    cache = SegmentCache(max_bytes=1_000_000)
    first_row(engine, cache)
    found = pickle.loads(pickle.dumps(cache))
    assert (found.max_bytes, found.on_disk, found.n_segments) == (1_000_000, False, 0)
