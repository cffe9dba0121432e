"""The distributions of a model over a few answers, exactly, or with a bound on what is missing.

A language model looks at the whole sequence of ids, not at a state of an automaton, so its
probabilities live on the trie of all tokenizations of the answers. Logarithms are natural.

- *free*: each answer is summed over all its tokenizations, given that the model writes an answer;
- *lift*, *canonical*: each step is renormalised over the ids that continue some tokenization of an
  answer, or the tokenizer's own;
- *weighted*: the model given canonical ids, to which weights or SMC under the canonical mask
  converge. (Under the lift they converge to the free distribution.)

Answers are prefix-free, so their end is forced, and end-of-sequence has no factor of its own.
Errors are total variation distances (TV) to the free distribution. In these distributions "the
model writes this answer" means that ids come next that spell exactly the answer. A wider event is

- *prefix*: the text begins with the answer. This adds sequences whose last id goes past the
  answer's end (`",` where the answer ends in a quote), which no mask admits:

    P(prefix) = P(free) + sum over u, t of P(u) P(t | u)    u: ids that spell a proper prefix of
                                                            the answer; u and the id t: more than it

The trie of an answer of twenty letters has tens of thousands of nodes, and nearly all of them have
next to no probability, so it is searched best first. A node is *open* until the model has been
asked which ids follow it; the open nodes are the frontier of the search. Those that leave most
uncertain are expanded first, until

    1   under each method, the probability of open nodes from which several answers can still come
        is below `slack` (a node with only one leaves nothing uncertain),
    2   the model's own probability of all open nodes, relative to that of the complete answers, is
        below `slack`, and
    3   the probability of all open nodes is below `unread`, under each method,

or until `most_nodes` were expanded. The residual probability of the open nodes is known exactly.
"""

from __future__ import annotations

import copy
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, permutations
from typing import Any

import numpy as np

from bpe_automata import Constraint, Tokenizer, constrain
from bpe_automata._kernels.bits import members
from bpe_automata.automata.linked import explicit
from bpe_automata.automata.sources import from_strings
from bpe_automata.decoding.constraint import Method
from bpe_automata.decoding.healing import heal
from bpe_automata.errors import BpeAutomataError, BudgetExceededError, PromptError
from bpe_automata.sampling import normalised
from experiments.files import cache_name, require
from experiments.models import LoadedModel

Row = dict[str, Any]
METHODS: tuple[Method, ...] = ("lift", "canonical")
MOST_GIVEN_BACK = 8
"""The most ids at the end of a prompt that are given back so that all answers can follow."""
ROUND = 64
"""The most nodes that are expanded at a time."""


class AnswerSetError(BpeAutomataError):
    """A set of answers that cannot be summed up; the message names the answers."""


def check_prefix_free(answers: Sequence[str]) -> None:
    """Raises AnswerSetError if an answer is the beginning of another one, or there are not two."""
    for one, other in permutations(answers, 2):
        if other.startswith(one):
            message = f"the answer {one!r} begins the answer {other!r}"
            raise AnswerSetError(f"{message}; make the set prefix-free (add a delimiter)")
    if len(answers) < 2:
        raise AnswerSetError(f"at least two answers are needed, not {answers}")


@dataclass(frozen=True)
class Posed:
    """A question. prompt_ids: read by the model; answers: the bytes of each, beginning with the
    text that the prompt gave back; own: the tokenizer's ids of each."""

    loaded: LoadedModel
    prompt_ids: list[int]
    answers: tuple[bytes, ...]
    own: list[list[int]]
    constraints: dict[Method, Constraint]


def pose(loaded: LoadedModel, prompt: str, answers: Sequence[str]) -> Posed:
    """The question of a prompt. If an answer cannot follow the prompt canonically, the last ids of
    the prompt are given back first, for both methods alike. Raises PromptError if that does not
    help, AnswerSetError, and what `constrain` raises."""
    check_prefix_free(answers)
    tokenizer, ends = loaded.tokenizer, loaded.eos_ids
    own = constrain(tokenizer, from_strings(answers), "canonical", eos_ids=ends)
    healed = heal(own, loaded.prompt_ids(prompt), MOST_GIVEN_BACK)
    before = healed.healing.text if healed.healing else b""
    canonical = healed.constraint
    lift = constrain(tokenizer, explicit(canonical.dfa, "a question"), "lift", eos_ids=ends)
    return Posed(
        loaded,
        list(healed.prefix),
        tuple(before + answer.encode() for answer in answers),
        [loaded.prompt_ids(prompt + answer)[len(healed.prefix) :] for answer in answers],
        {"lift": lift, "canonical": canonical},
    )


# Next-id logits after many short sequences of ids that all follow one prompt.


def scores(logits: Any, rows: np.ndarray, tokens: np.ndarray, temperature: float) -> np.ndarray:
    """float64 [k]: log softmax of row `rows[i]` of `logits / temperature` at `tokens[i]`. Sums are
    in float32, or in float64 for logits of that dtype."""
    torch = require("torch")
    wide = (logits if logits.dtype == torch.float64 else logits.float()) / temperature
    positions = (torch.from_numpy(rows).to(wide.device), torch.from_numpy(tokens).to(wide.device))
    found: np.ndarray = (
        (wide[positions].double() - wide.logsumexp(-1).double()[positions[0]]).cpu().numpy()
    )
    return found


class Reader:
    """A causal model behind a prompt, which is read once."""

    def __init__(self, model: Any, prompt_ids: Sequence[int]) -> None:
        """Raises PromptError for an empty prompt: a causal model has no distribution over the first
        id."""
        if not prompt_ids:
            raise PromptError("an empty prompt: the model needs at least one id to predict from")
        self._model = model
        self._first, self._cache = self._read([prompt_ids], None)

    def logits(self, paths: Sequence[Sequence[int]]) -> Any:
        """Tensor [paths, V]: the logits after the ids of each path."""
        found = self._first.repeat(len(paths), 1)
        order = sorted((k for k, ids in enumerate(paths) if ids), key=lambda k: len(paths[k]))
        for _, group in groupby(order, key=lambda k: len(paths[k])):
            some = [*group]
            cache = copy.deepcopy(self._cache)
            cache.batch_repeat_interleave(len(some))
            found[some], _ = self._read([paths[k] for k in some], cache)
        return found

    def _read(self, rows: Sequence[Sequence[int]], cache: Any) -> tuple[Any, Any]:
        """(logits after rows of one length, the cache)."""
        torch = require("torch")
        ids = torch.tensor([list(row) for row in rows], device=self._model.device)
        # Without the model's config, as layers with a window would drop keys outside of it.
        cache = cache or require("transformers").DynamicCache()
        with torch.inference_mode():
            read = self._model(
                input_ids=ids, **{cache_name(): cache}, use_cache=True, logits_to_keep=1
            )
        return read.logits[:, -1], cache


class Trie:
    """The trie of the tokenizations of a question's answers, as far as it was explored. Nodes have
    numbers, 0 is the root, and parents come before their children.

    parent, token: int [n]; alive: bool [n, methods], can the method read the node? steps: float64
    [n], log-probability of each node's id; free, masked: float64 [n] and [n, methods], that of its
    whole sequence under the model and each method; complete, open: bool [n]; answer: int [n], the
    only answer that the node can lead to, -1 for several; past: float64 [answers], log-probability
    of the sequences whose last id goes past the answer's end."""

    def __init__(self, posed: Posed, temperature: float = 1.0) -> None:
        """Raises PromptError."""
        self.posed, self.temperature, self.n = posed, temperature, len(posed.answers)
        self._reader = Reader(posed.loaded.model, posed.prompt_ids)
        self._eos_ids = np.array(posed.loaded.eos_ids, dtype=np.int64)
        self._engines = [posed.constraints[method].engine for method in METHODS]
        self._states: list[tuple[Any, ...]] = [
            tuple(engine.initial(posed.prompt_ids) for engine in self._engines)
        ]
        self._texts, self._only = [b""], _only_answers(posed.answers)
        self.parent, self.token = np.array([-1]), np.array([-1])
        self.steps, self.free = np.zeros(1), np.zeros(1)
        self.masked, self.alive = np.zeros((1, 2)), np.ones((1, 2), dtype=bool)
        self.open, self.complete = np.ones(1, dtype=bool), np.zeros(1, dtype=bool)
        self.answer = np.array([self._only[b""]])
        self.past, self.asked = np.full(self.n, -np.inf), 0

    def __len__(self) -> int:
        return len(self.parent)

    def ids(self, node: int) -> list[int]:
        """The ids from the root to a node."""
        found = list[int]()
        while node > 0:
            found.append(int(self.token[node]))
            node = int(self.parent[node])
        return found[::-1]

    def explore(self, slack: float, unread: float, most_nodes: int) -> Trie:
        """Expand nodes as described above. Raises BudgetExceededError if no answer is reached."""
        while len(nodes := self._urgent(slack, unread)[: most_nodes - self.asked]):
            self._expand(nodes)
        for column, method in enumerate(METHODS):
            if not (self.complete & self.alive[:, column]).any():
                advice = f"no answer was reached by {method}; raise --most-nodes"
                raise BudgetExceededError("forward positions", most_nodes, advice)
        return self

    def _urgent(self, slack: float, unread: float) -> np.ndarray:
        """The open nodes to be expanded next, ascending; none when the search is complete."""
        nodes = np.flatnonzero(self.open)
        methods, own = np.exp(self.masked[nodes]).max(axis=1), np.exp(self.free[nodes])
        total = np.exp(self.free[self.complete]).sum() or own.sum() or 1.0
        several = self.answer[nodes] < 0
        parts = [methods * several / slack, own / total / slack, methods / unread]
        urgency = np.max(parts, axis=0)
        order = np.argsort(urgency)
        residual = np.cumsum(urgency[order])
        return np.sort(nodes[order[residual > 1][-ROUND:]])

    def _expand(self, nodes: np.ndarray) -> None:
        """Ask the model which ids follow these nodes, and add the nodes that can."""
        each = [self._after(node) for node in nodes.tolist()]
        rows = np.repeat(np.arange(len(nodes)), [len(found) for found in each])
        tokens = np.array([token for found in each for token in found], dtype=np.int64)
        states = [after for found in each for after in found.values()]
        logits = self._reader.logits([self.ids(node) for node in nodes.tolist()])
        steps = scores(logits, rows, tokens, self.temperature)
        self._go_past(nodes, logits)
        parents, n = nodes[rows], len(self)
        alive = np.array([[q is not None for q in after] for after in states], dtype=bool)
        alive = alive.reshape(-1, len(METHODS))
        allowed = np.where(alive, steps[:, None], -np.inf)
        mass = np.full((n, len(METHODS)), -np.inf)
        np.logaddexp.at(mass, parents, allowed)
        masked = np.where(alive, allowed - np.where(alive, mass[parents], 0.0), -np.inf)
        self.masked = np.concatenate([self.masked, self.masked[parents] + masked])
        self.alive = np.concatenate([self.alive, alive])
        self.steps = np.concatenate([self.steps, steps])
        self.free = np.concatenate([self.free, self.free[parents] + steps])
        self.parent = np.concatenate([self.parent, parents])
        self.token = np.concatenate([self.token, tokens])
        self._states += states
        for parent, token in zip(parents.tolist(), tokens.tolist(), strict=True):
            before = self.token[parent : parent + 1].tolist() if parent else self.posed.prompt_ids
            spelled = self.posed.loaded.tokenizer.text_bytes((token,), before[-1:])
            self._texts.append(self._texts[parent] + spelled)
        new, answers = self._texts[n:], frozenset(self.posed.answers)
        complete = np.array([text in answers for text in new], dtype=bool)
        self.open[nodes] = False
        self.open = np.concatenate([self.open, ~complete])
        self.complete = np.concatenate([self.complete, complete])
        self.answer = np.concatenate([self.answer, [self._only[text] for text in new]])
        self.answer = self.answer.astype(np.int64)
        self.asked += len(nodes)

    def _after(self, node: int) -> dict[int, tuple[Any, ...]]:
        """id -> the state of each method after it (None if it cannot read the id), ascending."""
        outs = list[dict[int, Any]]()
        for engine, state in zip(self._engines, self._states[node], strict=True):
            ids = [] if state is None else members(engine.mask(state)).tolist()
            ids = [token for token in ids if token not in engine.eos_ids]
            after = engine.steps(state, np.array(ids, dtype=np.int64)) if ids else []
            outs.append(dict(zip(ids, after, strict=True)))
        return {i: tuple(out.get(i) for out in outs) for i in sorted({i for o in outs for i in o})}

    def _go_past(self, nodes: np.ndarray, logits: Any) -> None:
        """Add the ids after these nodes that spell the rest of an answer and more."""
        order, spelled = self.posed.loaded.tokenizer.derived("ids in order", _in_order)
        for row, node in enumerate(nodes.tolist()):
            for k, answer in enumerate(self.posed.answers):
                rest = answer[len(self._texts[node]) :]
                if not answer.startswith(self._texts[node]) or not rest:
                    continue
                cut = rest.rstrip(b"\xff")
                end = bisect_left(spelled, cut[:-1] + bytes([cut[-1] + 1])) if cut else len(spelled)
                ids = np.setdiff1d(order[bisect_right(spelled, rest) : end], self._eos_ids)
                if len(ids):
                    logs = scores(logits, np.full(len(ids), row), ids, self.temperature)
                    logs = np.append(self.free[node] + logs, self.past[k])
                    self.past[k] = np.logaddexp.reduce(logs)

    # Sums over the trie.

    def summed(self, paths: np.ndarray, leaves: np.ndarray) -> np.ndarray:
        """float64 [answers]: log of the summed probability (`paths`: logs [n]) of those leaves
        (bool [n]) whose answer is known."""
        nodes, total = np.flatnonzero(leaves & (self.answer >= 0)), np.full(self.n, -np.inf)
        np.logaddexp.at(total, self.answer[nodes], paths[nodes])
        return total

    def law(self, method: Method) -> np.ndarray:
        """float64 [answers]: the method's distribution, without open nodes of several answers."""
        paths = self.masked[:, METHODS.index(method)]
        return np.exp(self.summed(paths, self.complete | self.open))


def _only_answers(answers: Sequence[bytes]) -> dict[bytes, int]:
    """Each beginning of an answer -> the number of the only answer that it begins, else -1."""
    found: dict[bytes, int] = {}
    for number, answer in enumerate(answers):
        for end in range(len(answer) + 1):
            begun = answer[:end]
            found[begun] = -1 if found.get(begun, number) != number else number
    return found


def _in_order(tokenizer: Tokenizer) -> tuple[np.ndarray, list[bytes]]:
    """(ids in the order of what they spell, what that is)."""
    order = sorted(range(tokenizer.n_ids), key=tokenizer.spellings.__getitem__)
    return np.array(order, dtype=np.int64), [tokenizer.spellings[token] for token in order]


def total_variation(p: Any, q: Any) -> float:
    """max over events |p(A) - q(A)| = 1/2 sum |p - q|."""
    return float(np.abs(np.asarray(p) - np.asarray(q)).sum() / 2)


def laws(trie: Trie) -> Row:
    """All distributions over the answers that the module names, and `mass` and `prefix mass`, the
    model's probability of all answers. outside: the share of the mass that is not canonical; off:
    the largest error of the distance of a method, masked or weighted, to the free distribution;
    prefix off: that of the distance to the prefix distribution."""
    canonical, (lift, own) = trie.alive[:, 1], (trie.law(method) for method in METHODS)
    mass = trie.summed(trie.free, trie.complete)
    written = trie.summed(trie.free, trie.complete & canonical)
    prefix = np.logaddexp(mass, trie.past)
    residual = np.logaddexp.reduce(trie.free[trie.open], initial=-np.inf)
    own_residual = np.logaddexp.reduce(trie.free[trie.open & canonical], initial=-np.inf)
    total, own_total, more = (np.logaddexp.reduce(each) for each in (mass, written, prefix))
    # A distribution that lacks s of its probability changes a distance by at most s / 2; the free
    # and the weighted one are normalised, which makes it s.
    undecided = trie.open & (trie.answer < 0)
    slack = float(np.exp(trie.masked[undecided]).sum(axis=0).max(initial=0.0)) / 2
    return {
        "free": normalised(mass).tolist(),
        "lift": lift.tolist(),
        "canonical": own.tolist(),
        "weighted": normalised(written).tolist(),
        "prefix": normalised(prefix).tolist(),
        "mass": float(np.exp(total)),
        "prefix mass": float(np.exp(more)),
        "outside": float(1 - np.exp(own_total - total)),
        "off": float(np.exp(residual - total) + max(slack, np.exp(own_residual - own_total))),
        "prefix off": float(np.exp(min(0.0, residual - more)) + slack),
    }
