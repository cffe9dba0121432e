"""Many texts at once from a causal LM: one prompt, keys and values kept, masks on the device.

    drawn = sample_batch(loaded.model, prompt_ids, constraint, 256, max_new_tokens=64, seed=3)
    weights.estimate([f(text.ids) for text in drawn], [text.log_weight for text in drawn])

    drawn = sample_batch(loaded.model, prompt_ids, None, 256, eos_ids=loaded.eos_ids)

Sample k takes one number of `numpy.random.default_rng((seed, k))` for each id: it is the text, with
the weight, that `bpe_automata.sampling.decode` draws with that generator, but for the rounding of
the model's own arithmetic. So it does not depend on how many are drawn at a time.

While the model reads the ids that were drawn, the host moves the matchers on and packs their next
masks; those are copied to the device and applied there (`integrations.bitmask`). On a CPU another
thread does so. A GPU is given its work ahead, and the thread that gave it is free; a second one
would ask it for the interpreter's lock between any two kernels that it launches. A step waits for
the device once, when the ids come back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from bpe_automata._arguments import at_least
from bpe_automata.errors import LogitsError, PromptError
from bpe_automata.integrations.bitmask import apply_bitmask
from bpe_automata.sampling._logits import checked, has_ended
from experiments.files import cache_name, require

# The rows of a batch on the host: what was read, which go on, and what each may read next.


class Language(Protocol):
    """What a batch needs of a constraint; a `bpe_automata.Constraint` is one.

    n_ids: of the masks; eos_ids: ids that end a text, none where a text ends as nothing can follow.
    """

    @property
    def n_ids(self) -> int: ...

    @property
    def eos_ids(self) -> tuple[int, ...]: ...

    def matcher(self, prefix: Sequence[int] = ()) -> Any:
        """At the beginning of a text after a prompt: what has the methods `copy`, `advance` and
        `mask`, and the properties `ids` and `is_accepting`, of a `Matcher`."""
        ...


class Rows:
    """Samples without a constraint. `order`: the sample in each slot of the batch, for slots of
    samples that have ended are given up now and then; `going`: bool [slots], which have not."""

    bits: Any = None
    """Packed masks of the next ids, torch int32 [slots, words] on the CPU; None for no masks."""

    def __init__(self, count: int, eos_ids: Sequence[int]) -> None:
        self.ids: list[list[int]] = [[] for _ in range(count)]
        self.order, self.going = np.arange(count), np.ones(count, dtype=bool)
        self._eos_ids = frozenset(eos_ids)
        self._was_ended = np.zeros(count, dtype=bool)

    def only_ends(self, tokens: Sequence[int]) -> bool:
        """Do all that go on end with these ids, one for each slot?"""
        return all(tokens[slot] in self._eos_ids for slot in np.flatnonzero(self.going).tolist())

    def read(self, tokens: Sequence[int]) -> None:
        """One id for each slot; those of slots that do not go on are left out."""
        for slot in np.flatnonzero(self.going).tolist():
            token, sample = tokens[slot], int(self.order[slot])
            ends = token in self._eos_ids
            if not ends:
                self.ids[sample].append(token)
            self._was_ended[sample] = ends
            self.going[slot] = self._goes_on(sample, slot, token) and not ends

    def keep(self, slots: np.ndarray) -> None:
        """Give up the other slots."""
        self.order, self.going = self.order[slots], self.going[slots]

    def ended(self) -> list[bool]:
        """Of each sample, whether it is whole."""
        return [bool(end) for end in self._was_ended]

    def _goes_on(self, sample: int, slot: int, token: int) -> bool:
        """Read one id, and say whether any can follow, but for what end-of-sequence says."""
        del sample, slot, token
        return True


class Masked(Rows):
    """Samples of a constraint: a matcher each, at its state after `prompt`. pinned: in memory that
    a GPU can copy from meanwhile."""

    def __init__(
        self, constraint: Language, prompt: Sequence[int], count: int, pinned: bool
    ) -> None:
        super().__init__(count, constraint.eos_ids)
        self._constraint: Any = constraint
        start = constraint.matcher(prompt)
        self._matchers = [start.copy() for _ in range(count)]
        torch, words = require("torch"), (constraint.n_ids + 31) // 32
        self.bits = torch.empty((count, words), dtype=torch.int32, pin_memory=pinned)
        self._written = self.bits.numpy()
        for slot in range(count):
            self._matchers[slot].mask(self._written, slot)
        self._leave_out_dead_ends()

    def read(self, tokens: Sequence[int]) -> None:
        super().read(tokens)
        self._leave_out_dead_ends()

    def keep(self, slots: np.ndarray) -> None:
        super().keep(slots)
        self._written[: len(slots)] = self._written[slots]
        self.bits, self._written = self.bits[: len(slots)], self._written[: len(slots)]

    def ended(self) -> list[bool]:
        return [has_ended(matcher, self._constraint) for matcher in self._matchers]

    def _goes_on(self, sample: int, slot: int, token: int) -> bool:
        self._matchers[sample].advance(token)
        self._matchers[sample].mask(self._written, slot)
        return True

    def _leave_out_dead_ends(self) -> None:
        """A row that no id can follow is left all ids, which are not read: logits of which nothing
        is left would be nan."""
        dead = ~self._written.any(axis=1)
        self.going[dead] = False
        self._written[dead] = -1


@dataclass(frozen=True)
class Drawn:
    """ids: without end-of-sequence; ended: whether the text is whole: end-of-sequence was read or,
    in a language that has none, nothing can follow.

    log_weight: the sum of the natural logs of the mass that the masks left, 0 without a constraint,
    -inf for what was cut off, as in `sampling._weights`; log_prob: of all ids that were read, the
    end too, under the model alone at the temperature. Both are nan where none were asked for.
    """

    ids: tuple[int, ...]
    ended: bool
    log_weight: float
    log_prob: float


class Settings(NamedTuple):
    """Of one call, see `sample_batch`."""

    max_new_tokens: int
    temperature: float
    weights: bool


def sample_batch(
    model: Any,
    prompt_ids: Sequence[int],
    constraint: Language | None,
    n: int,
    *,
    max_new_tokens: int = 128,
    temperature: float = 1.0,
    seed: int = 0,
    eos_ids: Sequence[int] = (),
    batch: int = 64,
    weights: bool = True,
) -> list[Drawn]:
    """`n` independent texts after the prompt, `batch` at a time.

    model: a causal LM of transformers in eval mode, on any device, in any dtype. constraint:
    followed from the state after the prompt; None for what the model writes on its own, until one
    of `eos_ids` (any of its logits may be drawn, those beyond the tokenizer's ids too).
    max_new_tokens: end-of-sequence included. temperature: over 0. weights: also weigh, and read the
    logits in float64 for it; else probabilities are float32. Raises PromptError, ArgumentError,
    LogitsError.
    """
    prompt, settings = settled(prompt_ids, max_new_tokens, temperature, weights)
    n, batch = at_least(0, n, "the number of samples"), at_least(1, batch, "the batch")
    found, longest = list[Drawn](), settings.max_new_tokens
    queued = is_queued(model)
    with require("torch").inference_mode(), ThreadPoolExecutor(1) as executor:
        for first in range(0, n, batch):
            count = min(batch, n - first)
            uniforms = np.stack([uniform(seed, first + k, longest) for k in range(count)])
            rows = Rows(count, eos_ids)
            if constraint is not None:
                rows = Masked(constraint, prompt, count, pinned=queued)
            beside = None if queued else executor
            found += Batch(model, prompt, rows, uniforms, settings, beside).drawn()
    return found


def uniform(seed: int, k: int, n: int) -> np.ndarray:
    """float64 [n], in [0, 1): what the ids of sample k are drawn with."""
    return np.random.default_rng((seed, k)).random(n)


def settled(
    prompt_ids: Sequence[int], max_new_tokens: int, temperature: float, weights: bool
) -> tuple[tuple[int, ...], Settings]:
    """Prompt and settings of a call. Raises PromptError, ArgumentError."""
    prompt, longest, heat = checked(prompt_ids, max_new_tokens, temperature, greedy=False)
    if not prompt:
        raise PromptError("an empty prompt: the model needs at least one id to predict from")
    return prompt, Settings(longest, heat, weights)


class Batch:
    """One batch from its prompt to its end. uniforms: float64 [rows, max_new_tokens]. executor:
    moves matchers on beside the model; None: this thread does, once the model has its work."""

    def __init__(
        self,
        model: Any,
        prompt: tuple[int, ...],
        rows: Rows,
        uniforms: np.ndarray,
        settings: Settings,
        executor: ThreadPoolExecutor | None,
    ) -> None:
        torch = require("torch")
        self._model, self._rows, self._settings, self._executor = model, rows, settings, executor
        self._uniforms = torch.from_numpy(uniforms).to(model.device)
        self._sums = np.zeros((2, len(uniforms)))
        read = model(input_ids=torch.tensor([prompt], device=model.device), use_cache=True)
        self._cache = read[cache_name()]
        self._cache.batch_repeat_interleave(len(uniforms))
        self._logits = read.logits[:, -1].repeat(len(uniforms), 1)

    def drawn(self) -> list[Drawn]:
        """Run to the end; the texts."""
        for step in range(self._settings.max_new_tokens):
            if not self._rows.going.any():
                break
            self._step(step)
        sums = self._sums if self._settings.weights else np.full_like(self._sums, np.nan)
        each = zip(self._rows.ids, self._rows.ended(), *sums.tolist(), strict=True)
        return [
            Drawn(tuple(ids), end, weight if end else weight - np.inf, log_prob)
            for ids, end, weight, log_prob in each
        ]

    def _step(self, step: int) -> None:
        """Draw an id at each slot; then the matchers and the model read it, side by side."""
        self._give_up_slots()
        ids, sums = self._draw(self._uniforms[:, step : step + 1])
        tokens = ids.tolist()  # here the host waits for the device
        going = self._rows.going
        if any(token < 0 for token, goes in zip(tokens, going, strict=True) if goes):
            raise LogitsError(
                "the model's logits are nan, inf, or -inf at all ids that are allowed"
            )
        if sums is not None:
            self._sums[:, self._rows.order[going]] += sums.cpu().numpy()[:, going]
        last = step + 1 == self._settings.max_new_tokens or self._rows.only_ends(tokens)
        read_rows: Callable[..., None] = partial(self._rows.read, tokens)
        if self._executor is not None:
            read_rows = self._executor.submit(read_rows).result
        if not last:
            read = self._model(
                input_ids=ids[:, None], **{cache_name(): self._cache}, use_cache=True
            )
            self._logits = read.logits[:, -1]
        read_rows()

    def _give_up_slots(self) -> None:
        """Of rows that have ended, once they are half of the batch."""
        going = self._rows.going
        if 2 * going.sum() > len(going):
            return
        slots = np.flatnonzero(going)
        self._rows.keep(slots)
        chosen = require("torch").from_numpy(slots).to(self._model.device)
        self._cache.batch_select_indices(chosen)
        self._logits, self._uniforms = self._logits[chosen], self._uniforms[chosen]

    def _draw(self, uniforms: Any) -> tuple[Any, Any]:
        """(int64 [slots], -1 where the model gives no distribution; float64 [2, slots], the logs of
        the mass left and of the id's probability, or None). uniforms: float64 [slots, 1].

        min { i : p(ids up to i) > number p(all that are allowed) }
        """
        torch, weigh = require("torch"), self._settings.weights
        whole = log_total(*self._distribution(self._logits)) if weigh else None
        if self._rows.bits is not None:
            # Its rows are not written again before the ids of this step are back on the host.
            bits = self._rows.bits.to(self._model.device, non_blocking=True)
            apply_bitmask(self._logits, bits)
        scaled, distribution = self._distribution(self._logits)
        cumulated = distribution.cumsum(1, dtype=torch.float64)
        total = cumulated[:, -1:].contiguous()
        found = torch.searchsorted(cumulated, uniforms * total, right=True)
        # The product may round up to the total: then the last id with any mass is meant.
        found = torch.minimum(found, torch.searchsorted(cumulated, total))
        ids = torch.where(total > 0, found, -1)[:, 0]  # not so for nan
        if whole is None:
            return ids, None
        log_prob = scaled.gather(1, ids.clamp(min=0)[:, None])[:, 0] - whole
        return ids, torch.stack((log_total(scaled, distribution) - whole, log_prob))

    def _distribution(self, logits: Any) -> tuple[Any, Any]:
        """[slots, V] each: logits at the temperature, and their softmax; float64 to weigh, float32
        to draw. (Of -inf the softmax of torch is much faster on a CPU than its exponential.)"""
        torch, heat = require("torch"), self._settings.temperature
        scaled = logits.to(torch.float64 if self._settings.weights else torch.float32)
        scaled = scaled if heat == 1 else scaled / heat
        return scaled, torch.softmax(scaled, 1)


def log_total(scaled: Any, softmax: Any) -> Any:
    """[slots]: the log of the sum of the exponentials of `scaled`, of its softmax."""
    return scaled.amax(1) - softmax.amax(1).log()


def is_queued(model: Any) -> bool:
    """Is its work queued, so that a pass returns before it is done?"""
    return bool(model.device.type == "cuda")
