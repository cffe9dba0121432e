"""GBNF: a random grammar means what a regex means, and grammars of people read their texts."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples, same_arrays

from bpe_automata import compile_grammar, compile_regex
from bpe_automata.errors import (
    ArgumentError,
    BudgetExceededError,
    EmptyLanguageError,
    GrammarError,
    UnsupportedGrammarError,
)

# Pieces of GBNF, each with a regex of the same texts.
PIECES = (
    ('"ab"', "ab"),
    ('""', ""),
    ("[a-c]", "[a-c]"),
    (r"[^a\]-]", r"[^a\]-]"),
    (r'"\x41\u00e9\U0001F600\n\"\\"', 'A\u00e9\U0001f600\n"\\\\'),
    (".", "(?s:.)"),
    ("r", "(?:x|yy)"),
    ("s", "(?:zr?)*"),
)
REPEATS = ("*", "+", "?", "{2}", "{1,}", "{0,2}", "{0,0}", "{1,3}")


@st.composite
def expressions(draw, depth=3):
    """(GBNF, a regex)."""
    kind = draw(st.sampled_from(("piece", "piece", "all", "any", "repeat"))) if depth else "piece"
    if kind == "piece":
        return draw(st.sampled_from(PIECES))
    inside = expressions(depth - 1)
    if kind == "repeat":
        (one, regex), sign = draw(inside), draw(st.sampled_from(REPEATS))
        return f"( {one} ){sign}", f"(?:{regex}){sign}"
    found = draw(st.lists(inside, min_size=1, max_size=3))
    if kind == "all":
        return " ".join(f"({one})" for one, _ in found), "".join(f"(?:{r})" for _, r in found)
    return "(" + " |\n ".join(one for one, _ in found) + ")", "|".join(f"(?:{r})" for _, r in found)


@examples(100)
@given(expressions())
def test_expressions_are_regexes(expression) -> None:
    gbnf, regex = expression
    grammar = (
        f'# a comment\nroot ::=\n  {gbnf}  # another\n\nr ::= "x" | "y" "y"\ns ::= ("z" "r"?)*\n'
    )
    assert same_arrays(compile_grammar(grammar, format="gbnf").to_dfa(), compile_regex(regex))


ARITHMETIC = r"""
root  ::= sum "\n"
sum   ::= sum [+-] product | product
product ::= factor ([*/] factor)*
factor  ::= "-"? (number | "(" sum ")")
number  ::= [0-9]+ ("." [0-9]{1,3})?
"""
JSON = r"""
root   ::= any
any    ::= map | list | text | figure | "true" | "false" | "null"
map    ::= "{" gap (pair ("," gap pair)*)? "}"
pair   ::= text ":" gap any gap
list   ::= "[" gap (any gap ("," gap any gap)*)? "]"
text   ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
figure ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [+-]? [0-9]+)?
gap    ::= [ \t\n]*
"""
MOVES = r"""
root ::= (number " " move (" " move)? "\n")+
number ::= [1-9] [0-9]? "."
move ::= (pawn | piece | "O-O" "-O"?) [+#]?
piece ::= [KQRBN] [a-h]? [1-8]? "x"? [a-h] [1-8]
pawn ::= ([a-h] "x")? [a-h] [1-8] ("=" [QRBN])?
"""
ITEMS = 'root ::= item+\nitem ::= "- " [^\\r\\n]+ "\\n"\n'
TEXTS = [
    (
        ARITHMETIC,
        ["1+2*(3-4.25)\n", "-(-(1))\n", "((((7))))/8\n"],
        ["1+\n", "(1\n", "1.2345\n", "1"],
    ),
    (
        JSON,
        [json.dumps([1.5e3, {"a": [True, None, "\u00e9\n"]}, {}, []]), "-0"],
        ["[1,]", "01", '"\n"'],
    ),
    (MOVES, ["1. e4 e5\n2. Nf3 Nc6\n", "9. O-O exd8=Q#\n"], ["1. e9\n", "0. e4\n", "1. e4"]),
    (ITEMS, ["- a\n- b c\n"], ["- \n", "a\n", ""]),
]


@pytest.mark.parametrize(("grammar", "texts", "others"), TEXTS)
def test_grammars_of_people_read_their_texts(grammar, texts, others) -> None:
    """And what another reader of the format makes of them, where that is installed."""
    automaton = compile_grammar(grammar, format="gbnf")
    assert [text for text in texts if not automaton.accepts(text.encode())] == []
    assert [text for text in others if automaton.accepts(text.encode())] == []
    for text in texts:
        for end in range(len(text)):
            begun = text[:end].encode()
            assert automaton.live_bytes(automaton.walk(begun)).size


@pytest.mark.parametrize(("grammar", "texts", "others"), TEXTS)
def test_xgrammar_reads_them_alike(grammar, texts, others) -> None:
    xgrammar = pytest.importorskip("xgrammar")
    tokens = xgrammar.TokenizerInfo(
        [bytes([byte]) for byte in range(256)] + [b"</s>"], stop_token_ids=[256]
    )
    compiled = xgrammar.GrammarCompiler(tokens).compile_grammar(grammar)
    for text in [*texts, *others]:
        matcher = xgrammar.GrammarMatcher(compiled)
        read = matcher.accept_string(text) and matcher.accept_token(256)
        assert read == (text in texts), text


def test_repeats_and_lines_are_read_as_llama_cpp_reads_them() -> None:
    """Space before a sign, signs one after another, and lines inside of texts and groups."""
    grammar = 'root ::= "a" * [b-c] {1, 2} ? ("d"\n+) "e\nf" {2}{2}'
    expected = compile_regex("a*([b-c]{1,2})?d+(?:(?:e\nf){2}){2}")
    assert same_arrays(compile_grammar(grammar, format="gbnf").to_dfa(), expected)


def test_brackets_go_as_deep_as_one_likes() -> None:
    nested = compile_grammar('root ::= "(" root ")" | ""', format="gbnf")
    assert nested.accepts(b"(" * 500 + b")" * 500)
    assert not nested.accepts(b"(" * 500 + b")" * 499)


@pytest.mark.parametrize(
    ("error", "message", "grammar"),
    [
        (GrammarError, "line 1, column 1: a rule is", "start: a"),
        (GrammarError, "no rule 'root'", 'a ::= "x"'),
        (GrammarError, "line 2, column 10: there is no rule 'b'", 'c ::= "x"\nroot ::= b'),
        (GrammarError, "comes twice", 'root ::= "x"\nroot ::= "y"'),
        (GrammarError, "line 1, column 10: this has no end", 'root ::= "x\n'),
        (GrammarError, "line 1, column 10: this has no end", "root ::= [a\n"),
        (GrammarError, "this bracket has no end", 'root ::= ("x"'),
        (GrammarError, "is no escape", r'root ::= "\q"'),
        (GrammarError, "is empty", "root ::= [b-a]"),
        (GrammarError, "no characters", "root ::= []"),
        (
            BudgetExceededError,
            "symbols of a rule",
            'root ::= ("a" r){2000}{2000}\nr ::= "b"',
        ),
        (UnsupportedGrammarError, "no character", 'root ::= "\ud800"'),
        (GrammarError, "is no symbol", 'root ::= "x" )'),
        (GrammarError, "from 3 to 2 times", 'root ::= "x"{3,2}'),
        (UnsupportedGrammarError, "no character", r'root ::= "\uD800"'),
        (UnsupportedGrammarError, "grammars are of texts", "root ::= <[1000]>"),
        (EmptyLanguageError, "complete", 'root ::= "x" root'),
        (BudgetExceededError, "repeats", 'root ::= "x"{3000}'),
        (BudgetExceededError, "groups", "root ::= " + "(" * 101),
        (BudgetExceededError, "characters", "#" * 200_001),
    ],
)
def test_what_is_no_gbnf_is_told_with_its_place(error, message, grammar) -> None:
    with pytest.raises(error, match=re.escape(message)):
        compile_grammar(grammar, format="gbnf")


def test_formats_and_options_are_checked() -> None:
    with pytest.raises(ArgumentError, match="'lark' or 'gbnf'"):
        compile_grammar('root ::= "x"', format="ebnf")
    with pytest.raises(ArgumentError, match="reserved_words"):
        compile_grammar('root ::= "x"', format="gbnf", reserved_words=True)
    assert compile_grammar('a ::= "x"', format="gbnf", start="a").accepts(b"x")
