"""Bad input: a typed error each, that names the position or value and what to do."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from bpe_automata import Tokenizer, constrain, errors, heal, verify
from bpe_automata._automata.compile import compile_regex
from bpe_automata.errors import (
    ArgumentError,
    BrokenTokenizerError,
    BufferShapeError,
    InvalidSchemaError,
    PromptError,
    TokenOutOfRangeError,
)
from bpe_automata.testing import byte_level, small_tokenizer

TOKENIZER = small_tokenizer(["a", "b", "c", "ab", "abc", "ca"], [("a", "b"), ("ab", "c")])
LARGEST = small_tokenizer(
    ["a", "b", "c", "ab", "abc"], [("a", "b"), ("ab", "c")], byte_level(), ["<eos>"]
)
GOOD = LARGEST.to_json()
VOCABULARY = json.loads(GOOD)["model"]["vocab"]


def changed(**changes: Any) -> dict[str, Any]:
    """`GOOD` with some values replaced; `a__b` is the field b of a."""
    data = json.loads(GOOD)
    for name, value in changes.items():
        *path, last = name.split("__")
        place = data
        for part in path:
            place = place[part]
        place[last] = value
    return data


# ---------------------------------------------------------------- files

NO_JSON = r"t\.json is not valid JSON: .*char \d+"
FILES = [
    *(("t.json", GOOD.encode()[:size], NO_JSON) for size in (0, 1, 10, len(GOOD) // 2, -1)),
    *(("t.json", content, None) for content in (b"\xff\xfe\x00", b"[]", b"3", b"{}")),
    *(("t.gguf", content, r"t\.gguf") for content in (b"", b"GGUF", b"x" * 500, b"GGUF\3\0\0")),
]


@pytest.mark.parametrize(("name", "content", "message"), FILES)
def test_files_that_are_no_tokenizer_are_named(tmp_path, name, content, message) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BrokenTokenizerError, match=message):
        Tokenizer.load(tmp_path / name)


CONTENTS: list[tuple[str, Any, str | None]] = [
    *(("model", wrong, None) for wrong in (None, {})),
    *(("model__vocab", wrong, None) for wrong in (None, {"a": "x"}, {"a": -1})),
    ("model__vocab", {**VOCABULARY, "x": 10**12}, "largest id is 1000000000000, but only 7"),
    *(("model__merges", wrong, None) for wrong in ([["a"]], [["a", 3]])),
    ("model__merges", [["a", "b"], ["ab", "z"]], r"merge 1 \('ab' \+ 'z'\) names 'z', which"),
    ("model__merges", [["a", "c"]], r"merge 0 \('a' \+ 'c'\) names 'ac'"),
    ("added_tokens", [{}], None),
    ("decoder", 3, None),
]


@pytest.mark.parametrize(("field", "value", "message"), CONTENTS)
def test_contents_that_are_no_tokenizer(field, value, message) -> None:
    """Nothing is allocated for a huge hole in the vocabulary."""
    with pytest.raises(BrokenTokenizerError, match=message):
        Tokenizer.from_json(changed(**{field: value}))


def test_a_hole_in_the_vocabulary_is_never_allowed() -> None:
    """An id that no token has, as GPT-4o has between its ranks and its added tokens."""
    tokenizer = Tokenizer.from_json(changed(model__vocab={**VOCABULARY, "<eos>": 5, "x": 9}))
    assert (tokenizer.n_ids, tokenizer.spellings[6:9]) == (10, (b"", b"", b""))
    for method in ("canonical", "lift"):
        allowed = constrain(tokenizer, "[abcx]*", method, eos_ids=[]).matcher().allowed_ids()
        assert allowed.tolist() == [0, 1, 2, 3, 4, 9]


# ---------------------------------------------------------------- prompts, ids, arguments


@pytest.mark.parametrize("method", ["canonical", "lift"])
@pytest.mark.parametrize("token", [-1, 6, 10**9])
def test_id_out_of_range(method, token) -> None:
    matcher = constrain(TOKENIZER, "abc", method).matcher()
    said = rf"{token} is not in 0 \.\. 5"
    with pytest.raises(TokenOutOfRangeError, match=said):
        constrain(TOKENIZER, "abc", method).matcher(prefix=[token])
    with pytest.raises(TokenOutOfRangeError, match=said):
        matcher.advance(token)
    with pytest.raises(TokenOutOfRangeError, match=f"end-of-sequence id {token}"):
        constrain(TOKENIZER, "abc", method, eos_ids=[token])
    assert matcher.ids == ()


def test_every_error_is_of_one_family() -> None:
    kinds = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, Exception)]
    assert all(issubclass(kind, errors.BpeAutomataError | Warning) for kind in kinds)
    assert len(str(InvalidSchemaError("#" + "/0" * 9_000, "wrong"))) < 400


CONSTRAINED = partial(constrain, TOKENIZER, "a")
CONSTRAINT = CONSTRAINED()
READ = (
    *(CONSTRAINT.matcher, CONSTRAINT.automaton, partial(heal, CONSTRAINT, n=1)),
    partial(verify, TOKENIZER, CONSTRAINT, 2, 0, None),
)
BOUNDED = CONSTRAINED, partial(compile_regex, "a"), partial(Tokenizer.load, TOKENIZER)
WRONG = {
    r"is 'smollm2': give a Tokenizer, as Tokenizer\.load": [partial(constrain, "smollm2", "a")],
    "give a regex, a list of texts, a schema": [
        partial(constrain, TOKENIZER, wrong) for wrong in (None, 3, b"a", object())
    ],
    "position 1 is 2": [partial(constrain, TOKENIZER, ["yes", 2])],
    "is '?2'?: give": [partial(CONSTRAINED, eos_ids=wrong) for wrong in (2, "2")],
    r"position 0 is 2\.5": [partial(CONSTRAINED, eos_ids=[2.5])],
    r"is 'hello', a text: give its ids": [partial(read, "hello") for read in READ],
    "the id is .*: give an integer": [
        partial(call, wrong)
        for call in (CONSTRAINT.matcher().allows, TOKENIZER.token_bytes)
        for wrong in ("1", 1.5, None)
    ],
    "is ('abc', a text|3|1.5|'a'): give": [
        partial(TOKENIZER.decode, wrong) for wrong in ("abc", 3, [1.5], {"a"})
    ],
    "the text is .*: give a str": [
        partial(TOKENIZER.encode, wrong) for wrong in (3, b"abc", None, ["a"])
    ],
    "the budget is a (int|str): give a Budget": [
        partial(call, budget=wrong) for call in BOUNDED for wrong in (3, 0, "1")
    ],
}


@pytest.mark.parametrize(
    ("message", "call"), [(message, call) for message, calls in WRONG.items() for call in calls]
)
def test_arguments_of_another_kind_say_what_to_give(message, call) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


def test_of_prompts_and_buffers_too() -> None:
    with pytest.raises(PromptError, match=r"not canonical at its token 2 \(b'b'\): give the ids"):
        constrain(TOKENIZER, "c").matcher(prefix=[2, 0, 1])
    for wrong in ([], "a", 3):
        with pytest.raises(BufferShapeError, match="give a numpy array"):
            CONSTRAINT.matcher().mask(wrong)
    assert CONSTRAINED(eos_ids=iter([5, 5])).eos_ids == (5,)
