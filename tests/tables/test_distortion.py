"""The whole distortion table on a small random model, against brute force."""

from __future__ import annotations

import math

import pytest

from experiments import distortion, models
from experiments.prompts import Case
from experiments.runner import Options, read_run
from experiments.tree_logprobs import packed_log_probs

CASES = (
    Case("words", "Answer:", (" yes", " no")),
    Case("quoted", 'A "', ('low"', 'mid"')),
    Case("split", "—", (" да", " é")),
)


@pytest.fixture(scope="module")
def loaded(smollm2_tokenizer):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(2)
    config = transformers.LlamaConfig(
        vocab_size=smollm2_tokenizer.n_ids,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        initializer_range=0.3,
    )
    model = transformers.LlamaForCausalLM(config).double().eval()
    return models.LoadedModel("tiny", "", model, smollm2_tokenizer, (2,), "cpu", 0.0)


class BruteForce:
    """Every tokenization of every answer, and every probability by a pass of its own."""

    def __init__(self, loaded, case):
        self.model, self.case = loaded.model, case
        self.tokenizer = loaded.tokenizer
        self.prompt = self.tokenizer.encode(case.prompt)
        self.ids_of = {}
        for token in range(self.tokenizer.n_ids):
            self.ids_of.setdefault(self.tokenizer.token_bytes(token), []).append(token)
        self.known = {}

    def tokenizations(self, text: bytes):
        if not text:
            return [()]
        return [
            (token, *rest)
            for cut in range(1, len(text) + 1)
            for token in self.ids_of.get(text[:cut], [])
            for rest in self.tokenizations(text[cut:])
        ]

    def canonical(self, answer: str):
        return tuple(self.tokenizer.encode(self.case.prompt + answer)[len(self.prompt) :])

    def next_law(self, ids):
        import torch

        if ids not in self.known:
            with torch.no_grad():
                logits = self.model(torch.tensor([[*self.prompt, *ids]])).logits[0, -1]
            self.known[ids] = logits.softmax(-1)
        return self.known[ids]

    def free(self, path):
        return math.prod(float(self.next_law(path[:i])[t]) for i, t in enumerate(path))

    def masked(self, path, paths):
        """Renormalised at each step over what some path of `paths` allows."""
        result = 1.0
        for i, token in enumerate(path):
            options = {other[i] for other in paths if len(other) > i and other[:i] == path[:i]}
            law = self.next_law(path[:i])
            result *= float(law[token]) / sum(float(law[option]) for option in options)
        return result


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_exact_row_equals_brute_force(case, loaded):
    item = distortion.span(loaded, case)
    scores = packed_log_probs(loaded.model, item.prompt_ids, item.trie)
    row = distortion.exact_row(case, item, scores)
    brute = BruteForce(loaded, case)
    lift = {answer: brute.tokenizations(answer.encode()) for answer in case.answers}
    canonical = {answer: [brute.canonical(answer)] for answer in case.answers}
    mass = [sum(map(brute.free, lift[answer])) for answer in case.answers]
    own = [brute.free(canonical[answer][0]) for answer in case.answers]
    assert row["free"] == pytest.approx([m / sum(mass) for m in mass])
    assert row["free_mass"] == pytest.approx(sum(mass))
    assert row["canonical_share"] == pytest.approx(sum(own) / sum(mass))
    assert row["other_share"] == pytest.approx(1 - sum(own) / sum(mass))
    assert row["canonical_tokens"] == [len(canonical[answer][0]) for answer in case.answers]
    for method, spelled in {"lift": lift, "canonical": canonical}.items():
        paths = [path for answer in case.answers for path in spelled[answer]]
        law = [sum(brute.masked(path, paths) for path in spelled[a]) for a in case.answers]
        found = row["methods"][method]
        assert found["law"] == pytest.approx(law)
        steps = sum(brute.masked(path, paths) * len(path) for path in paths)
        assert found["expected_steps"] == pytest.approx(steps)
        gaps = [abs(a - b) for a, b in zip(found["law"], row["free"], strict=True)]
        assert found["total_variation"] == pytest.approx(sum(gaps) / 2)


def test_run_keeps_rows_and_draws(loaded, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(models, "load_model", lambda *_: loaded)
    options = Options("distortion", model="tiny", n=150, results=tmp_path)
    monkeypatch.setattr(distortion, "CASES", CASES)
    distortion.run(options)
    rows, manifest = read_run(options)
    assert [row.get("name") for row in rows] == [None, *(case.name for case in CASES)]
    assert manifest["complete"]
    assert len(manifest["weights_sha256"]) == len(manifest["tokenizer_sha256"]) == 64
    for row in rows[1:]:
        for method in ("free", "lift", "canonical"):
            assert row["samples"][method]["n"] >= 150
            assert all(row["samples"][method]["inside"])
    assert {path.name for path in options.folder.iterdir()} == {
        "rows.jsonl",
        "manifest.json",
        "table.md",
        "distortion.png",
        "distortion.pdf",
    }
    assert "Probability of each answer" in capsys.readouterr().out
