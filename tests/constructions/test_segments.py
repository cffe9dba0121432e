"""Vegas segments: what is shared between languages is what each of them would make itself."""

from __future__ import annotations

import random

import numpy as np
import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st
from shared_segments import NAMES, PLAIN, PLAIN_JSON, SMALL_JSON, engines, named

from bpe_automata import constrain
from bpe_automata.constructions import SegmentCache, explore, explored, segments_eager
from bpe_automata.constructions.every_node import every_node
from bpe_automata.constructions.segments_eager import assembled
from bpe_automata.constructions.segments_nodes import prepared
from bpe_automata.errors import BudgetExceededError, EmptyLanguageError, PromptError
from bpe_automata.kernels.bits import members
from bpe_automata.testing import added_token, bpe_tokenizers, cyclic_regexes, small_tokenizer, texts
from bpe_automata.testing.texts import own_pieces
from bpe_automata.testing.trained import trained_tokenizers

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
"""The same parts in other places."""


def compare(tokenizer, regex, cache, eos=(), prompt=()):
    """Masks everywhere, and the automaton put together, against the engine without segments."""
    try:
        plain, shared = engines(tokenizer, regex, cache, eos)
        found = explored(plain, plain.initial(prompt), MOST)
    except (BudgetExceededError, EmptyLanguageError, PromptError):
        return
    other = explored(shared, shared.initial(prompt), MOST)
    assert other.automaton.identical(found.automaton)
    for one, two in zip(found.states, other.states, strict=True):
        assert np.array_equal(plain.mask(one), shared.mask(two))
    together = assembled(shared, shared.initial(prompt), 40 * MOST)
    assert together.relevant().all()
    assert together.equivalent(found.automaton) is None
    prepared(shared, shared.initial(prompt))
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


def test_pieces_that_are_known_are_put_together_within_the_budget(monkeypatch):
    """Nothing is written the second time, and the clock is looked at all the same."""
    tokenizer, cache = named("smollm2"), SegmentCache()
    _, shared = engines(tokenizer, SMALL_JSON, cache)
    assembled(shared, shared.initial())
    looks, pieces = [], []
    piece = segments_eager._Maker.piece
    monkeypatch.setattr(segments_eager, "check", lambda: looks.append(1))
    monkeypatch.setattr(
        segments_eager._Maker, "piece", lambda self, at: pieces.append(at) or piece(self, at)
    )
    assembled(shared, shared.initial())
    assert len(looks) >= len(pieces) > 3


@pytest.mark.parametrize("name", NAMES[:2])
def test_the_same_value_is_made_once(name):
    """What stands between two keys is the same segment in any object."""
    tokenizer, cache = named(name), SegmentCache()
    _, first = engines(tokenizer, PLAIN_JSON, cache)
    prepared(first, first.initial(), common=True)
    made = cache.counts.made
    assert made
    _, again = engines(tokenizer, PLAIN_JSON, cache)
    assert prepared(again, again.initial(), common=True) > 10
    assert cache.counts.made == made
    other = r'\{"label":' + PLAIN + r',"owner":' + PLAIN + r',"size":(0|[1-9][0-9]{0,2})\}'
    _, third = engines(tokenizer, other, cache)
    count = prepared(third, third.initial(), common=True)
    assert cache.counts.made - made < count / 2


def test_all_nodes_are_prepared():
    """Those of `every_node`; each has its row when the engine comes to it."""
    tokenizer, cache = named("mistral-v1"), SegmentCache()
    plain, shared = engines(tokenizer, r'\{"a":"[a-z\n]*","b":[0-9]+\}', cache)
    nodes = every_node(plain, plain.initial())
    assert prepared(shared, shared.initial()) >= len(nodes)
    made, apart = cache.counts.made, cache.counts.apart
    for state, text, number in nodes:
        shared.rows.row(shared.tables.place(state, text), number)
    assert (cache.counts.made, cache.counts.apart) == (made, apart)


def test_parts_that_end_in_an_added_token_are_told_apart():
    """After `<s>` a space is put before the text, so the DFA is read from elsewhere; and in one of
    these languages nothing can follow it."""
    steps = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": False}
    added = [added_token("<s>"), added_token("<e>")]
    tokenizer = small_tokenizer(["▁", "x", "s", "<", ">", "b"], [], steps, added, decoder=steps)
    for regex in ("x<s(>b|x)", "x<s(><e>|x)", "x<s(>b|x)"):
        compare(tokenizer, regex, SHARED, (7,))


def test_room_for_places_may_run_out_at_any_time(monkeypatch):
    """Where an id ends inside a character, the places after it are new ones."""
    monkeypatch.setattr("bpe_automata.constructions.product_tables._SPARE_PLACES", 2)
    tokenizer = named("smollm2")
    plain, shared = engines(
        tokenizer, "(a|<\\|im|é|日本|\U0001f600){1,3},(日|é|<)*", SegmentCache()
    )
    prepared(shared, shared.initial())
    state, other = plain.initial(), shared.initial()
    for token in tokenizer.encode("a日本<|im,日é"):
        assert np.array_equal(plain.mask(state), shared.mask(other))
        state, other = plain.step(state, token), shared.step(other, token)
