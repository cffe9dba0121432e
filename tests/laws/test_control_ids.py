"""Control ids of SentencePiece (`<s>`, `</s>`) are never text, but separate texts of a prompt;
compared with sentencepiece itself.
"""

from __future__ import annotations

import itertools

import pytest
from laws import (
    accepted_iff_encode_gives_the_ids_back,
    every_mask_is_that_of_the_trie_of_encode,
    verify_finds_nothing,
)

pytest.importorskip("sentencepiece")
pytest.importorskip("google.protobuf")

from bpe_automata import Tokenizer, constrain
from bpe_automata.constructions import canonical_automaton
from bpe_automata.errors import PromptError
from bpe_automata.tokenizer.description import Prefix
from bpe_automata.tokenizer.sources.sentencepiece import model_proto

NORMAL, UNKNOWN, CONTROL, USER, _, BYTE = range(1, 7)
BEGIN, END = 1, 2
FIRST = 259  # after <unk>, <s>, </s> and 256 bytes
PIECES = [
    ("▁", NORMAL),
    ("a", NORMAL),
    ("b", NORMAL),
    ("▁a", NORMAL),
    ("ab", NORMAL),
    ("[X]", USER),
]


@pytest.fixture(scope="module", params=[True, False], ids=["dummy prefix", "no prefix"])
def tokenizer(request, tmp_path_factory):
    proto = model_proto()
    hidden = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
    bytes_ = [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
    for rank, (text, kind) in enumerate([*hidden, *bytes_, *PIECES]):
        proto.pieces.add(piece=text, score=-float(rank), type=kind)
    proto.trainer_spec.model_type = proto.trainer_spec.BPE
    proto.trainer_spec.byte_fallback = True
    proto.normalizer_spec.name = "identity"
    proto.normalizer_spec.add_dummy_prefix = request.param
    proto.normalizer_spec.remove_extra_whitespaces = False
    path = tmp_path_factory.mktemp("model") / "small.model"
    path.write_bytes(proto.SerializeToString())
    return Tokenizer.load(path)


def test_what_the_ids_are(tokenizer):
    assert tokenizer.description.controls >= {BEGIN, END}
    assert tokenizer.last_text([5, BEGIN, 6, 7]) == (6, 7)
    assert tokenizer.last_text([6, 7]) == (6, 7)
    assert tokenizer.last_text([6, END]) == ()
    assert tokenizer.decode([BEGIN]) == ""


def test_every_short_sequence(tokenizer):
    ids = [BEGIN, *range(FIRST, FIRST + len(PIECES)), 3 + ord("b"), 3 + ord("c")]
    some = [list(s) for n in range(4) for s in itertools.product(ids, repeat=n)]
    assert accepted_iff_encode_gives_the_ids_back(tokenizer, some) > 20
    assert canonical_automaton(tokenizer).step(canonical_automaton(tokenizer).start, BEGIN) is None


REGEXES = (" {0,2}a?b?", "(ab| a|é){1,2}", r"(a|\[X\]| ){0,3}", "ba")


@pytest.mark.parametrize("regex", REGEXES)
def test_a_text_begins_anew_after_a_control_id(tokenizer, regex):
    """Every mask is the same as at the beginning, whatever came before."""
    engine = constrain(tokenizer, regex).engine
    for before in ([BEGIN], [*tokenizer.encode("ab"), END], [BEGIN, END, BEGIN]):
        assert engine.initial() == engine.initial(before)
        verify_finds_nothing(tokenizer, regex, before, n=5)
    assert every_mask_is_that_of_the_trie_of_encode(tokenizer, regex) > 1


@pytest.mark.parametrize("regex", REGEXES)
def test_after_a_prompt_that_begins_with_a_control_id(tokenizer, regex):
    compared = 0
    for prompt in ("", "a", "b", "ab a", "[X]", " ", "b[X]", "é"):
        ids = tokenizer.encode(prompt)
        compared += every_mask_is_that_of_the_trie_of_encode(tokenizer, regex, ids)
        try:
            engine = constrain(tokenizer, regex).engine
            alone = engine.initial(ids) if ids else engine.initial()
        except PromptError:
            with pytest.raises(PromptError):
                constrain(tokenizer, regex).matcher([BEGIN, *ids])
            continue
        assert engine.initial([BEGIN, *ids]) == alone
        verify_finds_nothing(tokenizer, regex, [BEGIN, *ids], n=5)
    assert compared > 10


def test_a_text_that_cannot_end_before_a_control_id_is_refused(tokenizer):
    with pytest.raises(PromptError, match="not canonical at its token"):
        constrain(tokenizer, "a").matcher([3 + 0xC3, END])


def test_the_prefix_of_the_model(tokenizer):
    none = tokenizer.encode("b") == [FIRST + 2]
    assert tokenizer.description.prefix in ([Prefix.NONE] if none else [Prefix.TEXT, Prefix.PIECE])
