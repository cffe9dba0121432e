"""Log-probabilities of a model on the nodes of a trie, in few forward passes.

Two ways that must agree (tests compare them). *Packed*: many nodes in one sequence of batch 1,
each attending to the prompt and its own ancestors only, over one cache of the prompt and of the
nodes before: no node is computed twice. *Padded*: one row per node, prompt included, padded on the
right: ten times the work or more, but any causal model can do it. `pick_evaluator` takes the first
where a check on the model itself shows that it is right, the second otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from bpe_automata.errors import PromptError
from experiments.run.files import cache_name, require
from experiments.trie import TokenTrie, Tree, ids_to

CHECK_TOLERANCE = 1e-2
"""Nats. Far above rounding (1e-4 in float32), far below what a wrong attention mask does."""
MOST_CACHED = 4096
"""Nodes whose keys and values are kept; when there are more, they are computed again."""
PROBE = TokenTrie(
    np.array([-1, 0, 1, 1, 0, 4]),
    np.array([-1, 5, 6, 7, 8, 9]),
    np.array([0, 1, 2, 2, 1, 2]),
    np.zeros((6, 1), dtype=np.int64),
)
"""A trie on which a model can show whether many of its nodes can be read in one pass."""

Evaluator = Callable[[Any, list[int], TokenTrie], np.ndarray]
"""`packed_log_probs` or `padded_log_probs`."""


class Reader(Protocol):
    """A model behind a prompt. Made from the model and the prompt's ids; raises `PromptError` for
    an empty prompt: a causal model has no distribution over the first id."""

    def logits(self, tree: Tree, nodes: np.ndarray) -> Any:
        """Tensor [k, V]: what the model expects after each of the nodes (int64 [k], ascending)."""


def pick_evaluator(model: Any, prompt_ids: list[int], trie: TokenTrie) -> Evaluator:
    """Packed, if it agrees with padded on a small part of `trie` for this model; else padded."""
    is_packed = pick_reader(model, prompt_ids, trie) is PackedReader
    return packed_log_probs if is_packed else padded_log_probs


def pick_reader(model: Any, prompt_ids: list[int], trie: TokenTrie) -> Callable[..., Reader]:
    """`PackedReader` or `PaddedReader`, as `pick_evaluator`.

    Models whose layers are not plain attention (convolutions, recurrences) can ignore the mask of a
    packed pass or refuse it, each with an exception of its own.
    """
    part = TokenTrie(*(column[:12] for column in vars(trie).values()))
    try:
        packed = packed_log_probs(model, prompt_ids, part)
    except (TypeError, ValueError, RuntimeError, AttributeError, KeyError):
        return PaddedReader
    right = np.allclose(packed, padded_log_probs(model, prompt_ids, part), 0, CHECK_TOLERANCE)
    return PackedReader if right else PaddedReader


def packed_log_probs(
    model: Any, prompt_ids: list[int], trie: TokenTrie, chunk: int = 128
) -> np.ndarray:
    """float64 [n]: log P(the node's id | prompt, the ids of its parent), nats; 0 for the root.

    `chunk`: nodes per forward pass. The softmax is over all logits. Raises `PromptError` for an
    empty prompt.
    """
    return _log_probs(PackedReader(model, prompt_ids), trie, chunk)


def padded_log_probs(
    model: Any, prompt_ids: list[int], trie: TokenTrie, batch: int = 32
) -> np.ndarray:
    """The same as `packed_log_probs`. `batch`: nodes per forward pass."""
    return _log_probs(PaddedReader(model, prompt_ids), trie, batch)


def _log_probs(reader: Reader, trie: TokenTrie, size: int) -> np.ndarray:
    result = np.zeros(len(trie))
    for nodes in _chunks(trie.inner(), size):
        children = np.flatnonzero(np.isin(trie.parent, nodes))
        rows = np.searchsorted(nodes, trie.parent[children])
        result[children] = scores(reader.logits(trie, nodes), rows, trie.token[children], [1.0])[0]
    return result


def scores(
    logits: Any, rows: np.ndarray, tokens: np.ndarray, temperatures: ArrayLike
) -> np.ndarray:
    """float64 [t, k]: log softmax of row `rows[i]` of `logits / T` at `tokens[i]`; temperatures:
    float64 [t], over 0. Sums are made in float32, or in float64 for logits of that type."""
    torch, divisors = require("torch"), np.asarray(temperatures, dtype=np.float64)
    wide = logits if logits.dtype == torch.float64 else logits.float()
    sums = [torch.logsumexp(wide / each, dim=-1).double() for each in divisors.tolist()]
    totals = torch.stack(sums).cpu().numpy()
    places = (torch.from_numpy(rows).to(wide.device), torch.from_numpy(tokens).to(wide.device))
    own: np.ndarray = wide[places].double().cpu().numpy()
    return own / divisors[:, None] - totals[:, rows]


class PackedReader:
    """Many nodes per pass, over a cache that grows. most_cached: nodes that it keeps."""

    def __init__(
        self, model: Any, prompt_ids: Sequence[int], most_cached: int = MOST_CACHED
    ) -> None:
        self._model, self._n_prompt, self._most = model, len(prompt_ids), most_cached
        self._slots: dict[int, int] = {}  # node -> its place in the cache
        self._positions = list(range(self._n_prompt))
        # Without the model's config: layers that see a window would drop what is out of it, and
        # nodes that were read long ago are near in the trie.
        self._cache = require("transformers").DynamicCache()
        prompt = _tensor(model, [_checked(prompt_ids)])
        with require("torch").inference_mode():
            read = model(
                input_ids=prompt, **{cache_name(): self._cache}, use_cache=True, logits_to_keep=1
            )
        self._first = read.logits[0, -1:].clone()

    def logits(self, tree: Tree, nodes: np.ndarray) -> Any:
        inner = [node for node in nodes.tolist() if node > 0]
        parts = [self._first] if len(inner) < len(nodes) else []
        if inner:
            if len(self._positions) + len(inner) > self._n_prompt + self._most:
                self._forget()
            needed = self._with_missing(tree, inner)
            place = {node: row for row, node in enumerate(needed)}
            parts.append(self._pass(tree, needed)[[place[node] for node in inner]])
        return require("torch").cat(parts)

    def _forget(self) -> None:
        """Keep the prompt alone."""
        self._cache.crop(self._n_prompt - len(self._positions))
        self._slots.clear()
        del self._positions[self._n_prompt :]

    def _with_missing(self, tree: Tree, nodes: list[int]) -> list[int]:
        """The nodes, and those of their ancestors that are not in the cache; ascending."""
        found = set(nodes)
        for node in nodes:
            above = int(tree.parent[node])
            while above > 0 and above not in found and above not in self._slots:
                found.add(above)
                above = int(tree.parent[above])
        return sorted(found)

    def _pass(self, tree: Tree, nodes: list[int]) -> Any:
        """Logits [k, V] of nodes whose ancestors are in the cache or among them."""
        sees = self._seen(tree, nodes)
        at = [self._n_prompt + int(tree.depth[node]) - 1 for node in nodes]
        self._positions += at
        with require("torch").inference_mode():
            return self._model(
                input_ids=_tensor(self._model, [[int(tree.token[node]) for node in nodes]]),
                position_ids=_tensor(self._model, [at]),
                attention_mask=self._masks(sees, np.array(at)),
                **{cache_name(): self._cache},
                use_cache=True,
            ).logits[0]

    def _seen(self, tree: Tree, nodes: list[int]) -> np.ndarray:
        """bool [k, prompt + cached + k]: what each node attends to; they get their slots here."""
        before = len(self._positions)
        sees = np.zeros((len(nodes), before + len(nodes)), dtype=bool)
        sees[:, : self._n_prompt] = True
        for row, node in enumerate(nodes):
            self._slots[node] = before + row
            while node > 0:
                sees[row, self._slots[node]] = True
                node = int(tree.parent[node])
        return sees

    def _masks(self, sees: np.ndarray, at: np.ndarray) -> Any:
        """What the model takes: one mask, or one for each kind of layers that it has."""
        config: Any = getattr(self._model, "config", None)
        kinds = set(getattr(config, "layer_types", None) or ())
        if kinds <= {"full_attention"}:
            return self._mask(sees)
        near = at[:, None] - np.array(self._positions) < config.sliding_window
        seen = {"full_attention": sees, "sliding_attention": sees & near}
        return {kind: self._mask(seen[kind]) for kind in kinds}

    def _mask(self, sees: np.ndarray) -> Any:
        torch, dtype = require("torch"), self._model.dtype
        mask = torch.zeros(sees.shape, dtype=dtype)
        mask.masked_fill_(~torch.from_numpy(sees), torch.finfo(dtype).min)
        return mask[None, None].to(self._model.device)


class PaddedReader:
    """One row per node. batch: rows per pass."""

    def __init__(self, model: Any, prompt_ids: Sequence[int], batch: int = 32) -> None:
        self._model, self._prompt, self._batch = model, _checked(prompt_ids), batch

    def logits(self, tree: Tree, nodes: np.ndarray) -> Any:
        torch, parts = require("torch"), []
        for part in _chunks(nodes, self._batch):
            rows = [self._prompt + ids_to(tree, int(node)) for node in part]
            width = max(map(len, rows))
            padded = _tensor(self._model, [row + [0] * (width - len(row)) for row in rows])
            kept = width - len(self._prompt) + 1
            with torch.inference_mode():
                logits = self._model(input_ids=padded, logits_to_keep=kept).logits
            from_end = [len(row) - 1 - width for row in rows]
            parts.append(logits[torch.arange(len(rows)), from_end])
        return torch.cat(parts)


def _checked(prompt_ids: Sequence[int]) -> list[int]:
    if not prompt_ids:
        raise PromptError("an empty prompt: the model needs at least one id to predict from")
    return list(prompt_ids)


def _tensor(model: Any, rows: list[list[int]]) -> Any:
    return require("torch").tensor(rows, device=model.device)


def _chunks(values: np.ndarray, size: int) -> Iterator[np.ndarray]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
