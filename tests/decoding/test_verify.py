"""`verify` finds nothing where there is nothing, and what is wrong where something is; `explain`
is consistent with `encode`, and its reasons say what `encode` makes instead.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from bpe_automata import constrain
from bpe_automata._kernels.bits import clear_bits, set_bits
from bpe_automata.canonical.canonical import canonical_automaton
from bpe_automata.decoding.explanation import explain
from bpe_automata.decoding.verification import verify
from bpe_automata.errors import EmptyLanguageError, PromptError, TokenOutOfRangeError
from bpe_automata.testing import bpe_tokenizers, resegmentations, small_tokenizer, split, texts

# ---------------------------------------------------------------- wrong on purpose


def changed(engine, refused=(), allowed=()):
    """Some ids are refused in every state, and some are allowed."""
    mask = engine.mask

    def wrong(state):
        bits = mask(state).copy()
        clear_bits(bits, np.array(refused, dtype=np.int64))
        set_bits(bits, np.array(allowed, dtype=np.int64))
        return bits

    engine.mask = wrong


def trapped(engine):
    """A walk is let in where nothing leads out."""
    mask, start = engine.mask, engine.initial()
    engine.mask = lambda state: mask(state) * np.int32(state == start)


def accepting_by_text(engine):
    """As an automaton that knows no lookahead would."""
    engine.accepting = lambda state: bool(engine.dfa.accepting[state.state])


EOS, TRUE, ING = 2, 10469, 274  # of SmolLM2
NOT_ITS_OWN = "accepted, but it is not its own tokenization"
MISTAKES = [
    ("(true|false)", "canonical", lambda engine: changed(engine, [TRUE]), "refused", [TRUE]),
    # which random strings hardly spell; nor does a walk over the allowed ids show it
    ("[a-z]{1,9}", "lift", lambda engine: changed(engine, [ING]), "refused after the oth", [ING]),
    ("true", "canonical", lambda engine: changed(engine, [EOS]), "end-of-sequence is refused", []),
    ("true", "canonical", lambda engine: changed(engine, [], [EOS]), "end-of-sequence is all", []),
    (r"\n{1,3}a?", "canonical", accepting_by_text, NOT_ITS_OWN, []),
    ("x{20}", "canonical", trapped, "nothing can finish this, yet it was allowed", []),
]


@pytest.mark.parametrize(("regex", "method", "change", "claim", "last"), MISTAKES)
def test_a_mistake_is_found(smollm2_tokenizer, regex, method, change, claim, last) -> None:
    constraint = constrain(smollm2_tokenizer, regex, method)
    change(constraint.engine)
    found = verify(smollm2_tokenizer, constraint, n=100, method=method).counterexample
    assert found is not None
    assert claim in found.claim
    assert not last or [*found.ids[-1:]] == last


def test_one_method_is_not_the_other(smollm2_tokenizer) -> None:
    lift = constrain(smollm2_tokenizer, "[a-z ]+", "lift")
    found = verify(smollm2_tokenizer, lift, method="canonical").counterexample
    assert found is not None
    assert found.claim == NOT_ITS_OWN
    assert found.ids != found.expected_ids == tuple(smollm2_tokenizer.encode(found.text))
    for part in (found.claim, repr(found.text), " ".join(map(str, found.ids))):
        assert part in str(found)
    canonical = constrain(smollm2_tokenizer, "(true|false)")
    found = verify(smollm2_tokenizer, canonical, method="lift").counterexample
    assert found is not None
    assert "is refused" in found.claim
    assert found.text in ("true", "false")


def test_another_tokenizer_is_found() -> None:
    vocabulary = ["a", "b", "ab", "ba"]
    one = small_tokenizer(vocabulary, [("a", "b"), ("b", "a")])
    other = small_tokenizer(vocabulary, [("b", "a"), ("a", "b")])
    result = verify(one, constrain(one, "[ab]+"), n=60)
    assert result.walks == result.strings + result.skipped == 60
    assert str(result).startswith("ok: no counterexample in 60 walks")
    assert not verify(one, constrain(other, "[ab]+")).ok


def test_progress_is_told_and_errors_of_the_constraint_come_through(smollm2_tokenizer) -> None:
    told: list[tuple[int, int]] = []
    tokenizer = small_tokenizer(["a", "b"])
    verify(tokenizer, "(a|b)+", n=120, progress=lambda done, n: told.append((done, n)))
    assert told == [(0, 120), (50, 120), (100, 120)]
    with pytest.raises(EmptyLanguageError):
        verify(smollm2_tokenizer, "[^\\s\\S]")
    with pytest.raises(PromptError):
        verify(smollm2_tokenizer, "er", prefix=smollm2_tokenizer.encode(" ord"))


# ---------------------------------------------------------------- explain


def check(tokenizer, ids: list[int]) -> None:
    """Canonical iff `encode` gives the ids back; the position is where no step leads on."""
    found, automaton = explain(tokenizer, ids), canonical_automaton(tokenizer)
    assert found.canonical == (tokenizer.encode(tokenizer.decode(ids)) == ids)
    assert (found.position is None) == found.canonical
    state = automaton.start
    for position, token in enumerate(ids):
        state = automaton.step(state, token)
        if state is None:
            assert found.position == position
            return
    assert found.canonical or 0 <= found.position < len(ids)


@examples(30)
@given(st.data())
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
    ids = [smollm2_tokenizer.spellings.index(token) for token in tokens]
    found = explain(smollm2_tokenizer, ids)
    assert (found.canonical, found.position) == (False, position)
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
    with pytest.raises(TokenOutOfRangeError, match="id -1 is not in 0"):
        explain(smollm2_tokenizer, [5, -1])


MADE = small_tokenizer(
    ["a", "b", "c", "ab", "bc", "abc", "xy"], [("b", "c"), ("a", "b"), ("ab", "c")]
)
WHOLE = small_tokenizer(
    ["a", "b", " ", "c", "ab", "abc"], [("a", "b")], split({"String": " "}), ignore_merges=True
)
ADDED = small_tokenizer(["a", "b"], [], None, ["<ab", "ab>", "<", ">"])


@pytest.mark.parametrize(
    ("tokenizer", "ids", "reason"),
    [
        (MADE, [5], "`abc` would be `a`+`bc`"),
        (MADE, [6], "`xy` would be nothing"),
        (WHOLE, [4, 3, 2], "`ab`+`c` would be `abc` (token 1, settled by `␣`)"),
        (WHOLE, [5, 0], "`abc` would be `ab`+`c` (token 0, settled by `a`)"),
        (WHOLE, [5, 2, 5], "canonical: encode makes these 3 token(s) of their text"),
        (ADDED, [2], "canonical: encode makes these 1 token(s) of their text"),
        (ADDED, [4, 3], "`<`+`ab>` would be `<ab`+`>`"),
    ],
)
def test_reasons_of_tokens_that_no_merge_makes(tokenizer, ids, reason) -> None:
    """Whole pretokens and added tokens among them."""
    assert explain(tokenizer, ids).reason == reason
