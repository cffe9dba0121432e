"""A tokenizer over single characters.

encode(text) = the id of each character,  ids by code point, then end-of-sequence
"""

from __future__ import annotations

from bpe_automata.errors import ArgumentError
from bpe_automata.tokenizer import Tokenizer


def character_tokenizer(text_or_alphabet: str, end: str = "<end>") -> Tokenizer:
    """The tokenizer whose vocabulary is the characters of a text, and `end`.

    end: how the end-of-sequence id is written; it is an added token, so a text that spells it is
    not read character by character. Characters that are not in the vocabulary cannot be encoded:
    `encode` leaves them out, as `tokenizers` does.

    Raises ArgumentError for an empty alphabet, lone surrogates, or an `end` of less than two
    characters.
    """
    alphabet = sorted(set(text_or_alphabet))
    if not alphabet or any("\ud800" <= character <= "\udfff" for character in alphabet):
        raise ArgumentError(
            "an alphabet needs at least one character, and no lone surrogates: "
            f"{text_or_alphabet[:20]!r} will not do"
        )
    if len(end) < 2:
        raise ArgumentError(f"end {end!r} could be a character of the text: give a longer name")
    vocabulary = {character: number for number, character in enumerate(alphabet)}
    last = len(vocabulary)
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return Tokenizer.from_json(
        {
            "version": "1.0",
            "added_tokens": [{"id": last, "content": end, "special": True, **flags}],
            "normalizer": None,
            "pre_tokenizer": None,
            "post_processor": None,
            "decoder": {"type": "Fuse"},
            "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
        },
        eos_ids=(last,),
        name="characters",
    )
