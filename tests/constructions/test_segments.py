"""Vegas segments: cuts are where `encode` has a joint, and what is shared is what would be made."""

from __future__ import annotations

import random
import string

import numpy as np
import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata import Tokenizer, compile_regex, constrain
from bpe_automata.constructions import SegmentCache, canonical_automaton, explore, explored, stored
from bpe_automata.constructions.segments_eager import assembled, prepared, prepared_common
from bpe_automata.constructions.segments_joints import meetings, neighbours
from bpe_automata.decoding import segment_library
from bpe_automata.errors import (
    ArgumentError,
    BudgetExceededError,
    EmptyLanguageError,
    MissingDependencyError,
)
from bpe_automata.kernels.bits import members
from bpe_automata.schemas import compile_json_schema
from bpe_automata.storage import arrays_path
from bpe_automata.testing import bpe_tokenizers, cyclic_regexes, small_tokenizer
from bpe_automata.testing.texts import own_pieces
from bpe_automata.testing.trained import trained_tokenizers

MOST = 1500
SHARED = SegmentCache()  # by all examples: keys must keep tokenizers and languages apart
TEXT = r'"([^"\\\x00-\x1f]|\\["\\nt])*"'
JSON = (
    r'\{"name":' + TEXT + r',"city":' + TEXT + r',"age":(0|[1-9][0-9]{0,2})\}',
    r'\{"a": (true|false|null), "title": '
    + TEXT
    + r', "tags": \['
    + TEXT
    + r"(, "
    + TEXT
    + r")*\]\}",
    r'(key: (a|b)+\n)(other: "[^"\n]*"\n)?',
    r'"<\|im_[a-z]*\|?>?"|<(s|/s)>x',
)
PLAIN = '"[ !#-[^-~]*"'  # ASCII: few enough nodes to make the rows of all of them
PLAIN_JSON = (
    r'\{"name":' + PLAIN + r',"city":' + PLAIN + r',"age":(0|[1-9][0-9]{0,2})\}',
    r'\{"a": (true|false|null), "title": ' + PLAIN + r', "tags": \[' + PLAIN + r"\]\}",
    r'(key: (a|b)+\n)(other: "[a-z]*"\n)?',
)
NAMES = ("smollm2", "mistral-v1", "llama-3")


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    """Segments go there; what is known of named tokenizers stays where it is."""
    monkeypatch.setattr(
        "bpe_automata.constructions.segments_files._FOLDER", f"segments-{tmp_path.name}"
    )


def named(name):
    try:
        return Tokenizer.load(name)
    except MissingDependencyError as error:
        pytest.skip(str(error))


def engines(tokenizer, regex, cache, eos=()):
    dfa = compile_regex(regex)
    plain = constrain(tokenizer, dfa, eos_ids=eos).engine
    return plain, constrain(tokenizer, dfa, eos_ids=eos, segments=cache).engine


def compare(tokenizer, regex, cache, eos=()):
    """Masks everywhere, and the automaton put together, against the engine without segments."""
    try:
        plain, shared = engines(tokenizer, regex, cache, eos)
        found = explored(plain, plain.initial(), MOST)
    except (BudgetExceededError, EmptyLanguageError):
        return
    other = explored(shared, shared.initial(), MOST)
    assert other.automaton.identical(found.automaton)
    for one, two in zip(found.states, other.states, strict=True):
        assert np.array_equal(plain.mask(one), shared.mask(two))
    together = assembled(shared, shared.initial(), 40 * MOST)
    assert together.relevant().all()
    assert together.equivalent(found.automaton) is None
    tokens_stop_at_cuts(plain, shared, found.states)


def tokens_stop_at_cuts(plain, shared, states):
    """No id that the plain engine allows is read across a cut of the segment that it begins in."""
    segments = shared.rows.segments
    for state in states:
        place = shared.tables.place(
            plain.dfa_state(state), int(plain.tables.memo.added[state.place])
        )
        node = segments.of(place, state.hypotheses)
        if node is None:
            continue
        cuts = {int(node.segment.order[number]) for number in node.segment.cuts}
        for token in members(plain.mask(state)).tolist():
            if token in plain.eos_ids:
                continue
            spelled = plain.tokenizer.spellings[token]
            begin = plain.dfa_state(state)
            if token in plain.tokenizer.added_ids:
                begin = int(plain.prefixed.added_from[begin])
            inner = {plain.dfa.walk(spelled[:end], begin) for end in range(1, len(spelled))}
            assert not inner & cuts


@examples(60)
@given(st.data())
def test_shared_rows_are_the_rows(data):
    tokenizer = data.draw(bpe_tokenizers())
    regex = data.draw(cyclic_regexes(own_pieces(tokenizer)))
    added = [token.id for token in tokenizer.description.added]
    compare(tokenizer, regex, SHARED, tuple(added[:1]) if data.draw(st.booleans()) else ())


@examples(25)
@given(st.data())
def test_shared_rows_are_the_rows_of_trained_tokenizers(data):
    tokenizer = data.draw(trained_tokenizers())
    pieces = own_pieces(tokenizer)
    part = st.sampled_from(pieces)
    key, value = data.draw(part), data.draw(cyclic_regexes(pieces))
    compare(tokenizer, f"(?:{value})" + r"\," + f"(?:{value})|(?:{value})", SHARED)
    assert key in pieces


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("regex", JSON)
def test_masks_of_named_tokenizers(name, regex):
    """Along random walks, with one cache for all."""
    tokenizer = named(name)
    plain, shared = engines(tokenizer, regex, SHARED, tokenizer.eos_ids)
    rng = random.Random(1)
    for _ in range(3):
        one, two = plain.initial(), shared.initial()
        for _ in range(30):
            mask = plain.mask(one)
            assert np.array_equal(mask, shared.mask(two))
            ids = members(mask)
            ids = ids[~np.isin(ids, plain.eos_ids)]
            if not len(ids):
                break
            closing = [i for i in ids.tolist() if tokenizer.spellings[i].startswith(b'"')]
            token = rng.choice(closing if closing and rng.random() < 0.4 else ids.tolist())
            one, two = plain.step(one, token), shared.step(two, token)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("regex", PLAIN_JSON)
def test_encode_has_a_joint_at_each_cut(name, regex):
    tokenizer, rng = named(name), random.Random(2)
    _, shared = engines(tokenizer, regex, SegmentCache())
    prepared_common(shared, shared.initial())
    cuts = shared.rows.segments.cuts()
    met = 0
    for _ in range(60):
        text = shared.dfa.sample(rng, 60)
        # A prefix that `encode` puts is in the spelled text, and in the engine's DFA too.
        ids = tokenizer.encode(text.decode().removeprefix(" " if name == "mistral-v1" else ""))
        ends = np.cumsum([len(tokenizer.spellings[i]) for i in ids]).tolist()
        spelled = b"".join(tokenizer.spellings[i] for i in ids)
        state = shared.dfa_state(shared.initial())
        for at, byte in enumerate(spelled[:-1], start=1):
            state = shared.dfa.step(state, byte)
            if state in cuts:
                met += 1
                assert at in ends, (text, at, cuts[state])
    assert met > 60


SMALL_JSON = r'\{"on":(true|false|null),"day":"20[0-2][0-9]-[01][0-9]","ok":(true|false|null)\}'


@pytest.mark.parametrize("name", NAMES)
def test_put_together_is_built_whole(name):
    tokenizer, cache = named(name), SegmentCache()
    plain, shared = engines(tokenizer, SMALL_JSON, cache)
    whole = explore(plain, plain.initial())
    for _ in range(2):  # cold, warm
        assert assembled(shared, shared.initial()).equivalent(whole) is None
    other = constrain(tokenizer, SMALL_JSON.replace("on", "off", 1), segments=cache)
    again = constrain(tokenizer, SMALL_JSON.replace("on", "off", 1)).automaton()
    assert other.automaton().equivalent(again) is None
    with pytest.raises(BudgetExceededError):
        assembled(shared, shared.initial(), 20)


@pytest.mark.parametrize("name", NAMES[:2])
def test_the_same_value_is_made_once(name):
    """What stands between two keys is the same segment in any object."""
    tokenizer, cache = named(name), SegmentCache()
    _, first = engines(tokenizer, PLAIN_JSON[0], cache)
    prepared(first, first.initial())
    made = cache.counts.made
    assert made
    _, again = engines(tokenizer, PLAIN_JSON[0], cache)
    assert prepared(again, again.initial()) > 10
    assert cache.counts.made == made
    other = r'\{"label":' + PLAIN + r',"owner":' + PLAIN + r',"size":(0|[1-9][0-9]{0,2})\}'
    _, third = engines(tokenizer, other, cache)
    count = prepared(third, third.initial())
    assert cache.counts.made - made < count / 2


def test_on_disk():
    tokenizer, cache = named("smollm2"), SegmentCache(on_disk=True)
    _, first = engines(tokenizer, SMALL_JSON, cache)
    whole = assembled(first, first.initial())
    prepared(first, first.initial())
    assert cache.save() > 3
    assert cache.save() == 0
    later = SegmentCache(on_disk=True)
    plain, second = engines(tokenizer, SMALL_JSON, later)
    assert assembled(second, second.initial()).identical(whole)
    prepared(second, second.initial())
    compare_states = explored(plain, plain.initial())
    for state in compare_states.states:
        assert np.array_equal(plain.mask(state), second.mask(state))
    assert later.counts.loaded > 0
    assert later.counts.made == 0


def test_a_damaged_file_is_made_again():
    from bpe_automata.constructions import segments_files

    tokenizer, cache = named("smollm2"), SegmentCache(on_disk=True)
    _, first = engines(tokenizer, SMALL_JSON, cache)
    first.mask(first.initial())
    cache.save()
    node = first.rows.segments.of(first.initial().place, first.initial().hypotheses)
    path = arrays_path(segments_files._FOLDER, node.segment.key.hex())
    path.write_bytes(path.read_bytes()[:-3] + b"xyz")
    later = SegmentCache(on_disk=True)
    _, second = engines(tokenizer, SMALL_JSON, later)
    with pytest.warns(stored.CorruptCacheWarning, match="rebuilt"):
        mask = second.mask(second.initial())
    assert np.array_equal(mask, first.mask(first.initial()))
    assert later.counts.made == 1


def test_the_library_serves_schemas(monkeypatch):
    tokenizer, cache = named("smollm2"), SegmentCache()
    monkeypatch.setattr(segment_library, "VALUES", {"string": {"type": "string"}})
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
    _, engine = engines(tokenizer, PLAIN_JSON[0], cache)
    prepared(engine, engine.initial())
    assert cache.n_segments < len(engine.rows.segments.found())
    with pytest.raises(ArgumentError):
        SegmentCache(max_bytes=-1)
    with pytest.raises(ArgumentError):
        constrain(tokenizer, "a", method="lift", segments=cache)


def test_a_merge_or_an_added_token_across_is_no_cut():
    def cuts_of(merges, added):
        tokenizer = small_tokenizer(
            ["a", "b", "c", "d", *map("".join, merges)], merges, None, added
        )
        engine = constrain(tokenizer, "ab(c|d)", segments=SegmentCache()).engine
        prepared(engine, engine.initial())
        spelled = {engine.dfa.walk(b"a"): "a", engine.dfa.walk(b"ab"): "ab"}
        return {spelled[q] for q in engine.rows.segments.cuts() if q in spelled}

    assert cuts_of([], []) == {"a", "ab"}
    assert cuts_of([("a", "b")], []) == {"ab"}
    assert cuts_of([("b", "c")], []) == {"a"}
    assert cuts_of([("a", "b"), ("ab", "c")], []) == set()
    assert cuts_of([], ["bc"]) == {"a"}


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
