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
pass in which it is read; drawing is left out. They are seconds of the processor, on which company
on the machine tells less than on those of the clock.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata._kernels.bits import only
from bpe_automata.integrations.bitmask import apply_bitmask
from bpe_automata.sampling._smc import resample
from bpe_automata.sampling._weights import effective_sample_size, log_normaliser, normalised
from experiments.answers.populations import THRESHOLD
from experiments.run.files import cache_name, require
from experiments.shared.free_texts import drawn, masses

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
    """Prompts, and texts behind each that branch, in one row of the model's cache: `_places` says
    where the ids of a text are in it, `_columns` where all those of a prompt are.

    The model's logits must be its output layer's of its last hidden state: they are made where they
    are needed alone.
    """

    def __init__(self, model: Any, n_ids: int) -> None:
        """n_ids: of the tokenizer; a model may have more, which spell nothing."""
        self._model, self._n_ids, self._cache = model, n_ids, require("transformers").DynamicCache()
        self._length = 0
        self._places = dict[Text, list[int]]()
        self._columns: list[list[int]] = []

    def read_prompts(self, prompts: Sequence[Sequence[int]]) -> Any:
        """float32 [prompts, n_ids]: the logits behind each. What all begin with is read once."""
        torch = require("torch")
        shared = in_common([ids[:-1] for ids in prompts])
        common = list(range(shared))
        if shared:
            whole = torch.ones((shared, shared), dtype=torch.bool).tril()
            self._read(prompts[0][:shared], common, [Block(common, common, whole)])
            self._length = shared
        blocks = list[Block]()
        for number, ids in enumerate(prompts):
            own = range(self._length, self._length + len(ids) - shared)
            self._columns.append([*common, *own])
            self._places[number, ()] = list(self._columns[-1])
            seen = torch.ones((len(own), len(ids)), dtype=torch.bool).tril(shared)
            blocks.append(Block([at - shared for at in own], self._columns[-1], seen))
            self._length = own.stop
        read = self._read(
            [token for ids in prompts for token in ids[shared:]],
            [at for ids in prompts for at in range(shared, len(ids))],
            blocks,
        )
        return self._logits(read[[block.rows[-1] for block in blocks]])

    def read(self, texts: Sequence[Text], asked: Sequence[bool]) -> Any:
        """float32 [asked, n_ids]: the logits behind those texts that are asked for. All but the
        last id of a text was read before."""
        torch, positions = require("torch"), list[int]()
        rows: dict[int, list[int]] = {}
        for row, (prompt, ids) in enumerate(texts):
            self._places[prompt, ids] = [*self._places[prompt, ids[:-1]], self._length]
            self._columns[prompt].append(self._length)
            positions.append(len(self._places[prompt, ids]) - 1)
            rows.setdefault(prompt, []).append(row)
            self._length += 1
        blocks = list[Block]()
        for prompt, own in rows.items():
            columns = self._columns[prompt]
            place = {column: k for k, column in enumerate(columns)}
            seen = torch.zeros((len(own), len(columns)), dtype=torch.bool)
            for k, row in enumerate(own):
                seen[k, [place[column] for column in self._places[texts[row]]]] = True
            blocks.append(Block(own, list(columns), seen))
        read = self._read([ids[-1] for _, ids in texts], positions, blocks)
        return self._logits(read[[row for row, is_asked in enumerate(asked) if is_asked]])

    def _read(self, ids: Sequence[int], positions: Sequence[int], blocks: list[Block]) -> Any:
        """float32 [ids, width]: hidden states."""
        torch, device = require("torch"), self._model.device
        moved = [Block(*(torch.as_tensor(part, device=device) for part in one)) for one in blocks]
        with torch.inference_mode(), by_blocks(self._model, moved) as mask:
            read = self._model.base_model(
                input_ids=torch.tensor([list(ids)], device=device),
                position_ids=torch.tensor([list(positions)], device=device),
                attention_mask=mask,
                use_cache=True,
                **{cache_name(): self._cache},
            )
        return read.last_hidden_state[0]

    def _logits(self, hidden: Any) -> Any:
        with require("torch").inference_mode():
            return self._model.get_output_embeddings()(hidden)[:, : self._n_ids].float().cpu()


class Block(NamedTuple):
    """What the ids of one prompt attend to. rows: of what is read; columns: of the cache; seen:
    bool [rows, columns]."""

    rows: Any
    columns: Any
    seen: Any


@contextmanager
def by_blocks(model: Any, blocks: Sequence[Block]) -> Iterator[Any]:
    """Inside, the model attends in blocks alone: with one mask for all, most of the work would be
    for what is masked. Gives a mask that transformers hands on as it is."""
    torch, name = require("torch"), "in blocks"

    def attention(
        module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float, **more: Any
    ) -> tuple[Any, None]:
        """query [1, heads, rows, d]; key, value [1, groups, columns, d]; -> [1, rows, heads, d]."""
        found = torch.empty_like(query)
        for rows, columns, seen in blocks:
            found[:, :, rows] = torch.nn.functional.scaled_dot_product_attention(
                query[:, :, rows],
                *(part[:, :, columns] for part in (key, value)),
                attn_mask=seen,
                scale=scaling,
                enable_gqa=True,
            )
        return found.transpose(1, 2), None

    require("transformers").AttentionInterface.register(name, attention)
    before = model.config._attn_implementation
    model.config._attn_implementation = name
    try:
        yield torch.ones((1, 1, 1, 1), dtype=torch.bool, device=model.device)
    finally:
        model.config._attn_implementation = before


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
