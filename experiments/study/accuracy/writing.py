"""Many answers at once, each in a language of its own, after several prompts: a model reads a tree.

Texts with the same ids after a prompt are one node of a tree, which the model reads once, all nodes
of a step in one pass: a mask lets each attend to the prompt and to what leads to it. So methods
whose answers begin alike share the pass, and a population (`bpe_automata.sampling._smc`) costs the
nodes at which its texts differ.

    weigh      w <- w m, where m is the mass that the mask leaves
    resample   within a population whose effective sample size is below half of it
    draw       min { i : p(ids up to i | mask) > number }, or the likeliest id

What is counted of an answer: *positions*, the ids that the model reads, each node once; *passes*,
its nodes at which more than one id is allowed, for a run of ids that are certain can be read in one
pass with the id before it. Seconds are those of its nodes: each has its mask, and a share of the
pass in which it is read. They are seconds of the processor, which say the same on a machine that is
shared.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any, TypeAlias, TypeVar

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata._kernels.bits import only
from bpe_automata.integrations.bitmask import apply_bitmask
from bpe_automata.sampling._smc import resample
from bpe_automata.sampling._weights import effective_sample_size, log_normaliser, normalised
from experiments.run.files import cache_name, require
from experiments.shared.batched import THRESHOLD
from experiments.shared.free_texts import drawn, masses, padded

T = TypeVar("T")


# ---------------------------------------------------------------- what may come next


@dataclass
class Free:
    """What a batch needs of a matcher, of a text that nothing forbids: it is over with one of
    `ends`, or once the first object in it is whole."""

    tokenizer: Tokenizer
    prompt: tuple[int, ...]
    ends: frozenset[int]
    ids: tuple[int, ...] = ()
    is_accepting: bool = False

    def mask(self, out: np.ndarray, row: int = 0) -> None:
        """Packed int32."""
        out[row] = 0 if self.is_accepting else -1

    def advance(self, token: int) -> None:
        self.ids = (*self.ids, token)
        text = self.tokenizer.decode(self.ids, self.prompt)
        self.is_accepting = token in self.ends or end_of(text) is not None

    def copy(self) -> Free:
        return replace(self)


def end_of(text: str) -> int | None:
    """The place behind the first object in a text; None where none is whole. Strings may hold
    braces; what else stands in it is not looked at."""
    depth, quoted, first = 0, False, text.find("{")
    at = first
    while 0 <= at < len(text):
        if quoted and text[at] == "\\":
            at += 1
        elif quoted:
            quoted = text[at] != '"'
        else:
            quoted = text[at] == '"'
            depth += (text[at] == "{") - (text[at] == "}")
            if not depth:
                return at + 1
        at += 1
    return None


def value_in(text: str) -> Any:
    """The first object in a text; None where there is none, or none that is JSON."""
    end = end_of(text)
    try:
        return None if end is None else json.loads(text[text.index("{") : end])
    except ValueError:
        return None


Text: TypeAlias = tuple[int, tuple[int, ...]]
"""The number of a prompt, and ids behind it."""


@dataclass(eq=False)
class Node:
    """prompt: its number; matcher: after the ids; bits: its packed mask, int32 [words]; choices:
    how many ids are allowed, where 0 says that the text is over; seconds: what its mask and its
    reading took."""

    prompt: int
    matcher: Any
    bits: np.ndarray
    choices: int
    seconds: float

    @property
    def text(self) -> Text:
        return self.prompt, tuple(self.matcher.ids)

    @property
    def ended(self) -> bool:
        """Is the text whole?"""
        return not self.choices and bool(self.matcher.is_accepting)


def opened(matcher: Any, prompt: int, words: int) -> Node:
    """A node with its mask. words: of it."""
    bits = np.zeros((1, words), dtype=np.int32)
    spent, _ = timed(partial(matcher.mask, bits))
    return Node(prompt, matcher, bits[0], int(np.bitwise_count(bits.view(np.uint32)).sum()), spent)


# ---------------------------------------------------------------- what the model reads


class Tree:
    """Prompts, and texts behind each that branch. Each prompt has one row of the cache, with all
    its texts; `_places` says where the ids of a text are in it.

    The model's logits must be its output layer's of its last hidden state: they are made where they
    are needed alone.
    """

    def __init__(self, model: Any, n_ids: int) -> None:
        """n_ids: of the tokenizer; a model may have more, which spell nothing."""
        self._model, self._n_ids, self._cache = model, n_ids, require("transformers").DynamicCache()
        self._lengths: list[int] = []
        self._places = dict[Text, list[int]]()
        self._seen: Any = None  # bool [prompts, ids]: of the cache, what is of the prompts
        self._later = 0  # ids that each row of the cache has behind its prompt

    def read_prompts(self, prompts: Sequence[Sequence[int]]) -> Any:
        """float32 [prompts, n_ids]: the logits behind each. What all begin with is read once."""
        torch = require("torch")
        shared = in_common([ids[:-1] for ids in prompts])
        if shared:
            self._read(torch.tensor([prompts[0][:shared]]), torch.arange(shared)[None], None)
            self._cache.batch_repeat_interleave(len(prompts))
        rest = padded([ids[shared:] for ids in prompts], shared)
        self._seen, self._lengths = rest["attention_mask"].bool(), [len(ids) for ids in prompts]
        self._places = {(k, ()): [] for k in range(len(prompts))}
        read = self._read(rest["input_ids"], rest["position_ids"], rest["attention_mask"])
        return self._logits(read[:, -1])

    def read(self, texts: Sequence[Text], asked: Sequence[bool]) -> Any:
        """float32 [asked, n_ids]: the logits behind those texts that are asked for. All but the
        last id of a text was read before. Rows of prompts with fewer texts are filled up, with an
        id that sees itself alone."""
        torch, before = require("torch"), self._seen.shape[1] + self._later
        columns = list[int]()
        widths = Counter[int]()
        for prompt, _ in texts:
            columns.append(widths[prompt])
            widths[prompt] += 1
        n, width = len(self._lengths), max(widths.values())
        ids, positions = torch.zeros((2, n, width), dtype=torch.int64)
        mask = torch.zeros((n, width, before + width), dtype=torch.bool)
        mask[:, range(width), range(before, before + width)] = True
        for (prompt, text), column in zip(texts, columns, strict=True):
            places = [*self._places[prompt, text[:-1]], before + column]
            self._places[prompt, text] = places
            ids[prompt, column] = text[-1]
            positions[prompt, column] = self._lengths[prompt] + len(text) - 1
            mask[prompt, column, places] = True
            mask[prompt, column, : self._seen.shape[1]] = self._seen[prompt]
        self._later += width
        read = self._read(ids, positions, mask[:, None])
        wanted = [k for k, is_asked in enumerate(asked) if is_asked]
        return self._logits(read[[texts[k][0] for k in wanted], [columns[k] for k in wanted]])

    def _read(self, ids: Any, positions: Any, mask: Any) -> Any:
        """float32 [prompts, ids, width]: hidden states."""
        device = self._model.device
        with require("torch").inference_mode():
            read = self._model.base_model(
                input_ids=ids.to(device),
                position_ids=positions.to(device),
                attention_mask=None if mask is None else mask.to(device),
                use_cache=True,
                **{cache_name(): self._cache},
            )
        return read.last_hidden_state

    def _logits(self, hidden: Any) -> Any:
        with require("torch").inference_mode():
            return self._model.get_output_embeddings()(hidden)[:, : self._n_ids].float().cpu()


def in_common(texts: Sequence[Sequence[int]]) -> int:
    """How many ids all begin with."""
    columns = zip(*texts, strict=False)
    return sum(1 for _ in takewhile(lambda column: len({*column}) == 1, columns))


# ---------------------------------------------------------------- the loop


class Population:
    """Texts after one prompt in one language, which are weighed if there are several.

    nodes: of each text; numbers: float64 [texts, ids] in [0, 1), None for the likeliest ids; rng:
    of the resampling; log_weights: float64 [texts]; passes, positions, seconds: of the answer, see
    the module; the positions of the prompt are left out.
    """

    def __init__(
        self, nodes: list[Node], numbers: np.ndarray | None, rng: np.random.Generator
    ) -> None:
        self.nodes, self.numbers, self.rng = nodes, numbers, rng
        self.log_weights = np.zeros(len(nodes))
        self.passes, self.positions, self.seconds = 0, 0, 0.0

    def going(self) -> list[Node]:
        """The nodes that texts go on from."""
        return [*dict.fromkeys(node for node in self.nodes if node.choices)]

    def weigh(self, left: dict[Node, float]) -> None:
        """w <- w m, then resample where w is poor. left: of each node that goes on, the log of the
        mass m that its mask leaves."""
        self.log_weights += [left.get(node, 0.0) for node in self.nodes]
        if 0 < effective_sample_size(self.log_weights) < THRESHOLD * len(self.nodes):
            chosen = resample(normalised(self.log_weights), "systematic", self.rng)
            self.nodes = [self.nodes[k] for k in chosen.tolist()]
            self.log_weights[:] = log_normaliser(self.log_weights).value

    def taken(self) -> Node:
        """The text, by weight among those that ended; the first where none did."""
        logs = np.where([node.ended for node in self.nodes], self.log_weights, -np.inf)
        if logs.max() == -np.inf:
            return self.nodes[0]
        return self.nodes[int(self.rng.choice(len(logs), p=normalised(logs)))]


Tokens = dict[tuple[Population, int], int]
"""The id that is drawn, by population and text."""


def write(
    populations: Sequence[Population], tree: Tree, logits: Any, most: int, temperature: float
) -> None:
    """All texts to their ends, or to so many ids at most. logits: float32 [prompts, n_ids], behind
    each; they are overwritten."""
    row: dict[Text, int] = {(k, ()): k for k in range(len(logits))}
    for step in range(most):
        going = [population for population in populations if population.going()]
        for population in going:
            population.passes += sum(node.choices > 1 for node in population.going())
            population.positions += len(population.going()) if step else 0
            population.seconds += sum(node.seconds for node in population.going())
        if not going:
            return
        nodes = [node for node in _behind(going) if node.text in row]
        at_nodes = logits[[row[node.text] for node in nodes]]
        follow(drawn_at(step, going, nodes, at_nodes, temperature))
        behind = _behind(going)
        texts = [*dict.fromkeys(node.text for node in behind)]
        if texts and step + 1 < most:
            weighed = {n.text for p in going if len(p.nodes) > 1 for n in p.going()}
            weighed |= {node.text for node in behind if node.choices > 1}
            asked = [text in weighed for text in texts]
            spent, logits = timed(partial(tree.read, texts, asked))
            row = {text: k for k, text in enumerate(t for t in texts if t in weighed)}
            for node in behind:
                node.seconds += spent / len(texts)


def _behind(going: Sequence[Population]) -> list[Node]:
    """The nodes that texts go on from, each once."""
    return [*dict.fromkeys(node for population in going for node in population.going())]


def drawn_at(
    step: int, going: Sequence[Population], nodes: Sequence[Node], logits: Any, heat: float
) -> Tokens:
    """The next id of each text that goes on, once populations are weighed. nodes: those that they
    go on from whose logits are there, for elsewhere an id is certain; logits: float32 [nodes,
    n_ids], which are overwritten."""
    torch = require("torch")
    several = [population for population in going if len(population.nodes) > 1]
    place = {node: k for k, node in enumerate(nodes)}
    likeliest: list[int] = []
    mass: Any = None
    if nodes:
        total = torch.logsumexp(logits / heat, 1)
        apply_bitmask(logits, torch.from_numpy(np.stack([node.bits for node in nodes])))
        top, at = logits.max(1)
        likeliest, mass = at.tolist(), masses(logits, torch.full((1, 1), heat))
        left = top / heat + mass.sum(1, dtype=torch.float64).log() - total
        logs = dict(zip(nodes, left.tolist(), strict=True))
        for population in several:
            population.weigh(logs)
    texts = [(p, k) for p in going for k, node in enumerate(p.nodes) if node.choices]
    tokens = {
        (p, k): likeliest[place[node]] if (node := p.nodes[k]).choices > 1 else only(node.bits)
        for p, k in texts
    }
    numbers = {
        (p, k): [p.numbers[k, step]]
        for p, k in texts
        if p.numbers is not None and p.nodes[k].choices > 1
    }
    if numbers:
        rows = mass[[place[p.nodes[k]] for p, k in numbers]]
        found = drawn(rows, torch.tensor([*numbers.values()], dtype=torch.float64))
        tokens |= zip(numbers, found.tolist(), strict=True)
    return tokens


def follow(tokens: Tokens) -> None:
    """Each text to the node behind its id; texts that take one way share it."""
    found: dict[tuple[Node, int], Node] = {}
    for (population, k), token in tokens.items():
        node = population.nodes[k]
        if (node, token) not in found:
            spent, matcher = timed(partial(_after, node.matcher, token))
            found[node, token] = opened(matcher, node.prompt, len(node.bits))
            found[node, token].seconds += spent
        population.nodes[k] = found[node, token]


def _after(matcher: Any, token: int) -> Any:
    """A matcher that has read one more id."""
    moved = matcher.copy()
    moved.advance(token)
    return moved


def timed(call: Callable[[], T]) -> tuple[float, T]:
    """(seconds of the processor, what the call returned)."""
    started = time.process_time()
    result = call()
    return time.process_time() - started, result
