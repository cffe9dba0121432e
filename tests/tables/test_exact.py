"""Distributions over answers on a small random model, against brute force: every tokenization, and
every probability by a pass of its own. Samples and weighted populations follow them."""

import math

import numpy as np
import pytest
from scipy import stats
from tiny import next_logits

from bpe_automata.errors import BudgetExceededError, PromptError
from experiments import lab
from experiments.artefacts import distortion, distortion_study
from experiments.artefacts.distortion_study import smc
from experiments.exact import METHODS, AnswerSetError, Reader, Trie, laws, pose, total_variation

CASES = {
    "words": ("Answer:", (" yes", " no", " maybe")),
    "quoted": ('A "', ('low"', 'mid"')),
    "split": ("—", (" да", " é")),
}
LEVEL = 1e-7
WHOLE = (1e-300, 1e-300, 10**6)


class BruteForce:
    """All probabilities after a prompt at one temperature."""

    def __init__(self, loaded, prompt, temperature):
        self.model, self.text, self.temperature = loaded.model, prompt, temperature
        self.tokenizer = loaded.tokenizer
        self.prompt = self.tokenizer.encode(prompt)
        self.spelled = [self.tokenizer.token_bytes(i) for i in range(self.tokenizer.n_ids)]
        self.ids_of = {}
        for token, data in enumerate(self.spelled):
            self.ids_of.setdefault(data, []).append(token)
        self.known = {}

    def tokenizations(self, text):
        if not text:
            return [()]
        return [
            (token, *rest)
            for cut in range(1, len(text) + 1)
            for token in self.ids_of.get(text[:cut], [])
            for rest in self.tokenizations(text[cut:])
        ]

    def canonical(self, answer):
        return tuple(self.tokenizer.encode(self.text + answer)[len(self.prompt) :])

    def next_distribution(self, ids):
        if ids not in self.known:
            logits = next_logits(self.model, [*self.prompt, *ids])
            self.known[ids] = (logits / self.temperature).softmax(-1)
        return self.known[ids]

    def free(self, path):
        return math.prod(float(self.next_distribution(path[:i])[t]) for i, t in enumerate(path))

    def masked(self, path, paths):
        """Renormalised at each step over what some path of `paths` allows."""
        result = 1.0
        for i, token in enumerate(path):
            options = {other[i] for other in paths if len(other) > i and other[:i] == path[:i]}
            masses = self.next_distribution(path[:i])
            result *= float(masses[token]) / sum(float(masses[option]) for option in options)
        return result

    def distribution(self, spelled):
        """The masked distribution over answers; spelled: the paths of each answer."""
        paths = [path for each in spelled for path in each]
        return [sum(self.masked(path, paths) for path in each) for each in spelled]

    def past(self, answer, paths, eos_ids):
        """The mass of ids that go past an answer, tried one by one."""
        return sum(
            self.free((*begun, token))
            for begun in {path[:k] for path in paths for k in range(len(path))}
            for text in [b"".join(self.spelled[i] for i in begun)]
            for token, more in enumerate(self.spelled)
            if token not in eos_ids and (text + more).startswith(answer) and text + more != answer
        )


@pytest.fixture(scope="module", params=[(name, heat) for name in CASES for heat in (1.0, 0.5)])
def case(request, loaded):
    """(the trie, brute force, the paths of each answer by method)."""
    (prompt, answers), heat = CASES[request.param[0]], request.param[1]
    brute = BruteForce(loaded, prompt, heat)
    lift = [brute.tokenizations(answer.encode()) for answer in answers]
    canonical = [[brute.canonical(answer)] for answer in answers]
    tree = Trie(pose(loaded, prompt, answers), heat).explore(*WHOLE)
    return tree, brute, {"lift": lift, "canonical": canonical}


def test_the_trie_has_all_tokenizations_and_the_own_ones(case):
    tree, _, paths = case
    for column, method in enumerate(METHODS):
        leaves = np.flatnonzero(tree.complete & tree.alive[:, column])
        found = {tuple(tree.ids(leaf)) for leaf in leaves.tolist()}
        assert found == {path for spelled in paths[method] for path in spelled}
    assert [tuple(ids) for ids in tree.posed.own] == [path for (path,) in paths["canonical"]]


def test_distributions_equal_brute_force(case, loaded):
    tree, brute, paths = case
    row = laws(tree)
    mass = np.array([sum(map(brute.free, spelled)) for spelled in paths["lift"]])
    own = np.array([brute.free(path) for (path,) in paths["canonical"]])
    assert row["free"] == pytest.approx(mass / mass.sum())
    assert row["mass"] == pytest.approx(mass.sum())
    assert row["weighted"] == pytest.approx(own / own.sum())
    assert row["outside"] == pytest.approx(1 - own.sum() / mass.sum(), abs=1e-12)
    for method in METHODS:
        assert row[method] == pytest.approx(brute.distribution(paths[method]))
    assert row["off"] == row["prefix off"] == 0
    answers = zip(tree.posed.answers, paths["lift"], strict=True)
    begun = mass + [brute.past(answer, of, loaded.eos_ids) for answer, of in answers]
    assert (begun > mass).all()
    assert row["prefix"] == pytest.approx(begun / begun.sum())
    assert row["prefix mass"] == pytest.approx(begun.sum())


def test_what_is_left_out_is_bounded(loaded):
    posed = pose(loaded, *CASES["words"])
    exact, asked = laws(Trie(posed).explore(*WHOLE)), []
    for slack in (0.3, 0.03, 0.003):
        tree = Trie(posed).explore(slack, slack, 10**6)
        rough = laws(tree)
        asked.append(tree.asked)
        for method in (*METHODS, "weighted"):
            one, other = (total_variation(row["free"], row[method]) for row in (exact, rough))
            assert abs(one - other) <= rough["off"] + 1e-12
        gap = total_variation(exact["prefix"], rough["prefix"])
        assert gap <= rough["prefix off"] + 1e-12
        assert rough["off"] <= 2 * slack
    assert asked == sorted(asked)
    with pytest.raises(BudgetExceededError):
        Trie(posed).explore(0.3, 0.3, 0)
    with pytest.raises(AnswerSetError, match="prefix-free"):
        pose(loaded, "Answer:", (" yes", " yes, sir"))


def agree(counts, law):
    for count, p in zip(counts.tolist(), law, strict=True):
        assert stats.binomtest(count, int(counts.sum()), min(p, 1.0)).pvalue > LEVEL


def test_samples_follow_the_distributions(case, rng):
    tree, row = case[0], laws(case[0])
    for column, method in enumerate(METHODS):
        agree(distortion.counted_draws(tree, column, 400, rng), row[method])


def test_one_particle_is_the_masked_distribution_and_many_the_one_given_what_is_allowed(case, rng):
    """Weighted populations on the trie; allowed by the lift are all tokenizations."""
    tree, row = case[0], laws(case[0])
    for column, many in enumerate(("free", "weighted")):
        one = smc(tree, column, 1, 20_000, rng)
        assert one == pytest.approx(row[METHODS[column]], abs=0.015)
        assert smc(tree, column, 20_000, 10, rng) == pytest.approx(row[many], abs=0.01)


def test_a_mask_that_differs_from_the_trie_is_an_error(loaded, rng):
    posed = pose(loaded, *CASES["words"])
    tree = Trie(posed).explore(*WHOLE)
    posed.constraints["canonical"] = posed.constraints["lift"]
    with pytest.raises(RuntimeError, match="not the trie's"):
        distortion.counted_draws(tree, 1, 20, rng)


# The reader.

PATHS = [[], [3], [3, 4, 5], [3, 1], [7, 7, 2], [0]]


@pytest.fixture(scope="module")
def with_window():
    """Layers that see a window only."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = transformers.Gemma3TextConfig(
        vocab_size=8, hidden_size=16, intermediate_size=16, num_hidden_layers=2, head_dim=8,
        num_attention_heads=2, num_key_value_heads=1, sliding_window=4, initializer_range=0.5,
        layer_types=["sliding_attention", "full_attention"],
    )  # fmt: skip
    return transformers.Gemma3ForCausalLM(config).double().eval()


@pytest.mark.parametrize("windowed", [False, True])
def test_the_reader_equals_one_pass_each(windowed, loaded, with_window):
    """Of several lengths, each path several times."""
    model, prompt, paths = with_window if windowed else loaded.model, [3, 1, 4, 1, 5], PATHS * 2
    for ids, row in zip(paths, Reader(model, prompt).logits(paths), strict=True):
        wanted = next_logits(model, [*prompt, *ids])
        assert row.numpy() == pytest.approx(wanted.detach().numpy(), abs=1e-9)
    with pytest.raises(PromptError):
        Reader(model, [])


# The table of distortions.


def test_the_article_comes_out_as_published():
    """Table 1, and the sizes of its example's automata."""
    pytest.importorskip("interegular")
    pytest.importorskip("mistral_common", reason="the Mistral-7B merge table is in it")
    steps = [*distortion.STEPS, distortion.STEPS[-1]]
    assert [row["tokens"] for row in distortion.merged()] == steps
    rows = distortion.measure(distortion.Config(), "sizes")
    made = [(row["states"], row["transitions"]) for row in rows]
    published = [pair for pair in distortion.SIZES.values() if pair]
    assert made[: len(published)] == published
    assert made[2:4] == [(4, 4), (17, 48)]
    assert [row["accepting"] for row in rows][1:3] == [2, 1]


def rows_of(name):
    """The rows in the repository."""
    module, run = lab.load(name), lab.Run(results=lab.ROOT / "none")
    return lab.good(lab.rows_there(name, module, module.Config(), run)[1])


def test_distances_are_the_sums_of_their_parts():
    """With weights the lift is at 0, and canonical at the rest."""
    found = distortion_study.points(rows_of("distortion-study"))
    assert len(found) == 1300
    for parts in (["tokenization", "myopia", "rest"], ["own share", "step share", "rest"]):
        assert np.allclose(found[parts].sum(axis=1), found["TV lift"])
    lift, own, rest = (found[f"TV {name}"] for name in ("lift", "canonical", "weighted"))
    assert np.allclose(found["own share"], ((lift - own) + (0 - rest)) / 2)


def test_all_samples_lie_in_their_intervals():
    assert all(distortion.inside(rows_of("distortion")))
