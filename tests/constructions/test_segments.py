"""Vegas segments: what is shared between languages is what each of them would make itself."""

from __future__ import annotations

import os
import pickle
import random
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples, named
from support.steps import metaspace

from bpe_automata import constrain
from bpe_automata._constructions import segments_cache, segments_eager, stored
from bpe_automata._constructions.canonical import canonical_automaton
from bpe_automata._constructions.explicit import explored
from bpe_automata._constructions.segments import Segments
from bpe_automata._constructions.segments_cache import SegmentCache
from bpe_automata._constructions.segments_eager import (
    SharedRelevance,
    all_configurations,
    assembled,
    prepared,
)
from bpe_automata._constructions.segments_joints import meetings, neighbours
from bpe_automata._kernels.bits import members
from bpe_automata._storage import CorruptCacheWarning, arrays_path
from bpe_automata.errors import (
    ArgumentError,
    BudgetExceededError,
    EmptyLanguageError,
    PromptError,
)
from bpe_automata.testing import added_token, bpe_tokenizers, cyclic_regexes, small_tokenizer, texts
from bpe_automata.testing._inputs import own_pieces
from bpe_automata.testing._trained import trained_tokenizers

NAMES = ("smollm2", "mistral-v1", "llama-3")
PLAIN = '"[ !#-[^-~]*"'  # ASCII: few enough configurations to make the rows of all of them
PLAIN_JSON = r'\{"name":' + PLAIN + r',"city":' + PLAIN + r',"age":(0|[1-9][0-9]{0,2})\}'
SMALL_JSON = r'\{"on":(true|false|null),"day":"20[0-2][0-9]-[01][0-9]","ok":(true|false|null)\}'


def engine_of(tokenizer, language, eos=()):
    """A new one, which knows nothing yet."""
    return constrain(tokenizer, language, eos_ids=eos).engine


def segments_of(engine):
    """Those in which the configurations of an engine are."""
    segments = Segments(engine.tables)
    state_pairs = (
        (engine.tables.state_pair(q, text), n)
        for q, text, n in all_configurations(engine, engine.initial())
    )
    configurations = [segments.of(*configuration) for configuration in state_pairs]
    return {
        id(configuration.segment): configuration.segment
        for configuration in configurations
        if configuration is not None
    }.values()


def cuts_of(engine):
    """The DFA states that are cuts wherever a segment comes to them: every canonical sequence of
    every text through one has a joint there."""
    found, passed = set(), set()
    for segment in segments_of(engine):
        for number, state in enumerate(segment.order.tolist()):
            if number in segment.cuts:
                found.add(state)
            elif number:
                passed.add(state)
    return found - passed


MOST = 600
SHARED = SegmentCache()  # by all examples: keys must keep tokenizers and languages apart
TEXT = r'"([^"\\\x00-\x1f]|\\["\\nt])*"'
JSON = (
    r'\{"name":' + TEXT + r',"city":' + TEXT + r',"age":(0|[1-9][0-9]{0,2})\}',
    r'\{"a": (true|false|null), "title": ' + TEXT + r', "tags": \[' + TEXT + r"\]\}",
    r'(key: (a|b)+\n)(other: "[^"\n]*"\n)?',
    r'"<\|im_[a-z]*\|?>?"|<(s|/s)>x',
)
TEMPLATES = (
    "(?:{0}){2}(?:{1})",
    "(?:{1}){2}(?:{0})(?:{2}(?:{1}))?",
    "(?:{0})|(?:{1}){2}(?:{0}){2}",
    "(?:(?:{0}){2})*",
)
"""The same parts in other state_pairs."""


def compare(tokenizer, regex, cache, eos=(), prompt=()):
    """The rows of all configurations, and the automaton put together, against the engine alone."""
    try:
        plain = engine_of(tokenizer, regex, eos)
        found = explored(plain, plain.initial(prompt), MOST)
    except (BudgetExceededError, EmptyLanguageError, PromptError):
        return
    engine = engine_of(tokenizer, regex, eos)
    together = assembled(engine, engine.initial(prompt), cache, 40 * MOST)
    assert together.relevant().all()
    assert together.equivalent(found.automaton) is None
    same_rows(plain, plain.initial(prompt), engine, engine.initial(prompt), cache)
    tokens_stop_at_cuts(plain, found.states)


def same_rows(plain, state, engine, start, cache):
    """Those that are in the cache, and those of `plain`, which knows of none."""
    assert prepared(engine, start, cache) > 0
    shared = SharedRelevance(engine, cache)
    for q, text, number in all_configurations(plain, state):
        row = shared.readable(engine.tables.state_pair(q, text), number)
        right = plain.relevance.readable(plain.tables.state_pair(q, text), number)
        assert all(map(np.array_equal, row, right))


def tokens_stop_at_cuts(plain, states):
    """No id that the engine allows is read across a cut of the segment that it begins in."""
    segments = Segments(plain.tables)
    for state in states:
        configuration = segments.of(state.state_pair, state.hypotheses)
        if configuration is None:
            continue
        cuts = {int(configuration.segment.order[number]) for number in configuration.segment.cuts}
        for token in members(plain.mask(state)).tolist():
            if token in plain.eos_ids:
                continue
            spelled = plain.tokenizer.spellings[token]
            begin = plain.dfa_state(state)
            if token in plain.tokenizer.added_ids:
                begin = int(plain.prefixed.added_from[begin])
            inner = {plain.dfa.walk(spelled[:end], begin) for end in range(1, len(spelled))}
            assert not inner & cuts


def some_eos(data, tokenizer):
    added = [token.id for token in tokenizer.description.added]
    return tuple(added[:1]) if data.draw(st.booleans()) else ()


@examples(20)
@given(st.data())
def test_shared_rows_are_the_rows(data):
    tokenizer = data.draw(bpe_tokenizers())
    regex = data.draw(cyclic_regexes(own_pieces(tokenizer)))
    compare(tokenizer, regex, SHARED, some_eos(data, tokenizer))


@examples(10)
@given(st.data())
def test_parts_stand_in_several_languages(data):
    """Of trained tokenizers, with whatever pipeline they have; after a prompt, too."""
    tokenizer = data.draw(trained_tokenizers())
    pieces = own_pieces(tokenizer)
    parts = [f"(?:{data.draw(cyclic_regexes(pieces))})" for _ in range(2)]
    between = data.draw(st.sampled_from((r"\,", *(f"(?:{cyclic})" for cyclic in parts[:1]))))
    eos = some_eos(data, tokenizer)
    for template in data.draw(st.permutations(TEMPLATES))[:3]:
        compare(tokenizer, template.format(*parts, between), SHARED, eos)
    prompt = tokenizer.encode(data.draw(texts(tokenizer)))
    compare(tokenizer, TEMPLATES[0].format(*parts, between), SHARED, eos, prompt)


LONG = pytest.mark.long


@pytest.mark.parametrize(
    ("name", "regex"),
    [
        pytest.param(name, regex, marks=() if (name, k) in {("smollm2", 0)} or k > 1 else LONG)
        for name in NAMES
        for k, regex in enumerate(JSON)
    ],
)
def test_rows_of_named_tokenizers(name, regex):
    """Along random walks, with one cache for all."""
    tokenizer = named(name)
    plain, other = (engine_of(tokenizer, regex, tokenizer.eos_ids) for _ in range(2))
    shared, rng = SharedRelevance(other, SHARED), random.Random(1)
    for _ in range(3):
        one, two = plain.initial(), other.initial()
        for _ in range(30):
            row, right = (
                rows.readable(s.state_pair, s.hypotheses)
                for rows, s in zip((shared, plain.relevance), (two, one), strict=True)
            )
            assert all(map(np.array_equal, row, right))
            ids = members(plain.mask(one))
            ids = ids[~np.isin(ids, plain.eos_ids)]
            if not len(ids):
                break
            closing = [i for i in ids.tolist() if tokenizer.spellings[i].startswith(b'"')]
            token = rng.choice(closing if closing and rng.random() < 0.4 else ids.tolist())
            one, two = plain.step(one, token), other.step(two, token)


@pytest.mark.parametrize("name", NAMES)
def test_put_together_is_built_whole(name):
    tokenizer, cache = named(name), SegmentCache()
    one = constrain(tokenizer, SMALL_JSON)
    whole = one.automaton()
    for _ in range(2):  # cold, warm
        assert one.automaton(segments=cache).equivalent(whole) is None
    other = constrain(tokenizer, SMALL_JSON.replace("on", "off", 1))
    assert other.automaton(segments=cache).equivalent(other.automaton()) is None
    with pytest.raises(BudgetExceededError):
        one.automaton(max_edges=20, segments=cache)


def test_what_cannot_be_put_together_is_refused():
    tokenizer, cache = small_tokenizer(["a", "b", "ab"], [("a", "b")], None), SegmentCache()
    own = constrain(tokenizer, "a*b")
    for constraint in (constrain(tokenizer, "a*b", method="lift"), own.within(3)):
        with pytest.raises(ArgumentError, match="leave them out"):
            constraint.automaton(segments=cache)
    with pytest.raises(ArgumentError, match="give a SegmentCache"):
        own.automaton(segments=True)


def test_pieces_that_are_known_are_put_together_within_the_budget(monkeypatch):
    """Nothing is written the second time, and the clock is looked at all the same."""
    engine, cache = engine_of(named("smollm2"), SMALL_JSON), SegmentCache()
    assembled(engine, engine.initial(), cache)
    looks, pieces = [], []
    piece = segments_eager._Maker.piece
    monkeypatch.setattr(segments_eager, "check", lambda: looks.append(1))
    monkeypatch.setattr(
        segments_eager._Maker, "piece", lambda self, at: pieces.append(at) or piece(self, at)
    )
    assembled(engine, engine.initial(), cache)
    assert len(looks) >= len(pieces) > 3


@pytest.mark.parametrize("name", NAMES[:2])
def test_the_same_value_is_made_once(name):
    """What stands between two keys is the same segment in any object."""
    tokenizer, cache = named(name), SegmentCache()

    def made(regex):
        engine, before = engine_of(tokenizer, regex), cache.counts.made
        return prepared(engine, engine.initial(), cache), cache.counts.made - before

    assert made(PLAIN_JSON)[1] > 0
    count, more = made(PLAIN_JSON)
    assert count > 10
    assert more == 0
    other = r'\{"label":' + PLAIN + r',"owner":' + PLAIN + r',"size":(0|[1-9][0-9]{0,2})\}'
    count, more = made(other)
    assert more < count / 2


def test_all_configurations_are_prepared():
    """Those of `all_configurations`; the row of each is known then."""
    tokenizer, cache = named("mistral-v1"), SegmentCache()
    plain, engine = (engine_of(tokenizer, r'\{"a":"[a-z\n]*","b":[0-9]+\}') for _ in range(2))
    prepared(engine, engine.initial(), cache)
    before = cache.counts.made
    same_rows(plain, plain.initial(), engine, engine.initial(), cache)
    assert cache.counts.made == before


def test_parts_that_end_in_an_added_token_are_told_apart():
    """After `<s>` a space is put before the text, so the DFA is read from elsewhere; and in one of
    these languages nothing can follow it."""
    steps = metaspace("always", False)
    added = [added_token("<s>"), added_token("<e>")]
    tokenizer = small_tokenizer(["▁", "x", "s", "<", ">", "b"], [], steps, added, decoder=steps)
    for regex in ("x<s(>b|x)", "x<s(><e>|x)", "x<s(>b|x)"):
        compare(tokenizer, regex, SHARED, (7,))


def test_room_for_places_may_run_out_at_any_time(monkeypatch):
    """Where an id ends inside a character, the state_pairs after it are new ones."""
    monkeypatch.setattr("bpe_automata._constructions.product_tables._SPARE_STATE_PAIRS", 2)
    compare(named("smollm2"), "(a|<\\|im|é|日本|\U0001f600){1,3},(日|é|<)*", SegmentCache())


# ---------------------------------------------------------------- cuts: `encode` has a joint there

TEXTS = (
    PLAIN_JSON,
    r'\{"a": (true|false|null), "title": ' + PLAIN + r', "tags": \[' + PLAIN + r"\]\}",
    r'(key: (a|b)+\n)(other: "[a-z]*"\n)?',
)


@pytest.mark.parametrize(
    "name", ["smollm2", "mistral-v1", pytest.param("llama-3", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("regex", TEXTS)
def test_encode_has_a_joint_at_each_cut(name, regex):
    tokenizer, rng = named(name), random.Random(2)
    engine = engine_of(tokenizer, regex)
    cuts, met = cuts_of(engine), 0
    for _ in range(60):
        text = engine.dfa.sample(rng, 60)
        # A prefix that `encode` puts is in the spelled text, and in the engine's DFA too.
        ids = tokenizer.encode(text.decode().removeprefix(" " if name == "mistral-v1" else ""))
        ends = np.cumsum([len(tokenizer.spellings[i]) for i in ids]).tolist()
        spelled = b"".join(tokenizer.spellings[i] for i in ids)
        state = engine.dfa_state(engine.initial())
        for at, byte in enumerate(spelled[:-1], start=1):
            state = engine.dfa.step(state, byte)
            if state in cuts:
                met += 1
                assert at in ends, (text, at)
    assert met > 60


def test_a_merge_or_an_added_token_across_is_no_cut():
    def cuts(merges, added):
        tokenizer = small_tokenizer(
            ["a", "b", "c", "d", *map("".join, merges)], merges, None, added
        )
        engine = engine_of(tokenizer, "ab(c|d)")
        spelled = {engine.dfa.walk(b"a"): "a", engine.dfa.walk(b"ab"): "ab"}
        return {spelled[q] for q in cuts_of(engine) if q in spelled}

    assert cuts([], []) == {"a", "ab"}
    assert cuts([("a", "b")], []) == {"ab"}
    assert cuts([("b", "c")], []) == {"a"}
    assert cuts([("a", "b"), ("ab", "c")], []) == set()
    assert cuts([], ["bc"]) == {"a"}


def test_a_token_that_no_merge_makes_is_no_cut():
    """With `ignore_merges` a pretoken that is in the vocabulary is that token."""
    tokenizer = small_tokenizer(["a", "b", "c", "ab"], [], None, ignore_merges=True)
    engine = engine_of(tokenizer, "abc?")
    cuts = cuts_of(engine)
    assert engine.dfa.walk(b"a") not in cuts
    assert engine.dfa.walk(b"ab") in cuts


# ---------------------------------------------------------------- the article's observations


def test_what_merges_with_what_in_mistral_7b():
    """Tran-Thien 2024: a newline and digits with nothing, `:` not to the right with a space."""
    canonical = canonical_automaton(named("mistral-v1"))
    for character in "\n" + string.digits:
        assert neighbours(canonical, character).alone
    assert " " not in neighbours(canonical, ":").right
    assert not neighbours(canonical, '"').alone
    assert '"' in neighbours(canonical, ":").right


@examples(30)
@given(st.data())
def test_tokens_are_made_where_their_bytes_meet(data):
    """Every token with two bytes or more holds at least one meeting of the table."""
    tokenizer = data.draw(bpe_tokenizers())
    canonical = canonical_automaton(tokenizer)
    met = meetings(canonical)
    for left, right, _ in canonical.derivation.proper.tolist():
        one, other = tokenizer.spellings[left], tokenizer.spellings[right]
        assert met[one[-1], other[0]]


# ---------------------------------------------------------------- the cache, in memory and on disk


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    """Segments go there; what is known of named tokenizers stays where it is."""
    monkeypatch.setattr(segments_cache, "_FOLDER", str(tmp_path))


@pytest.fixture
def engine():
    return engine_of(named("smollm2"), SMALL_JSON)


def first_row(engine, cache):
    state = engine.initial()
    return SharedRelevance(engine, cache).readable(state.state_pair, state.hypotheses)


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
