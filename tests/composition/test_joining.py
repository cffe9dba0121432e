"""Languages that are joined are the languages of regexes that say the same, and so are their masks;
special tokens are ids, not texts."""

import pickle
from functools import partial
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support import examples, same_arrays, same_masks

from bpe_automata import (
    Budget,
    ByteDFA,
    compile_grammar,
    compile_regex,
    constrain,
    either,
    join,
    link_regex,
    repeat,
    special,
    text_until,
    text_without,
)
from bpe_automata.automata.parts import PLAIN
from bpe_automata.errors import (
    ArgumentError,
    BudgetExceededError,
    EmptyLanguageError,
    PromptError,
    UnsupportedFeatureError,
)
from bpe_automata.schemas import json_schema
from bpe_automata.testing import added_token, bpe_tokenizers, small_tokenizer

BUDGET = Budget(max_states=2_000)  # as there are many at once, and each has room of its own
grammar = partial(compile_grammar, budget=BUDGET)

# Languages, each with a regex of the same texts.
LEAVES = (
    *((pattern, pattern) for pattern in ("a*", "", "b+|ab", "[ab]{2}", "(ab)*c?")),
    (["ab", "b"], "ab|b"),
    ({"enum": [1, 12]}, "1|12"),
    ({"type": "array", "items": {"const": 1}, "maxItems": 2}, r"\[\]|\[1(,1)?\]"),
    (grammar('start: start "a" | "b"'), "ba*"),
    (grammar('start: "a" start | '), "a*"),
    (grammar('start: "c"? x x\nx: "a" | "ab"'), "c?(a|ab){2}"),
    (link_regex("(ab){2,}", BUDGET), "(ab){2,}"),
    (link_regex("a{0,2}", BUDGET), "a{0,2}"),
    (compile_regex("bb|c"), "bb|c"),
)

DIGITS = [at for at, (_, regex) in enumerate(LEAVES) if "1" in regex]  # no tokenizer here has them


def made(tree):
    """(the language that a tree makes, a regex of the same texts)."""
    if isinstance(tree, int):
        return LEAVES[tree]
    make, inside, *counts = tree
    found, regexes = zip(*map(made, inside), strict=True)
    if make == "repeat":
        least, most = counts
        regex = f"({regexes[0]}){{{least},{'' if most is None else most}}}"
        return repeat(found[0], least, most, budget=BUDGET), regex
    if make == "join":
        return join(*found, budget=BUDGET), "".join(f"({regex})" for regex in regexes)
    return either(*found, budget=BUDGET), "|".join(f"({regex})" for regex in regexes)


def larger(inner):
    """What a tree has above those that are in it."""
    lists = st.lists(inner, min_size=1, max_size=3)
    one = inner.map(lambda tree: [tree])
    return st.one_of(
        *(st.tuples(st.just(make), lists) for make in ("join", "either")),
        st.tuples(st.just("repeat"), one, st.integers(0, 2), st.none() | st.integers(2, 4)),
    )


def trees(without=()):
    """without: leaves that are not in them."""
    leaves = st.sampled_from(sorted({*range(len(LEAVES))} - {*without}))
    return larger(st.recursive(leaves, larger, max_leaves=4))


@examples(150)
@given(trees())
def test_joined_languages_are_those_of_regexes(tree) -> None:
    joined, regex = made(tree)
    assert same_arrays(joined.to_dfa(), compile_regex(regex)), regex


@examples(40)
@given(bpe_tokenizers(), trees(DIGITS), st.integers(0, 99), st.sampled_from(("canonical", "lift")))
def test_their_masks_are_those_of_regexes(tokenizer, tree, seed, method) -> None:
    joined, regex = made(tree)
    try:
        same_masks(tokenizer, method, joined, compile_regex(regex), seed=seed)
    except (PromptError, EmptyLanguageError, UnsupportedFeatureError):
        assume(False)  # the tokenizer lacks some byte


AT_BRACKETS = {"type": "Split", "pattern": {"String": "<"}, "behavior": "Isolated", "invert": False}
ADDED = ("<a>", "<a", "b<", "<b>", ">", "<<")
TAGS = ("<a>", "<", "<b>", "a<b", "<<", "<ab>", "b<")
AROUND = ("[ab]*", "a*", "(<a)*", "[ab>]{0,2}", "[<b]?")


@examples(150)
@given(
    st.dictionaries(st.sampled_from(ADDED), st.booleans(), max_size=3),
    st.sampled_from((None, AT_BRACKETS)),
    st.lists(st.tuples(st.sampled_from(AROUND), st.sampled_from(TAGS)), min_size=1, max_size=2),
    st.integers(0, 99),
)
def test_tags_that_added_tokens_begin_alike(added, split, parts, seed) -> None:
    """A tag lets states be known to lead to an end without a search; only where the tokenizer reads
    it, whatever comes before, as it reads plain texts."""
    entries = [added_token(text, special=is_special) for text, is_special in added.items()]
    merges = [("a", "b"), ("<", "a"), ("a", ">"), ("<a", ">")]
    vocabulary = [*PLAIN.decode(), "<", "ab", "<a", "a>", "<a>"]
    tokenizer = small_tokenizer(vocabulary, merges, split, entries)
    joined = join(*(one for around, tag in parts for one in (around, [tag])), "b?", budget=BUDGET)
    regex = "".join(f"({around}){tag}" for around, tag in parts) + "b?"
    assert joined.marks.tags == {tag.encode() for _, tag in parts}
    try:
        expected = constrain(tokenizer, compile_regex(regex)).matcher()
    except EmptyLanguageError:
        with pytest.raises(EmptyLanguageError):
            constrain(tokenizer, joined).matcher()
        return
    assert expected.allowed_ids().size
    same_masks(tokenizer, "canonical", joined, compile_regex(regex), seed=seed)


def test_schemas_go_on_without_end_inside_of_a_join() -> None:
    joined = join("<a>", {"type": "array"}, either("", join(",", {"type": "object"})), "</a>")
    deep = b"[" * 50 + b"]" * 50
    assert joined.accepts(b"<a>" + deep + b"</a>")
    assert joined.accepts(b"<a>" + deep + b',{"a":1}</a>')
    assert not joined.accepts(b"<a>" + deep[1:] + b"</a>")
    assert joined.marks.special == frozenset()


def test_in_another_process_a_join_is_made_anew() -> None:
    joined = repeat(join("a", compile_grammar('start: "b" start? "c"'), ["x", "y"]), 1, 3)
    read = pickle.loads(pickle.dumps(joined))
    for text in (b"abbccxabcy", b"abbcx", b"abcxabcxabcxabcx"):
        assert read.accepts(text) == joined.accepts(text) == (text != b"abbcx" and len(text) < 16)


def test_what_was_given_may_change_afterwards() -> None:
    texts, schema = ["x"], {"type": "array", "items": {"const": 1}}
    joined = join(texts, schema)
    texts[:], schema["items"] = ["q"], {"const": 2}
    for one in (joined, joined.anew(), pickle.loads(pickle.dumps(joined))):
        assert (one.accepts(b"x[1]"), one.accepts(b"q[2]")) == (True, False)


def test_parts_that_come_again_are_made_anew_once() -> None:
    """Twenty joins, not a million."""
    doubled = join("b", budget=BUDGET)
    for _ in range(20):
        doubled = either(doubled, doubled, budget=BUDGET)
    assert pickle.loads(pickle.dumps(doubled)).accepts(b"b")
    deep = join("b", budget=BUDGET)
    for _ in range(49):
        deep = repeat(deep, 1, 2, budget=BUDGET)
    assert deep.accepts(b"bbb")
    with pytest.raises(BudgetExceededError, match="50 joins in one another"):
        repeat(deep, budget=BUDGET)


# ---------------------------------------------------------------- special tokens

THINK, END = "<think>", "<end>"
SPECIAL = small_tokenizer(
    ["a", "b", "ab", "<", ">", "t", "h", "i", "n", "k"],
    [("a", "b")],
    added=[
        {"content": text, "special": True, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False}
        for text in (THINK, END)
    ],
)  # fmt: skip


def spelled(matcher, so_far=()):
    """All texts of ids that end where the language may, as long as there are any."""
    found = {so_far} if matcher.is_accepting else set()
    for token in matcher.allowed_ids().tolist():
        after = matcher.copy()
        after.advance(token)
        found |= spelled(after, (*so_far, token))
    return found


def test_a_special_token_is_its_id() -> None:
    """The trie of what the tokenizer makes of all texts."""
    parts = repeat(["a", "b"], 0, 2), special(THINK), repeat("ab", 0, 2)
    found = spelled(constrain(SPECIAL, join(*parts)).matcher())
    texts = [
        first + THINK + last
        for first in ("", *"ab", *(x + y for x in "ab" for y in "ab"))
        for last in ("", "ab", "abab")
    ]
    assert found == {tuple(SPECIAL.encode(text)) for text in texts}
    assert all(SPECIAL.encode(THINK)[0] in ids for ids in found)


def test_other_special_tokens_stay_out() -> None:
    free = repeat(either("[<>thinkab]", special(THINK)), 0, 20)
    ids = constrain(SPECIAL, free).matcher().allowed_ids().tolist()
    assert SPECIAL.encode(THINK)[0] in ids
    assert SPECIAL.encode(END)[0] not in ids
    given = constrain(SPECIAL, f"{THINK}|{END}", added_tokens=(THINK,)).matcher()
    assert given.allowed_ids().tolist() == SPECIAL.encode(THINK)


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (ArgumentError, "nothing to join", join),
        (ArgumentError, "nothing to either", either),
        (ArgumentError, "least", partial(repeat, "a", -1)),
        (ArgumentError, "most", partial(repeat, "a", 3, 2)),
        (ArgumentError, "give a regex", partial(join, "a", 3)),
        (ArgumentError, "give its text", partial(special, 3)),
        (ArgumentError, "give its text", partial(special, "")),
        (ArgumentError, "give its text", partial(special, "\ud800")),
        (ArgumentError, "is no text of", partial(text_until, "\ud800")),
        (ArgumentError, "is no text of", lambda: text_until(join("a", special(THINK)))),
        (ArgumentError, "added_tokens is 1", lambda: constrain(SPECIAL, "a", added_tokens=1)),
        (EmptyLanguageError, "language 1", partial(join, "a", [])),
        (UnsupportedFeatureError, "joining", lambda: join(link_regex("a").begun_with(b"a"))),
        (UnsupportedFeatureError, "lift", lambda: constrain(SPECIAL, special(THINK), "lift")),
        (ArgumentError, "none of the tokenizer's 2", lambda: constrain(SPECIAL, special("<x>"))),
        (ArgumentError, "leaves out",
         lambda: constrain(SPECIAL, special(THINK), added_tokens=False)),
        (ArgumentError, "give eos_ids without it",
         lambda: constrain(SPECIAL, special(THINK), eos_ids=SPECIAL.encode(THINK))),
        (ArgumentError, "a tuple of texts", lambda: constrain(SPECIAL, "a", added_tokens=["<x>"])),
    ],
)  # fmt: skip
def test_what_cannot_be_joined_is_refused(error, message, call) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_join_of_one_language_is_that_language() -> None:
    assert isinstance(join("a").to_dfa(), ByteDFA)
    for one in ("a", {"type": "boolean"}, ["x"]):
        assert same_arrays(join(one).to_dfa(), either(one).to_dfa())
    assert (
        json_schema({"type": "boolean"}).to_dfa().shortest()
        == join({"type": "boolean"}).to_dfa().shortest()
    )


# ---------------------------------------------------------------- free text

FREE = [("ab",), ("aba", "bb"), ("a",), ("<think>", "b"), ("aa", "ab")]


@pytest.mark.parametrize("triggers", FREE)
def test_free_text_ends_at_its_first_trigger(triggers) -> None:
    until, without = text_until(*triggers), text_without(*triggers)
    for size in range(7):
        for text in map("".join, product("ab", repeat=size)):
            ends = [end for end in range(size + 1) if text[:end].endswith(triggers)]
            assert until.accepts(text.encode()) == (ends == [size])
            assert without.accepts(text.encode()) == (ends == [])


def test_free_text_is_any_text() -> None:
    text = "\u00e9\n\U0001f600 <think "
    assert text_until("<think>").accepts(f"{text}<think>".encode())
    assert text_without("<think>").accepts(text.encode())
    assert not text_without("<think>").accepts(b"\xff")
    with pytest.raises(ArgumentError, match="give at least one"):
        text_until()
    with pytest.raises(ArgumentError, match="is no text of text_without"):
        text_without("a", "")


def test_the_language_comes_after_the_thoughts() -> None:
    """Free ids, then the id of the trigger, then the language alone; the seam is the tokenizer's
    own: `a` before the trigger is not merged with what comes behind."""
    matcher = constrain(SPECIAL, "b(ab)*", after=THINK).matcher()
    (think,) = SPECIAL.encode(THINK)
    for text in ("abba", "a", THINK, "b"):
        for token in SPECIAL.encode(text):
            assert not matcher.is_accepting
            matcher.advance(token)
        if text != "b":
            assert matcher.allows(think) == (text != THINK)
    assert matcher.is_accepting
    assert SPECIAL.decode(matcher.ids) == f"abbaa{THINK}b"
    assert not constrain(SPECIAL, "b", after="a").matcher().allows(think)
