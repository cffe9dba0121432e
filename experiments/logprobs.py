"""What a model expects after the nodes of a trie, many of them in one forward pass.

Two ways that must agree. *Packed*: nodes in one sequence, each attending to the prompt and its own
ancestors only, behind a cache of the prompt. *Padded*: one row per node, prompt included, padded on
the right: ten times the work or more, but any causal model can do it. `pick_reader` takes the first
where a check on the model itself shows that it is right, the second otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from bpe_automata.errors import PromptError
from experiments.files import cache_name, require

CHECK_TOLERANCE = 1e-2
"""Nats. Far above rounding (1e-4 in float32), far below what a wrong attention mask does."""


class Tree(Protocol):
    """Nodes with parents before their children; node 0 is the root."""

    @property
    def parent(self) -> np.ndarray:
        """int [n]: of each node (root: -1)."""

    @property
    def token(self) -> np.ndarray:
        """int [n]: the id that leads from its parent to each node (root: -1)."""


class Reader(Protocol):
    """A model behind a prompt. Made from the model and the prompt's ids; raises PromptError for an
    empty prompt: a causal model has no distribution over the first id."""

    def logits(self, tree: Tree, nodes: np.ndarray) -> Any:
        """Tensor [k, V]: what the model expects after each of the nodes (int64 [k], ascending)."""


def scores(logits: Any, rows: np.ndarray, tokens: np.ndarray, temperature: float) -> np.ndarray:
    """float64 [k]: log softmax of row `rows[i]` of `logits / temperature` at `tokens[i]`. Sums are
    made in float32, or in float64 for logits of that type."""
    torch = require("torch")
    wide = (logits if logits.dtype == torch.float64 else logits.float()) / temperature
    places = (torch.from_numpy(rows).to(wide.device), torch.from_numpy(tokens).to(wide.device))
    found: np.ndarray = (
        (wide[places].double() - wide.logsumexp(-1).double()[places[0]]).cpu().numpy()
    )
    return found


def path_to(tree: Tree, node: int) -> list[int]:
    """The nodes from the root, which is left out, to this one."""
    found = []
    while node > 0:
        found.append(node)
        node = int(tree.parent[node])
    return found[::-1]


class PackedReader:
    """Nodes and their ancestors in one row, behind a cache of the prompt."""

    def __init__(self, model: Any, prompt_ids: Sequence[int]) -> None:
        self._model, self._n = model, len(prompt_ids)
        # Without the model's config: layers that see a window would drop what is out of it.
        self._cache = require("transformers").DynamicCache()
        prompt = _tensor(model, [_checked(prompt_ids)])
        with require("torch").inference_mode():
            read = model(
                input_ids=prompt, **{cache_name(): self._cache}, use_cache=True, logits_to_keep=1
            )
        self._first = read.logits[0, -1:].clone()

    def logits(self, tree: Tree, nodes: np.ndarray) -> Any:
        torch, paths = require("torch"), [path_to(tree, node) for node in nodes.tolist()]
        needed = sorted({node for path in paths for node in path})
        if not needed:
            return self._first[[0] * len(nodes)]
        place = {node: k for k, node in enumerate(needed)}
        sees = np.zeros((len(needed), self._n + len(needed)), dtype=bool)
        sees[:, : self._n] = True
        at = np.empty(len(needed), dtype=np.int64)
        for k, node in enumerate(needed):
            path = path_to(tree, node)
            sees[k, [self._n + place[one] for one in path]] = True
            at[k] = self._n + len(path) - 1
        with torch.inference_mode():
            read = self._model(
                input_ids=_tensor(self._model, [tree.token[needed].tolist()]),
                position_ids=_tensor(self._model, [at.tolist()]),
                attention_mask=self._masks(sees, at),
                **{cache_name(): self._cache},
                use_cache=True,
            ).logits[0]
        self._cache.crop(-len(needed))
        every = torch.cat([self._first, read])
        return every[[1 + place[path[-1]] if path else 0 for path in paths]]

    def _masks(self, sees: np.ndarray, at: np.ndarray) -> Any:
        """What the model takes: one mask, or one for each kind of layers that it has."""
        config: Any = getattr(self._model, "config", None)
        kinds = set(getattr(config, "layer_types", None) or ())
        if kinds <= {"full_attention"}:
            return self._mask(sees)
        near = at[:, None] - np.append(np.arange(self._n), at) < config.sliding_window
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
        for start in range(0, len(nodes), self._batch):
            paths = [path_to(tree, node) for node in nodes[start : start + self._batch].tolist()]
            rows = [self._prompt + tree.token[path].tolist() for path in paths]
            width = max(map(len, rows))
            padded = _tensor(self._model, [row + [0] * (width - len(row)) for row in rows])
            kept = width - len(self._prompt) + 1
            with torch.inference_mode():
                logits = self._model(input_ids=padded, logits_to_keep=kept).logits
            parts.append(logits[torch.arange(len(rows)), [len(row) - 1 - width for row in rows]])
        return torch.cat(parts)


class _Probe(NamedTuple):
    """A trie on which a model can show whether many of its nodes can be read in one pass."""

    parent: np.ndarray = np.array([-1, 0, 1, 1, 0, 4])
    token: np.ndarray = np.array([-1, 5, 6, 7, 4, 3])


@lru_cache(maxsize=8)
def pick_reader(model: Any) -> Callable[[Any, Sequence[int]], Reader]:
    """`PackedReader` or `PaddedReader`. Models whose layers are not plain attention (convolutions,
    recurrences) can ignore the mask of a packed pass or refuse it, each with an exception of its
    own."""
    nodes, prompt = np.arange(6), [1, 2, 3, 4]
    try:
        packed = PackedReader(model, prompt).logits(_Probe(), nodes)
    except (TypeError, ValueError, RuntimeError, AttributeError, KeyError):
        return PaddedReader
    padded = PaddedReader(model, prompt).logits(_Probe(), nodes)
    gap = (packed.log_softmax(-1) - padded.log_softmax(-1)).abs().max()
    return PackedReader if float(gap) < CHECK_TOLERANCE else PaddedReader


def _checked(prompt_ids: Sequence[int]) -> list[int]:
    if not prompt_ids:
        raise PromptError("an empty prompt: the model needs at least one id to predict from")
    return list(prompt_ids)


def _tensor(model: Any, rows: list[list[int]]) -> Any:
    return require("torch").tensor(rows, device=model.device)
