"""What is known of segments, in memory and on disk."""

from __future__ import annotations

import os

import numpy as np
import pytest
from shared_segments import PLAIN_JSON, SMALL_JSON, engines, named

from bpe_automata import constrain
from bpe_automata.constructions import SegmentCache, explored, segments_files, stored
from bpe_automata.constructions.segments_eager import assembled
from bpe_automata.constructions.segments_nodes import prepared
from bpe_automata.decoding import segment_library
from bpe_automata.errors import ArgumentError
from bpe_automata.schemas import compile_json_schema
from bpe_automata.storage import CorruptCacheWarning, arrays_path


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    """Segments go there; what is known of named tokenizers stays where it is."""
    monkeypatch.setattr(segments_files, "_FOLDER", str(tmp_path))


def test_on_disk():
    tokenizer, cache = named("smollm2"), SegmentCache(on_disk=True)
    _, first = engines(tokenizer, SMALL_JSON, cache)
    whole = assembled(first, first.initial())
    count = prepared(first, first.initial())
    assert cache.save() > 3
    assert cache.save() == 0
    later = SegmentCache(on_disk=True)
    plain, second = engines(tokenizer, SMALL_JSON, later)
    assert assembled(second, second.initial()).identical(whole)
    assert prepared(second, second.initial()) == count
    compare_states = explored(plain, plain.initial())
    for state in compare_states.states:
        assert np.array_equal(plain.mask(state), second.mask(state))
    assert later.counts.loaded > 0
    assert later.counts.made == 0


def test_files_of_segments_are_not_held_open():
    tokenizer, cache = named("smollm2"), SegmentCache(on_disk=True)
    _, first = engines(tokenizer, PLAIN_JSON, cache)
    prepared(first, first.initial(), common=True)
    assert cache.save() > 3
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("open files are not listed here")
    before = len(os.listdir("/proc/self/fd"))
    later = SegmentCache(on_disk=True)
    _, second = engines(tokenizer, PLAIN_JSON, later)
    prepared(second, second.initial(), common=True)
    assert later.counts.loaded > 3
    assert len(os.listdir("/proc/self/fd")) - before < 3


def test_a_damaged_file_is_made_again():
    tokenizer, cache = named("smollm2"), SegmentCache(on_disk=True)
    _, first = engines(tokenizer, SMALL_JSON, cache)
    first.mask(first.initial())
    cache.save()
    node = first.rows.segments.of(first.initial().place, first.initial().hypotheses)
    path = arrays_path(segments_files._FOLDER, node.segment.key.hex())
    path.write_bytes(path.read_bytes()[:-3] + b"xyz")
    later = SegmentCache(on_disk=True)
    _, second = engines(tokenizer, SMALL_JSON, later)
    with pytest.warns(CorruptCacheWarning, match="rebuilt"):
        mask = second.mask(second.initial())
    assert np.array_equal(mask, first.mask(first.initial()))
    assert later.counts.made == 1
    later.save()
    again = SegmentCache(on_disk=True)
    _, third = engines(tokenizer, SMALL_JSON, again)
    assert np.array_equal(third.mask(third.initial()), mask)
    assert again.counts.made == 0


def test_what_other_sources_made_is_not_read(monkeypatch):
    tokenizer, cache = named("smollm2"), SegmentCache(on_disk=True)
    _, first = engines(tokenizer, SMALL_JSON, cache)
    first.mask(first.initial())
    assert cache.save() == 1
    monkeypatch.setattr(stored, "_stamp", lambda: "of another version")
    later = SegmentCache(on_disk=True)
    _, second = engines(tokenizer, SMALL_JSON, later)
    second.mask(second.initial())
    assert later.counts.loaded == 0


def test_the_library_serves_schemas(monkeypatch):
    tokenizer, cache = named("smollm2"), SegmentCache()
    strings = next(segment_library.languages())
    monkeypatch.setattr(segment_library, "languages", lambda: iter([strings]))
    nodes = segment_library.precompute(tokenizer, cache)
    assert nodes["string, compact"] > 10
    found = cache.counts.found
    schema = {"properties": {"place": {"type": "string"}, "thing": {"type": "string"}}}
    schema |= {"type": "object", "required": ["place", "thing"], "additionalProperties": False}
    engine = constrain(tokenizer, compile_json_schema(schema), segments=cache).engine
    state = engine.initial()
    for token in tokenizer.encode('{"place":"in Rome","thing":"a cup, or so"}'):
        engine.mask(state)
        state = engine.step(state, token)
    assert cache.counts.found - found >= 6


def test_memory_is_bounded():
    tokenizer = named("smollm2")
    cache = SegmentCache(max_bytes=40_000)
    _, engine = engines(tokenizer, PLAIN_JSON, cache)
    prepared(engine, engine.initial(), common=True)
    assert cache.n_segments < len(engine.rows.segments.found())
    largest = max(known.n_bytes for known in cache._known.values())
    assert cache.n_bytes == sum(known.n_bytes for known in cache._known.values())
    assert cache.n_bytes <= max(40_000, largest)
    with pytest.raises(ArgumentError):
        SegmentCache(max_bytes=-1)
    with pytest.raises(ArgumentError):
        constrain(tokenizer, "a", method="lift", segments=cache)
