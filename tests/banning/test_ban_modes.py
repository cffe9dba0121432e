"""Both modes of a ban: never a banned word, the same language, the same errors; and a ban put on a
constraint once.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples, tiny_llama
from support.steps import metaspace
from tiny_bans import (
    END,
    FREE,
    SPACE,
    SPECIAL,
    SPELLINGS,
    TOKENIZER,
    A,
    B,
    N,
    indifferent,
    is_text,
    only,
    random_model,
    scripted,
    sequences,
)

from bpe_automata import constrain
from bpe_automata.banning import AppliedBan, Ban
from bpe_automata.banning import _spellings as spellings
from bpe_automata.errors import ArgumentError, EmptyLanguageError, LogitsError, ModelError
from bpe_automata.sampling import _banned as banned
from bpe_automata.sampling import _rollback as rollback
from bpe_automata.sampling import decode
from bpe_automata.sampling._banned import decode_allowed
from bpe_automata.sampling._rollback import decode_without
from bpe_automata.testing import small_tokenizer

MODES = (decode_allowed, decode_without)
BANS = {
    "anywhere": Ban(["ab", "é"]),
    "inside one another": Ban(["b", "aba", "a a"]),
    "whole": Ban(["a", "b b"], whole_word=True),
    "regex": Ban([], ["a+b", "[é ]{2}"]),
}


def every_run(monkeypatch, run):
    """`run()` with every choice of every draw, in turn: each draw takes one of the ids allowed."""
    script: list[tuple[int, int]] = []
    place = 0

    def draw(log_p, allowed, u, greedy=False):
        nonlocal place
        options = np.flatnonzero(allowed & (log_p > -np.inf))
        log_mass = float(np.log(np.exp(log_p[options]).sum()))
        if u == 0.0:  # the exact mode asks for a mass
            return int(options[0]), log_mass
        if place == len(script):
            script.append((0, len(options)))
        place += 1
        return int(options[script[place - 1][0]]), log_mass

    monkeypatch.setattr(banned, "draw", draw)
    monkeypatch.setattr(rollback, "draw", draw)
    while True:
        place = 0
        yield run()
        while script and script[-1][0] + 1 == script[-1][1]:
            script.pop()
        if not script:
            return
        script[-1] = (script[-1][0] + 1, script[-1][1])


def is_banned(ban, text, before=""):
    return bool(ban.found_in(text, before))


FEW = {
    "anywhere": (2, 3, END),
    "inside one another": (2, 3, 7, END),
    "whole": (2, 3, 5, END),
    "regex": (0, 1, 4, END),
}
"""The ids that the model gives any mass: there are too many runs with all of them."""


@pytest.mark.parametrize("before", ["", "a"])
@pytest.mark.parametrize("name", BANS)
def test_both_modes_write_the_same_texts(name, before, monkeypatch):
    """All complete texts of at most 2 ids: those of the constraint without anything banned."""
    ban, few = BANS[name], list(FEW[name])

    def run_of(mode):
        options = {"constraint": FREE, "after": before, "max_new_tokens": 3}
        return lambda: mode(only(few), ban, TOKENIZER, **options)

    written = {}
    for mode in MODES:
        runs = list(every_run(monkeypatch, run_of(mode)))
        assert not any(is_banned(ban, run.text, before) for run in runs)
        written[mode] = {run.ids for run in runs if run.finish_reason == "complete"}
    wanted = {
        ids
        for ids in sequences(2)
        if set(ids) <= set(few)
        and is_text(data := TOKENIZER.text_bytes(ids))
        and not is_banned(ban, data.decode(), before)
    }
    print(len(runs), "runs")
    assert written[decode_allowed] == written[decode_without] == wanted
    assert len(wanted) > 1


@examples(25)
@given(st.data())
def test_no_banned_word_passes_on_any_seed(data):
    """Random models, longer texts, small caps on rollbacks, words from all over the alphabet."""
    ignore_case, whole_word = data.draw(st.booleans()), data.draw(st.booleans())
    parts = st.text("abé ", min_size=1, max_size=3)
    ban = Ban(
        data.draw(st.lists(parts, min_size=1, max_size=3, unique=True)), (), whole_word, ignore_case
    )
    before, seed = data.draw(st.text("ab ", max_size=2)), data.draw(st.integers(0, 2**30))
    options = {
        "constraint": data.draw(st.sampled_from([FREE, None])),
        "after": before,
        "max_new_tokens": data.draw(st.integers(0, 12)),
        "temperature": data.draw(st.sampled_from([0.0, 0.5, 1.0, 3.0])),
        "seed": seed,
    }
    model = random_model(seed)
    cap = data.draw(st.sampled_from([0, 1, 5, 1000]))
    for mode, more in ((decode_allowed, {}), (decode_without, {"max_rollbacks": cap})):
        try:
            run = mode(model, ban, TOKENIZER, **options, **more)
        except EmptyLanguageError:
            assert mode is decode_without or ban.allowed_after(before).is_empty
            continue
        assert not is_banned(ban, run.text, before), (run, ban)
        assert run.text == TOKENIZER.decode(run.ids)
        assert len(run.ids) <= options["max_new_tokens"]
        assert run.acted == len(run.rollbacks) <= cap or mode is decode_allowed


def likes(*ids, then=END):
    """A model that writes these ids, each far likelier than the next one of the list."""

    def model(so_far):
        logits = np.full(N, -20.0)
        logits[[*ids]] = -np.arange(len(ids), dtype=float)
        logits[then] = -10
        return logits

    return model


def test_where_everything_is_banned():
    plain = constrain(TOKENIZER, "b|ab", "lift", [END], added_tokens=False)
    for mode in MODES:
        with pytest.raises(EmptyLanguageError, match="ban of 'b'"):
            mode(indifferent, Ban(["b"]), TOKENIZER, constraint=plain, seed=0)


def test_the_exact_mode_says_what_the_ban_took():
    """Of 4 equally likely ids it takes one at the first step, none at the second."""
    plain = constrain(TOKENIZER, "a|b|é | ", "lift", [END], added_tokens=False)
    run = decode_allowed(likes(SPACE), Ban(["b"]), TOKENIZER, constraint=plain, temperature=0)
    assert run.ids == (SPACE,)
    assert run.acted == 1
    assert run.log_mass_removed < 0
    logits = likes(SPACE)(())
    first = [i for i in plain.matcher().allowed_ids() if i != B]
    both = [np.logaddexp.reduce(logits[ids]) for ids in (first, plain.matcher().allowed_ids())]
    assert run.log_mass_removed == pytest.approx(both[0] - both[1])
    free = decode_allowed(likes(SPACE), Ban(["xyz"]), TOKENIZER, constraint=plain, temperature=0)
    assert (free.acted, free.log_mass_removed) == (0, 0.0)


def test_without_anything_to_do_it_is_the_free_loop():
    """The same seed draws what `decode` draws, number by number, and ends alike."""
    short = constrain(TOKENIZER, "(a|b){0,2}", "lift", [END], added_tokens=False)
    endless = constrain(TOKENIZER, "(a|b){3}", "lift", [], added_tokens=False)
    ban, ends = Ban(["é" * 9]), set()
    for seed, plain in itertools.product(range(12), (FREE, short, endless)):
        model = random_model(seed)
        options = {"max_new_tokens": 1 + seed % 4, "seed": seed}
        free = decode(model, plain, **options)
        for mode in MODES:
            run = mode(model, ban, TOKENIZER, constraint=plain, **options)
            assert (run.ids, run.finish_reason, run.acted) == (free.ids, free.finish_reason, 0)
            assert (run.passes, run.complete) == (free.passes, free.complete)
            if mode is decode_allowed:
                assert run.log_weight == pytest.approx(free.log_weight)
        ends.add((free.finish_reason, free.log_weight is None))
    assert ends == {("complete", False), ("complete", True), ("truncated", True)}


def test_what_a_model_does_wrong():
    def interrupted(ids):
        raise KeyboardInterrupt

    def failing(ids):
        raise RuntimeError("no")

    def nothing(ids):
        logits = np.full(N, -np.inf)
        logits[SPECIAL] = 0
        return logits

    for mode in MODES:
        for model, error in (
            (failing, ModelError),
            (nothing, LogitsError),
            (interrupted, KeyboardInterrupt),
        ):
            with pytest.raises(error):
                mode(model, Ban(["ab"]), TOKENIZER, constraint=FREE)


def test_ids_that_only_the_ban_leaves_without_mass():
    """The model gives mass to `b` alone: once that is banned, nothing is left at the beginning."""

    def model(ids):
        logits = np.full(N, -np.inf)
        logits[B] = 0
        return logits

    with pytest.raises(EmptyLanguageError, match="gives it no mass"):
        decode_without(model, Ban(["b"]), TOKENIZER, constraint=FREE, seed=0)
    with pytest.raises(LogitsError):
        decode_allowed(model, Ban(["b"]), TOKENIZER, constraint=FREE, seed=0)


def test_with_the_space_before_a_text():
    """Metaspace: `▁a` spells a at the beginning of a text, and " a" elsewhere."""
    step = metaspace("always", False)
    tokenizer = small_tokenizer(["a", "b", "▁", "▁a"], [("▁", "a")], step, ["<end>"], decoder=step)
    plain = constrain(tokenizer, "[ab ]*", "lift", [4], added_tokens=False)
    ban = Ban([" a"])
    texts = set()
    for seed in range(60):
        for mode in MODES:
            run = mode(
                lambda ids: np.zeros(5),
                ban,
                tokenizer,
                constraint=plain,
                seed=seed,
                max_new_tokens=4,
            )
            assert run.text == tokenizer.decode(run.ids)
            assert " a" not in run.text
            texts.add(run.text)
    assert any(text.startswith("a") for text in texts)


def test_a_tiny_transformers_model_reads_each_id_once():
    """The cache is cropped, not rebuilt: what is fed are the prompt and the ids that were drawn."""
    made = tiny_llama(0, 16, num_key_value_heads=1, initializer_range=1.0)
    from bpe_automata.integrations.transformers import CausalModel

    model = CausalModel(made)
    ban, options = Ban(["ab", "é"]), {"max_new_tokens": 10, "max_rollbacks": 30}
    acted = 0
    for seed in range(2):
        fed, passes, prompt = model.fed, model.passes, [B, seed + A]
        run = decode_without(model, ban, TOKENIZER, prompt, seed=seed, **options)
        acted += run.acted
        assert model.passes - passes == run.passes
        # Each id that was drawn is fed once, and the prompt.
        assert model.fed - fed <= len(prompt) + len(run.ids) + run.discarded
        fresh = decode_without(
            lambda ids: CausalModel(model.model)(ids), ban, TOKENIZER, prompt, seed=seed, **options
        )
        assert fresh.ids == run.ids
    assert acted
    assert model.cropped


# ---------------------------------------------------------------- put on a constraint once

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
    for match, applied in refused.items():
        with pytest.raises(ArgumentError, match=match):
            decode_allowed(indifferent, BAN, TOKENIZER, constraint=FREE, banned=applied)


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


WRITTEN_OUT = [Ban(["a", "ab b"], whole_word=True), Ban(["é", "b a"], whole_word=True), Ban(["b"])]


@pytest.mark.parametrize("ban", WRITTEN_OUT, ids=str)
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
