"""Bad input: a typed error each, that names the position or value and what to do."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from bpe_automata import Tokenizer, constrain, errors, heal, verify
from bpe_automata.automata.compile import compile_regex
from bpe_automata.errors import (
    ArgumentError,
    BrokenTokenizerError,
    BufferShapeError,
    InvalidSchemaError,
    PromptError,
    TokenOutOfRangeError,
)
from bpe_automata.schemas import json_schema
from bpe_automata.testing import byte_level, small_tokenizer

TOKENIZER = small_tokenizer(["a", "b", "c", "ab", "abc", "ca"], [("a", "b"), ("ab", "c")])
GOOD = small_tokenizer(
    ["a", "b", "c", "ab", "abc"], [("a", "b"), ("ab", "c")], byte_level(), ["<eos>"]
).to_json()
VOCABULARY = json.loads(GOOD)["model"]["vocab"]


def changed(value: Any, *path: str) -> bytes:
    """`GOOD` with another value at that path."""
    place = data = json.loads(GOOD)
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return json.dumps(data).encode()


NO_JSON = r"t\.json is not valid JSON: .*char \d+"
VOCAB, MERGES = ("model", "vocab"), ("model", "merges")
HUGE = changed({**VOCABULARY, "x": 10**12}, *VOCAB)  # of which nothing is allocated
BROKEN = [
    *(("json", GOOD.encode()[:size], NO_JSON) for size in (0, 1, 10, len(GOOD) // 2, -1)),
    *(("json", content, None) for content in (b"\xff\xfe\x00", b"[]", b"3", b"{}")),
    *(("gguf", content, r"t\.gguf") for content in (b"", b"GGUF", b"x" * 500, b"GGUF\3\0\0")),
    *(("json", changed(wrong, "model"), None) for wrong in (None, {})),
    *(("json", changed(wrong, *VOCAB), None) for wrong in (None, {"a": "x"}, {"a": -1})),
    ("json", HUGE, "largest id is 1000000000000, but only 7"),
    *(("json", changed(wrong, *MERGES), None) for wrong in ([["a"]], [["a", 3]])),
    ("json", changed([["a", "b"], ["ab", "z"]], *MERGES), r"merge 1 \('ab' \+ 'z'\) names 'z', w"),
    ("json", changed([["a", "c"]], *MERGES), r"merge 0 \('a' \+ 'c'\) names 'ac'"),
    ("json", changed([{}], "added_tokens"), None),
    ("json", changed(3, "decoder"), None),
]


@pytest.mark.parametrize(("kind", "content", "message"), BROKEN)
def test_files_that_are_no_tokenizer_are_named(tmp_path, kind, content, message) -> None:
    path = tmp_path / f"t.{kind}"
    path.write_bytes(content)
    with pytest.raises(BrokenTokenizerError, match=message):
        Tokenizer.load(path)


def test_a_hole_in_the_vocabulary_is_never_allowed() -> None:
    """An id that no token has, as GPT-4o has between its ranks and its added tokens."""
    data = changed({**VOCABULARY, "<eos>": 5, "x": 9}, *VOCAB)
    tokenizer = Tokenizer.from_json(json.loads(data))
    assert (tokenizer.n_ids, tokenizer.spellings[6:9]) == (10, (b"", b"", b""))
    for method in ("canonical", "lift"):
        allowed = constrain(tokenizer, "[abcx]*", method, eos_ids=[]).matcher().allowed_ids()
        assert allowed.tolist() == [0, 1, 2, 3, 4, 9]


def test_every_error_is_of_one_family() -> None:
    kinds = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, Exception)]
    assert all(issubclass(kind, errors.BpeAutomataError | Warning) for kind in kinds)
    assert len(str(InvalidSchemaError("#" + "/0" * 9_000, "wrong"))) < 400


CONSTRAINED = partial(constrain, TOKENIZER, "a")
CONSTRAINT, LIFT = CONSTRAINED(), CONSTRAINED("lift")
MATCHER = CONSTRAINT.matcher()
READ = (
    *(CONSTRAINT.matcher, CONSTRAINT.automaton, partial(heal, CONSTRAINT, n=1)),
    partial(verify, TOKENIZER, CONSTRAINT, 2, 0, None),
)
BOUNDED = CONSTRAINED, partial(compile_regex, "a"), partial(Tokenizer.load, TOKENIZER)
WRONG: list[tuple[type[Exception], str, Callable[[Any], object], Sequence[object]]] = [
    (ArgumentError, r"is 'smollm2': give a Tokenizer, as Tokenizer\.load",
     lambda wrong: constrain(wrong, "a"), ["smollm2"]),
    (ArgumentError, "give a regex, a list of texts, a schema", partial(constrain, TOKENIZER),
     [None, 3, b"a", object()]),
    (ArgumentError, "position 1 is 2", partial(constrain, TOKENIZER), [["yes", 2]]),
    (ArgumentError, "is '?2'?: give", lambda wrong: CONSTRAINED(eos_ids=wrong), [2, "2"]),
    (ArgumentError, r"position 0 is 2\.5", lambda wrong: CONSTRAINED(eos_ids=wrong), [[2.5]]),
    *((ArgumentError, r"is 'hello', a text: give its ids", read, ["hello"]) for read in READ),
    *((ArgumentError, "the id is .*: give an integer", call, ["1", 1.5, None])
      for call in (MATCHER.allows, TOKENIZER.token_bytes)),
    (ArgumentError, "is ('abc', a text|3|1.5|'a'): give", TOKENIZER.decode,
     ["abc", 3, [1.5], {"a"}]),
    (ArgumentError, "the text is .*: give a str", TOKENIZER.encode, [3, b"abc", None, ["a"]]),
    *((ArgumentError, "the budget is a (int|str): give a Budget",
       lambda wrong, call=call: call(budget=wrong), [3, 0, "1"]) for call in BOUNDED),
    *((TypeError, "a bytes-like object is required", call, ["a"])
      for call in (compile_regex("a").accepts, json_schema({}).accepts)),
    (BufferShapeError, "give a numpy array", MATCHER.mask, [[], "a", 3]),
    (PromptError, r"not canonical at its token 2 \(b'b'\): give the ids",
     constrain(TOKENIZER, "c").matcher, [[2, 0, 1]]),
    *((TokenOutOfRangeError, r"(-1|6|10{9}) is not in 0 \.\. 5", call, [[-1], [6], [10**9]])
      for call in (CONSTRAINT.matcher, LIFT.matcher)),
    *((TokenOutOfRangeError, "end-of-sequence id (-1|6|10{9})",
       lambda wrong, method=method: CONSTRAINED(method, eos_ids=wrong), [[-1], [6], [10**9]])
      for method in ("canonical", "lift")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "message", "call", "wrong"),
    [(*row, wrong) for *row, every in WRONG for wrong in every],
)
def test_what_is_wrong_is_said_and_what_to_give(error, message, call, wrong) -> None:
    with pytest.raises(error, match=message):
        call(wrong)


def test_end_of_sequence_ids_may_come_twice_and_one_by_one() -> None:
    assert CONSTRAINED(eos_ids=iter([5, 5])).eos_ids == (5,)
