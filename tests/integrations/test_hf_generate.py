"""`generate` with forced ids and with a safe end."""

from __future__ import annotations

import re

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hf_tiny import PAD, REGEXES, TOKENIZER, tiny  # noqa: E402

from bpe_automata.errors import BudgetTooSmallError, UnsupportedFeatureError  # noqa: E402
from bpe_automata.integrations.transformers import generate  # noqa: E402

MODEL = tiny()
PROMPTS = ["ab ", "trf a0", "0"]


@pytest.mark.parametrize("sampling", [False, True])
@pytest.mark.parametrize("method", ["canonical", "lift"])
def test_forced_ids_change_no_text(sampling, method):
    saved = 0
    for seed in range(2):
        options = {"method": method, "do_sample": sampling, "seed": seed, "max_new_tokens": 20}
        plain = generate(MODEL, TOKENIZER, PROMPTS, REGEXES[:3], **options)
        forced = generate(MODEL, TOKENIZER, PROMPTS, REGEXES[:3], forced=True, **options)
        for one, other in zip(plain, forced, strict=True):
            assert (one.text, one.ids, one.complete) == (other.text, other.ids, other.complete)
            assert (one.passes, one.forced) == (None, None)
            saved += 21 - other.passes
    assert saved


def test_one_row_counts_its_ids():
    found = generate(MODEL, TOKENIZER, "ab ", REGEXES[0], forced=True, max_new_tokens=40)
    assert found.complete
    assert found.forced + found.passes == len(found.ids) + 1  # the end of sequence
    assert found.passes < len(found.ids) / 2


def test_what_forced_ids_refuse_is_refused():
    with pytest.raises(UnsupportedFeatureError, match="beam_search"):
        generate(MODEL, TOKENIZER, "ab ", REGEXES[0], forced=True, num_beams=2)


def test_the_streamer_goes_where_it_is_heard():
    class Recorder(list):
        put = list.append

        def end(self):
            self.append("end")

    events = []
    for forced in (False, True):
        recorder = Recorder()
        generate(MODEL, TOKENIZER, "ab ", REGEXES[0], forced=forced, streamer=recorder)
        events.append(str(recorder))
    assert events[0] == events[1]
    assert "end" in events[0]


def test_without_a_safe_end_the_result_says_truncated():
    found = generate(MODEL, TOKENIZER, "ab ", REGEXES[0], max_new_tokens=5)
    assert (found.complete, found.finish_reason) == (False, "truncated")


@pytest.mark.parametrize("forced", [False, True])
def test_with_a_safe_end_every_text_is_complete(forced):
    for seed in range(6):
        options = {"do_sample": True, "seed": seed, "close": True, "forced": forced}
        found = generate(
            MODEL, TOKENIZER, PROMPTS, [REGEXES[2], r"[ab]{2,}!?|c*", r"(12|0)+:"],
            max_new_tokens=4 + seed, **options,
        )  # fmt: skip
        for one in found:
            assert (one.complete, one.finish_reason) == (True, "complete")
            assert len(one.ids) <= 4 + seed


def test_a_budget_too_small_is_refused_before_the_model_is_asked():
    calls = []
    handle = MODEL.register_forward_pre_hook(lambda *_: calls.append(1))
    with pytest.raises(BudgetTooSmallError) as caught:
        generate(MODEL, TOKENIZER, "ab ", REGEXES[0], close=True, max_new_tokens=5)
    handle.remove()
    assert not calls
    assert caught.value.given == 5
    needed = caught.value.needed
    found = generate(MODEL, TOKENIZER, "ab ", REGEXES[0], close=True, max_new_tokens=needed)
    assert found.complete
    assert len(found.ids) == needed
    assert re.fullmatch(REGEXES[0], found.text)
    assert PAD not in found.ids
