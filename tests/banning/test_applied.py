"""A ban put on a constraint once; texts that run out of ids are cut before whole words."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tiny_bans import (
    END,
    FREE,
    SPACE,
    SPELLINGS,
    TOKENIZER,
    A,
    B,
    indifferent,
    is_text,
    random_model,
    scripted,
    sequences,
)

from bpe_automata.banning import AppliedBan, Ban, spellings
from bpe_automata.errors import ArgumentError, EmptyLanguageError
from bpe_automata.sampling import banned, decode_allowed, decode_without

BAN = Ban(["ab", "é"])


@pytest.mark.parametrize("before", ["", "a", "xa", " "])
def test_it_writes_what_is_written_without_it(before):
    applied = AppliedBan(BAN, FREE)
    for seed in range(5):
        options = {"after": before, "seed": seed, "max_new_tokens": 8}
        model = random_model(seed)
        once = decode_allowed(model, Ban(["ab", "é"]), TOKENIZER, banned=applied, **options)
        assert once == decode_allowed(model, BAN, TOKENIZER, constraint=FREE, **options)


def test_it_makes_one_constraint_for_each_beginning_of_a_banned_text():
    applied = AppliedBan(BAN, FREE.within(7))
    assert applied.after("xa") is applied.after("a") is not applied.after("b")
    assert applied.after("b") is applied.after()
    assert applied.after("a").matcher().mask()[B] == 0 < applied.after("b").matcher().mask()[B]
    assert applied.after().engine.max_tokens == 7
    with pytest.raises(EmptyLanguageError):
        AppliedBan(Ban(regexes=[r"[\s\S]"]), Ban(["b"]).constrain(TOKENIZER, "a")).after()


def test_what_was_prepared_for_something_else_is_refused():
    """A constraint of another ban wrote words that were banned."""
    other = Ban(["b"])
    refused = {
        "AppliedBan": BAN.constrain(TOKENIZER, FREE.dfa, "lift", [END]),
        "the ban of 'b'": AppliedBan(other, FREE),
        "another constraint": AppliedBan(BAN, FREE.within(5)),
    }
    for match, given in refused.items():
        with pytest.raises(ArgumentError, match=match):
            decode_allowed(indifferent, BAN, TOKENIZER, constraint=FREE, banned=given)


def test_the_exact_mode_makes_no_spellings(monkeypatch):
    def never(*_):
        raise RuntimeError("the whole vocabulary is read")

    monkeypatch.setattr(spellings, "_bytes_of_ids", never)
    monkeypatch.setattr(spellings.Spellings, "__init__", never)
    ban = Ban(["a"], whole_word=True)
    options = {"constraint": FREE, "temperature": 0, "max_new_tokens": 2}
    run = decode_allowed(scripted((SPACE, A, SPACE)), ban, TOKENIZER, **options)
    assert (run.ids, run.discarded) == ((SPACE,), 1)
    assert not hasattr(banned, "Watch")


BANS = [Ban(["a", "ab b"], whole_word=True), Ban(["é", "b a"], whole_word=True), Ban(["b"])]


@pytest.mark.parametrize("ban", BANS, ids=str)
@pytest.mark.parametrize("before", ["", "a", "b ", "é"])
def test_a_text_is_cut_before_what_is_banned_when_nothing_follows(ban, before):
    """Every text that may go on; by definition, in characters: again and again before the id in
    which the first banned text begins, until there is none."""
    cut = 0
    for ids in sequences(3):
        pieces = [SPELLINGS[i] for i in ids]
        data = b"".join(pieces)
        may_go_on = is_text(data) or is_text(data + b"\xa9")
        if not may_go_on or next(
            ban.spans((before.encode() + data), len(before.encode()), False), 0
        ):
            continue
        n = len(ids)
        while found := ban.found_in(shown := text(pieces[:n]), before):
            first = len(shown[: max(0, found[0].start)].encode())
            n = max(k for k in range(n) if not k or len(b"".join(pieces[:k])) <= first)
        assert banned.kept(ban, before, pieces) == n, ids
        cut += n < len(ids)
    assert cut or not ban.whole_word


def text(pieces):
    return b"".join(pieces).decode("utf-8", "replace")


def test_a_character_that_is_not_complete_is_shown_so_the_word_before_it_is_whole():
    """` a` and the first byte of é: shown as a whole a and U+FFFD."""
    ban = Ban(["a"], whole_word=True)
    model = scripted((SPACE, A, 0, 1))
    for mode, n in itertools.product((decode_allowed, decode_without), (3, 4)):
        options = {"constraint": FREE, "temperature": 0, "max_new_tokens": n}
        run = mode(model, ban, TOKENIZER, **options)
        assert run.ids == ((SPACE,) if n == 3 else (SPACE, A, 0, 1))
        assert not ban.found_in(run.text)


@pytest.mark.parametrize("character", ["é", "日", "😀"])
def test_beginnings_of_characters(character):
    ban = Ban(["a"], whole_word=True)
    data = character.encode()
    stays = [banned.kept(ban, "", [b" ", b"a", data[:n]]) for n in range(1, len(data) + 1)]
    # A character of a word makes the a part of it; another one has been seen by the mask before.
    assert stays == [1] * (len(data) - 1) + [3 if character != "😀" else 1]
    assert np.all(np.array(stays) <= 3)
