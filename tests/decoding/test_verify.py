"""`verify` finds nothing where there is nothing, and what is wrong where something is; `explain`
is consistent with `encode`, and its reasons say what `encode` makes instead.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from bpe_automata import constrain
from bpe_automata._constructions.cartesian_merge import CartesianMerge
from bpe_automata._constructions.lift import Lift
from bpe_automata._core.canonical import canonical_automaton
from bpe_automata._decoding.explanation import explain
from bpe_automata._decoding.verification import verify
from bpe_automata._kernels.bits import clear_bits, set_bits
from bpe_automata.errors import EmptyLanguageError, PromptError, TokenOutOfRangeError
from bpe_automata.testing import (
    bpe_tokenizers,
    resegmentations,
    small_tokenizer,
    split,
    texts,
)

REGEXES = [
    r"(true|false)",
    r'\{"name": "[a-z ]{1,12}", "age": [0-9]{1,3}\}',
    r"\s{1,6}[a-z']{0,5}",
    r"(<\|im_end\|>|<\|im_start\|>|a| )*",
    r"[日本語é🎉]+",
]


@pytest.mark.parametrize("method", ["canonical", "lift"])
@pytest.mark.parametrize("regex", REGEXES)
def test_nothing_is_found(smollm2_tokenizer, regex, method) -> None:
    result = verify(smollm2_tokenizer, regex, n=60, method=method)
    assert result.ok, str(result)
    assert result.walks == 60
    assert result.strings + result.skipped == 60
    assert str(result).startswith("ok: no counterexample in 60 walks")


def test_nothing_is_found_after_a_prompt(smollm2_tokenizer) -> None:
    prompt = smollm2_tokenizer.encode("Question: who?\nAnswer:")
    result = verify(smollm2_tokenizer, r" ?[A-Za-z]+( [a-z]*)*", n=60, prefix=prompt)
    assert result.ok, str(result)


# ---------------------------------------------------------------- wrong on purpose


def test_the_lift_is_not_canonical(smollm2_tokenizer) -> None:
    lift = constrain(smollm2_tokenizer, "[a-z ]+", "lift")
    found = verify(smollm2_tokenizer, lift, method="canonical").counterexample
    assert found is not None
    assert found.claim == "accepted, but it is not its own tokenization"
    assert found.ids != found.expected_ids == tuple(smollm2_tokenizer.encode(found.text))
    for part in (found.claim, repr(found.text), " ".join(map(str, found.ids))):
        assert part in str(found)


def test_the_canonical_automaton_is_not_the_lift(smollm2_tokenizer) -> None:
    canonical = constrain(smollm2_tokenizer, "(true|false)")
    found = verify(smollm2_tokenizer, canonical, method="lift").counterexample
    assert found is not None
    assert "is refused" in found.claim
    assert found.text in ("true", "false")


class Mutated(CartesianMerge):
    """One id is wrongly refused, another wrongly allowed, everywhere."""

    refused: tuple[int, ...] = ()
    allowed: tuple[int, ...] = ()

    def mask(self, state):
        bits = super().mask(state).copy()
        clear_bits(bits, np.array(self.refused, dtype=np.int64))
        set_bits(bits, np.array(self.allowed, dtype=np.int64))
        return bits


def mutated(tokenizer, regex, **changes):
    constraint = constrain(tokenizer, regex)
    engine = Mutated(tokenizer, constraint.dfa, constraint.eos_ids)
    for name, value in changes.items():
        setattr(engine, name, value)
    return replace(constraint, engine=engine)


def test_a_refused_id_is_found(smollm2_tokenizer) -> None:
    (true,) = smollm2_tokenizer.encode("true")
    wrong = mutated(smollm2_tokenizer, "(true|false)", refused=(true,))
    found = verify(smollm2_tokenizer, wrong).counterexample
    assert found is not None
    assert (found.ids, found.text) == ((true,), "true")
    assert "refused" in found.claim


class Refusing(Lift):
    """One id is wrongly refused."""

    refused = np.zeros(0, np.int64)

    def mask(self, state):
        bits = super().mask(state).copy()
        clear_bits(bits, self.refused)
        return bits


def test_a_refused_id_that_random_strings_hardly_spell_is_found(smollm2_tokenizer) -> None:
    """Nor does a walk over the allowed ids show it."""
    constraint = constrain(smollm2_tokenizer, "[a-z]{1,9}", "lift")
    engine = Refusing(smollm2_tokenizer, constraint.dfa, constraint.eos_ids)
    engine.refused = np.array(smollm2_tokenizer.encode("ing"))
    found = verify(smollm2_tokenizer, replace(constraint, engine=engine), n=100).counterexample
    assert found is not None
    assert found.ids[-1] == engine.refused[0]
    assert "is refused after the others" in found.claim


def test_a_wrong_end_of_sequence_is_found(smollm2_tokenizer) -> None:
    eos = smollm2_tokenizer.eos_ids
    for changes, said in (({"refused": eos}, "refused"), ({"allowed": eos}, "allowed")):
        wrong = mutated(smollm2_tokenizer, "(true|false)", **changes)
        found = verify(smollm2_tokenizer, wrong).counterexample
        assert found is not None
        assert found.claim == f"end-of-sequence is {said} here, wrongly"


class Accepting(CartesianMerge):
    """Accepts by the text alone, as an automaton that knows no lookahead would."""

    def accepting(self, state):
        return bool(self.dfa.accepting[state.state])


def test_a_text_that_cannot_end_is_found(smollm2_tokenizer) -> None:
    constraint = constrain(smollm2_tokenizer, r"\n{1,3}a?", eos_ids=())
    wrong = replace(constraint, engine=Accepting(smollm2_tokenizer, constraint.dfa))
    found = verify(smollm2_tokenizer, wrong).counterexample
    assert found is not None
    assert found.claim == "accepted, but it is not its own tokenization"
    assert set(found.text) == {"\n"}


def test_another_tokenizer_is_found() -> None:
    """An automaton of a tokenizer with other merges."""
    vocabulary = ["a", "b", "ab", "ba"]
    one = small_tokenizer(vocabulary, [("a", "b"), ("b", "a")])
    other = small_tokenizer(vocabulary, [("b", "a"), ("a", "b")])
    assert verify(one, constrain(one, "[ab]+")).ok
    assert not verify(one, constrain(other, "[ab]+")).ok


def test_a_dead_end_is_found() -> None:
    """An engine that lets a walk in where nothing leads out."""
    tokenizer = small_tokenizer(["a", "b", "c"])

    class Trap(CartesianMerge):
        def mask(self, state):
            dead_end = state.state != self.dfa.start
            return super().mask(state) * np.int32(not dead_end)

    constraint = constrain(tokenizer, "abc")
    wrong = replace(constraint, engine=Trap(tokenizer, constraint.dfa))
    found = verify(tokenizer, wrong).counterexample
    assert found is not None
    assert found.claim == "nothing can finish this, yet it was allowed"


# ---------------------------------------------------------------- walks, errors


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    tokenizer = small_tokenizer(["a", "b"])
    verify(tokenizer, "(a|b)+", n=120, progress=lambda done, n: told.append((done, n)))
    assert told == [(0, 120), (50, 120), (100, 120)]


def test_errors_of_the_constraint_come_through(smollm2_tokenizer) -> None:
    with pytest.raises(EmptyLanguageError):
        verify(smollm2_tokenizer, "[^\\s\\S]")
    with pytest.raises(PromptError):
        verify(smollm2_tokenizer, "er", prefix=smollm2_tokenizer.encode(" ord"))


# ---------------------------------------------------------------- explain


def ids_of(tokenizer, *tokens: bytes) -> list[int]:
    return [tokenizer.spellings.index(token) for token in tokens]


def check(tokenizer, ids: list[int]) -> None:
    found = explain(tokenizer, ids)
    assert found.canonical == (tokenizer.encode(tokenizer.decode(ids)) == ids)
    assert (found.position is None) == found.canonical
    if not found.canonical:
        assert found.position == first_dead_end(tokenizer, ids, default=found.position)
        assert 0 <= found.position < len(ids)
        assert found.reason


def first_dead_end(tokenizer, ids, default):
    automaton = canonical_automaton(tokenizer)
    state = automaton.start
    for position, token in enumerate(ids):
        state = automaton.step(state, token)
        if state is None:
            return position
    return default


@examples(100)
@given(data=st.data())
def test_canonical_iff_encode_gives_the_ids_back(data) -> None:
    tokenizer = data.draw(bpe_tokenizers())
    any_id = st.integers(0, tokenizer.n_ids - 1)
    check(tokenizer, data.draw(st.lists(any_id, max_size=8)))
    text = data.draw(texts(tokenizer))
    check(tokenizer, data.draw(resegmentations(tokenizer, text)))


REASONS = [
    ((b" ord", b"er"), 1, "`␣ord`+`er` would be `␣order`"),
    ((b"a", b" ord", b"er", b" x"), 2, "`␣ord`+`er` would be `␣order`"),
    ((b"\n", b"\n"), 1, "the text cannot end here: `\\n`+`\\n` would be `\\n\\n`"),
    ((b"\n", b"\n", b" The"), 2, "`\\n`+`\\n` would be `\\n\\n` (token 1, settled by `␣The`)"),
    ((b"  ", b"a"), 1, "`␣␣`+`a` would be `␣`+`␣a`"),
    ((b"<", b"|", b"im", b"_", b"end", b"|", b">"), 6, "`|`+`>` would be `<|im_end|>`"),
    ((b"\xe6", b"a"), 1, "`a` after `\\xe6` is not valid UTF-8"),
    ((b"\x97",), 0, "`\\x97` is not valid UTF-8"),
    ((b"a", b"\xe6"), 1, "the text cannot end here: it is inside a character, after `\\xe6`"),
    ((b"\xe6", b"\x97", b"a"), 1, "`\\xe6`+`\\x97` would be `\\xe6\\x97`"),
]


@pytest.mark.parametrize(("tokens", "position", "reason"), REASONS)
def test_reason(smollm2_tokenizer, tokens, position, reason) -> None:
    found = explain(smollm2_tokenizer, ids_of(smollm2_tokenizer, *tokens))
    assert not found.canonical
    assert found.position == position
    assert reason in found.reason
    assert str(found).startswith(f"not canonical at token {position}: ")


def test_canonical_is_said(smollm2_tokenizer) -> None:
    ids = smollm2_tokenizer.encode("\n\nfoo")
    found = explain(smollm2_tokenizer, ids)
    assert found.canonical
    assert found.ids == found.expected_ids == tuple(ids)
    assert found.text == "\n\nfoo"
    assert str(found) == f"canonical: encode makes these {len(ids)} token(s) of their text"
    assert explain(smollm2_tokenizer, []).canonical


def test_reasons_of_tokens_that_no_merge_makes() -> None:
    merges = [("b", "c"), ("a", "b"), ("ab", "c")]
    tokenizer = small_tokenizer(["a", "b", "c", "ab", "bc", "abc", "xy"], merges)
    assert explain(tokenizer, [5]).reason == "`abc` would be `a`+`bc`"
    assert explain(tokenizer, [6]).reason == "`xy` would be nothing"
    vocabulary, spaces = ["a", "b", " ", "c", "ab", "abc"], split({"String": " "})
    tokenizer = small_tokenizer(vocabulary, [("a", "b")], spaces, ignore_merges=True)
    assert explain(tokenizer, [5, 2, 5]).canonical
    whole, inside = explain(tokenizer, [4, 3, 2]), explain(tokenizer, [5, 0])
    assert whole.reason == "`ab`+`c` would be `abc` (token 1, settled by `␣`)"
    assert inside.reason == "`abc` would be `ab`+`c` (token 0, settled by `a`)"


def test_added_token_that_is_not_cut_out() -> None:
    tokenizer = small_tokenizer(["a", "b"], [], None, ["<ab", "ab>", "<", ">"])
    ids = tokenizer.description.added
    first, second = (token.id for token in ids[:2])
    assert explain(tokenizer, [first]).canonical
    wrong = explain(tokenizer, [next(t.id for t in ids if t.content == "<"), second])
    assert wrong.reason == "`<`+`ab>` would be `<ab`+`>`"


def test_id_out_of_range(smollm2_tokenizer) -> None:
    with pytest.raises(TokenOutOfRangeError, match="id -1 is not in 0"):
        explain(smollm2_tokenizer, [5, -1])
