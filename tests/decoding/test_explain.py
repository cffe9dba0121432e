"""`explain`: consistent with `encode`, and its reasons name the rule that is broken."""

from __future__ import annotations

import pytest
import tokenizers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bpe_automata.constructions.canonical import canonical_automaton
from bpe_automata.decoding import explain
from bpe_automata.decoding.explanation import divide
from bpe_automata.decoding.visible import visible
from bpe_automata.errors import TokenOutOfRangeError
from bpe_automata.testing import bpe_tokenizers, resegmentations, small_tokenizer, split, texts

FEW = settings(
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.data_too_large,
    ]
)


def ids_of(tokenizer, *tokens: bytes) -> list[int]:
    return [tokenizer.spellings.index(token) for token in tokens]


def check(tokenizer, ids: list[int]) -> None:
    found = explain(tokenizer, ids)
    assert found.canonical == (tokenizer.encode(tokenizer.decode(ids)) == ids)
    assert (found.position is None) == found.canonical
    if not found.canonical:
        assert found.position == first_dead_end(tokenizer, ids, default=found.position)
        assert 0 <= found.position < len(ids)
        assert "encode makes" not in found.reason, "a rule was broken, and it was not found"


def pretokenizer_of(tokenizer):
    return tokenizers.Tokenizer.from_str(tokenizer.to_json()).pre_tokenizer


def first_dead_end(tokenizer, ids, default):
    automaton = canonical_automaton(tokenizer)
    state = automaton.start
    for position, token in enumerate(ids):
        state = automaton.step(state, token)
        if state is None:
            return position
    return default


@FEW
@given(data=st.data())
def test_canonical_iff_encode_gives_the_ids_back(smollm2_tokenizer, data) -> None:
    text = data.draw(texts(smollm2_tokenizer))
    check(smollm2_tokenizer, data.draw(resegmentations(smollm2_tokenizer, text)))


@FEW
@given(data=st.data())
def test_canonical_iff_encode_gives_the_ids_back_on_fragments(smollm2_tokenizer, data) -> None:
    fragments = [i for i, s in enumerate(smollm2_tokenizer.spellings) if max(s) > 127]
    check(smollm2_tokenizer, data.draw(st.lists(st.sampled_from(fragments), max_size=5)))


@FEW
@given(data=st.data())
def test_canonical_iff_encode_gives_the_ids_back_on_random_tokenizers(data) -> None:
    tokenizer = data.draw(bpe_tokenizers())
    any_id = st.integers(0, tokenizer.n_ids - 1)
    check(tokenizer, data.draw(st.lists(any_id, max_size=8)))
    text = data.draw(texts(tokenizer))
    check(tokenizer, data.draw(resegmentations(tokenizer, text)))


@FEW
@given(data=st.data())
def test_division_is_the_pretokenizers(smollm2_tokenizer, data) -> None:
    text = data.draw(texts(smollm2_tokenizer).filter(lambda text: "<|" not in text))
    automaton = canonical_automaton(smollm2_tokenizer)
    divided = divide(automaton.pipeline, (), text)
    own = smollm2_tokenizer.derived("its pretokenizer", pretokenizer_of)
    starts = [low for _, (low, _) in own.pre_tokenize_str(text)]
    assert divided is not None
    assert list(divided.starts) == [len(text[:low].encode()) for low in starts]


REASONS = [
    ((b" ord", b"er"), 1, "`␣ord`+`er` would be `␣order`"),
    ((b"a", b" ord", b"er", b" x"), 2, "`␣ord`+`er` would be `␣order`"),
    ((b"\n", b"\n"), 1, "the text cannot end here: `\\n`+`\\n` would be `\\n\\n`"),
    ((b"\n", b"\n", b" The"), 2, "`\\n`+`\\n` would be `\\n\\n` (token 1, settled by `␣The`)"),
    ((b"  ", b"a"), 1, "splits inside `␣␣`: `␣` | `␣` (token 0, settled by `a`)"),
    ((b"<", b"|", b"im", b"_", b"end", b"|", b">"), 6, "spell the added token `<|im_end|>`"),
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


def test_unreachable_token() -> None:
    vocabulary = ["a", "b", "c", "ab", "bc", "abc"]
    tokenizer = small_tokenizer(vocabulary, [("b", "c"), ("a", "b"), ("ab", "c")])
    found = explain(tokenizer, [5])
    assert found.position == 0
    assert found.reason == "`abc` is unreachable: BPE never makes it, but `a`+`bc`"


def test_unreachable_token_of_a_missing_character() -> None:
    tokenizer = small_tokenizer(["a", "b", "xy"], [])
    assert "no token spells `x`" in explain(tokenizer, [2]).reason


def test_ignore_merges() -> None:
    vocabulary = ["a", "b", " ", "c", "ab", "abc"]
    spaces = split({"String": " "})
    tokenizer = small_tokenizer(vocabulary, [("a", "b")], spaces, ignore_merges=True)
    assert explain(tokenizer, [5, 2, 5]).canonical
    whole = explain(tokenizer, [4, 3, 2])
    assert "the pretoken `abc` is a token of its own (ignore_merges)" in whole.reason
    inside = explain(tokenizer, [5, 0])
    assert "`abc` is legal only as a whole pretoken, not in `abca`" in inside.reason


def test_added_token_that_is_not_cut_out() -> None:
    tokenizer = small_tokenizer(["a", "b"], [], None, ["<ab", "ab>", "<", ">"])
    ids = tokenizer.description.added
    first, second = (token.id for token in ids[:2])
    assert explain(tokenizer, [first]).canonical
    wrong = explain(tokenizer, [next(t.id for t in ids if t.content == "<"), second])
    assert "these tokens spell the added token `<ab`" in wrong.reason


def test_id_out_of_range(smollm2_tokenizer) -> None:
    with pytest.raises(TokenOutOfRangeError, match="id -1 is not in 0"):
        explain(smollm2_tokenizer, [5, -1])


def test_visible() -> None:
    assert visible(b" a\n\t\\\xff\x00") == "`␣a\\n\\t\\\\\\xff\\x00`"
    assert visible("é日\u200b") == "`é日\\u200b`"
    assert visible("x" * 200) == f"`{'x' * 40}…{'x' * 19}`"
