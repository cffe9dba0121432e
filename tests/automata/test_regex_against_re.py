"""Law: compile_regex(r) accepts s.encode()  <=>  re.fullmatch(r, s), on random regexes.

Strings are drawn from a fixed alphabet, so `\\p{...}` has an exact twin in the syntax of `re`: the
class of the letters of the alphabet that have the property.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

import numpy as np
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_automata.automata import ByteDFA, compile_regex
from bpe_automata.automata.compile import Budget, _by_atoms, _program, _wide_dfa
from bpe_automata.automata.syntax import parse

ALPHABET = "abcxyzABZ019_- .\n\tſKk\u0131İßẞσςΣéÉǅ日本\u3000\u0660😀\U0001e900"


@dataclass(frozen=True)
class Pair:
    """A regex and its twin without `\\p{...}`."""

    tested: str
    twin: str


def same(pattern: str) -> Pair:
    return Pair(pattern, pattern)


def property_pair(name: str) -> Pair:
    members = [c for c in ALPHABET if regex.fullmatch(name, c)]
    return Pair(name, "".join(map(re.escape, members)))


PROPERTIES = [property_pair(f"\\{p}{{{x}}}") for p in "pP" for x in ("L", "Lu", "N", "Greek")]
letters = st.sampled_from(ALPHABET).map(re.escape)
categories = st.sampled_from([r"\w", r"\W", r"\d", r"\D", r"\s", r"\S"]).map(same)
ranges = st.sampled_from(["a-z", "A-Z", "0-9", "!-~", "ß-ſ", "\u0100-\uffff", "一-鿿"]).map(same)
parts = st.one_of(letters.map(same), letters.map(same), ranges, categories)


def character_class(body: list[Pair], negated: bool) -> Pair:
    caret = "^" if negated else ""
    tested, twin = ("".join(getattr(p, side) for p in body) for side in ("tested", "twin"))
    return Pair(f"[{caret}{tested}]", f"[{caret}{twin}]")


@st.composite
def classes(draw: st.DrawFn, properties: bool) -> Pair:
    choices = st.one_of(parts, st.sampled_from(PROPERTIES)) if properties else parts
    return character_class(draw(st.lists(choices, min_size=1, max_size=4)), draw(st.booleans()))


def atoms(properties: bool) -> st.SearchStrategy[Pair]:
    return st.one_of(letters.map(same), st.just(same(".")), categories, classes(properties))


@st.composite
def quantifiers(draw: st.DrawFn) -> str:
    least, more = draw(st.integers(0, 3)), draw(st.integers(0, 4))
    bounds = [f"{{{least}}}", f"{{{least},}}", f"{{{least},{least + more}}}", f"{{,{more}}}"]
    return draw(st.sampled_from(["*", "+", "?", *bounds])) + draw(st.sampled_from(["", "", "?"]))


def combined(inner: st.SearchStrategy[Pair], flags: list[str]) -> st.SearchStrategy[Pair]:
    def join(pairs: list[Pair], separator: str) -> Pair:
        return Pair(*(separator.join(getattr(p, s) for p in pairs) for s in ("tested", "twin")))

    def wrap(pair: Pair, start: str, end: str) -> Pair:
        return Pair(start + pair.tested + end, start + pair.twin + end)

    return st.one_of(
        st.lists(inner, max_size=3).map(lambda pairs: join(pairs, "")),
        st.lists(inner, min_size=2, max_size=3).map(lambda ps: wrap(join(ps, "|"), "(", ")")),
        st.builds(lambda p, q: wrap(p, "(?:", f"){q}"), inner, quantifiers()),
        st.builds(lambda p, f: wrap(p, f"(?{f}:", ")"), inner, st.sampled_from(flags)),
    )


# Case folding of a property is the `regex` package's own, so the two do not meet in one regex.
plain = st.recursive(atoms(False), lambda s: combined(s, ["i", "s", "a", "ia", "-i"]), max_leaves=8)
with_properties = st.recursive(atoms(True), lambda s: combined(s, ["s", "a"]), max_leaves=8)
texts = st.lists(st.text(ALPHABET, max_size=6), min_size=1, max_size=12)


def check(dfa: ByteDFA, twin: str, strings: list[str]) -> None:
    oracle = re.compile(twin)
    for text in strings:
        assert dfa.accepts(text.encode()) == bool(oracle.fullmatch(text)), (twin, text)


def near_misses(dfa: ByteDFA, seed: int) -> list[str]:
    """Some accepted strings, and strings one letter away from them."""
    if dfa.is_empty:
        return []
    rng, found = random.Random(seed), []
    for _ in range(4):
        text = dfa.sample(rng, max_bytes=10).decode()
        at = rng.randrange(len(text) + 1)
        found += [text[:at] + rng.choice(ALPHABET) + text[at:], text[:at] + text[at + 1 :], text]
    return found


@settings(max_examples=400, deadline=None)
@given(plain, texts, st.integers(0, 10**6), st.sampled_from(["", "(?i)", "(?s)", "(?a)"]))
def test_accepts_what_fullmatch_accepts(
    pair: Pair, strings: list[str], seed: int, prefix: str
) -> None:
    dfa = compile_regex(prefix + pair.tested)
    check(dfa, prefix + pair.twin, strings + near_misses(dfa, seed))


@settings(max_examples=200, deadline=None)
@given(with_properties, texts, st.integers(0, 10**6))
def test_properties_agree_with_the_regex_package(pair: Pair, strings: list[str], seed: int) -> None:
    dfa = compile_regex(pair.tested)
    known = [s for s in near_misses(dfa, seed) if set(s) <= set(ALPHABET)]
    check(dfa, pair.twin, strings + known)


def minimal_states(dfa: ByteDFA) -> int:
    """Moore's algorithm over bytes, in plain Python: the number of classes of reachable states."""
    rows = dfa.trans[:, dfa.byte_class]
    reached, todo = {0, dfa.start}, [dfa.start]
    while todo:
        for target in set(rows[todo.pop()].tolist()) - reached:
            reached.add(target)
            todo.append(target)
    states = sorted(reached)
    block, count = {s: int(dfa.accepting[s]) for s in states}, 0
    while len(set(block.values())) != count:
        count = len(set(block.values()))
        keys = {s: (block[s], *(block[t] for t in rows[s].tolist())) for s in states}
        names = {key: i for i, key in enumerate(dict.fromkeys(keys.values()))}
        block = {s: names[keys[s]] for s in states}
    return count


@settings(max_examples=150, deadline=None)
@given(st.one_of(plain, with_properties))
def test_minimal_and_trimmed(pair: Pair) -> None:
    dfa = compile_regex(pair.tested)
    if dfa.n_states < 700:
        assert minimal_states(dfa) == dfa.n_states
    assert (dfa.distance()[1:] >= 0).all()
    columns = np.unique(dfa.trans, axis=1)
    assert columns.shape[1] == dfa.n_classes == int(dfa.byte_class.max()) + 1


@settings(max_examples=60, deadline=None)
@given(plain, st.integers(0, 10**6))
def test_samples_are_accepted(pair: Pair, seed: int) -> None:
    dfa = compile_regex(pair.tested)
    rng = random.Random(seed)
    for length in (0, 5, 64) if not dfa.is_empty else ():
        data = dfa.sample(rng, length)
        assert dfa.accepts(data)
        assert len(data) <= max(length, len(dfa.shortest() or b""))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=8), st.text(max_size=3), st.integers(0, 8))
def test_only_well_formed_utf8(noise: bytes, text: str, at: int) -> None:
    everything = compile_regex(r"[\s\S]*")
    encoded = text.encode("utf-8", "surrogatepass")
    for data in (noise, encoded, encoded[:at] + noise[:1] + encoded[at:], encoded[:at]):
        try:
            data.decode()
            valid = True
        except UnicodeDecodeError:
            valid = False
        assert everything.accepts(data) == valid


@pytest.mark.parametrize(
    "pattern", [r"\w", r"\D", r"\s", r"(?i)ß", r"(?i)[k-sſ]", r"[^a]", r"(?a)\W", r"(?i)\u0130"]
)
def test_single_code_points(pattern: str) -> None:
    dfa, oracle = compile_regex(pattern), re.compile(pattern)
    rng = random.Random(0)
    points = [*range(0x600), *(rng.randrange(0x110000) for _ in range(4000)), 0xFFFF, 0x10FFFF]
    points += [0xD7FF, 0xE000, 0x7FF, 0x800, 0x10000, 0x212A, 0x1E9E, 0x1C80, 0xFB05, 0xFB06]
    for c in (c for c in points if not 0xD800 <= c < 0xE000):
        assert dfa.accepts(chr(c).encode()) == bool(oracle.fullmatch(chr(c))), hex(c)


WORDS = sorted({chr(0x4E00 + 31 * i % 20_000) + "语文"[: i % 3] for i in range(90)})
wide_choices = st.lists(st.sampled_from(WORDS), min_size=70, max_size=90, unique=True).map(
    lambda words: f"(?:{'|'.join(words)})"
)
wide_patterns = st.recursive(
    st.one_of(wide_choices, parts.map(lambda pair: pair.tested)),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("(?:{0[0]}|{0[1]})".format),
        st.tuples(inner, st.sampled_from(["?", "*", "+", "{0}", "{2}", "{1,2}", "{0,2}"])).map(
            lambda repeat: f"(?:{repeat[0]}){repeat[1]}"
        ),
        inner.map("(?i:{})".format),
    ),
    max_leaves=4,
)


@settings(deadline=None)
@given(wide_patterns)
def test_what_is_put_together_from_its_parts_is_what_atoms_give(pattern: str) -> None:
    """The same arrays, since both are minimal and numbered alike."""
    parsed, budget = parse(pattern), Budget()
    one = _wide_dfa(parsed, lambda part: _by_atoms(_program(part, budget), budget), budget)
    other = _by_atoms(_program(parsed, budget), budget)
    assert np.array_equal(one.trans, other.trans)
    assert np.array_equal(one.byte_class, other.byte_class)
    assert np.array_equal(one.accepting, other.accepting)
    assert one.start == other.start


@pytest.mark.parametrize("n", [2_000, 20_000])
@pytest.mark.parametrize("around", ["{}", '"(?:{})"', r"(?:{}|\d\p{{Lu}}?)(?:, ?[a-z]{{1,5}})*"])
def test_choices_between_thousands_of_chinese_words(around: str, n: int) -> None:
    rng = random.Random(1)
    words = {"".join(map(chr, rng.choices(range(0x4E00, 0x9000), k=2 + i % 3))) for i in range(n)}
    dfa = compile_regex(around.format("|".join(sorted(words))))
    some = rng.sample(sorted(words), 50)
    left, right = ('"', '"') if around.startswith('"') else ("", "")
    assert all(dfa.accepts(f"{left}{word}{right}".encode()) for word in some)
    twisted = {word[::-1] for word in some} - words
    assert not any(dfa.accepts(f"{left}{word}{right}".encode()) for word in twisted)
