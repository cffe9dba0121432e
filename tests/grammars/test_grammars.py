"""Linked automata of grammars, against lark's parser, and against all short texts of a grammar.

JSON is what a tutorial of lark builds up (which is under the MIT licence), written anew.
"""

import itertools
import random
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import LarkError
from support import examples

from bpe_automata import compile_grammar
from bpe_automata.errors import (
    ArgumentError,
    EmptyLanguageError,
    GrammarError,
    MissingDependencyError,
    UnsupportedGrammarError,
)

JSON = r"""
?start: value
?value: object | array | string | SIGNED_NUMBER | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: string ":" value
string: ESCAPED_STRING
%import common.ESCAPED_STRING
%import common.SIGNED_NUMBER
%import common.WS
%ignore WS
"""


def earley(grammar):
    return Lark(grammar, parser="earley", lexer="dynamic_complete")


def parses(parser, text):
    try:
        parser.parse(text)
    except LarkError:
        return False
    return True


def far_is_right(automaton, texts):
    """A state that is not accepting is one byte farther away than the nearest one behind it."""
    for text in texts:
        state = automaton.start
        for byte in text:
            live = automaton.live_bytes(state).tolist()
            nearest = min((automaton.far[automaton.step(state, b)] for b in live), default=0)
            assert automaton.far[state] == (0 if automaton.accepting[state] else 1 + nearest)
            state = automaton.step(state, byte)
            assert state


# ---------------------------------------------------------------- languages

SMALL = [  # with the letters that their texts are made of
    ('start: ["a"] ("b" | "c"~0..3)~2 ["d" ["e"]]', "abcde"),
    ('start: f{"a"} f{g{"b"}}\nf{x}: x | g{g{"c"}}\ng{x}: x+ x* x', "abc"),
    ('start: (a | b)\na: "(" a ")" | "x"\nb: "(" b "]" | "x"', "(x)]"),
    ('start: "a" x*\nx: "a"~2..3\n%ignore " "', "a "),
    ('start: [a] "c"\na.2: "a" | A\nA.3: "a"+\n%ignore "b"\n%ignore "bb"', "abc"),  # priorities
    ('start: "a" "b"?\n%ignore /#[^\\n]*/\n%ignore "\\n"', "ab#\n"),  # as long as it can be
    ('start: "a" "b"?\n%ignore /[ \\r\\n]+/\n%ignore /(\\r?\\n)+/', "ab \r\n"),
    ('start: "a" (" b" | /é/) "b"\n%ignore /[ é]+/', "ab é"),
    ('start: ["b"]\n%ignore "a"', "ab"),
    ("start: (X | Y)+\nX: /a.*?b/\nY: /a|ab/", "ab"),  # preferences of regexes
    ('start: "a"i _s{b, ","}\nb: "b"\n_s{x, y}: x (y x)*', "aAbB,"),
    ('start: s ";"?\n?s: s ("+" | "*") t -> sum | t\n?t: "a" -> name | "(" s ")"', "a+*();"),
    ('start: "é"+ | /[а-я]/i', "éaЖж"),
    ('start: a b\na: "x" | unproductive\nunproductive: unproductive "x"\nb: "y"', "xy"),
    *((f"start: /{regex}/", "abc") for regex in ("a|ab", "(?:a|b)*?c", "(?:a{1,2}?){1,3}b?",
      "(?:(?<=a)|(?<!a))b", "a(?<=[bc])?(?<!b)", "b(?<!a){9}(?<=b)*c", "a?(?:ab)?b", "(?:a?b?)*c",
      "(?:a|ab)(?:c|bca)?", "[^a]+?(?<=b)", "(?:a*)*b")),
    (r'start: /\"(?:.*?(?<!\\)(?:\\\\)*?)\"/', 'a\\"'),
    ("start: /(?i:aB+)/", "aAbB"),
    ("start: /x(?:)y/", "xy"),
]  # fmt: skip


@pytest.mark.parametrize(("grammar", "letters"), SMALL)
def test_short_texts_are_those_that_lark_parses(grammar, letters):
    found, parser, accepted = compile_grammar(grammar), earley(grammar), []
    longest = {2: 7, 3: 6, 4: 5}.get(len(letters), 4)
    for n in range(longest + 1):
        for text in map("".join, itertools.product(letters, repeat=n)):
            expected = parses(parser, text)
            assert found.accepts(text.encode()) == expected, text
            accepted += [text.encode()] if expected else []
    assert accepted
    assert len(found.shortest()) == len(min(accepted, key=len))
    far_is_right(found, accepted[:50])


def test_random_texts_and_their_neighbours_are_those_that_lark_parses():
    rng, seen = random.Random(5), set()
    found, parser = compile_grammar(JSON), earley(JSON)
    letters = '[]{}+-,.:"\\ 1aé\nn'
    for k in range(60):
        data = found.sample(rng, 4 + k % 20)
        text = data.decode()
        assert parses(parser, text), text
        far_is_right(found, [data])
        for _ in range(2):
            at, cut = rng.randrange(len(text) + 1), rng.randrange(2)
            other = text[:at] + rng.choice(["", rng.choice(letters)]) + text[at + cut :]
            expected = parses(parser, other)
            assert found.accepts(other.encode()) == expected, other
            seen.add(expected)
    assert seen == {True, False}


RULES = ("start", "s", "t")


@st.composite
def rules(draw):
    """Of each rule its alternatives, of rules and the letters a and b."""
    symbol = st.sampled_from((*RULES, *RULES, "a", "b", "b"))
    alternative = st.lists(symbol, max_size=3)
    return {name: draw(st.lists(alternative, min_size=1, max_size=3)) for name in RULES}


def spelled(alternatives):
    quoted = [[f'"{s}"' if s in "ab" else s for s in one] for one in alternatives]
    return " | ".join(" ".join(one) for one in quoted)


def texts_under(grammar, longest):
    """All texts of a grammar up to a length, by the least fixed point."""
    found = {"a": {"a"}, "b": {"b"}} | {name: set() for name in grammar}
    while True:
        before = sum(map(len, found.values()))
        for name, alternatives in grammar.items():
            for one in alternatives:
                texts = {""}
                for symbol in one:
                    texts = {x + y for x in texts for y in found[symbol] if len(x + y) <= longest}
                found[name] |= texts
        if sum(map(len, found.values())) == before:
            return found["start"]


@examples(150)
@given(rules())
@example({"start": [["s"]], "s": [["start", "a"], ["a", "a"]], "t": [[]]})
@example({"start": [[], ["s", "s"]], "s": [["t"]], "t": [["start", "a"]]})
def test_any_grammar_has_the_texts_of_its_rules(grammar):
    """Recursion of all kinds, rules that may be empty, ambiguity without bound."""
    expected = texts_under(grammar, 6)
    text = "\n".join(f"{name}: {spelled(found)}" for name, found in grammar.items())
    try:
        found = compile_grammar(text)
    except EmptyLanguageError:
        assert not expected
        return
    for n in range(7):
        for word in map("".join, itertools.product("ab", repeat=n)):
            assert found.accepts(word.encode()) == (word in expected), word
    far_is_right(found, [word.encode() for word in sorted(expected)[:10]])
    assert int(found.far[found.start]) == len(found.shortest())


def test_brackets_are_nested_without_limit():
    found, n = compile_grammar(JSON), 1_000
    text = b'[{"a":' * n + b"[]" + b"}]" * n
    assert found.accepts(text)
    assert not found.accepts(text[:-1])
    assert not found.accepts(text + b")")


def test_ambiguity_costs_no_more_than_the_text_is_long():
    """Of 60 letters there are 10^33 trees; and brackets that may be closed in two ways."""
    found = compile_grammar('start: s\ns: s s s | "a" | "b" s s')
    assert found.accepts(b"a" * 61)
    assert not found.accepts(b"a" * 60)
    assert found.n_written < 5_000
    both = compile_grammar('start: a | b\na: "(" a ")" | "(" b ")" | "x"\nb: "(" a "]" | "x"')
    assert both.accepts(b"(" * 200 + b"x" + b")" * 200)
    assert both.n_written < 20_000
    # Of rules that begin with one another the outer ones come first, whatever their names are.
    rules = [f's{k}: s{k - 1} "!" | s{max(k - 2, 0)} "?"' for k in range(14, 0, -1)]
    levels = compile_grammar("\n".join(["start: s14", *rules, 's0: "x" | "(" s14 ")"']))
    levels.walk(b"(" * 50)
    assert levels.n_written < 3_000


def test_large_counts_end_where_they_end():
    found = compile_grammar('start: ("a" | "b"~2)~60..130 "c"~0..99')
    for text in ("a" * 60, "bb" * 130, "a" * 130 + "c" * 99, "abb" * 65):
        assert found.accepts(text.encode())
    for text in ("a" * 59, "a" * 131, "b" * 61, "a" * 60 + "c" * 100):
        assert not found.accepts(text.encode())


# ---------------------------------------------------------------- words and terminals


def test_with_reserved_words_lark_lexes_as_is_meant():
    """Words that are apart, and cannot be cut into others."""
    grammar = r"""
    start: "get" list ["from"i NAME] ["if" test]
    list: NAME | list "," NAME
    test: NAME | "not" test | NAME "and" test
    NAME: /[a-z]+/i
    %ignore " "
    """
    found = compile_grammar(grammar, reserved_words=True)
    parser, rng, seen = Lark(grammar, parser="lalr", lexer="basic"), random.Random(3), set()
    words = ["get", "GET", "from", "From", "if", "not", "and", "xf", "x", ","]
    for _ in range(3_000):
        some = ["get", "x", "from", "x", "if", "x"][: rng.choice((2, 4, 6))]
        for _ in range(rng.randrange(4)):
            some.insert(rng.randrange(len(some) + 1), rng.choice(words))
        text = " ".join(some)
        expected = parses(parser, text)
        assert found.accepts(text.encode()) == expected, text
        seen.add(expected)
    assert seen == {True, False}


# ---------------------------------------------------------------- errors


GBNF = r'looks like GBNF.*format="gbnf"'
WRONG = [
    *((grammar, UnsupportedGrammarError, "A is not supported") for grammar in (
        "start: A\nA: /a(?=b)/", "start: A\nA: /^a/", "start: A\nA: /x(?:(?:|a)*){0}/",
        "start: A\nA: /(a)\\1/", 'start: A\nA: "\\ud800"',
        'start: "x" A\nA: "a"\n%ignore /c(ab)*/')),
    ('start: A B\nA: "a"\n%declare B', UnsupportedGrammarError, "B is not supported"),
    *((text, GrammarError, None) for text in ("start: (", "start: x", "%import no.X")),
    ("start: A\nA: B?\nB: /(?:x|)/", GrammarError, None),
    ('root ::= "yes" | "no"', GrammarError, GBNF),
    ('# one\nws-1 ::= [ \\t/]*\nroot ::= "a" ws-1', GrammarError, GBNF),
    ('begin: "a"', GrammarError, "start"),
    (3, ArgumentError, None),
    ("start: start", EmptyLanguageError, None),
    ('start: "a" x\nx: "b" x', EmptyLanguageError, None),
    ("start: /a(?<!a)/", EmptyLanguageError, None),
]  # fmt: skip


@pytest.mark.parametrize(("grammar", "error", "message"), WRONG)
def test_what_is_no_grammar_has_no_texts_or_is_not_supported_is_said(grammar, error, message):
    with pytest.raises(error, match=message):
        compile_grammar(grammar)


def test_without_lark_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "lark", None)
    with pytest.raises(MissingDependencyError, match=r"pip install.*grammars"):
        compile_grammar('start: "a"')
