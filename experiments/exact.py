"""Exact distributions over a set of answers, under a model and each method of this package."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from bpe_automata import Constraint, constrain
from bpe_automata._automata.sources import from_strings
from bpe_automata._decoding.constraint import Method
from bpe_automata._kernels.bits import members
from experiments.logprobs import pick_evaluator
from experiments.models import LoadedModel
from experiments.trie import along_paths, automaton_of, masked_steps, per_answer, unroll

METHODS: tuple[Method, ...] = ("lift", "canonical")


class Answers:
    """All tokenizations of a prefix-free set of answers after a prompt, with a model's
    log-probabilities. Distributions are float64 [answers], in their order."""

    def __init__(self, loaded: LoadedModel, prompt: str, answers: Sequence[str]) -> None:
        self.loaded, self.answers, self.n = loaded, answers, len(answers)
        self.prompt_ids = loaded.prompt_ids(prompt)
        dfa, eos_ids = from_strings(answers), loaded.eos_ids
        self.constraints: dict[Method, Constraint] = {
            method: constrain(loaded.tokenizer, dfa, method=method, eos_ids=eos_ids)
            for method in METHODS
        }
        self.automata = {
            method: automaton_of(constraint.automaton(self.prompt_ids))
            for method, constraint in self.constraints.items()
        }
        self.trie = unroll(list(self.automata.values()))
        self.leaves = self.trie.leaves()
        number = {answer.encode(): k for k, answer in enumerate(answers)}
        self.answer_of = np.array([number[self._spelled(leaf)] for leaf in self.leaves])

    def _spelled(self, leaf: int) -> bytes:
        return self.loaded.tokenizer.text_bytes(self.trie.ids(leaf), self.prompt_ids[-1:])

    @cached_property
    def steps(self) -> np.ndarray:
        """float64 [nodes]: log-probability of each node's id."""
        model = self.loaded.model
        return pick_evaluator(model, self.prompt_ids, self.trie)(model, self.prompt_ids, self.trie)

    def alive(self, method: Method) -> np.ndarray:
        """bool [nodes]: what the method can read."""
        return self.trie.alive(METHODS.index(method))

    def summed(self, steps: np.ndarray, among: np.ndarray | None = None) -> np.ndarray:
        """Log-probability of each answer over its leaves, those in `among` (bool [leaves])."""
        chosen = slice(None) if among is None else among
        paths = along_paths(self.trie, steps)
        return per_answer(self.leaves[chosen], self.answer_of[chosen], paths, self.n)

    def masked_steps(self, method: Method) -> np.ndarray:
        """The same as `steps`, renormalised over what the method allows."""
        return masked_steps(self.trie, self.steps, self.alive(method))

    def canonical_leaves(self) -> np.ndarray:
        """bool [leaves]."""
        return self.alive("canonical")[self.leaves]

    def lengths(self) -> np.ndarray:
        """int64 [answers]: ids in the canonical tokenization of each."""
        own, found = self.canonical_leaves(), np.zeros(self.n, dtype=np.int64)
        found[self.answer_of[own]] = self.trie.depth[self.leaves[own]]
        return found

    def deciding(self, method: Method) -> np.ndarray:
        """For each answer the model's own probability of the shortest sequences of ids that the
        method admits and that lead to this answer only."""
        trie, alive = self.trie, self.alive(method)
        # Of the answers that each node can still become, the first and the last by their numbers.
        first, last = np.full(len(trie), self.n), np.full(len(trie), -1)
        ends = alive[self.leaves]
        first[self.leaves[ends]] = last[self.leaves[ends]] = self.answer_of[ends]
        for node in range(len(trie) - 1, 0, -1):  # children come after their parents
            parent = trie.parent[node]
            first[parent] = min(first[parent], first[node])
            last[parent] = max(last[parent], last[node])
        decided = alive & (first == last)
        nodes = np.flatnonzero(decided & ~decided[trie.parent])
        masses = np.exp(along_paths(trie, self.steps)[nodes])
        return np.bincount(first[nodes], masses, self.n)

    def drawn(self, method: Method, count: int, rng: np.random.Generator) -> np.ndarray:
        """int64 [answers]: how often each is drawn, step by step through a real matcher. Raises
        RuntimeError where its mask is not that of the automaton."""
        trie, alive, found = self.trie, self.alive(method), np.zeros(self.n, dtype=np.int64)
        matcher = self.constraints[method].matcher(prefix=self.prompt_ids)
        answer = dict(zip(self.leaves.tolist(), self.answer_of.tolist(), strict=True))
        bits = np.zeros((1, (self.loaded.tokenizer.n_ids + 31) // 32), dtype=np.int32)
        known: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        for _ in range(count):
            node = depth = 0
            while not matcher.is_accepting:
                matcher.mask(bits)
                if node not in known:
                    options = np.flatnonzero((trie.parent == node) & alive)
                    weights = np.exp(self.steps[options] - self.steps[options].max())
                    known[node] = (bits[0].copy(), options, weights / weights.sum())
                    if not np.array_equal(members(bits[0]), np.sort(trie.token[options])):
                        raise RuntimeError(f"a mask after {trie.ids(node)} is not the automaton's")
                row, options, shares = known[node]
                if not np.array_equal(row, bits[0]):
                    raise RuntimeError(f"two masks after {trie.ids(node)}")
                node = int(rng.choice(options, p=shares))
                matcher.advance(int(trie.token[node]))
                depth += 1
            matcher.rollback(depth)
            found[answer[node]] += 1
        return found

    def drawn_freely(self, wanted: int, rng: np.random.Generator) -> np.ndarray:
        """int64 [answers]: of unconstrained trials at least `wanted` of which spell an answer; none
        where these would be over 2**60.

        They are not drawn one by one: how many take each edge out of a node is multinomial, and the
        rest leaves the trie. When to stop depends on how many were accepted, not on which, so the
        accepted ones are independent draws from the distribution of the answers.
        """
        trie, found = self.trie, np.zeros(self.n, dtype=np.int64)
        mass = float(np.exp(self.summed(self.steps)).sum())
        if mass < wanted / 2**60:
            return found
        while (missing := wanted - int(found.sum())) > 0:
            passing = np.zeros(len(trie), dtype=np.int64)
            passing[0] = int(np.ceil(missing / mass))
            for node in trie.inner():
                children = np.flatnonzero(trie.parent == node)
                shares = np.exp(self.steps[children])
                rest = max(0.0, 1.0 - float(shares.sum()))
                shares = np.append(shares, rest) / (shares.sum() + rest)
                passing[children] = rng.multinomial(passing[node], shares)[:-1]
            found += np.bincount(self.answer_of, passing[self.leaves], self.n).astype(np.int64)
        return found
