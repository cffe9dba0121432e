"""Boundary hypotheses: for every text exactly one survives, and its boundaries are those of the
pretokenizer itself.
"""

from __future__ import annotations

import json

import pytest
import tokenizers
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata.errors import BudgetExceededError, UnsupportedTokenizerError
from bpe_automata.reference import readings
from bpe_automata.testing import (
    ADVERSARIAL,
    byte_level,
    pretokenizers,
    sequence,
    small_tokenizer,
    split,
    split_patterns,
    texts,
)
from bpe_automata.testing.small import BEHAVIORS
from bpe_automata.tokenizer.engines import Oniguruma
from bpe_automata.tokenizer.pipeline import compile_pipeline
from bpe_automata.tokenizer.sources.json_vocabulary import byte_to_char
from bpe_automata.tokenizer.sources.published import GPT2, LLAMA3

QWEN2_PATTERN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
TEKKEN_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|"
    r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEPLOYED = {
    "gpt2": GPT2,
    "llama3": LLAMA3,
    "qwen2": QWEN2_PATTERN,
    "tekken": TEKKEN_PATTERN,
}
SMALL = st.text(st.sampled_from("aaabbbc1 \n'é日"), max_size=14)


def check(pretokenizer, text, pipeline=None):
    """One reading, with the pretokenizer's own boundaries; none if it leaves out some text."""
    pipeline = pipeline or pipeline_of(pretokenizer)
    found = readings(pipeline, text)
    model = tokenizers.models.BPE()
    backend = json.loads(tokenizers.Tokenizer(model).to_str()) | {"pre_tokenizer": pretokenizer}
    own = tokenizers.Tokenizer.from_str(json.dumps(backend)).pre_tokenizer
    pieces = [span for _, span in own.pre_tokenize_str(text)] if own else [(0, len(text))]
    if sum(end - start for start, end in pieces) < len(text):
        assert found == []
        return
    assert found == [tuple(start for start, _ in pieces) if text else ()]


def pipeline_of(pretokenizer):
    description = small_tokenizer(byte_to_char(), (), pretokenizer).description
    return compile_pipeline(description, Oniguruma())


def all_bytes(*steps):
    return sequence(*steps, byte_level())


@pytest.mark.parametrize("name", DEPLOYED)
def test_deployed_patterns_have_one_reading_which_is_the_pretokenizers_own(name):
    pretokenizer = all_bytes(split({"Regex": DEPLOYED[name]}))
    pipeline = pipeline_of(pretokenizer)

    @examples(120)
    @given(texts())
    def law(text):
        check(pretokenizer, text, pipeline)

    law()


def test_a_sequence_splits_the_pieces_of_the_splitter_before():
    digits = {"type": "Digits", "individual_digits": True}
    pretokenizer = sequence(digits, byte_level(use_regex=True))
    pipeline = pipeline_of(pretokenizer)

    @examples(120)
    @given(texts())
    def law(text):
        check(pretokenizer, text, pipeline)

    law()


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("behavior", BEHAVIORS)
@pytest.mark.parametrize("pattern", ["ab|b", r"\s+(?!\S)", r"[ab]+(?=b)", r"a+?b|c", r"\p{N}"])
def test_every_behaviour_and_invert(pattern, behavior, invert):
    pretokenizer = all_bytes(split({"Regex": pattern}, behavior, invert))
    pipeline = pipeline_of(pretokenizer)

    @examples(15)
    @given(SMALL)
    def law(text):
        check(pretokenizer, text, pipeline)

    law()


@examples(70)
@given(split_patterns(), st.sampled_from(BEHAVIORS), st.booleans(), st.lists(SMALL, max_size=8))
def test_random_patterns(pattern, behavior, invert, some):
    """Priorities, lazy and nested repetition, lookahead: as the regex engine backtracks."""
    pretokenizer = all_bytes(split({"Regex": pattern}, behavior, invert))
    pipeline = pipeline_of(pretokenizer)
    for text in some:
        check(pretokenizer, text, pipeline)


@examples(30)
@given(pretokenizers(), st.lists(SMALL, max_size=8))
def test_random_sequences(pretokenizer, some):
    pipeline = pipeline_of(pretokenizer)
    for text in some:
        check(pretokenizer, text, pipeline)


def test_every_adversarial_character_alone_and_in_pairs():
    pretokenizer = all_bytes(split({"Regex": LLAMA3}))
    pipeline = pipeline_of(pretokenizer)
    for first in ADVERSARIAL:
        for second in ("", *ADVERSARIAL[::7]):
            check(pretokenizer, first + second, pipeline)


@pytest.mark.parametrize(
    "pattern",
    ["(?i:ß)", r"(?i:s\x73)", "(?i:[xß])", r"(?i:\u00dfa)", "(?i:s{2}s)", "(?i:ﬁx)"],
)
def test_folding_of_several_characters_to_one_is_refused(pattern):
    with pytest.raises(UnsupportedTokenizerError, match="fold"):
        pipeline_of(all_bytes(split({"Regex": pattern})))


@pytest.mark.parametrize(
    "pattern",
    ["a*", "a|", "(?=a)|b", r"\bx", "(?<=a)b", "(?=ab)a", "(ab)++", "^a", r"(a)\1", r"\xc3\xa9"],
)
def test_patterns_that_are_not_modelled_are_refused(pattern):
    with pytest.raises(UnsupportedTokenizerError, match="split pattern"):
        pipeline_of(all_bytes(split({"Regex": pattern})))


def test_a_pattern_that_counts_too_far_is_refused_with_the_count_and_what_to_do():
    """As that of Jais-2: an hypothesis for each count, and for each that must not come true."""
    blocks = "|".join(rf"\s{{{2**k}}}(?!\S)" for k in range(9, 1, -1))
    pattern = rf" ?[^\s]+|\s*[\r\n]+|{blocks}|\s{{1,2}}(?!\S)|\s{{1}}"
    with pytest.raises(BudgetExceededError, match=r"they count to 512: take an engine"):
        pipeline_of(all_bytes(split({"Regex": pattern})))
