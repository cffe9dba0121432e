"""Single features of tokenizers, by small explicit examples, compared with `tokenizers` itself."""

import itertools

import pytest
from support.files import NORMAL, USER, sentencepiece_proto
from support.laws import (
    accepted_iff_encode_gives_the_ids_back,
    begun,
    every_mask_is_that_of_the_trie_of_encode,
    verify_finds_nothing,
)
from support.steps import PREPEND, SPACED, in_turn, metaspace

from bpe_automata import Tokenizer, constrain
from bpe_automata.canonical.canonical import canonical_automaton
from bpe_automata.decoding.explanation import explain
from bpe_automata.errors import (
    EmptyLanguageError,
    PromptError,
    TokenizerMismatchError,
    UnsupportedTokenizerError,
)
from bpe_automata.testing import added_token, byte_level, byte_spelling, small_tokenizer
from bpe_automata.tokenizer.description import Prefix

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
PREPENDED = in_turn(PREPEND, SPACED)


def all_sequences(tokenizer, ids, longest):
    """Every sequence of these ids, each held against `encode`; the canonical ones."""
    some = [list(s) for n in range(longest + 1) for s in itertools.product(ids, repeat=n)]
    accepted_iff_encode_gives_the_ids_back(tokenizer, some)
    automaton = canonical_automaton(tokenizer)
    return {tuple(ids) for ids in some if automaton.accepts(ids)}


# ---------------------------------------------------------------- byte fallback


def test_with_byte_fallback_a_space_must_have_a_token():
    """Here a space would be the bytes of ▁, which decoding takes for the character ▁."""
    options = {"byte_fallback": True, "normalizer": PREPENDED}
    with pytest.raises(UnsupportedTokenizerError, match="spaces are written so"):
        small_tokenizer([*BYTES, "a"], **options)
    assert small_tokenizer([*BYTES, "a", "▁"], **options).encode("a") == [257, 256]


def test_a_fused_unknown_token_that_is_cut_out_of_the_text_stands_for_itself():
    options = {"unk_token": "<unk>", "fuse_unk": True}
    added = small_tokenizer(["a", "<unk>"], added=["<unk>"], **options)
    assert (1,) in all_sequences(added, [0, 1], 3)


# ---------------------------------------------------------------- prefixes


PREFIXES = {
    Prefix.PIECE: {"normalizer": PREPENDED},
    Prefix.FIRST_UNLESS_SPACE: {"pretokenizer": metaspace("first", False)},
    Prefix.PIECE_UNLESS_SPACE: {"pretokenizer": metaspace("always", False)},
    Prefix.NONE: {"pretokenizer": metaspace("never", False)},
}
VOCABULARY = ["▁", "a", "b", "▁a", "▁▁", "ab", "▁ab"]
MERGES = [("▁", "a"), ("a", "b"), ("▁a", "b"), ("▁", "▁")]
TEXTS = ("", "a", " a", "  a", "ab", " ", "  ", "<x>", "<x>a", "<x> a", "a<x>b", " <x>", "<x><x>ab")


def prefixed(prefix, added=("<x>",), **more):
    if prefix is Prefix.SPACE_FIRST:
        pretokenizer = byte_level() | {"add_prefix_space": True}
        vocabulary = [token.replace("▁", "Ġ") for token in VOCABULARY]
        merges = [(x.replace("▁", "Ġ"), y.replace("▁", "Ġ")) for x, y in MERGES]
        return small_tokenizer(vocabulary, merges, pretokenizer, added)
    return small_tokenizer(VOCABULARY, MERGES, added=added, **PREFIXES[prefix], **more)


EVERY_PREFIX = [*PREFIXES, Prefix.SPACE_FIRST]


@pytest.mark.parametrize("prefix", EVERY_PREFIX, ids=lambda p: p.name)
def test_decoding_undoes_the_prefix(prefix):
    """A space that was there already is taken for the prefix, so that text has no ids."""
    tokenizer = prefixed(prefix)
    assert tokenizer.description.prefix is prefix
    for text in TEXTS:
        lost = {
            Prefix.FIRST_UNLESS_SPACE: text.startswith(" "),
            Prefix.PIECE_UNLESS_SPACE: text.startswith(" ") or ">a" in text or ">b" in text,
            Prefix.SPACE_FIRST: text.startswith(("a", "b")) or ">a" in text or ">b" in text,
        }
        again = tokenizer.decode(tokenizer.encode(text))
        assert (again == text) != lost.get(prefix, False), text


@pytest.mark.parametrize("prefix", EVERY_PREFIX, ids=lambda p: p.name)
def test_masks_with_a_prefix_at_the_start_and_after_prompts(prefix):
    tokenizer = prefixed(prefix)
    compared = 0
    for regex in (" {0,2}a?b?", "(ab| a){1,2}", "(a|<x>| ){0,3}", "b<x>a|<x> b"):
        for prompt in TEXTS:
            ids = tokenizer.encode(prompt)
            compared += every_mask_is_that_of_the_trie_of_encode(tokenizer, regex, ids)
            verify_finds_nothing(tokenizer, regex, ids, n=4)
    assert compared > 100


@pytest.mark.parametrize("prefix", EVERY_PREFIX, ids=lambda p: p.name)
def test_an_added_token_may_begin_with_a_space(prefix):
    """But where a prefix depends on a space: such a tokenizer is refused, as it does not decode
    what it encodes."""
    added = ["<x>", " <y>"]
    if prefix in (Prefix.FIRST_UNLESS_SPACE, Prefix.PIECE_UNLESS_SPACE):
        with pytest.raises(TokenizerMismatchError):
            prefixed(prefix, added=added)
        return
    tokenizer = prefixed(prefix, added=added)
    for prompt in ("", "a", "<x>", "a <y>"):
        ids = tokenizer.encode(prompt)
        for regex in ("( <y>|<y>|a| ){0,2}", "( <y>){1,2}b"):
            every_mask_is_that_of_the_trie_of_encode(tokenizer, regex, ids)


@pytest.mark.parametrize("prefix", EVERY_PREFIX, ids=lambda p: p.name)
def test_decode_after_ids_is_what_the_ids_add(prefix):
    tokenizer = prefixed(prefix)
    for text in TEXTS:
        ids = tokenizer.encode(text + "ab <x>b")
        for at in range(len(ids) + 1):
            before, after = ids[:at], ids[at:]
            whole = tokenizer.decode(before) + tokenizer.decode(after, after=before)
            assert whole == tokenizer.decode(ids)


# ---------------------------------------------------------------- merge tables


def test_two_tokens_with_one_spelling():
    """▁ and the space, or a byte token and a character: at most one of them is BPE's."""
    tokenizer = small_tokenizer(
        ["▁", " ", "a", "▁a", " a"], [("▁", "a"), (" ", "a")], metaspace("never", False)
    )
    found = all_sequences(tokenizer, range(5), 3)
    assert (3,) in found
    assert not any(1 in ids or 4 in ids for ids in found)
    with pytest.raises(EmptyLanguageError):
        constrain(tokenizer, "▁").matcher()


# ---------------------------------------------------------------- added tokens under masks


def test_a_vocabulary_without_any_character_is_refused():
    for vocabulary in (["<unk>"], ["xy", "zz"]):
        tokenizer = small_tokenizer(vocabulary, added=["<s>"])
        with pytest.raises(UnsupportedTokenizerError, match="nothing to begin with"):
            canonical_automaton(tokenizer)


@pytest.mark.parametrize(
    ("space", "step"),
    [("Ġ", byte_level() | {"add_prefix_space": True}), ("▁", metaspace("always", True))],
)
def test_rstrip_or_strip_before_a_space_that_is_put_first_is_refused(space, step):
    """`<x> b` loses its space and gets it back, so here a space may stand after rstrip."""
    options = {"pretokenizer": step}
    with pytest.raises(UnsupportedTokenizerError, match="puts back the space"):
        small_tokenizer([space, "b"], added=[added_token("<x>", rstrip=True)], **options)
    strip = {"type": "Strip", "strip_left": True, "strip_right": False}
    with pytest.raises(UnsupportedTokenizerError, match="strip may remove that space"):
        small_tokenizer([space, "b"], added=["<x>"], normalizer=strip, **options)
    left = small_tokenizer([space, "b"], added=[added_token("<x>", lstrip=True)], **options)
    assert (2, 0, 1) in all_sequences(left, range(3), 4)


def test_bytes_that_are_no_text_are_not_canonical():
    """Decoding writes U+FFFD (EF BF BD) for them, and `encode` drops the bytes without a token."""
    tokenizer = small_tokenizer([byte_spelling(b"\xbd"), "a"], pretokenizer=byte_level())
    assert tokenizer.encode(tokenizer.decode([0])) == [0]
    assert not canonical_automaton(tokenizer).accepts([0])
    found = explain(tokenizer, [0])
    assert not found.canonical
    assert "not valid UTF-8" in found.reason


# ---------------------------------------------------------------- control ids of SentencePiece
# `<s>` and `</s>` are never text, but separate texts of a prompt.

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
    pieces = [(text, -float(rank), kind) for rank, (text, kind) in enumerate(PIECES)]
    proto = sentencepiece_proto(pieces, normalizer_spec__add_dummy_prefix=request.param)
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
    """Whatever came before it, masks are those of the prompt behind it alone."""
    engine, compared = constrain(tokenizer, regex).engine, 0
    before = [BEGIN], [*tokenizer.encode("ab"), END], [BEGIN, END, BEGIN]
    for prompt in ("", "a", "b", "ab a", "[X]", " ", "b[X]", "é"):
        ids = tokenizer.encode(prompt)
        compared += every_mask_is_that_of_the_trie_of_encode(tokenizer, regex, ids)
        alone = begun(engine, ids)
        assert all(begun(engine, [*some, *ids]) == alone for some in before)
    assert compared > 10


def test_a_text_that_cannot_end_before_a_control_id_is_refused(tokenizer):
    with pytest.raises(PromptError, match="not canonical at its token"):
        constrain(tokenizer, "a").matcher([3 + 0xC3, END])
