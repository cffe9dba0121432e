"""A causal LM on a GPU whose passes over one more id of each text are replayed as a CUDA graph.

    model = Graphed(loaded.model, len(prompt_ids) + length)
    sample_batch(model, prompt_ids, [constraint] * 64, drawn_uniforms(seed, 64, length))

The host needs 20 ms to launch the kernels of a pass of a small model one by one, in which the GPU
is idle for the most part; inference engines launch them all at once. Keys and values lie in arrays
of one length, and what was not read yet is masked out.
"""

from __future__ import annotations

from typing import Any

from experiments.files import cache_name, require


class Graphed:
    """What `experiments.batched` calls a model. length: ids of a text at most, with its prompt."""

    def __init__(self, model: Any, length: int) -> None:
        self.model, self.device, self.length = model, model.device, length
        self._passes: dict[int, Pass] = {}

    def __call__(self, *, input_ids: Any, use_cache: bool = True, **cache: Any) -> Any:
        """The prompt first, int64 [1, n]; then an id of each text, int64 [texts, 1], and the cache
        of the answer. The logits are overwritten by the next call."""
        if cache:
            return cache[cache_name()].at.read(input_ids)
        answer = self.model(input_ids=input_ids, use_cache=use_cache)
        answer[cache_name()] = Slots(self, answer[cache_name()])
        return answer

    def at(self, rows: int) -> Pass:
        """The pass over so many texts."""
        if rows not in self._passes:
            self._passes[rows] = Pass(self.model, rows, self.length)
        return self._passes[rows]


class Slots:
    """The keys and values of a batch, by the methods of transformers' own that a batch needs."""

    def __init__(self, model: Graphed, prompt: Any) -> None:
        self._model, self._prompt, self.at = model, prompt, model.at(1)

    def batch_repeat_interleave(self, repeats: int) -> None:
        """The prompt, so many times."""
        self.at = self._model.at(repeats)
        layers = self._prompt.layers
        self.at.begin([layer.keys for layer in layers], [layer.values for layer in layers])

    def batch_select_indices(self, indices: Any) -> None:
        """These texts alone, which are fewer."""
        old, self.at = self.at, self._model.at(len(indices))
        n = int(old.position)
        kept = [[array[indices, :, :n] for array in arrays] for arrays in (old.keys, old.values)]
        self.at.begin(*kept)


class Pass:
    """Over one id of each of `rows` texts; a graph where there is a GPU."""

    def __init__(self, model: Any, rows: int, length: int) -> None:
        torch, config = require("torch"), model.config
        self._model = model
        self._ids = torch.zeros((rows, 1), dtype=torch.int64, device=model.device)
        self.position = torch.zeros(1, dtype=torch.int64, device=model.device)
        self._numbers = torch.arange(length, device=model.device)
        width = getattr(config, "head_dim", None)
        width = width or config.hidden_size // config.num_attention_heads
        shape = (rows, config.num_key_value_heads, length, width)
        self.keys, self.values = (
            [
                torch.zeros(shape, dtype=model.dtype, device=model.device)
                for _ in range(config.num_hidden_layers)
            ]
            for _ in range(2)
        )
        self._graph = torch.cuda.CUDAGraph() if model.device.type == "cuda" else None
        if self._graph is not None:
            self._capture(torch)

    def begin(self, keys: list[Any], values: list[Any]) -> None:
        """After what these say, [rows or 1, heads, n, width] of each layer."""
        n = keys[0].shape[2]
        self.position.fill_(n)
        for mine, given in zip(self.keys + self.values, keys + values, strict=True):
            mine[:, :, :n] = given

    def read(self, ids: Any) -> Any:
        """The model's answer; its logits are [rows, 1, V]."""
        self._ids.copy_(ids)
        if self._graph is None:
            return self._pass()
        self._graph.replay()
        return self._answer

    def update(self, keys: Any, values: Any, layer: int, *_: Any, **__: Any) -> tuple[Any, Any]:
        """What transformers calls of a cache: read these, [rows, heads, 1, width]; all so far."""
        self.keys[layer].index_copy_(2, self.position, keys)
        self.values[layer].index_copy_(2, self.position, values)
        return self.keys[layer], self.values[layer]

    def _pass(self) -> Any:
        torch = require("torch")
        mask = torch.zeros(len(self._numbers), dtype=self._model.dtype, device=self._model.device)
        mask = mask.masked_fill(self._numbers > self.position, -torch.inf)
        answer = self._model(
            input_ids=self._ids,
            position_ids=self.position[None],
            attention_mask=mask[None, None, None],
            use_cache=True,
            **{cache_name(): self},
        )
        self.position += 1
        return answer

    def _capture(self, torch: Any) -> None:
        """What is done for the first time must not be part of a graph: loading kernels, say."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self._pass()
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(self._graph):
            self._answer = self._pass()
