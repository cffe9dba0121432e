"""Both modes of a ban: never a banned word, the same language, the same errors; and a ban put on a
constraint once.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples
from tiny_bans import (
    END,
    FREE,
    SPECIAL,
    SPELLINGS,
    TOKENIZER,
    is_text,
    may_be_text,
    only,
    random_model,
    sequences,
)

from bpe_automata import constrain
from bpe_automata.banning import AppliedBan, Ban, any_text
from bpe_automata.errors import ArgumentError, EmptyLanguageError, LogitsError, ModelError
from bpe_automata.sampling import _banned as banned
from bpe_automata.sampling import _loop as loop
from bpe_automata.sampling import _rollback as rollback
from bpe_automata.sampling import decode
from bpe_automata.sampling._banned import decode_allowed
from bpe_automata.sampling._rollback import decode_without

MODES = (decode_allowed, decode_without)
BAN = Ban(["ab", "é"])


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

    for module in (banned, loop, rollback):
        monkeypatch.setattr(module, "draw", draw)
    while True:
        place = 0
        yield run()
        while script and script[-1][0] + 1 == script[-1][1]:
            script.pop()
        if not script:
            return
        script[-1] = (script[-1][0] + 1, script[-1][1])


@pytest.mark.parametrize("before", ["", "a"])
@pytest.mark.parametrize(
    ("ban", "few"),
    [
        (Ban(["ab", "é"]), [2, 3, END]),
        (Ban(["b", "aba", "a a"]), [2, 3, 7, END]),
        (Ban(["a", "b b"], whole_word=True), [2, 3, 5, END]),
        (Ban([], ["a+b", "[é ]{2}"]), [0, 1, 4, END]),
    ],
)
def test_both_modes_write_the_same_texts(ban, few, before, monkeypatch):
    """All complete texts of at most 2 of few ids, to which the model gives all mass: those of the
    constraint without anything banned."""

    def run_of(mode):
        options = {"after": before, "max_new_tokens": 3}
        return lambda: mode(only(few), AppliedBan(ban, FREE), **options)

    written = {}
    for mode in MODES:
        runs = list(every_run(monkeypatch, run_of(mode)))
        assert not any(ban.found_in(run.text, before) for run in runs)
        written[mode] = {run.ids for run in runs if run.finish_reason == "complete"}
    wanted = {
        ids
        for ids in sequences(2)
        if set(ids) <= set(few)
        and is_text(data := TOKENIZER.text_bytes(ids))
        and not ban.found_in(data.decode(), before)
    }
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
    applied = AppliedBan(ban, data.draw(st.sampled_from([FREE, any_text(TOKENIZER)])))
    options = {
        "after": before,
        "max_new_tokens": data.draw(st.integers(0, 12)),
        "temperature": data.draw(st.sampled_from([0.0, 0.5, 1.0, 3.0])),
        "seed": seed,
    }
    model = random_model(seed)
    cap = data.draw(st.sampled_from([0, 1, 5, 1000]))
    for mode, more in ((decode_allowed, {}), (decode_without, {"max_rollbacks": cap})):
        try:
            run = mode(model, applied, **options, **more)
        except EmptyLanguageError:
            assert mode is decode_without or ban.allowed_after(before).is_empty
            continue
        assert not ban.found_in(run.text, before), (run, ban)
        assert run.text == TOKENIZER.decode(run.ids)
        assert len(run.ids) <= options["max_new_tokens"]
        assert run.acted == len(run.rollbacks) <= cap or mode is decode_allowed


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
            run = mode(model, AppliedBan(ban, plain), **options)
            assert (run.ids, run.finish_reason, run.acted) == (free.ids, free.finish_reason, 0)
            assert (run.passes, run.complete) == (free.passes, free.complete)
            if mode is decode_allowed:
                assert run.log_weight == pytest.approx(free.log_weight)
        ends.add((free.finish_reason, free.log_weight is None))
    assert ends == {("complete", False), ("complete", True), ("truncated", True)}


def test_what_a_model_does_wrong():
    def failing(ids):
        raise RuntimeError("no")

    for mode in MODES:
        for model, error in ((failing, ModelError), (only([SPECIAL]), LogitsError)):
            with pytest.raises(error):
                mode(model, AppliedBan(BAN, FREE))
        with pytest.raises(ArgumentError, match=r"banned is a Ban: give AppliedBan"):
            mode(random_model(0), BAN)
        for after in (b"a", 1, "\ud800"):
            with pytest.raises(ArgumentError, match="after is"):
                mode(random_model(0), AppliedBan(BAN, FREE), after=after)
    for ban, constraint in ((FREE, BAN), (["a"], FREE), (BAN, TOKENIZER), (BAN, "a")):
        with pytest.raises(ArgumentError, match=r"give AppliedBan\(Ban"):
            AppliedBan(ban, constraint)


# ---------------------------------------------------------------- put on a constraint once


@pytest.mark.parametrize("before", ["", "a", "xa", " "])
def test_it_writes_what_is_written_without_it(before):
    applied = AppliedBan(BAN, FREE)
    for seed in range(5):
        options = {"after": before, "seed": seed, "max_new_tokens": 8}
        for mode in MODES:
            once = mode(random_model(seed), applied, **options)
            assert once == mode(random_model(seed), AppliedBan(BAN, FREE), **options)


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
        first = before.encode()
        if not may_be_text(data) or next(ban.spans(first + data, len(first), False), 0):
            continue
        n = len(ids)
        while found := ban.found_in(
            shown := b"".join(pieces[:n]).decode("utf-8", "replace"), before
        ):
            first = len(shown[: max(0, found[0].start)].encode())
            n = max(k for k in range(n) if not k or len(b"".join(pieces[:k])) <= first)
        assert banned.kept(ban, before, pieces) == n, ids
        cut += n < len(ids)
    assert cut or not ban.whole_word
