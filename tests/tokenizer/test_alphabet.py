"""The alphabet: characters that the pipeline cannot distinguish are one atom; character classes are
what the engines match at every code point.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples
from tokenizers import Regex, pre_tokenizers

from bpe_automata.tokenizer import alphabet
from bpe_automata.tokenizer.alphabet import engine_class, from_pairs
from bpe_automata.tokenizer.engines import NAMED_KINDS, FancyRegex, Oniguruma

CLASSES = (r"\s", r"\p{L}", r"[a-c\x{3042}-\x{4E00}]")
READABLE = from_pairs([(0, 0x3100), (0x10000, 0x10400)])


def members_of(pattern, kind="regex"):
    return engine_class(Oniguruma(), kind, pattern)


def in_ranges(ranges, character):
    return any(low <= ord(character) < high for low, high in ranges.tolist())


@examples(100)
@given(st.characters(exclude_categories=("Cs",)))
def test_an_atom_is_the_classes_that_a_character_is_in(character):
    classes = [members_of(source) for source in CLASSES]
    letters = alphabet.build_alphabet(classes, marked="<|", readable=READABLE, missing_bytes=[0xC3])
    atom = letters.atom(character)
    if not in_ranges(READABLE, character) or 0xC3 in character.encode():
        assert atom == alphabet.DEAD
        return
    inside = [in_ranges(ranges, character) for ranges in classes]
    assert letters.inside[:, atom].tolist() == inside
    others = {letters.atom(c) for c in "<|"} - {letters.atom(character)}
    assert len(others) == (1 if character in "<|" else 2)


def read(letters, row, data):
    """Where bytes lead from a row: the next row, or -2 - atom, or -1."""
    for byte in data:
        row = int(letters.utf8[row, byte])
        if row < 0:
            return row
    return row


def test_with_byte_fallback_a_second_copy_reads_the_characters_without_a_token():
    symbols = from_pairs([(ord("a"), ord("z") + 1), (ord("é"), ord("é") + 1)])
    letters = alphabet.build_alphabet([members_of(r"\p{L}")], marked="", symbols=symbols)
    for character in "aéêA日\x00":
        atom = letters.atom(character)
        assert atom >= 0, "every character can be spelled"
        fallback = read(letters, letters.fallback_root, character.encode())
        assert fallback == (alphabet.DEAD if character in "aé" else -2 - atom)


# ---------------------------------------------------------------- character classes

NAMED_CLASSES = (
    r"\s",
    r"\p{L}",
    r"\p{N}",
    r"[^\s\p{L}\p{N}]",
    r"[^\r\n\p{L}\p{N}]",
    r"(?i:\x{73})",
    ".",
)
SPANS = {
    "digits": lambda c: pre_tokenizers.Digits(True).pre_tokenize_str("a" + c)[0][0] == "a",
    "whitespace": lambda c: pre_tokenizers.WhitespaceSplit().pre_tokenize_str(c) == [],
    "punctuation": lambda c: pre_tokenizers.Punctuation("removed").pre_tokenize_str(c) == [],
    "bert_whitespace": lambda c: pre_tokenizers.BertPreTokenizer().pre_tokenize_str(c) == [],
    "bert_punctuation": lambda c: _pieces(pre_tokenizers.BertPreTokenizer(), f"a{c}a") == 3,
    "word_whitespace": lambda c: pre_tokenizers.Whitespace().pre_tokenize_str(c) == [],
    "word": lambda c: _pieces(pre_tokenizers.Whitespace(), f"a{c}a") == 1,
}
"""The definition of each named class, one character at a time."""


def _pieces(step, text):
    return len(step.pre_tokenize_str(text))


def characters(ranges):
    return {c for low, high in ranges.tolist() for c in range(low, high)}


def tiktoken_reads(pattern):
    tiktoken = pytest.importorskip("tiktoken", reason="tiktoken is missing: pip install tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)}
    encoding = tiktoken.Encoding("bytes", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return lambda character: bool(encoding.encode_ordinary(character))


def split_removes(pattern):
    step = pre_tokenizers.Split(Regex(pattern), "removed")
    return lambda character: step.pre_tokenize_str(character) == []


@pytest.mark.parametrize(
    ("engine", "own"), [(Oniguruma, split_removes), (FancyRegex, tiktoken_reads)]
)
@examples(60)
@given(st.sampled_from(NAMED_CLASSES), st.text(max_size=30))
def test_an_engine_says_of_each_character_what_its_library_does(engine, own, pattern, text):
    is_inside = own(pattern)
    spans = engine().members("regex", pattern, text)
    found = [text[at] for low, high in spans for at in range(low, high)]
    assert found == list(filter(is_inside, text))


@pytest.mark.parametrize("kind", NAMED_KINDS)
def test_a_named_class_is_what_its_pretokenizer_does_with_one_character(kind):
    members = characters(engine_class(Oniguruma(), kind, ""))
    borders = sorted({c + d for c in members for d in (-1, 0, 1)} - set(range(0xD7FF, 0xE001)))
    sample = {*range(0x3000), *borders[:4000], *borders[-500:]} - {-1}
    wrong = [hex(c) for c in sorted(sample) if SPANS[kind](chr(c)) != (c in members)]
    assert wrong == []


@pytest.mark.parametrize("pattern", [r"\s", r"[^\s\p{L}\p{N}]", r"(?i:\x{6B})"])
def test_a_class_is_complete(pattern):
    """Over every code point, against Split's own spans, which are slower to get."""
    step = pre_tokenizers.Split(Regex(pattern), "removed")
    expected = set()
    for first in range(0, 0x110000, 2048):
        if first != 0xD800:
            text = "".join(map(chr, range(first, first + 2048)))
            kept = [first + k for _, (a, b) in step.pre_tokenize_str(text) for k in range(a, b)]
            expected |= set(range(first, first + 2048)).difference(kept)
    assert characters(engine_class(Oniguruma(), "regex", pattern)) == expected
