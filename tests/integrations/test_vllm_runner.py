"""vLLM's V2 runner on simulated slots: requests with drafts, preemption, rows in any order.

vLLM needs a GPU build, so a stand-in with the interface of 0.33.0 is in its place.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import standins as host
from hypothesis import given
from hypothesis import strategies as st
from served import END, REGEXES, START, V, answered, mask_after, tokenizer
from standins import imported_with
from support import examples

from bpe_automata.errors import ArgumentError, DecodingError

torch = pytest.importorskip("torch")
SLOTS, LENGTH = 4, 640


@pytest.fixture(scope="module")
def ours():
    names = ["bpe_automata.integrations.vllm_runner"]
    yield from (found[0] for found in imported_with(host.modules(), names))


def config(**model):
    given = {"hosted": tokenizer(), "vocab_size": V, "generation": {"eos_token_id": END}}
    return host.VllmConfig(host.ModelConfig(**{**given, **model}), speculative_config=object())


class Runner:
    """The tables of the runner, one slot per request, and the rows of a step."""

    def __init__(self, ours):
        self.table = torch.full((SLOTS, LENGTH), 7777, dtype=torch.int32)
        self.total = torch.zeros(SLOTS, dtype=torch.int32)
        self.prompt = np.zeros(SLOTS, dtype=np.int32)
        states = host.LogitsProcRequestState(
            torch.device("cpu"),
            SLOTS,
            V,
            all_token_ids=SimpleNamespace(gpu=self.table),
            prompt_len=SimpleNamespace(np=self.prompt),
            prefill_len=SimpleNamespace(np=self.prompt),
            total_len=SimpleNamespace(gpu=self.total),
        )
        self.processor = ours.ConstraintLogitsProcessor(config(), states)
        self.requests: dict[int, tuple[str | None, str]] = {}

    def add(self, slot, regex, method, prompt, output=()):
        """Also after preemption: then some output is there already."""
        asked = None if regex is None else {"bpe_automata": {"regex": regex, "method": method}}
        # The ids are staged: they reach the table after `add_request`, before `apply`.
        self.prompt[slot] = len(prompt)
        found = self.processor.add_request(slot, host.SamplingParams(asked))
        assert found == (regex is not None)
        ids = [*prompt, *output]
        self.table[slot] = 7777
        self.table[slot, : len(ids)] = torch.tensor(ids, dtype=torch.int32)
        self.total[slot] = len(ids)
        self.requests[slot] = (regex, method)

    def ids(self, slot):
        return self.table[slot, : int(self.total[slot])].tolist()

    def commit(self, slot, tokens):
        for token in tokens:
            self.table[slot, int(self.total[slot])] = token
            self.total[slot] += 1

    def apply(self, drafts, order, logits):
        """drafts: slot -> draft ids; the rows of a slot follow each other; order: of the slots."""
        rows = [(slot, k) for slot in order for k in range(len(drafts[slot]) + 1)]
        inputs = {slot: [self.ids(slot)[-1], *drafts[slot]] for slot in order}
        context = host.LogitsContext(
            expanded_idx_mapping=torch.tensor([slot for slot, _ in rows]),
            idx_mapping=torch.tensor(order),
            idx_mapping_np=np.array(order),
            expanded_local_pos=torch.tensor([k for _, k in rows]),
            input_ids=torch.tensor([inputs[slot][k] for slot, k in rows]),
            pos=torch.tensor([len(self.ids(slot)) - 1 + k for slot, k in rows]),
            seq_lens_upper_bound_np=np.array([len(self.ids(slot)) for slot in order]),
        )
        return rows, self.processor.apply(logits(len(rows)), context)

    def expected(self, slot, draft):
        """bool [V]; None if the draft holds what is not allowed: then nothing depends on it."""
        regex, method = self.requests[slot]
        ids, start = self.ids(slot), int(self.prompt[slot])
        if END in ids[start:]:
            return np.arange(V) == END
        try:
            return mask_after(regex, ids[:start], [*ids[start:], *draft], method)
        except DecodingError:
            return None


@given(data=st.data())
@examples(20)
def test_masks_of_all_rows_are_the_definition(ours, data):
    runner = Runner(ours)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    prompts = [[START], [START, *tokenizer().encode("de a")]]
    for _ in range(data.draw(st.integers(1, 6))):
        for slot in data.draw(st.sets(st.integers(0, SLOTS - 1))) or {0}:
            if slot in runner.requests and rng.random() < 0.5:
                start = int(runner.prompt[slot])  # preempted: added again with the ids it had
                regex, method = runner.requests[slot]
                ids = runner.ids(slot)
                runner.add(slot, regex, method, ids[:start], ids[start:])
            else:
                regex = data.draw(st.sampled_from([None, *REGEXES]))
                method = data.draw(st.sampled_from(["canonical", "lift"]))
                runner.add(slot, regex, method, data.draw(st.sampled_from(prompts)))
        order = data.draw(st.permutations(sorted(runner.requests)))
        drafts = {slot: draft(runner, slot, rng) for slot in order}
        noise = {}

        def logits(count, noise=noise):
            noise["kept"] = rng.standard_normal((count, V)).astype(np.float32)
            return torch.from_numpy(noise["kept"].copy())

        rows, found = runner.apply(drafts, order, logits)
        check(runner, drafts, rows, found.numpy(), noise["kept"])


def draft(runner, slot, rng):
    """Up to three ids, most of them allowed."""
    ids = []
    for _ in range(rng.integers(0, 4)):
        mask = None if runner.requests[slot][0] is None else runner.expected(slot, ids)
        if mask is None or rng.random() < 0.2:
            ids.append(int(rng.integers(0, tokenizer().n_ids)))
        else:
            ids.append(int(rng.choice(np.flatnonzero(mask))))
    return ids


def check(runner, drafts, rows, found, noise):
    """Compare, and commit the draft as far as it is allowed, and one id more."""
    taken = {}
    for number, (slot, k) in enumerate(rows):
        if runner.requests[slot][0] is None:
            assert np.array_equal(found[number], noise[number])
            taken[slot] = [0]
            continue
        mask = runner.expected(slot, drafts[slot][:k])
        if mask is None:
            continue
        assert np.array_equal(found[number], np.where(mask, noise[number], -np.inf))
        taken[slot] = [*drafts[slot][:k], int(found[number].argmax())]
    for slot, tokens in taken.items():
        runner.commit(slot, tokens)


def answer(runner):
    """What the request in slot 0 is led to write, with a draft that is never right."""

    def step(ids):
        runner.commit(0, ids[-1:])
        _, found = runner.apply({0: [START] * bool(ids)}, [0], lambda n: torch.zeros(n, V))
        if ids:
            assert (found[1] == 0).nonzero().tolist() == [[END]]
        return (found[0] == 0).numpy()

    return answered(step)


def test_where_nothing_can_follow_a_prompt_the_answer_says_why(ours):
    runner = Runner(ours)
    runner.add(0, "bab", "canonical", [START, *tokenizer().encode("a")])
    assert "wouldmergewiththeanswer" in answer(runner)


def test_without_constrained_requests_the_logits_are_returned_as_they_are(ours):
    runner = Runner(ours)
    runner.add(1, None, "canonical", [START])
    given = torch.zeros(1, V)
    _, found = runner.apply({1: []}, [1], lambda n: given)
    assert found is given
    assert not found.any()


def test_bad_requests_are_refused_before_they_are_queued(ours):
    with pytest.raises(ValueError, match="position") as caught:
        ours.ConstraintLogitsProcessor.validate_params(
            host.SamplingParams({"bpe_automata": {"regex": "a("}})
        )
    assert isinstance(caught.value, ArgumentError)
    assert issubclass(ours.ConstraintLogitsProcessor, host.RunnerLogitsProcessor)


def test_the_module_of_the_front_end_imports_no_torch():
    """vLLM's front end imports the class only to check requests."""
    script = """
import sys
import standins
sys.modules.update(standins.modules())
import bpe_automata.integrations.vllm_runner
print("torch" in sys.modules)
"""
    command = [sys.executable, "-c", script]
    found = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    assert found.stdout.strip() == "False"
