"""A ban as an automaton over text, against `re` and `str.casefold` by brute force."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata import Budget, Tokenizer, constrain
from bpe_automata.banning import Ban, Found
from bpe_automata.errors import (
    ArgumentError,
    BudgetExceededError,
    EmptyLanguageError,
    RegexSyntaxError,
    UnsupportedRegexError,
)
from bpe_automata.kernels.bits import members
from bpe_automata.reference import lift_mask
from bpe_automata.testing import byte_spelling, small_tokenizer

LETTERS = "aAbß -sé"
words = st.text(LETTERS, min_size=1, max_size=3)
texts = st.text(LETTERS, max_size=9)
before = st.text(LETTERS, max_size=4)


def reads_as(part: str, word: str, ignore_case: bool) -> bool:
    """The definition, for one part of a text."""
    if not ignore_case:
        return part == word
    folded = part.casefold() == word.casefold()
    return folded or re.fullmatch(re.escape(word), part, re.IGNORECASE) is not None


def is_whole(text: str, start: int, end: int) -> bool:
    around = text[max(0, start - 1) : start] + text[end : end + 1]
    return re.search(r"\w", around) is None


def found_by_hand(ban: Ban, text: str, past: int = 0) -> list[tuple[int, int]]:
    """The shortest banned part from each place that ends after `past`, by trying all parts."""
    found = []
    for start in range(len(text)):
        for end in range(max(start, past) + 1, len(text) + 1):
            part = text[start:end]
            banned = any(reads_as(part, word, ban.ignore_case) for word in ban.words) or any(
                re.fullmatch(regex, part, re.IGNORECASE * ban.ignore_case) for regex in ban.regexes
            )
            if banned and (not ban.whole_word or is_whole(text, start, end)):
                found.append((start, end))
                break
    return found


@st.composite
def bans(draw):
    ignore_case = draw(st.booleans())
    key = str.casefold if ignore_case else str
    given_words = draw(st.lists(words, min_size=1, max_size=3, unique_by=key))
    regexes = draw(st.lists(st.sampled_from(["a+b", "[ab]s", "(?i)sA|é.", r"\s-"]), max_size=1))
    return Ban(given_words, regexes, draw(st.booleans()), ignore_case)


@examples(25)
@given(st.data())
def test_a_ban_is_what_its_definition_says(data):
    ban = data.draw(bans())
    first = data.draw(before)
    contains_after, allowed_after = ban.contains_after(first), ban.allowed_after(first)
    for text in data.draw(st.lists(texts, min_size=9, max_size=9)):
        wanted = found_by_hand(ban, text)
        assert [(f.start, f.end) for f in ban.found_in(text)] == wanted
        assert all(f.word == text[f.start : f.end] for f in ban.found_in(text))
        assert ban.contains.accepts(text.encode()) == bool(wanted)
        assert ban.allowed.accepts(text.encode()) == (not wanted)

        wanted = found_by_hand(ban, first + text, len(first))
        shifted = [(a - len(first), b - len(first)) for a, b in wanted]
        assert [(f.start, f.end) for f in ban.found_in(text, first)] == shifted
        assert contains_after.accepts(text.encode()) == bool(wanted)
        assert allowed_after.accepts(text.encode()) == (not wanted)


@pytest.mark.parametrize(
    ("word", "text", "banned"),
    [
        ("straße", "STRASSE", True),
        ("strasse", "Straße", True),
        ("ss", "ß", True),
        ("ß", "sS", True),
        ("fin", "ﬁn", True),
        ("office", "oﬃce", True),
        ("sa", "ßa", False),  # no part of it reads so, though it folds to "ssa"
        ("i", "ı", True),  # by re.IGNORECASE, though not by folding
        ("K", "\u212a", True),  # the sign for Kelvin
        ("σας", "ΣΑΣ", True),
        ("é", "e\u0301", False),  # texts are not normalized
    ],
)
def test_without_regard_to_case(word, text, banned):
    assert bool(Ban([word], ignore_case=True).found_in(text)) == banned
    assert Ban([word], ignore_case=True).contains.accepts(text.encode()) == banned
    assert not Ban([word]).found_in(text)


def test_full_folding_of_every_character():
    """Each character that folds to several is banned with what it folds to, and the other way."""
    several = [c for c in map(chr, range(0x110000)) if len(c.casefold()) > 1]
    assert len(several) > 100
    ban = Ban(sorted({c.casefold() for c in several}), ignore_case=True)
    for c in several:
        assert ban.occurrence.accepts(c.encode()), c
        assert ban.occurrence.accepts(c.casefold().upper().encode()), c


def test_boundaries_and_spaces_are_text():
    whole = Ban(["talk", "C++", " now"], whole_word=True)
    for text, banned in {
        "talk": 1,
        "(talk)": 1,
        "talks": 0,
        "_talk": 0,
        "talké": 0,
        "talk日": 0,
        "C++": 1,
        "C++x": 0,
        "xC++": 0,
        "C++ C++": 2,
        "know now": 0,
        "so  now": 1,
    }.items():
        assert len(whole.found_in(text)) == banned, text
        assert whole.contains.accepts(text.encode()) == bool(banned), text
    assert not Ban([" talk"]).found_in("talk")
    assert Ban([" talk"]).found_in("we talked") == (Found(2, 7, " talk"),)


def test_across_the_edge_of_the_prompt():
    ban = Ban(["talk"], whole_word=True)
    assert ban.found_in("lk!", "we ta") == (Found(-2, 2, "talk"),)
    assert not ban.found_in("lky", "we ta")
    assert not ban.found_in(" more", "we talk")  # it is the prompt's own word
    assert ban.allowed_after("we talk").accepts(b" more")
    assert ban.allowed_after("we ").accepts(b"")
    assert not ban.allowed_after("we ").accepts(b"talk")
    assert ban.allowed_after("we").accepts(b"talk")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "nothing is banned"),
        (([""],), "an empty word"),
        ((["a", "b", "a"],), "'a' is given twice"),
        (([], ["a", "a"]), "regex 'a' is given twice"),
        (("word",), "not a list"),
        ((["a", 3],), "holds 3"),
        ((["\ud800"],), "surrogate"),
        ((["ß", "SS"], (), False, True), "'SS' is given twice, before as 'ß'"),
    ],
)
def test_what_is_no_ban(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        Ban(*arguments)


@pytest.mark.parametrize(
    ("regex", "error", "position"),
    [
        ("a(b", RegexSyntaxError, 1),
        ("ab$", UnsupportedRegexError, 2),
        ("^a|b", UnsupportedRegexError, 0),
    ],
)
def test_regexes_that_cannot_be_banned(regex, error, position):
    with pytest.raises(error) as caught:
        Ban(regexes=[regex])
    assert (caught.value.pattern, caught.value.position) == (regex, position)


def test_regexes_keep_their_flags():
    verbose = Ban(regexes=["(?ix)a b  # a comment", "(?i)(?s)c.d"])
    assert verbose.found_in("xAb") == (Found(1, 3, "Ab"),)
    assert verbose.found_in("C\nD")
    assert not verbose.found_in("a b")


def test_a_ban_that_forbids_everything():
    with pytest.raises(EmptyLanguageError, match="matches the empty text"):
        Ban(regexes=["a*"])
    tokenizer = small_tokenizer("abc")
    with pytest.raises(EmptyLanguageError, match=r"banned by the ban of 'b', regex '\[bc\]'"):
        Ban(["b"], ["[bc]"]).constrain(tokenizer, "a?b|ac")
    with pytest.raises(BudgetExceededError, match="30 states"):
        _ = Ban([], ["a[ab]{9}b"], budget=Budget(max_states=30)).allowed


# ---------------------------------------------------------------- with a tokenizer


def fragments() -> Tokenizer:
    """Tokens that are parts of characters, and tokens with a word's part and more."""
    e, day = "é".encode(), "日".encode()
    parts = [e[:1], e[1:], day[:1], day[1:], b"a", b"b", b"ab", b" ", b"b ", day, e]
    vocabulary = [byte_spelling(part) for part in parts]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    merges = [(4, 5), (5, 7), (2, 3), (0, 1)]
    pairs = [(vocabulary[left], vocabulary[right]) for left, right in merges]
    return small_tokenizer(
        vocabulary, pairs, {**byte_level, "use_regex": False}, ["<end>", "<x>"], decoder=None
    )


@pytest.mark.parametrize("whole_word", [False, True])
@pytest.mark.parametrize("method", ["lift", "canonical"])
def test_no_tokenization_gets_round_it(whole_word, method):
    """All ids of at most 3 tokens: accepted exactly if nothing in the text is banned (and they are
    the tokenizer's own)."""
    tokenizer = fragments()
    eos = tokenizer.encode("<end>")
    ban = Ban(["ab", "é", "b日"], whole_word=whole_word)
    constraint = ban.constrain(tokenizer, "[abé日 ]*", method, eos_ids=eos)
    accepted = 0
    for n in range(4):
        for ids in itertools.product(range(11), repeat=n):
            data = tokenizer.text_bytes(ids)
            try:
                text = data.decode()
            except UnicodeDecodeError:
                wanted = False
            else:
                own = method == "lift" or tokenizer.encode(text) == list(ids)
                matches = re.fullmatch("[abé日 ]*", text) is not None
                wanted = own and matches and not found_by_hand(ban, text)
            assert reads(constraint, ids) == wanted, ids
            accepted += wanted
    assert accepted > 20


def reads(constraint, ids) -> bool:
    matcher = constraint.matcher()
    for token in ids:
        if token not in matcher.allowed_ids():
            return False
        matcher.advance(token)
    return matcher.is_accepting


def test_masks_are_those_of_every_id_tried():
    tokenizer = fragments()
    ban = Ban(["ab", "é"], whole_word=True)
    constraint = ban.constrain(tokenizer, None, "lift", eos_ids=[11])
    engine, dfa = constraint.engine, constraint.dfa
    for state in range(1, dfa.n_states):
        wanted = lift_mask(tokenizer, dfa, state, [11]) - {12}
        alive = {i for i in wanted if i == 11 or engine.mask(engine.step(state, i)).any()}
        assert set(members(engine.mask(state)).tolist()) == alive


def test_added_tokens_are_no_way_around_it():
    """A decoder that skips them would join a and b."""
    tokenizer = fragments()
    ban = Ban(["ab"])
    assert 12 not in ban.constrain(tokenizer, method="lift", eos_ids=[11]).matcher().allowed_ids()
    joined = ban.constrain(tokenizer, None, "lift", [11], added_tokens=True).matcher()
    assert 12 in joined.allowed_ids()


@pytest.mark.parametrize("method", ["lift", "canonical"])
@pytest.mark.parametrize("whole_word", [False, True])
def test_smollm2(smollm2_tokenizer, method, whole_word):
    """Random walks never write a banned word, and every text without one can be written."""
    ban = Ban(["talk", "listen", "fuck you", "日本"], whole_word=whole_word, ignore_case=True)
    constraint = ban.constrain(smollm2_tokenizer, r"[a-zA-Z日本 ,]{0,40}", method)
    plain = constrain(smollm2_tokenizer, r"[a-zA-Z日本 ,]{0,40}", method, added_tokens=False)
    rng, refused = np.random.default_rng(0), 0
    for _ in range(15):
        matcher, free = constraint.matcher(), plain.matcher()
        while not matcher.is_finished:
            allowed, without = matcher.allowed_ids(), free.allowed_ids()
            assert np.isin(allowed, without).all()
            refused += len(without) - len(allowed)
            token = int(rng.choice(allowed))
            matcher.advance(token)
            if token not in constraint.eos_ids:
                free.advance(token)
        text = smollm2_tokenizer.decode([i for i in matcher.ids if i not in constraint.eos_ids])
        assert not found_by_hand(ban, text)
    assert refused
    for text in ("we walk, list", "fuck, you", "talk", "TAlking", "日本", "日 本", "talkative"):
        ids = smollm2_tokenizer.encode(text)
        assert reads(constraint, ids) == (not found_by_hand(ban, text)), text
    for ids in (["t", "al", "k"], ["ta", "lk"], [" t", "a", "l", "k", " "]):
        spelled = [i for part in ids for i in smollm2_tokenizer.encode(part)]
        assert not reads(constraint, spelled)
