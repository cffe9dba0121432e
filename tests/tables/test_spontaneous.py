"""What counts as canonical in a text that a model wrote freely, and how it is counted."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from tiny import tiny_llama

from bpe_automata import explain
from bpe_automata.errors import ArgumentError
from bpe_automata.testing import byte_level, small_tokenizer
from experiments import models
from experiments.run.artefact import ARTEFACTS
from experiments.run.config import changed, plain
from experiments.run.tables import frame
from experiments.shared.canonical_texts import ADDED, BROKEN, END, PAIR, SPELLING, SPLIT, Judge
from experiments.shared.free_texts import drawn, masses, sample
from experiments.study.spontaneous import artefact as spontaneous
from experiments.study.spontaneous.artefact import PROMPTS, prompts_of
from experiments.study.spontaneous.report import of_joints, of_texts, texts_of
from experiments.words import OrdinaryTokens

MERGES = ["a b", "Ġ a", "Ġ Ġ", "b a"]
SPACED = small_tokenizer(
    [*"abĠ", *(merge.replace(" ", "") for merge in MERGES)],
    [tuple(merge.split()) for merge in MERGES],
    byte_level(use_regex=True),
)
TEXTS = [
    "The cat sat.",
    "  two\n\n\nlines  ",
    "x = 3.14159",
    "Привет, мир",
    "日本語 abc",
    "I'll go",
]


def kinds(judge, ids, ended):
    return [fault.kind for fault in judge.verdict(ids, ended).faults]


@pytest.mark.parametrize("prompt", ["", "a "])
def test_whole_and_cut_texts_against_all_texts_there_are(prompt):
    """D and its beginnings, by encoding every text of at most 7 characters."""
    prompt_ids = SPACED.encode(prompt)
    texts = ["".join(some) for n in range(8) for some in product("ab ", repeat=n)]
    whole = set()
    for ids in SPACED.encode_batch([prompt + text for text in texts]):
        if ids[: len(prompt_ids)] == prompt_ids:
            whole.add(tuple(ids[len(prompt_ids) :]))
    begun = {ids[:k] for ids in whole for k in range(len(ids) + 1)}
    judge = Judge(SPACED, prompt_ids)
    for size in range(4):
        for ids in product(range(SPACED.n_ids), repeat=size):
            for ended, right in ((True, whole), (False, begun)):
                verdict = judge.verdict(ids, ended)
                assert verdict.canonical == (ids in right), (ids, ended)
                assert bool(verdict.faults) == (not verdict.canonical)


def test_other_ids_against_encode(smollm2_tokenizer):
    tokens, rng = OrdinaryTokens(smollm2_tokenizer), random.Random(4)
    for text in TEXTS:
        ids = smollm2_tokenizer.encode(text)
        for cut in range(1, len(ids)):
            judge = Judge(smollm2_tokenizer, ids[:cut])
            assert judge.verdict(ids[cut:], True).canonical
            assert judge.verdict(ids[cut:-1], False).canonical
            other = next(tokens.at_random(ids[cut:], rng), ids[cut:])
            whole = smollm2_tokenizer.encode(smollm2_tokenizer.decode([*ids[:cut], *other]))
            assert judge.verdict(other, True).canonical == (whole == [*ids[:cut], *other])


def test_the_first_fault_is_the_one_that_is_explained(smollm2_tokenizer):
    tokens, rng = OrdinaryTokens(smollm2_tokenizer), random.Random(5)
    judge = Judge(smollm2_tokenizer, smollm2_tokenizer.encode("So"))
    ids = smollm2_tokenizer.encode(" the international organization decided")
    found = 0
    for other in tokens.at_random(ids, rng):
        verdict = judge.verdict(other, True)
        explained = explain(smollm2_tokenizer, [*smollm2_tokenizer.encode("So"), *other])
        if not explained.canonical:
            found += 1
            assert verdict.faults[0].reason == explained.reason
            assert verdict.faults[0].position == explained.position - 1
    assert found > 5


def test_kinds_of_faults(smollm2_tokenizer):
    encode = smollm2_tokenizer.encode
    one = {data: k for k, data in enumerate(smollm2_tokenizer.spellings)}.__getitem__
    judge = Judge(smollm2_tokenizer, encode("So"))
    assert kinds(judge, [one(b" t"), one(b"he")], ended=False) == [PAIR]
    twice = judge.verdict([one(b" t"), one(b"he")] * 2, ended=True).faults
    assert [fault.kind for fault in twice] == [PAIR, PAIR]
    assert [fault.reason for fault in twice] == ["`␣t`+`he` would be `␣the`"] * 2
    assert kinds(judge, [one(b"\xd0"), one(b"a")], ended=False) == [BROKEN]
    assert kinds(judge, [one(b"\xd0")], ended=False) == []
    assert kinds(judge, [one(b"\xd0")], ended=True) == [END]
    spelled = [*map(one, [b"<", b"|", b"im", b"_", b"end", b"|", b">"])]
    assert ADDED in kinds(judge, spelled, ended=False)


def test_tokens_that_no_text_has_there():
    tokens = ["a", "b", "Ġ", "aĠ", "bb", "bbb"]
    made = small_tokenizer(tokens, [("a", "Ġ"), ("b", "b")], byte_level(use_regex=True))
    judge = Judge(made, [1])
    assert kinds(judge, [3], ended=False) == [SPLIT]
    assert kinds(judge, [5, 2], ended=False) == [SPELLING]


def test_prompts_divide_the_texts_evenly():
    assert all(len({*prompts}) == len(prompts) >= 8 for prompts in PROMPTS.values())
    for chosen in (spontaneous.Config(), spontaneous.SMOKE):
        assert not any(chosen.texts % len(prompts) for prompts in PROMPTS.values())


def test_every_prompt_is_canonical(smollm2_tokenizer):
    for kind in PROMPTS:
        for prompt in prompts_of(kind, smollm2_tokenizer):
            ids = smollm2_tokenizer.encode(prompt)
            assert Judge(smollm2_tokenizer, ids).verdict((), ended=False).canonical
            assert not prompt.endswith(" ")
    assert prompts_of("chat", smollm2_tokenizer)[0].startswith("<|im_start|>user\nExplain")
    assert prompts_of("chat", SPACED)[0].startswith("Question: Explain")


@pytest.fixture
def tiny(monkeypatch):
    """A random model over a small tokenizer."""
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    tokenizer = small_tokenizer(
        [*(chr(c) for c in range(33, 127)), "Ġ", "Ċ", "ĉ", "ab"],
        [("a", "b")],
        byte_level(),
        added=[{"content": "<end>", "special": True} | flags],
    )
    loaded = tiny_llama(tokenizer, seed=3, eos_ids=(tokenizer.n_ids - 1,))
    monkeypatch.setattr(models, "opened", lambda *_: loaded)
    return loaded


def test_a_cell_is_drawn_again_alike(tiny):
    chosen = spontaneous.Config(texts=5, tokens=9, temperatures=(0.7, 1.3))
    row = spontaneous.drawn("tiny", "prose", chosen)
    assert row == spontaneous.drawn("tiny", "prose", chosen)
    fewer = spontaneous.Config(texts=3, tokens=9, temperatures=(1.3,))
    assert spontaneous.drawn("tiny", "prose", fewer)["texts"] == row["texts"][5:8]
    assert [text["prompt"] for text in row["texts"]] == [0, 1, 2, 3, 4] * 2
    for text in row["texts"]:
        assert len(text["ids"]) <= 9
        assert text["ended"] or len(text["ids"]) == 9
        assert tiny.tokenizer.n_ids - 1 not in text["ids"]
        assert text["canonical"] == ("faults" not in text)


def test_texts_follow_the_distribution_of_one_pass_for_each_id(tiny):
    """Two prompts of different length, padded; against the inverse of the cumulated masses."""
    torch = pytest.importorskip("torch")
    prompts, temperatures = [[1, 2, 3, 4, 5], [7, 8]], [0.8, 1.4, 1.0]
    which, drawn = [0, 1, 1], np.random.default_rng(0).random((3, 6))
    found = sample(tiny.model, prompts, which, temperatures, drawn, ends={20})
    for k, text in enumerate(found):
        ids = list(prompts[which[k]])
        for number in drawn[k][: len(text.ids) + text.ended]:
            with torch.no_grad():
                logits = tiny.model(torch.tensor([ids])).logits[0, -1].double()
            until = (logits / temperatures[k]).softmax(-1).cumsum(0)
            ids.append(int((until <= number).sum()))
        assert ids[len(prompts[which[k]]) :] == [*text.ids, *[20] * text.ended]


def test_ids_that_the_tokenizer_does_not_have_are_never_drawn(tiny):
    """The distribution is that over the others: with a number near 1 the last of them is drawn."""
    torch = pytest.importorskip("torch")
    drawn = np.full((1, 3), 1 - 2**-40)
    (whole,) = sample(tiny.model, [[1, 2]], [0], [1.0], drawn, ends=())
    (cut,) = sample(tiny.model, [[1, 2]], [0], [1.0], drawn, ends=(), n_ids=30)
    assert whole.ids[0] == tiny.tokenizer.n_ids - 1
    assert cut.ids == (29, 29, 29)
    half = np.full((1, 1), 0.5)
    (text_,) = sample(tiny.model, [[1, 2]], [0], [1.0], half, ends=(), n_ids=30)
    with torch.no_grad():
        masses = tiny.model(torch.tensor([[1, 2]])).logits[0, -1, :30].double().softmax(-1)
    assert text_.ids == (int((masses.cumsum(0) <= 0.5).sum()),)


def test_drawing_over_many_blocks_of_ids():
    torch = pytest.importorskip("torch")
    logits = torch.randn(4, 1300, generator=torch.Generator().manual_seed(1))
    logits[2, :700] = -torch.inf
    for number in (0.0, 0.3, 0.999, 1 - 2**-53):
        until = logits.double().softmax(-1).cumsum(1)
        right = (until <= number).sum(1).clamp(max=1299)
        numbers = torch.full((4, 1), number, dtype=torch.float64)
        found = drawn(masses(logits.clone(), torch.ones(4, 1)), numbers)
        mass = logits.double().softmax(-1)
        assert all(mass[range(4), found] > 0)
        if number < 0.9999:
            assert torch.equal(found, right)


def text(*faults, n=10, ended=False):
    made = {"temperature": 1.0, "ids": [0] * n, "ended": ended, "canonical": not faults}
    return made | ({"faults": [*faults]} if faults else {})


def row(model, kind, temperature, texts, prompts=99):
    texts = [
        text | {"temperature": temperature, "prompt": k % prompts} for k, text in enumerate(texts)
    ]
    return {"key": f"{model} {kind} {temperature}", "model": model, "kind": kind, "texts": texts}


CHOSEN = spontaneous.Config(models=("one", "two"), kinds=("prose", "code"), temperatures=(0.5, 1.0))
MANIFEST = {"config": plain(CHOSEN), "models": {"one": {"model": "The One", "note": "a note"}}}
FAULT = [3, PAIR, "`a`+`b`", "why"]
ARTEFACT = ARTEFACTS["spontaneous"]


def group(texts, prompts=99):
    return texts_of(frame([row("one", "prose", 1.0, texts, prompts)]), MANIFEST)


def test_shares_of_texts_and_joints():
    texts = group([text(), text(FAULT, [7, BROKEN, "`x`", ""]), text(n=9, ended=True), text()])
    share, joints = of_texts(texts), of_joints(texts)
    assert (share["count"], share["of"]) == (1, 4)
    assert share["low"] <= share["share"] <= share["high"]
    assert (joints["count"], joints["of"]) == (2, 40)
    assert joints["low"] <= joints["share"] <= joints["high"]
    assert of_joints(group([text(n=0)]))["of"] == 0


@pytest.mark.parametrize("each", [1, 3])
def test_the_intervals_by_hand(each):
    """Texts of one of four prompts have a fault, so a draw has none with chance (3/4)^4 = 0.32, and
    at most three times that prompt (of the two quantiles, the upper one) with chance 1 - (1/4)^4.
    More texts of each prompt, all alike, change nothing."""
    some = group([text(FAULT), text(), text(), text()] * each, prompts=4)
    for of, one in ((of_texts, 1.0), (of_joints, 0.1)):
        found = [of(some)[name] for name in ("share", "low", "high")]
        assert found == pytest.approx([one / 4, 0.0, one * 3 / 4])


@pytest.mark.parametrize(
    ("some", "prompts"), [([text()], 6), ([text(FAULT)], 6), ([text(FAULT), text()], 1)]
)
def test_where_prompts_drawn_again_give_the_same_there_is_no_interval(some, prompts):
    """All texts are canonical, none is, or there is but one prompt."""
    texts = group(some * 6, prompts)
    for found in (of_texts(texts), of_joints(texts)):
        assert (found["low"], found["high"]) == (None, None)


def width(found):
    return found["high"] - found["low"]


def test_texts_of_one_prompt_are_no_independent_evidence():
    """The same number of faults says less where one prompt has them all."""
    apart = [text(FAULT) if k < 20 else text() for k in range(40)]
    together = [text(FAULT) if k % 4 < 2 else text() for k in range(40)]
    alone, shared = group(apart), group(together, prompts=4)
    for of in (of_texts, of_joints):
        assert of(alone)["share"] == of(shared)["share"]
        assert width(of(shared)) > 2 * width(of(alone))


def test_joints_of_one_text_are_no_independent_evidence():
    """The same number of faults says less where one text has them all."""
    apart = [text(FAULT) for _ in range(20)] + [text() for _ in range(20)]
    together = [text(*[FAULT] * 10) for _ in range(2)] + [text() for _ in range(38)]
    narrow, wide = of_joints(group(apart)), of_joints(group(together))
    assert narrow["share"] == wide["share"]
    assert width(wide) > 2 * width(narrow)


def test_a_report_of_some_rows():
    rows = [
        row("one", "prose", 1.0, [text(FAULT), text(), text(), text()]),
        row("one", "code", 1.0, [text()] * 6),
        row("two", "prose", 0.5, [text()] * 4),
        {"key": "x", "failure": "ValueError: no"},
    ]
    made = ARTEFACT.report(rows, MANIFEST)
    found = made.facts["models"]["The One"]["1"]
    assert (found["texts"]["count"], found["texts"]["of"], found["joints"]["of"]) == (1, 10, 100)
    assert "0.5" not in made.facts["models"]["The One"]
    assert made.facts["prompts"] == 10
    by_kind, joints_by_kind, kinds_, common = made.tables[1:]
    lines = [("prose", "The One"), ("prose", "two"), ("code", "The One")]
    assert [tuple(line[:2]) for line in by_kind.rows] == lines
    assert joints_by_kind.rows[1][2:] == ["0 of 40", "-"]
    assert [line[0] for line in kinds_.rows] == [PAIR]
    assert list(common.rows) == [["`a`+`b`", "The One", "1", "why"]]
    assert not made.complete


def test_the_order_of_rows_changes_nothing():
    rng = random.Random(6)
    rows = [
        row(model, kind, temperature, [text(*[FAULT] * rng.choice([0, 0, 1, 3])) for _ in range(7)])
        for model in ("one", "two")
        for kind in ("prose", "code")
        for temperature in (0.5, 1.0)
    ]
    made = ARTEFACT.report(rows, MANIFEST)
    assert made.complete
    for _ in range(3):
        rng.shuffle(rows)
        again = ARTEFACT.report(rows, MANIFEST)
        assert (again.tables, again.facts) == (made.tables, made.facts)


def test_a_kind_that_is_none_is_named():
    with pytest.raises(ArgumentError, match="--kinds 'cake' is none of prose, chat"):
        spontaneous.check(spontaneous.Config(kinds=("prose", "cake")))
    with pytest.raises(ArgumentError, match="--temperatures: 0 is not over 0"):
        spontaneous.check(spontaneous.Config(temperatures=(1.0, 0.0)))
    with pytest.raises(ArgumentError, match="--dtype 'float8' is none of float32"):
        changed(spontaneous.Config(), {"dtype": "float8"})
