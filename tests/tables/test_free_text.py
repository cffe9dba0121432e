"""Free texts and canonical ones from the same random numbers, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tiny import tiny_llama

from bpe_automata import constrain
from bpe_automata.testing import byte_level, small_tokenizer
from experiments import models
from experiments.run.artefact import ARTEFACTS
from experiments.run.config import plain
from experiments.run.tables import frame
from experiments.shared import passages
from experiments.shared.canonical_texts import Judge
from experiments.shared.free_texts import drawn, masses
from experiments.shared.losses import losses
from experiments.shared.paired_texts import Mask, drawn_pairs
from experiments.study import free_text
from experiments.study.free_text_report import distinct, facts, mean, pairs_of

MERGES = [("a", "b"), ("Ġ", "a"), ("Ġ", "Ġ"), ("b", "a"), ("ab", "a"), ("Ã", "©")]
FLAGS = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
TOKENIZER = small_tokenizer(
    [*"ab.ĠÃ©", *map("".join, MERGES)],
    MERGES,
    byte_level(use_regex=True),
    added=[{"content": "<end>", "special": True} | FLAGS],
)
PROMPTS = [TOKENIZER.encode(text) for text in ("ab a", "b", "a.é")]


@pytest.fixture(scope="module")
def tiny():
    """A random model, so that many of its texts are not canonical."""
    return tiny_llama(TOKENIZER, seed=3, eos_ids=(TOKENIZER.n_ids - 1,))


@pytest.fixture(scope="module")
def pairs(tiny):
    """(prompt, pair) of 90 texts of at most 5 ids."""
    which = [k % 3 for k in range(90)]
    heats = [(0.7, 1.3)[k % 2] for k in range(90)]
    numbers = np.random.default_rng(1).random((90, 5, 2))
    return list(zip(which, drawn_pairs(tiny, PROMPTS, which, heats, numbers), strict=True))


def test_the_mask_changes_a_text_iff_it_is_not_canonical(pairs):
    judges = [Judge(TOKENIZER, prompt) for prompt in PROMPTS]
    changed = 0
    for which, (free, canonical, fork) in pairs:
        is_canonical = judges[which].verdict(*free).canonical
        assert (free == canonical) == is_canonical == (fork is None)
        assert judges[which].verdict(*canonical).canonical
        if fork is not None:
            changed += 1
            assert free.ids[:fork] == canonical.ids[:fork]
            assert (*free.ids, None)[fork] != (*canonical.ids, None)[fork]
            assert judges[which].verdict(free.ids[:fork], ended=False).canonical
    assert 20 < changed < 80


def test_whole_canonical_texts_are_what_encode_makes(pairs):
    """A text that was cut off is the beginning of what encode makes of some longer one."""
    ended = cut = 0
    for which, (_, (ids, end), _) in pairs:
        whole = [*PROMPTS[which], *ids]
        assert end or len(ids) == 5
        if end:
            ended += 1
            assert TOKENIZER.encode(TOKENIZER.decode(whole)) == whole
        else:
            cut += 1
            texts = (
                TOKENIZER.text_bytes(whole) + more for more in (b"", b".", b" ", b"\xa9", b"a")
            )
            made = (TOKENIZER.encode(t.decode("utf-8", "replace")) for t in texts)
            assert any(each[: len(whole)] == whole for each in made)
    assert ended
    assert cut


def test_texts_are_cut_off_at_their_length(smollm2_tokenizer):
    """The canonical rest of a text is drawn in a batch with longer ones; what its row reads beyond
    its own length, an end as id 0 is one, is not of it."""
    loaded = tiny_llama(smollm2_tokenizer, eos_ids=(0,))
    prompt, numbers = smollm2_tokenizer.encode("So"), np.random.default_rng(2).random((40, 4, 2))
    made = drawn_pairs(loaded, [prompt], [0] * 40, [1.0] * 40, numbers)
    assert len({pair.fork for pair in made}) > 2
    for free, canonical, _ in made:
        assert all(text.ended == (len(text.ids) < 4) for text in (free, canonical))


def test_a_pair_is_drawn_by_one_pass_for_each_id(tiny, pairs):
    """The canonical text: an id that is not allowed gives way to one with the second number."""
    torch = pytest.importorskip("torch")
    numbers = np.random.default_rng(1).random((90, 5, 2))
    end = TOKENIZER.n_ids - 1
    constraint = free_text_constraint(end)
    for row, (which, (_, canonical, _)) in enumerate(pairs):
        ids, matcher = list(PROMPTS[which]), constraint.matcher(PROMPTS[which])
        for first, second in numbers[row, : len(canonical.ids) + canonical.ended]:
            with torch.no_grad():
                logits = tiny.model(torch.tensor([ids])).logits[0, -1].double()
            mass = (logits / (0.7, 1.3)[row % 2]).softmax(-1).numpy()
            token = int((mass.cumsum() <= first).sum())
            if not matcher.allows(token):
                until = (mass * matcher.mask()).cumsum()
                token = int((until <= second * until[-1]).sum())
            matcher.advance(token)
            ids.append(token)
        assert ids[len(PROMPTS[which]) :] == [*canonical.ids, *[end] * canonical.ended]


def free_text_constraint(end):
    return constrain(TOKENIZER, r"(?s:.*)", "canonical", [end])


def test_ids_have_the_distribution_of_the_mask():
    torch = pytest.importorskip("torch")
    n, rng = 40_000, np.random.default_rng(4)
    logits = torch.randn(1, TOKENIZER.n_ids, generator=torch.Generator().manual_seed(2))
    start = free_text_constraint(TOKENIZER.n_ids - 1).matcher(PROMPTS[1])
    numbers = rng.random((n, 2))
    mass = masses(logits.repeat(n, 1), torch.ones(n, 1))
    mask = Mask({k: start.copy() for k in range(n)}, numbers[:, 1:], ())
    ids = mask(0, mass, drawn(mass, torch.from_numpy(numbers[:, :1]))).numpy()
    right = logits[0].double().softmax(-1).numpy() * start.mask()
    assert 0.05 < 1 - right.sum() < 0.95
    found = np.bincount(ids, minlength=len(right)) / n
    assert found == pytest.approx(right / right.sum(), abs=4 * 0.5 / np.sqrt(n))


def test_the_loss_is_that_of_one_pass_for_each_id(tiny):
    """Texts that merge with the end of their prompt too, and one that is empty."""
    torch = pytest.importorskip("torch")

    def log_prob(text):
        ids, total = tiny.prompt_ids(text), 0.0
        for k in range(1, len(ids)):
            with torch.no_grad():
                logits = tiny.model(torch.tensor([ids[:k]])).logits[0, -1]
            total += float(logits.log_softmax(-1)[ids[k]])
        return total

    asked = [("ab a", "b."), ("a", "b a"), ("a.", "é" * 7), ("b", ""), (". a", "b ab"), ("b", ".")]
    asked += [("ab" * k, "a.b" * k) for k in range(1, 9)]
    assert TOKENIZER.encode("a" + "b a")[:1] != TOKENIZER.encode("a")
    right = [log_prob(prompt) - log_prob(prompt + text) for prompt, text in asked]
    assert losses(tiny, asked) == pytest.approx(right, rel=1e-5, abs=1e-5)


def test_a_prompt_ends_a_word_and_the_passage_begins_with_its_ids(smollm2_tokenizer):
    for kind in ("prose", "code"):
        found = free_text.prompts_of(kind, smollm2_tokenizer, free_text.Config(prompts=6))
        assert len(found) == 6
        for prompt, rest in found:
            ids = smollm2_tokenizer.encode(prompt)
            assert 30 <= len(ids) < 60
            assert smollm2_tokenizer.encode(prompt + rest)[: len(ids)] == ids
            assert rest[0].isspace()
            assert not prompt[-1].isspace()


def test_a_kind_that_the_system_does_not_have(monkeypatch, tmp_path):
    monkeypatch.setattr(passages, "CATALOGUES", tmp_path)
    assert passages.digest(["german"], seed=-1) == {"german": None}


def test_a_cell_is_drawn_again_alike(smollm2_tokenizer, monkeypatch):
    loaded = tiny_llama(smollm2_tokenizer, eos_ids=(2,))
    monkeypatch.setattr(models, "opened", lambda *_: loaded)
    chosen = free_text.Config(temperatures=(0.7, 1.3), prompts=3, ids=4)
    row = free_text.written("tiny", "code", chosen)
    assert row == free_text.written("tiny", "code", chosen)
    fewer = free_text.written("tiny", "code", replace(chosen, temperatures=(1.3,)))
    assert fewer["texts"] == row["texts"][3:]
    read = free_text.read("other", row, chosen)
    own = free_text.read("tiny", row, chosen)
    for k, text in enumerate(row["texts"]):
        assert (read["free"][k] == read["canonical"][k]) or text["canonical"]
        assert (own["free"][k] is None) == (text["canonical"] is None)


# ---------------------------------------------------------------- what is said of rows

CHOSEN = free_text.Config(models=("one", "two"), kinds=("prose", "chinese"), temperatures=(1.0,))
MANIFEST = {"config": plain(CHOSEN), "models": {"one": {"model": "One (Q4)", "note": "a note"}}}


def rows_of(n=20):
    """Texts of `n` prompts by model one, of which the mask changed those of even number; as the
    other reads them the loss goes from 8 nats to 4 of 8 bytes, but for the last: to 12."""
    free, other = {"text": "a b c de"}, {"text": "b b b b "}
    texts = [
        {"prompt": k, "temperature": 1.0, "free": free, "canonical": None if k % 2 else other}
        for k in range(n)
    ]
    canonical = [8.0 if k % 2 else 4.0 for k in range(n)]
    canonical[n - 2] = 12.0
    of = {"model": "one", "kind": "prose"}
    losses_ = {"free": [8.0] * n, "canonical": canonical, "rest": [2.0] * n}
    return frame(
        [
            {"key": "one prose", **of, "prompts": [["p", "rest"]] * n, "texts": texts},
            {"key": "one prose read by two", **of, "reader": "two", **losses_},
        ]
    )


def test_differences_of_hand_made_rows():
    pairs = pairs_of(rows_of(), MANIFEST)
    assert len(pairs) == 20
    value, low, high = mean("other difference", True)(pairs)
    assert value == pytest.approx((9 * -0.5 + 0.5) / 10)
    assert -0.5 <= low < value < high <= 0.5
    assert mean("other difference")(pairs)[0] == pytest.approx(value / 2)
    assert pairs["rest"].unique() == [0.5]
    assert pairs["own difference"].isna().all()
    assert set(pairs[pairs["changed"]]["distinct difference"]) == {-0.5}
    found = facts(rows_of(), MANIFEST)
    assert found["tests"] == 1
    assert found["models"]["One (Q4)"]["1"]["changed"] == 0.5
    assert found["models"]["One (Q4)"]["1"]["corrected"] == (low, high)


def test_few_prompts_have_no_interval_and_temperatures_are_no_further_prompts():
    assert mean("other difference", True)(pairs_of(rows_of(18), MANIFEST)) is None
    pairs = pairs_of(rows_of(18), MANIFEST)
    twice = frame([*pairs.to_dict("records")] * 2).assign(changed=[*pairs["changed"]] * 2)
    assert mean("other difference", True)(twice) is None


def test_distinct_pieces():
    assert distinct("a b c a b c", "prose") == 3 / 4
    assert distinct("a b", "prose") is None
    assert distinct("a b c", "prose") == 1
    assert distinct("日" * 5, "chinese") == 3 / 8


def test_the_report():
    made = ARTEFACTS["free-text"].report(rows_of().to_dict("records"), MANIFEST)
    assert [line[:5] for line in made.tables[0].rows] == [["One", "1", "20", "50.0 %", "1.0000"]]
    assert any(note.endswith("leaves 0 out: One at 1") for note in made.tables[0].notes)
    assert made.tables[2].rows[0][:3] == ["One", "prose", "20"]
