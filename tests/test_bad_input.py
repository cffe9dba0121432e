"""Bad input: a typed error each, that names the position or value and what to do."""

from __future__ import annotations

import copy
import json
from functools import partial
from pathlib import Path
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

Json = dict[str, Any]


def good() -> Json:
    """A tokenizer.json with everything in it."""
    tokenizer = small_tokenizer(
        ["a", "b", "c", "ab", "abc"], [("a", "b"), ("ab", "c")], byte_level(), ["<eos>"]
    )
    return json.loads(tokenizer.to_json())


def changed(**changes: Any) -> Json:
    """`good()` with some values replaced; `a__b` is the field b of a."""
    data = copy.deepcopy(good())
    for name, value in changes.items():
        *path, last = name.split("__")
        place = data
        for part in path:
            place = place[part]
        place[last] = value
    return data


# ---------------------------------------------------------------- files


def write(folder: Path, content: str | bytes, name: str = "tokenizer.json") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_truncated_json(tmp_path) -> None:
    whole = json.dumps(good())
    for size in (0, 1, 10, len(whole) // 2, len(whole) - 1):
        path = write(tmp_path, whole[:size])
        with pytest.raises(BrokenTokenizerError, match=r"is not valid JSON: .*char \d+") as caught:
            Tokenizer.load(path)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"[]", b"3", b"{}", b'{"model": {}}'])
def test_not_a_tokenizer(tmp_path, content) -> None:
    with pytest.raises(BrokenTokenizerError):
        Tokenizer.load(write(tmp_path, content))


@pytest.mark.parametrize("content", [b"", b"GGUF", b"x" * 500, b"GGUF\x03" + b"\x00" * 30])
def test_broken_gguf(tmp_path, content) -> None:
    with pytest.raises(BrokenTokenizerError, match=r"t\.gguf"):
        Tokenizer.load(write(tmp_path, content, "t.gguf"))


MALFORMED: list[tuple[str, Any]] = [
    ("model", None),
    ("model__vocab", None),
    ("model__vocab", {"a": "x"}),
    ("model__vocab", {"a": -1}),
    ("model__merges", [["a"]]),
    ("model__merges", [["a", 3]]),
    ("added_tokens", [{}]),
    ("decoder", 3),
]


@pytest.mark.parametrize(("field", "value"), MALFORMED, ids=map(str, MALFORMED))
def test_malformed_fields(field, value) -> None:
    with pytest.raises(BrokenTokenizerError):
        Tokenizer.from_json(changed(**{field: value}))


# ---------------------------------------------------------------- contradictions


def test_a_hole_in_the_vocabulary_is_never_allowed() -> None:
    """An id that no token has, as GPT-4o has between its ranks and its added tokens."""
    vocabulary = {**good()["model"]["vocab"], "<eos>": 5, "x": 9}
    tokenizer = Tokenizer.from_json(changed(model__vocab=vocabulary))
    assert (tokenizer.n_ids, tokenizer.spellings[6:9]) == (10, (b"", b"", b""))
    for method in ("canonical", "lift"):
        allowed = constrain(tokenizer, "[abcx]*", method, eos_ids=[]).matcher().allowed_ids()
        assert allowed.tolist() == [0, 1, 2, 3, 4, 9]


def test_a_huge_hole_costs_nothing() -> None:
    vocabulary = {**good()["model"]["vocab"], "x": 10**12}
    with pytest.raises(BrokenTokenizerError, match="the largest id is 1000000000000, but only 7"):
        Tokenizer.from_json(changed(model__vocab=vocabulary))


@pytest.mark.parametrize(
    ("merges", "message"),
    [
        ([["a", "b"], ["ab", "z"]], r"merge 1 \('ab' \+ 'z'\) names 'z', which is not a token"),
        ([["a", "c"]], r"merge 0 \('a' \+ 'c'\) names 'ac'"),
    ],
)
def test_merges_that_contradict_the_vocabulary(merges, message) -> None:
    with pytest.raises(BrokenTokenizerError, match=message):
        Tokenizer.from_json(changed(model__merges=merges))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return small_tokenizer(["a", "b", "c", "ab", "abc", "ca"], [("a", "b"), ("ab", "c")])


# ---------------------------------------------------------------- prompts and ids


def test_prompt_that_is_not_canonical(tokenizer) -> None:
    with pytest.raises(PromptError, match=r"not canonical at its token 2 \(b'b'\): give the ids"):
        constrain(tokenizer, "c").matcher(prefix=[2, 0, 1])


@pytest.mark.parametrize("method", ["canonical", "lift"])
@pytest.mark.parametrize("token", [-1, 6, 10**9])
def test_id_out_of_range(tokenizer, method, token) -> None:
    constraint = constrain(tokenizer, "abc", method)
    with pytest.raises(TokenOutOfRangeError, match=rf"{token} is not in 0 \.\. 5"):
        constraint.matcher(prefix=[token])
    matcher = constraint.matcher()
    with pytest.raises(TokenOutOfRangeError, match=rf"{token} is not in 0 \.\. 5"):
        matcher.advance(token)
    with pytest.raises(TokenOutOfRangeError, match=f"end-of-sequence id {token}"):
        constrain(tokenizer, "abc", method, eos_ids=[token])
    assert matcher.ids == ()


def test_every_error_is_of_one_family() -> None:
    kinds = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, Exception)]
    assert all(issubclass(kind, errors.BpeAutomataError | Warning) for kind in kinds)


# ---------------------------------------------------------------- arguments of another kind


def test_arguments_of_another_kind_say_what_to_give() -> None:
    tokenizer = Tokenizer.from_json(good())
    with pytest.raises(ArgumentError, match=r"is 'smollm2': give a Tokenizer, as Tokenizer\.load"):
        constrain("smollm2", "a")
    for language in (None, 3, b"a", object()):
        with pytest.raises(ArgumentError, match=r"give a regex, a list of texts, a schema"):
            constrain(tokenizer, language)
    with pytest.raises(ArgumentError, match="position 1 is 2"):
        constrain(tokenizer, ["yes", 2])
    assert len(str(InvalidSchemaError("#" + "/0" * 9_000, "wrong"))) < 400
    for wrong, shown in [(2, "2"), ("2", "'2'"), ([2.5], r"position 0 is 2\.5")]:
        with pytest.raises(ArgumentError, match=f"{shown}: give"):
            constrain(tokenizer, "a", eos_ids=wrong)
    constraint = constrain(tokenizer, "a", eos_ids=iter([5, 5]))
    assert constraint.eos_ids == (5,)
    healed, verified = partial(heal, constraint, n=1), partial(verify, tokenizer, constraint, 2, 0)
    for read in (constraint.matcher, constraint.automaton, healed, partial(verified, None)):
        with pytest.raises(ArgumentError, match=r"is 'hello', a text: give its ids"):
            read("hello")
    for wrong in ([], "a", 3):
        with pytest.raises(BufferShapeError, match="give a numpy array"):
            constraint.matcher().mask(wrong)
    for wrong, error in (("1", "'1': give"), (1.5, r"1\.5: give"), (None, "None: give")):
        for call in (constraint.matcher().allows, tokenizer.token_bytes):
            with pytest.raises(ArgumentError, match=f"the id is {error} an integer"):
                call(wrong)
    for wrong, shown in (("abc", "'abc', a text"), (3, "3"), ([1.5], r"1\.5"), ({"a"}, "'a'")):
        with pytest.raises(ArgumentError, match=f"is {shown}: give"):
            tokenizer.decode(wrong)
    for wrong in (3, b"abc", None, ["a"]):
        with pytest.raises(ArgumentError, match=r"the text is .*: give a str"):
            tokenizer.encode(wrong)
    constrained = partial(constrain, tokenizer, "a")
    for call in (constrained, partial(compile_regex, "a"), partial(Tokenizer.load, tokenizer)):
        for wrong in (3, 0, "1"):
            with pytest.raises(ArgumentError, match=r"the budget is a (int|str): give a Budget"):
                call(budget=wrong)
