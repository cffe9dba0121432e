"""Log-probabilities of a model on all nodes of a trie, in few forward passes.

Two ways that must agree (tests compare them). *Packed*: many nodes in one sequence of batch 1,
each attending to the prompt and its own ancestors only, over one shared cache of the prompt: no
node is computed twice. *Padded*: one row per longest path, prompt included, padded on the right:
ten times the work, but any causal model can do it. `pick_evaluator` takes the first where a
check on the model itself shows that it is right, the second otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bpe_automata.errors import PromptError
from experiments.optional import require
from experiments.token_trie import TokenTrie

Progress = Callable[[int], None]
"""Called with the number of nodes that were evaluated since the last call."""

CHECK_TOLERANCE = 1e-2
"""Nats. Far above rounding (1e-4 in float32), far below what a wrong attention mask does."""


Evaluator = Callable[[Any, list[int], TokenTrie, Progress], np.ndarray]
"""`packed_log_probs` or `padded_log_probs`."""


def no_progress(done: int) -> None:
    """Says nothing."""


def pick_evaluator(model: Any, prompt_ids: list[int], trie: TokenTrie) -> Evaluator:
    """Packed, if it agrees with padded on a small part of `trie` for this model; else padded.

    Models whose layers are not plain attention (windows, convolutions, recurrences) can ignore
    the mask of a packed pass or refuse it, each with an exception of its own.
    """
    part = _first_nodes(trie, 12)
    try:
        packed = packed_log_probs(model, prompt_ids, part)
    except (TypeError, ValueError, RuntimeError, AttributeError):
        return padded_log_probs
    right = np.allclose(packed, padded_log_probs(model, prompt_ids, part), 0, CHECK_TOLERANCE)
    return packed_log_probs if right else padded_log_probs


def packed_log_probs(
    model: Any,
    prompt_ids: list[int],
    trie: TokenTrie,
    progress: Progress = no_progress,
    chunk: int = 128,
) -> np.ndarray:
    """float64[n]: log P(the node's id | prompt, the ids of its parent), nats; 0 for the root.

    Logits are the model's own; the softmax is over all of them, in float64. `chunk`: nodes per
    forward pass, besides the ancestors they share. Raises `PromptError` for an empty prompt: a
    causal model has no distribution over the first id.
    """
    if not prompt_ids:
        raise PromptError("an empty prompt: the model needs at least one id to predict from")
    torch, result = require("torch"), np.zeros(len(trie))
    with torch.inference_mode():
        prompt = torch.tensor([prompt_ids], device=model.device)
        first = model(input_ids=prompt, use_cache=True)
        _read(result, trie, np.array([0]), first.logits[0, -1:])
        progress(1)
        for part in _chunks(trie.inner()[1:], chunk):
            nodes = _with_ancestors(trie, part)
            inputs = _packed_inputs(model, len(prompt_ids), trie, nodes)
            logits = model(**inputs, past_key_values=first.past_key_values).logits[0]
            _read(result, trie, nodes, logits)
            first.past_key_values.crop(-len(nodes))
            progress(len(part))
    return result


def padded_log_probs(
    model: Any,
    prompt_ids: list[int],
    trie: TokenTrie,
    progress: Progress = no_progress,
    batch: int = 32,
) -> np.ndarray:
    """The same as `packed_log_probs`. `batch`: paths per forward pass."""
    if not prompt_ids:
        raise PromptError("an empty prompt: the model needs at least one id to predict from")
    torch, result = require("torch"), np.zeros(len(trie))
    ends = _ends_of_paths(trie)
    last = len(prompt_ids) - 1
    for part in _chunks(ends, batch):
        paths = [_path(trie, node) for node in part]
        rows = [prompt_ids + trie.ids(node) for node in part]
        width = max(map(len, rows))
        padded = [row + [0] * (width - len(row)) for row in rows]
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor(padded, device=model.device)).logits
        for path, row in zip(paths, logits, strict=True):
            _read(result, trie, np.array(path), row[last : last + len(path)])
        progress(len(trie.inner()) * len(part) // len(ends))
    return result


def _packed_inputs(model: Any, n_prompt: int, trie: TokenTrie, nodes: np.ndarray) -> dict[str, Any]:
    """Ids, positions and the attention mask of one packed pass."""
    torch = require("torch")
    sees = np.concatenate([np.ones((len(nodes), n_prompt), bool), _ancestry(trie, nodes)], axis=1)
    lowest = torch.finfo(model.dtype).min
    mask = torch.zeros(sees.shape, dtype=model.dtype).masked_fill(~torch.from_numpy(sees), lowest)
    return {
        "input_ids": torch.from_numpy(trie.token[nodes])[None].to(model.device),
        "position_ids": torch.from_numpy(n_prompt + trie.depth[nodes] - 1)[None].to(model.device),
        "attention_mask": mask[None, None].to(model.device),
    }


def _ancestry(trie: TokenTrie, nodes: np.ndarray) -> np.ndarray:
    """bool[k, k]: is the column's node an ancestor of the row's node, or that node itself?"""
    sees = np.eye(len(nodes), dtype=bool)
    place = {int(node): i for i, node in enumerate(nodes)}
    for i, node in enumerate(nodes):
        above = place.get(int(trie.parent[node]))
        if above is not None:
            sees[i] |= sees[above]
    return sees


def _with_ancestors(trie: TokenTrie, nodes: np.ndarray) -> np.ndarray:
    """`nodes` and all their ancestors except the root, ascending (so parents come first)."""
    found = {int(node) for node in nodes}
    for node in nodes:
        above = int(trie.parent[node])
        while above > 0 and above not in found:
            found.add(above)
            above = int(trie.parent[above])
    return np.array(sorted(found))


def _read(result: np.ndarray, trie: TokenTrie, nodes: np.ndarray, logits: Any) -> None:
    """Fill in the children of `nodes`; `logits`: float[k, V], one row for each of them."""
    torch = require("torch")
    row_of = np.full(len(trie) + 1, -1)
    row_of[nodes] = np.arange(len(nodes))
    children = np.flatnonzero(row_of[trie.parent] >= 0)
    rows = torch.from_numpy(row_of[trie.parent[children]]).to(logits.device)
    tokens = torch.from_numpy(trie.token[children]).to(logits.device)
    total = torch.logsumexp(logits.double(), dim=-1)
    result[children] = (logits[rows, tokens].double() - total[rows]).cpu().numpy()


def _ends_of_paths(trie: TokenTrie) -> np.ndarray:
    """The inner nodes that have no inner child: paths to them cover all inner nodes."""
    inner = trie.inner()
    return np.setdiff1d(inner, trie.parent[inner])


def _path(trie: TokenTrie, node: int) -> list[int]:
    """The nodes from the root to `node`, both included."""
    path = [int(node)]
    while path[-1] > 0:
        path.append(int(trie.parent[path[-1]]))
    return path[::-1]


def _first_nodes(trie: TokenTrie, count: int) -> TokenTrie:
    """The sub-trie of the first nodes in preorder."""
    return TokenTrie(
        trie.parent[:count], trie.token[:count], trie.depth[:count], trie.states[:count]
    )


def _chunks(values: np.ndarray, size: int) -> Iterator[np.ndarray]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
