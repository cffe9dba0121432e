"""Vegas segments: what is put together of shared parts is what is built whole."""

import random

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support import examples, named
from support.steps import metaspace

from bpe_automata import Segments, compile_regex, constrain, explore, link_regex
from bpe_automata.constructions.cartesian_merge import CartesianMerge
from bpe_automata.constructions.segments import Language
from bpe_automata.errors import (
    BudgetExceededError,
    EmptyLanguageError,
    UnsupportedFeatureError,
)
from bpe_automata.schemas import json_schema
from bpe_automata.testing import (
    added_token,
    bpe_tokenizers,
    cyclic_regexes,
    small_tokenizer,
    split,
)
from bpe_automata.testing._inputs import own_pieces

NAMES = ("smollm2", "mistral-v1")
MOST = 20_000
DATE = "20[0-2][0-9]-[01][0-9]"
SMALL_JSON = r'\{"on":(true|false|null),"day":"' + DATE + r'","ok":(true|false|null)\}'
OTHER_JSON = r'\{"off":(true|false|null),"until":"' + DATE + r'","n":(0|[1-9][0-9]{0,3})\}'
MIXED = "(a|<\\|im|é|日|\U0001f600){1,3}"
LINES = r"day:\n(sunny|rainy|dull)\nnight:\n(sunny|rainy|dull)\n"
SCHEMA = {
    "type": "object",
    "properties": {"a": {"enum": [1, "é", None]}, "b": {"type": "boolean"}, "日": {"const": "x y"}},
    "required": ["a"],
    "additionalProperties": False,
}


def whole(tokenizer, dfa, eos=None):
    """Built without segments, minimal; None where it is too large, or empty."""
    engine = CartesianMerge(tokenizer, dfa, tokenizer.eos_ids if eos is None else eos)
    try:
        return explore(engine, engine.initial(), MOST).minimised()
    except BudgetExceededError:
        return None
    except EmptyLanguageError:
        return "empty"


def compare(segments, dfa, eos=None):
    """The law: the same minimal automaton. Was it small enough to be compared? Parts are more than
    the whole where many texts of the language have no ids."""
    right = whole(segments.tokenizer, dfa, eos)
    try:
        found = segments.automaton(dfa, MOST)
    except BudgetExceededError:
        return False
    if right is None:
        return False
    if right == "empty":
        assert found.is_empty
    else:
        assert found.relevant().all()
        assert found.minimised().identical(right)
    return True


TEMPLATES = (
    "(?:{0}){2}(?:{1})",
    "(?:{1}){2}(?:{0})(?:{2}(?:{1}))?",
    "(?:{0})|(?:{1}){2}(?:{0}){2}",
    "(?:(?:{0}){2})*",
)
"""The same parts between other ones."""


def compare_templates(data, tokenizer):
    """With one `Segments` for all, in any order."""
    pieces = own_pieces(tokenizer)
    parts = [data.draw(cyclic_regexes(pieces)) for _ in range(2)]
    between = data.draw(st.sampled_from((r"\,", f"(?:{parts[0]})")))
    added = [token.id for token in tokenizer.description.added]
    eos = tuple(added[:1]) if data.draw(st.booleans()) else ()
    segments = Segments(tokenizer, eos)
    for template in data.draw(st.permutations(TEMPLATES)):
        compared = compare(segments, compile_regex(template.format(*parts, between)), eos)
        event(f"compared: {compared}")
    event(f"parts were found: {segments.found > 0}")


@examples(15)
@given(st.data())
def test_parts_put_together_are_the_whole(data):
    compare_templates(data, data.draw(bpe_tokenizers()))


@pytest.mark.parametrize("name", NAMES)
def test_of_named_tokenizers_too(name):
    tokenizer = named(name)
    segments = Segments(tokenizer)
    for regex in (SMALL_JSON, OTHER_JSON, LINES, MIXED, "( ?ab+c){1,3}"):
        assert compare(segments, compile_regex(regex))
    assert compare(segments, json_schema(SCHEMA, order="schema").to_dfa(depth=3))


@pytest.mark.parametrize("name", NAMES)
def test_what_another_language_shares_is_found(name):
    """What stands between two keys is the same segment in any object."""
    segments, alone = Segments(named(name)), Segments(named(name))
    segments.automaton(compile_regex(SMALL_JSON))
    made = segments.made
    assert made > 3
    segments.automaton(compile_regex(SMALL_JSON))
    assert segments.made == made
    for own in (segments, alone):
        own.automaton(compile_regex(OTHER_JSON))
    assert segments.made - made < alone.made
    assert segments.found > alone.found


def test_hypotheses_tell_parts_apart():
    """Two characters are a pretoken, so behind an odd number of them `ab` is cut in two."""
    steps = split({"Regex": ".."})
    tokenizer = small_tokenizer(["x", "y", "a", "b", "ab"], [("a", "b")], steps)
    segments = Segments(tokenizer, ())
    for regex in ("(x|yx)ab", "yxab", "xab", "(yx)*x?ab"):
        assert compare(segments, compile_regex(regex), ())
    ids = {text: tokenizer.encode(text) for text in ("xab", "yxab")}
    assert [len(found) for found in ids.values()] == [3, 3]
    assert ids["xab"][1:] != ids["yxab"][2:]


def test_added_tokens_are_read_as_they_may_be():
    tokenizer, dfa = named("smollm2"), compile_regex(r"a(<\|im_end\|>|b)c?")
    for added in (False, True):
        engine = CartesianMerge(tokenizer, dfa, tokenizer.eos_ids[:0], added)
        right = explore(engine, engine.initial()).minimised()
        assert Segments(tokenizer, (), added).automaton(dfa).minimised().identical(right)
    steps, added = metaspace("always", False), [added_token("<s>"), added_token("<e>")]
    tokenizer = small_tokenizer(["▁", "x", "s", "<", ">", "b"], [], steps, added, decoder=steps)
    segments = Segments(tokenizer, (7,))
    for regex in ("x<s(>b|x)", "x<s(><e>|x)", "x<s(>b|x)", "(x<s>| x<s> b){1,2}"):
        assert compare(segments, compile_regex(regex), (7,))


def test_what_is_too_large_or_linked_is_refused():
    segments, dfa = Segments(named("smollm2")), compile_regex(SMALL_JSON)
    for _ in range(2):
        with pytest.raises(BudgetExceededError):
            segments.automaton(dfa, max_edges=20)
        segments.automaton(dfa)  # now all parts are known
    with pytest.raises(UnsupportedFeatureError, match="linked"):
        segments.automaton(link_regex("a{3}"))


# ---------------------------------------------------------------- cuts: `encode` has a joint there

TEXT = '"[ !#-[^-~]*"'
TEXTS = (
    r'\{"name":' + TEXT + r',"city":' + TEXT + r',"age":(0|[1-9][0-9]{0,2})\}',
    r'\{"a": (true|false|null), "title": ' + TEXT + r', "tags": \[' + TEXT + r"\]\}",
    r'(key: (a|b)+\n)(other: "[a-z]*"\n)?',
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("regex", TEXTS)
def test_encode_has_a_joint_at_each_cut(name, regex):
    tokenizer, rng = named(name), random.Random(2)
    dfa = constrain(tokenizer, regex).engine.dfa  # with the prefix that the tokenizer puts
    language, met = Language(compile_regex(regex), Segments(tokenizer)), 0
    for _ in range(60):
        text = dfa.sample(rng, 60)
        ids = tokenizer.encode(text.decode().removeprefix(" " if name == "mistral-v1" else ""))
        ends = np.cumsum([len(tokenizer.spellings[i]) for i in ids]).tolist()
        spelled, state = b"".join(tokenizer.spellings[i] for i in ids), language.start
        for at, byte in enumerate(spelled[:-1], start=1):
            state = dfa.step(state, byte)
            if language.cut[state]:
                met += 1
                assert at in ends, (text, at)
    assert met > 60


@pytest.mark.parametrize(
    ("merges", "added", "more", "right"),
    [
        ([], [], [], {"a", "ab"}),
        ([("a", "b")], [], [], {"ab"}),
        ([("b", "c")], [], [], {"a"}),
        ([("a", "b"), ("ab", "c")], [], [], set()),
        ([], ["bc"], [], {"a"}),
        ([], [], ["ab"], {"ab"}),
    ],
)
def test_a_merge_an_added_token_or_one_looked_up_whole_is_no_cut(merges, added, more, right):
    """Of what is read on the way to `abc`; more: tokens that no merge makes."""
    tokens, dfa = [*"abcd", *map("".join, merges), *more], compile_regex("ab(c|d)?")
    tokenizer = small_tokenizer(tokens, merges, None, added, ignore_merges=bool(more))
    language = Language(dfa, Segments(tokenizer))
    assert {text for text in ("a", "ab") if language.cut[dfa.walk(text.encode())]} == right
