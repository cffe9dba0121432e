"""The whole distortion table on a small random model, against brute force."""

from __future__ import annotations

import pytest
from tiny import BruteForce, tiny_llama

from experiments.answers.cases import Case
from experiments.answers.logprobs import packed_log_probs
from experiments.run.measuring import Run, Settings, read_run
from experiments.shared import models
from experiments.study.distortion import artefact as distortion

CASES = (
    Case("words", "Answer:", (" yes", " no")),
    Case("quoted", 'A "', ('low"', 'mid"')),
    Case("split", "—", (" да", " é")),
)


@pytest.fixture(scope="module")
def loaded(smollm2_tokenizer):
    return tiny_llama(smollm2_tokenizer)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_exact_row_equals_brute_force(case, loaded):
    item = distortion.span(loaded, case)
    scores = packed_log_probs(loaded.model, item.prompt_ids, item.trie)
    row = distortion.exact_row(case, item, scores)
    brute = BruteForce(loaded, case.prompt)
    lift = [brute.tokenizations(answer.encode()) for answer in case.answers]
    canonical = [[brute.canonical(answer)] for answer in case.answers]
    mass = [sum(map(brute.free, paths)) for paths in lift]
    own = [brute.free(path) for (path,) in canonical]
    assert row["free"] == pytest.approx([m / sum(mass) for m in mass])
    assert row["free_mass"] == pytest.approx(sum(mass))
    assert row["canonical_share"] == pytest.approx(sum(own) / sum(mass))
    assert row["other_share"] == pytest.approx(1 - sum(own) / sum(mass))
    assert row["canonical_tokens"] == [len(path) for (path,) in canonical]
    for method, spelled in {"lift": lift, "canonical": canonical}.items():
        found = row["methods"][method]
        assert found["law"] == pytest.approx(brute.distribution(spelled))
        paths = [path for each in spelled for path in each]
        steps = sum(brute.masked(path, paths) * len(path) for path in paths)
        assert found["expected_steps"] == pytest.approx(steps)
        gaps = [abs(a - b) for a, b in zip(found["law"], row["free"], strict=True)]
        assert found["total_variation"] == pytest.approx(sum(gaps) / 2)


@pytest.fixture
def run(loaded, tmp_path, monkeypatch):
    """A run over CASES and the small model, in this process."""
    monkeypatch.setattr(models, "load_model", lambda *_: loaded)
    monkeypatch.setattr(distortion, "PROMPTS", CASES)
    monkeypatch.setattr("experiments.study.distortion.report.PROMPTS", CASES)
    forget()
    settings = Settings(executor="inline")
    yield Run("distortion", 1, distortion.Config(samples=150), tmp_path, settings)
    forget()


def forget():
    models.opened.cache_clear()
    distortion.evaluator.cache_clear()


def test_samples_agree_with_the_exact_distributions(run, tmp_path):
    distortion.measure(run)
    run.finish()
    rows, manifest = read_run(tmp_path)
    assert [row["key"] for row in rows] == ["model", "boolean", "words", "quoted", "split"]
    assert manifest["complete"]
    assert len(rows[0]["weights_sha256"]) == len(rows[0]["tokenizer_sha256"]) == 64
    for row in rows[2:]:
        for method in ("free", "lift", "canonical"):
            assert row["samples"][method]["n"] >= 150
            assert all(row["samples"][method]["inside"])
    made = distortion.render(list(reversed(rows)), manifest)
    names = [line[0] for line in made.tables[0].rows if line[0]]
    assert names == ["words", "quoted", "split"]
    assert made.facts["cells"] == made.facts["inside"] == 18
    assert made.facts["cases"]["words"]["laws"]["free"] == rows[2]["free"]
    assert "18 of 18" in distortion.readme(made.facts)["distortion"]
