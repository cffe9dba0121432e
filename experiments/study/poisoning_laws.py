"""What other ids for a word do to the model's next-token laws after it.

All are taken over the whole vocabulary, in float64, from logits in the model's own arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bpe_automata.decoding.visible import visible_tokens
from experiments.run.executors import Row
from experiments.run.files import cache_name, require
from experiments.shared.models import LoadedModel, special_ids
from experiments.study.poisoning_cases import Sentence
from experiments.study.spontaneous_texts import after

DIGITS = 6
OWN, ANOTHER, NOISE = "own", "another word", "same ids, read again"


def compared(
    loaded: LoadedModel, text: Sentence, spelled: Mapping[str, Sequence[int]], far: Sequence[int]
) -> dict[str, Row]:
    """For each of `spelled` (ids in place of the word's, by a name; OWN among them) what holds at
    the distances `far` (ascending): the loss of the token that follows; but for OWN, the distances
    from its law; but for ANOTHER, which is another text, the mass outside the canonical ids."""
    torch = require("torch")
    laws = _laws(loaded, text, spelled.values(), far)
    masses = laws.exp()
    kept = torch.from_numpy(canonical_next(loaded, text, far)).to(laws.device).double()
    following = [text.after[d] for d in far]
    own = [*spelled].index(OWN)
    found = {}
    for k, (name, ids) in enumerate(spelled.items()):
        row: Row = {"ids": list(ids), "tokens": visible_tokens(loaded.tokenizer, ids)}
        row["loss"] = losses(laws[k], following)
        if name != OWN:
            row["tv"] = _numbers((masses[own] - masses[k]).abs_().sum(-1) / 2)
            row["kl"] = divergences(masses[own], laws[own], laws[k])
        if name != ANOTHER:
            row["outside"] = outside(masses[k], kept)
        found[name] = row
    return found


def noise(loaded: LoadedModel, text: Sentence, beside: Sequence[int], far: Sequence[int]) -> Row:
    """Total variation at the distances between the laws after the word's own ids, read beside a row
    with other ids after a beginning that is kept, and the same read alone and all at once."""
    together = _laws(loaded, text, (text.word, beside), far)[0].exp()
    start = [*loaded.start_ids, *text.before]
    rest = [*start[1:], *text.word, *text.after[: far[-1]]]
    alone = next_laws(loaded.model, start[:1], [rest], far)[0].exp()
    return {"tv": _numbers((together - alone).abs_().sum(-1) / 2)}


def _laws(
    loaded: LoadedModel, text: Sentence, words: Iterable[Sequence[int]], far: Sequence[int]
) -> Any:
    following = text.after[: far[-1]]
    start = [*loaded.start_ids, *text.before]
    return next_laws(loaded.model, start, [[*word, *following] for word in words], far)


def chances(
    loaded: LoadedModel, text: Sentence, words: Sequence[Sequence[int]], ids: Sequence[int]
) -> list[list[float]]:
    """The probability of each id after the whole text, with each of these ids for its word."""
    laws = _laws(loaded, text, words, (len(text.after),))[:, 0]
    found: list[list[float]] = laws[:, list(ids)].exp().tolist()
    return found


def next_laws(
    model: Any, start: Sequence[int], rows: Sequence[Sequence[int]], far: Sequence[int]
) -> Any:
    """Natural logs of the laws of the next id, float64 [rows, far, V]: `far` ids, ascending, after
    the place far[-1] ids before the end of each row.

    start: ids that all rows come after, at least one; they are read once. Shorter rows are padded
    on the left, which moves no place: positions count a row's own ids.
    """
    torch = require("torch")
    width = max(map(len, rows))
    ids = torch.tensor([[0] * (width - len(row)) + list(row) for row in rows])
    lengths = torch.tensor([len(row) for row in rows])
    own = (torch.arange(width)[None] >= (width - lengths)[:, None]).long()
    inputs = {
        "input_ids": ids,
        "attention_mask": torch.cat([own.new_ones(len(rows), len(start)), own], 1),
        "position_ids": len(start) + (own.cumsum(1) - 1).clamp(min=0),
        "logits_to_keep": width - 1 - far[-1] + torch.tensor(list(far)),
    }
    with torch.inference_mode():
        begun = model(torch.tensor([list(start)], device=model.device), logits_to_keep=1)
        begun[cache_name()].batch_repeat_interleave(len(rows))
        moved = {name: values.to(model.device) for name, values in inputs.items()}
        logits = model(**moved, **{cache_name(): begun[cache_name()]}).logits
        return logits.double().log_softmax(-1)


def divergences(masses: Any, logs: Any, others: Any) -> list[float]:
    """Kullback-Leibler divergence at each place, nats: of the law `others` (logs) from the law that
    is given by its masses and their logs; float64 [places, V] each."""
    torch = require("torch")
    return _numbers(torch.linalg.vecdot(masses, logs) - torch.linalg.vecdot(masses, others))


def losses(laws: Any, following: Sequence[int]) -> list[float]:
    """-log P of the token that does follow, at each place, in nats; laws: float64 [places, V]."""
    torch = require("torch")
    tokens = torch.tensor(list(following), device=laws.device)
    return _numbers(-laws.gather(-1, tokens[:, None])[:, 0])


def outside(masses: Any, kept: Any) -> list[float]:
    """The mass at each place on ids that are not kept there. masses: float64 [places, V]; kept:
    float64 [places, n_ids], 1 or 0."""
    torch = require("torch")
    return _numbers(1 - torch.linalg.vecdot(masses[:, : kept.shape[1]], kept))


def canonical_next(loaded: LoadedModel, text: Sentence, far: Sequence[int]) -> np.ndarray:
    """bool [far, n_ids]: at these distances from the word, the ids that go on canonically, and the
    special ones, which end or interrupt a text."""
    matcher, rows = after(loaded.tokenizer, [*text.before, *text.word]), []
    for d, token in enumerate(text.after[: far[-1] + 1]):
        if d in far:
            rows.append(matcher.mask())
        matcher.advance(token)
    allowed = np.stack(rows)
    allowed[:, sorted(special_ids(loaded))] = True
    return allowed


def _numbers(values: Any) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values.cpu().tolist()]
