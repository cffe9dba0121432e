"""Prompts and regexes of constraints, as cases of the matrix: the state after a prompt's ids,
prompts that end where the answer would merge with them, and the syntax of regexes.
"""

from itertools import product

import pytest
import regex as regex_package

from bpe_automata import Tokenizer, compile_regex, constrain, heal, link_regex
from bpe_automata.errors import PromptError, UnsupportedRegexError, UnsupportedTokenizerError
from bpe_automata.reference import canonical_trie, compare
from bpe_automata.testing import added_token, byte_level
from support.files import TEXT
from support.making import Case, make, masks_are_right, refused, regexes_of, texts_of
from support.sources import sentencepiece

SECTION = "prompt and constraint"
WORDS = ("a", "b", "ab", " a", " ab", "1", "'s")


def small():
    added = [added_token(content, special=True) for content in ("<|x|>", "<|end|>")]
    step = byte_level(True)
    return Tokenizer.from_json(make(TEXT, byte_level=True, pretokenizer=step, added=added))


def case(name, check, variant=""):
    return Case(SECTION, name, False, check, variant)


def after(texts, least):
    """The state after ids that begin an encoding; where the prompt allows no answer, the trie is
    empty too. Of so many prompts and regexes at least there is one."""

    def check(folder):
        tokenizer, written = small(), 0
        for text, regex in product(texts, regexes_of(WORDS, 2)):
            written += masks_are_right(tokenizer, regex, tokenizer.encode(text)) > 0
        assert written >= least

    return check


def equal(constraint, texts, prompt, state):
    """The masks from a state are the trie of `encode` of these texts after the prompt."""
    trie = canonical_trie(constraint.tokenizer, texts, prompt, constraint.eos_ids)
    assert trie
    assert not any(compare(constraint.engine, state, trie))


def after_control(folder):
    """`<s>` is never text: after it the text begins anew, with its prefix."""
    tokenizer = sentencepiece(folder, normalizer_spec__add_dummy_prefix=True)
    constraint, start = constrain(tokenizer, "( ab|1|b){1,2}"), 1
    strings = [string.decode() for string in constraint.dfa.strings(100)]
    for text in ("", "ab", "a b"):
        ids = tokenizer.encode(text)
        equal(constraint, strings, ids, constraint.engine.initial([start, *ids]))


def healing(regex, prompt, reason):
    def check(folder):
        tokenizer = small()
        ids = tokenizer.encode(prompt)
        healed = heal(constrain(tokenizer, regex), ids, 2)
        assert healed.healing is not None
        assert healed.healing.reason == reason
        assert healed.healing.given_back == tuple(ids[len(healed.prefix) :])
        whole = [string.decode() for string in healed.constraint.dfa.strings(100)]
        start = healed.constraint.engine.initial(healed.prefix)
        equal(healed.constraint, whole, healed.prefix, start)

    return check


def end_of_sequence(folder):
    """Several ids, allowed exactly where the text is complete."""
    tokenizer = small()
    ends = {tokenizer.n_ids - 1, tokenizer.n_ids - 2}
    constraint = constrain(tokenizer, "(ab|a)", eos_ids=ends)
    matcher = constraint.matcher()
    assert ends.isdisjoint(matcher.allowed_ids())
    matcher.advance(tokenizer.encode("ab")[0])
    assert ends.issubset(matcher.allowed_ids())


def told_what_is_removed(folder):
    """NFC makes `é` of the second text, so that no ids spell it."""
    data = make(("a", "é", "e", "\u0301"), normalizer={"type": "NFC"})
    removed = constrain(Tokenizer.from_json(data), "(a|e\u0301|é)").removed
    assert removed is not None
    assert (removed.text, removed.normal) == ("e\u0301", "é")


def wrong(name, prompts, regex, says, error=PromptError, **options):
    """Ids of these texts one after the other, with an error that says what is wrong."""

    def act(folder):
        tokenizer = small()
        ids = [token for prompt in prompts for token in tokenizer.encode(prompt)]
        constrain(tokenizer, regex, **options).matcher(ids)

    return refused(SECTION, name, act, says, error=error)


CASES = [
    case("the state after any ids of `encode`", after(texts_of(TEXT, 12), 6)),
    case("special tokens in the prompt", after(("<|x|>", "a<|x|>b", "ab <|x|><|x|>"), 6)),
    case("control ids (`<s>`)", after_control),
    case("`heal`", healing("ab", "1 ", "constraint"), variant="constraint"),
    case("`heal`", healing("(ab|1)", "1 ", "distribution"), variant="distribution"),
    case("telling what the normalizer removes", told_what_is_removed),
    case("several end-of-sequence ids", end_of_sequence),
    wrong("prompts that are not canonical", "ab", "1", "canonical"),
    wrong("unhealed prompts that no answer can follow", ["1 "], "ab", "heal"),
    wrong("end-of-sequence ids that are ordinary text", [], "ab", "end-of-sequence id",
          UnsupportedTokenizerError, eos_ids=[0]),
]  # fmt: skip


# ---------------------------------------------------------------- regexes

REGEX_SECTION = "regex of the constraint"
LETTERS = "aAb1 é\n^"


def matches(name, pattern, variant=""):
    """Its texts up to a length are those of `fullmatch`, and there are some of each kind."""

    def check(folder):
        dfa = compile_regex(pattern)
        words = ["".join(word) for n in range(4) for word in product(LETTERS, repeat=n)]
        accepted = [word for word in words if dfa.accepts(word.encode())]
        assert accepted == [word for word in words if regex_package.fullmatch(pattern, word)]
        assert 0 < len(accepted) < len(words)

    return Case(REGEX_SECTION, name, False, check, variant)


def regex_refused(name, pattern, position, variant=""):
    def check(folder):
        for refuse in (compile_regex, link_regex):
            with pytest.raises(UnsupportedRegexError) as caught:
                refuse(pattern)
            assert (caught.value.pattern, caught.value.position) == (pattern, position)

    return Case(REGEX_SECTION, name, True, check, variant)


REGEX_CASES = [
    matches("alternation and groups", "(a|(?:b|A)1|(?P<x>aa))"),
    matches("`* + ? {n,m}`", "a*b+1?|a{2,3}"),
    matches("lazy repetition", "a{1,2}?b??"),
    matches("classes", "[ab1-3][^a]?"),
    matches("`.`", "a."),
    matches("`\\d \\w \\s`", r"\d?\w\s|\D\W\S"),
    matches("`(?i) (?s) (?x) (?i:…)`", "(?i)a(?-i:b)", "i"),
    matches("`(?i) (?s) (?x) (?i:…)`", "(?s)a.", "s"),
    matches("`(?i) (?s) (?x) (?i:…)`", "(?x) a  b # and a comment", "x"),
    matches("`\\p{…}`", r"\p{L}\p{Nd}|\P{L}"),
    matches("anchors at its ends", "^(a|b)$"),
    regex_refused("backreferences", r"(a)\1", 3),
    *(regex_refused("lookaround", p, 1, p) for p in ("a(?=b)", "a(?!b)", "a(?<=a)", "a(?<!b)")),
    regex_refused("conditional groups", "(a)?(?(1)b|c)", 4),
    regex_refused("possessive repetition", "a*+b", 1),
    regex_refused("atomic groups", "(?>a)b", 0),
    regex_refused(r"`\b`", r"\bfoo", 0),
    regex_refused("anchors inside", "a^b", 1),
]
