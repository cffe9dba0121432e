"""Many texts at once from a causal LM, with its keys and values cached, and masks on its device.

    uniforms = drawn_uniforms(seed, 256, 64)
    texts = sample_batch(loaded.model, [prompt_ids] * 256, [constraint] * 256, uniforms)

Each text has a prompt, a constraint (or None), a temperature, and a random number in [0, 1) for
each id. It is the text that `bpe_automata.sampling.decode` draws with these, up to rounding by the
model, whatever else is in the batch. Texts of one `population` are weighted by the mass that their
masks allow, and resampled while they are written, as `bpe_automata.sampling.smc` does.

While the model reads the drawn ids, the host advances the matchers and packs their next masks,
which are copied to the device and applied there (`integrations.bitmask`). On a CPU a second thread
does so. On a GPU the thread that queues the model's work does so once it is queued: a second thread
would compete with it for the interpreter's lock at every kernel launch. A step waits for the device
when the ids come back, and, where there are populations, for their masses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from bpe_automata import Constraint, batch_masks
from bpe_automata.errors import LogitsError, PromptError
from bpe_automata.integrations.bitmask import apply_bitmask
from bpe_automata.sampling._logits import has_ended
from bpe_automata.sampling._smc import resample
from bpe_automata.sampling._weights import effective_sample_size, normalised
from experiments.files import cache_name, require
from experiments.sampling import draw, padded

Stop = Callable[[Sequence[int]], bool]


@dataclass(frozen=True)
class Drawn:
    """ids: without end-of-sequence; ended: is the text whole (end-of-sequence was drawn, nothing
    can follow, or `stop` said so)? log_weight: -inf for a text that is not whole, else 0, or, in a
    population, the logarithm of its weight."""

    ids: tuple[int, ...]
    ended: bool
    log_weight: float


@dataclass(frozen=True)
class Free:
    """How texts without a constraint are written: until one of the ids `ends`, or until `stop` says
    so of their ids. n_ids: of the tokenizer. A model may have more ids, which pad its matrices and
    spell nothing; the distribution is conditioned on none of them being drawn."""

    ends: Collection[int] = ()
    stop: Stop | None = None
    n_ids: int | None = None


class Texts:
    """The texts of a batch on the host. `order`: the text in each slot of the batch (slots of texts
    that have ended are dropped now and then); `going`: bool [slots], is the text unfinished?
    `bits`: packed masks of the next ids, torch int32 [slots, words] on the CPU, None for no
    masks."""

    def __init__(
        self,
        constraints: Sequence[Constraint | None],
        prompts: Sequence[tuple[int, ...]],
        free: Free,
        pinned: bool,
    ) -> None:
        """pinned: are masks in memory that a GPU can copy asynchronously?"""
        torch, count, given = require("torch"), len(constraints), [*filter(None, constraints)]
        start = cache(lambda constraint, prompt: constraint and constraint.matcher(prompt))
        self._constraints, self._stop = constraints, free.stop
        starts = [*map(start, constraints, prompts)]
        self._matchers: list[Any] = [made and made.copy() for made in starts]
        self.bits: Any = None
        self._ends = [frozenset(one.eos_ids if one else free.ends) for one in constraints]
        self.ids, self._whole = [list[int]() for _ in constraints], [False] * count
        self.order, self.going = np.arange(count), np.ones(count, dtype=bool)
        if given:
            words = (given[0].n_ids + 31) // 32
            self.bits = torch.full((count, words), -1, dtype=torch.int32, pin_memory=pinned)
            self._mask(range(count))

    def read(self, tokens: Sequence[int]) -> None:
        """The texts read one id for each slot; ids of slots that have ended are ignored."""
        slots = np.flatnonzero(self.going).tolist()
        for slot in slots:
            token, text = tokens[slot], int(self.order[slot])
            is_end = token in self._ends[text]
            self.ids[text] += [] if is_end else [token]
            if (matcher := self._matchers[text]) is not None:
                matcher.advance(token)
            elif self._stop is not None:
                is_end |= self._stop(self.ids[text])
            self._whole[text] = is_end
            self.going[slot] = not is_end
        self._mask(slots)

    def _mask(self, slots: Sequence[int]) -> None:
        """Write the masks of slots. A slot that no id can follow has ended, and its mask allows all
        ids: logits without any allowed id would give nan."""
        if self.bits is None:
            return
        written, matchers = self.bits.numpy(), [self._matchers[k] for k in self.order.tolist()]
        masked = [slot for slot in slots if matchers[slot] is not None]
        batch_masks([matchers[slot] for slot in masked], written, masked)
        dead = ~written.any(axis=1)
        self.going[dead] = False
        written[dead] = -1

    def only_ends(self, tokens: Sequence[int]) -> bool:
        """Do all unfinished texts end with these ids, one for each slot?"""
        slots = np.flatnonzero(self.going).tolist()
        return all(tokens[slot] in self._ends[int(self.order[slot])] for slot in slots)

    def keep(self, slots: np.ndarray) -> None:
        """Drop the other slots."""
        self.order, self.going = self.order[slots], self.going[slots]
        if self.bits is not None:
            self.bits[: len(slots)] = self.bits[slots]
            self.bits = self.bits[: len(slots)]

    def copy(self, slots: np.ndarray) -> None:
        """Each slot continues as a copy of the given one; slots that change have constraints."""
        matchers, ids, whole = [*self._matchers], [*self.ids], [*self._whole]
        for slot in np.flatnonzero(slots != np.arange(len(slots))).tolist():
            to, source = int(self.order[slot]), int(self.order[slots[slot]])
            self._matchers[to], self._whole[to] = matchers[source].copy(), whole[source]
            self.ids[to] = [*ids[source]]
        self.going = self.going[slots]
        self.bits[:] = self.bits[slots]

    def results(self, log_weights: np.ndarray) -> list[Drawn]:
        """The texts as they are."""
        each = zip(self._matchers, self._constraints, self._whole, strict=True)
        ended = [whole if of is None else has_ended(m, of) for m, of, whole in each]
        weights = np.where(ended, log_weights, -np.inf).tolist()
        return [*map(Drawn, map(tuple, self.ids), ended, weights)]


def drawn_uniforms(seed: int, n: int, length: int) -> np.ndarray:
    """float64 [n, length], in [0, 1); row k does not depend on n."""
    return np.stack([np.random.default_rng((seed, k)).random(length) for k in range(n)])


def sample_batch(
    model: Any,
    prompts: Sequence[Sequence[int]],
    constraints: Sequence[Constraint | None],
    uniforms: np.ndarray,
    *,
    temperatures: Sequence[float] | None = None,
    populations: Sequence[int] | None = None,
    free: Free | None = None,
) -> list[Drawn]:
    """A text for each prompt, all at once; equal prompts are read once.

    model: a causal LM of transformers in eval mode, on any device, in any dtype. constraints: each
    begins in its state after the prompt, all have equally many ids; None for a free text, see
    `free`. uniforms: float64 [texts, longest]. temperatures: 1 by default; 0 takes the likeliest
    ids. populations: the number of each text's population, -1 if it is in none; their texts have
    constraints. Raises PromptError, LogitsError."""
    if not all(prompts):
        raise PromptError("an empty prompt: the model needs at least one id to predict from")
    queued, count, begun = is_queued(model), len(constraints), [*map(tuple, prompts)]
    free = free or Free()
    texts = Texts(constraints, begun, free, queued)
    heats = np.ones(count) if temperatures is None else np.asarray(temperatures)
    groups = np.full(count, -1) if populations is None else np.asarray(populations)
    with require("torch").inference_mode(), ThreadPoolExecutor(1) as executor:
        worker = None if queued else executor
        return Batch(model, begun, free.n_ids, texts, uniforms, heats, groups, worker).run()


class Batch:
    """One batch from its prompts to its end. executor: advances matchers while the model runs; if
    None, this thread does, once the model's work is queued."""

    def __init__(
        self,
        model: Any,
        prompts: Sequence[tuple[int, ...]],
        n_ids: int | None,
        texts: Texts,
        uniforms: np.ndarray,
        heats: np.ndarray,
        groups: np.ndarray,
        executor: ThreadPoolExecutor | None,
    ) -> None:
        torch, count = require("torch"), len(uniforms)
        self._model, self._texts, self._executor, self._groups = model, texts, executor, groups
        self._log_weights, self._rng = np.zeros(count), np.random.default_rng(0)
        self._uniforms = torch.from_numpy(uniforms).to(model.device)
        self._heats = torch.from_numpy(heats).to(model.device, torch.float32)[:, None]
        self._is_plain = bool((heats == 1).all())
        number = {prompt: k for k, prompt in enumerate(dict.fromkeys(prompts))}
        inputs = padded([*number])
        ids, own = (inputs[name].to(model.device) for name in ("input_ids", "attention_mask"))
        self._is_padded, self._n_ids = not bool(own.all()), n_ids
        self._cache: Any = None
        self._own = own[:, :0]
        self._read(ids, own)
        self._move(np.array([number[prompt] for prompt in prompts]))

    def run(self) -> list[Drawn]:
        """Run to the end; the texts."""
        longest = self._uniforms.shape[1]
        for step in range(longest):
            if not self._texts.going.any():
                break
            self._step(step, is_last=step + 1 == longest)
        return self._texts.results(self._log_weights)

    def _step(self, step: int, is_last: bool) -> None:
        """Draw an id for each slot; then the matchers and the model read them at the same time."""
        self._drop_slots()
        ids = self._draw(step)
        tokens = ids.tolist()  # here the host waits for the device
        going = self._texts.going
        if any(token < 0 for token, goes in zip(tokens, going, strict=True) if goes):
            raise LogitsError(
                "the model's logits are nan, inf, or -inf at all ids that are allowed"
            )
        is_last |= self._texts.only_ends(tokens)
        read_texts: Callable[..., None] = partial(self._texts.read, tokens)
        if self._executor is not None:
            read_texts = self._executor.submit(read_texts).result
        if not is_last:
            self._read(ids[:, None], require("torch").ones_like(ids[:, None]))
        read_texts()

    def _read(self, ids: Any, own: Any) -> None:
        """The model reads ids, int64 [slots, n]; own: 0 where they are padding."""
        self._own, more = require("torch").cat([self._own, own], 1), dict[str, Any]()
        if self._is_padded:  # models are quicker without an attention mask
            positions = (self._own.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
            more = {"attention_mask": self._own, "position_ids": positions}
        more[cache_name()] = self._cache
        read = self._model(input_ids=ids, **more, use_cache=True, logits_to_keep=1)
        self._cache, self._logits = read[cache_name()], read.logits[:, -1, : self._n_ids]

    def _drop_slots(self) -> None:
        """Drop the slots of ended texts once they are half of the batch; those of a population only
        when all of it has ended."""
        groups = self._groups[self._texts.order]
        kept = self._texts.going | (np.isin(groups, groups[self._texts.going]) & (groups >= 0))
        if 2 * kept.sum() > len(kept):
            return
        slots = np.flatnonzero(kept)
        self._texts.keep(slots)
        chosen = self._move(slots)
        self._uniforms, self._heats = self._uniforms[chosen], self._heats[chosen]

    def _move(self, slots: np.ndarray) -> Any:
        """Keep the keys, values and logits of these slots, in this order; the slots as a tensor."""
        chosen = require("torch").from_numpy(slots).to(self._model.device)
        self._cache.batch_select_indices(chosen)
        self._logits, self._own = self._logits[chosen], self._own[chosen]
        return chosen

    def _draw(self, step: int) -> Any:
        """The drawn ids: int64 [slots], -1 where the logits give no distribution."""
        torch, groups = require("torch"), self._groups[self._texts.order]
        weighed = np.flatnonzero((groups >= 0) & self._texts.going)
        whole = self._log_totals(weighed) if len(weighed) else 0
        if self._texts.bits is not None:
            # The host does not write the masks again before the ids of this step are back.
            bits = self._texts.bits.to(self._model.device, non_blocking=True)
            apply_bitmask(self._logits, bits)
        if len(weighed):
            self._log_weights[self._texts.order[weighed]] += self._log_totals(weighed) - whole
            self._resample(groups, np.unique(groups[weighed]))
        mass = torch.softmax(self._scaled(slice(None)), 1)
        found = draw(mass, self._uniforms[:, step : step + 1])
        if not self._is_plain:
            likeliest = self._logits.argmax(1)
            found = torch.where((self._heats[:, 0] > 0) | (found < 0), found, likeliest)
        return found

    def _scaled(self, slots: Any) -> Any:
        """float32 [slots, V]: logits at their temperatures."""
        torch, logits = require("torch"), self._logits[slots].float()
        heats = self._heats[slots]
        return logits if self._is_plain else logits / torch.where(heats > 0, heats, 1)

    def _log_totals(self, slots: np.ndarray) -> np.ndarray:
        """float64 [slots]: the logs of the summed exponentials of logits at their temperatures."""
        found: np.ndarray = self._scaled(slots).logsumexp(1).double().cpu().numpy()
        return found

    def _resample(self, groups: np.ndarray, going: np.ndarray) -> None:
        """Resample each unfinished population whose effective sample size is below one half."""
        chosen = np.arange(len(groups))
        for group in going:
            slots = np.flatnonzero(groups == group)
            texts = self._texts.order[slots]
            logs = self._log_weights[texts]
            if 0 < effective_sample_size(logs) < len(slots) / 2:
                chosen[slots] = slots[resample(normalised(logs), self._rng)]
                self._log_weights[texts] = np.logaddexp.reduce(logs) - np.log(len(slots))
        if (chosen != np.arange(len(groups))).any():
            self._texts.copy(chosen)
            self._move(chosen)


def is_queued(model: Any) -> bool:
    """Is the model's work queued, so that a forward pass returns before it is done?"""
    return bool(model.device.type == "cuda")
