"""What is told of a text while it is written, against all ways to cut it into its parts."""

from __future__ import annotations

import pickle
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples, named

from bpe_automata import (
    Budget,
    Stream,
    compile_regex,
    constrain,
    either,
    heal,
    join,
    part,
    repeat,
    text_until,
    tools,
)
from bpe_automata.composition import readings
from bpe_automata.composition.readings import Parser
from bpe_automata.errors import ArgumentError, BudgetExceededError
from bpe_automata.testing import byte_level, byte_spelling, small_tokenizer

BUDGET = Budget(max_states=2_000)  # as there are many at once, and each has room of its own
LEAVES = ("a*", "", "b+|ab", "[ab]{2}", "(ab)*c?", "b", "c|")


def larger(inner):
    lists = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.tuples(st.sampled_from(("join", "either")), lists),
        st.tuples(st.just("part"), inner, st.sampled_from("xyz")),
        st.tuples(st.just("repeat"), inner, st.integers(0, 2), st.none() | st.integers(2, 3)),
    )


TREES = larger(larger(st.recursive(st.sampled_from(LEAVES), larger, max_leaves=3)))


def made(tree):
    if isinstance(tree, str):
        return compile_regex(tree)
    make, inside, *more = tree
    if make == "part":
        return part(*more, made(inside), budget=BUDGET)
    if make == "repeat":
        return repeat(made(inside), *more, budget=BUDGET)
    return {"join": join, "either": either}[make](*map(made, inside), budget=BUDGET)


def cuts(tree, text, at):
    """{(end, the parts)} of the texts of a tree that begin there."""
    if isinstance(tree, str):
        dfa = compile_regex(tree)
        ends = range(at, len(text) + 1)
        return {(end, ()) for end in ends if dfa.accepts(text[at:end].encode())}
    make, inside, *more = tree
    if make == "part":
        found = cuts(inside, text, at)
        return {(end, (*parts, *[(*more, at, end)][: end - at])) for end, parts in found}
    if make == "either":
        return {cut for one in inside for cut in cuts(one, text, at)}
    if make == "join":
        found = {(at, ())}
        for one in inside:
            found = followed(one, text, found)
        return found
    least, most = more
    now = {(at, ())}
    found = set(now) if least == 0 else set()
    for count in range(1, 1 + (len(text) + 2 if most is None else most)):
        now = {cut for cut in followed(inside, text, now) if cut[0] > at or count <= least + 1}
        found |= now if count >= least else set()
    return found


def followed(tree, text, found):
    return {
        (end, parts + more) for middle, parts in found for end, more in cuts(tree, text, middle)
    }


def common(several):
    several, n = list(several), 0
    while all(len(one) > n for one in several) and len({one[n] for one in several}) == 1:
        n += 1
    return several[0][:n]


@examples(120)
@given(TREES, st.text("abc", max_size=6))
def test_parts_are_those_of_all_ways_to_cut_a_text(tree, text) -> None:
    language = made(tree)
    if language.tree is None:
        return
    parser = Parser(language.tree)
    now, told = parser.begin(), list[tuple]()
    for at, letter in enumerate(text):
        told.append(parser.finished(now, False))
        now = parser.after(now, at, letter.encode())
    ways = {parts for end, parts in cuts(tree, text, 0) if end == len(text)}
    assert bool(ways) == language.accepts(text.encode())
    if not ways:
        return
    last = parser.finished(now, True)
    assert last == common(ways)[: len(last)]
    for sooner in told:  # what was told stays so
        assert sooner == last[: len(sooner)]
    if len(ways) == 1:
        assert len(last) == len(*ways)


ANSWER = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
LANGUAGE = join(
    part("thought", text_until("</think>")), "\n", repeat(join(part("value", ANSWER), "\n"), 1, 3)
)


def test_a_part_is_told_once_it_is_finished() -> None:
    tokenizer = named("smollm2")
    stream = Stream(pickle.loads(pickle.dumps(constrain(tokenizer, LANGUAGE, eos_ids=[0]))))
    seen, text = list[tuple[str, int]](), 'é, so.</think>\n{"a":12}\n{"a":3}\n'
    for token in tokenizer.encode(text):
        stream.matcher.advance(token)
        found = stream.read()
        assert text.startswith(found.text)
        assert found.certain == len(found.text)
        seen.append((found.text, len(found.parts)))
    assert [one.text for one in found.parts] == ["é, so.</think>", '{"a":12}', '{"a":3}']
    assert [one.name for one in found.parts] == ["thought", "value", "value"]
    for so_far, n in seen:
        assert n == so_far.count("</think>") + so_far.count("}")
    stream.matcher.rollback(5)
    assert len(stream.read().parts) < 3


def test_text_is_whole_characters_and_what_may_be_taken_back_is_not_certain() -> None:
    letters = [byte_spelling(bytes([byte])) for byte in range(256)]
    tokenizer = small_tokenizer(letters, (), byte_level())
    constraint = constrain(tokenizer, join(part("x", "[aé😀]{3}"), "b"), eos_ids=())
    for hold in (0, 2):
        stream, text = Stream(constraint), "aé😀b"
        for n, token in enumerate(tokenizer.encode(text), 1):
            stream.matcher.advance(token)
            found, sure = (
                stream.read(hold),
                text.encode()[: max(n - hold, 0)].decode("utf-8", "ignore"),
            )
            assert found.text == text.encode()[:n].decode("utf-8", "ignore")
            assert found.text[: found.certain] == sure
            assert len(found.parts) == (sure[:3] == text[:3])


def test_any_constraint_can_be_read() -> None:
    tokenizer, rng = named("smollm2"), random.Random(0)
    stream = Stream(constrain(tokenizer, "[a-zé ]{20}"), tokenizer.encode("Say: "))
    while not stream.matcher.is_finished:
        stream.matcher.advance(int(rng.choice(stream.matcher.allowed_ids())))
    assert len(stream.read().text) == 20
    assert stream.read().parts == ()


def test_parts_behind_what_was_given_back() -> None:
    tokenizer = named("smollm2")
    language = join(part("x", "[a-z]+;"), part("y", "[a-z ]+;"))
    healed = heal(constrain(tokenizer, language), tokenizer.encode("a;b"), 1)
    stream = Stream(healed.constraint, healed.prefix)
    ids = tokenizer.encode("a;bcd;e;")
    for token in [*ids[len(healed.prefix) :], *tokenizer.eos_ids[:1]]:
        stream.matcher.advance(token)
    assert [one.text for one in stream.read(hold=1).parts] == ["cd;", "e;"]


def test_an_end_that_may_be_taken_back_finishes_nothing() -> None:
    tokenizer = named("smollm2")
    stream = Stream(constrain(tokenizer, part("x", "(ab)+")))
    for token in [*tokenizer.encode("ab"), tokenizer.eos_ids[0]]:
        stream.matcher.advance(token)
    assert [stream.read(hold).parts for hold in (1, 0)] == [(), (("x", "ab", 0, 2),)]


def test_rounds_without_a_text_are_not_counted() -> None:
    parser = Parser(repeat(part("x", "a?"), 500, budget=BUDGET).tree)
    assert len(parser.begin()) == 2
    assert len(parser.after(parser.begin(), 0, b"aaa")) == 2


def test_calls_of_tools_are_parts() -> None:
    tokenizer = named("smollm2")
    stream = Stream(constrain(tokenizer, tools([{"name": "f"}, {"name": "g"}], "hermes")))
    call = '<tool_call>\n{{"name": "{}", "arguments": {{}}}}\n</tool_call>'
    for token in tokenizer.encode(f"Well. {call.format('g')} And {call.format('f')}"):
        stream.matcher.advance(token)
    assert [(one.name, one.text) for one in stream.read().parts] == [("g", "{}"), ("f", "{}")]


def test_what_cannot_be_followed_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(readings, "_MOST_READINGS", 100)
    with pytest.raises(ArgumentError, match="the name of a part"):
        part(3, "a")
    with pytest.raises(ArgumentError, match="hold"):
        Stream(constrain(named("smollm2"), "a")).read(hold=-1)
    many = join("[ab]*", part("x", "[ab]{200}"), "c")
    parser = Parser(many.tree)
    with pytest.raises(BudgetExceededError, match="readings"):
        parser.after(parser.begin(), 0, b"a" * 150)
