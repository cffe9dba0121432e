"""What a model expects after many short sequences of ids that all follow one prompt."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from bpe_automata.errors import PromptError
from experiments.files import cache_name, require


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
        """Tensor [paths, V]: what the model expects after the ids of each."""
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
        # Without the model's config: layers that see a window would drop what is out of it.
        cache = cache or require("transformers").DynamicCache()
        with torch.inference_mode():
            read = self._model(
                input_ids=ids, **{cache_name(): cache}, use_cache=True, logits_to_keep=1
            )
        return read.logits[:, -1], cache
