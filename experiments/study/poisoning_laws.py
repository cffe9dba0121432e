"""What other ids for a word do to the model's next-token laws after it.

All are taken over the whole vocabulary, in float64, from logits in the model's own arithmetic.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata.decoding.visible import visible_tokens
from bpe_automata.errors import BpeAutomataError
from bpe_automata.tokenizer.alphabet import is_utf8
from experiments.run.executors import Row
from experiments.run.files import cache_name, require
from experiments.run.tables import Table
from experiments.shared.models import LoadedModel, special_ids
from experiments.study.spontaneous_judge import after

# A word in its sentence, in its own tokens and in others that spell the same.

CUT, RANDOM, SMALLEST = WAYS = ("one token cut in two", "cut at random", "single characters")
_TRIES, SHOWN = 30, 60


class SentenceError(BpeAutomataError):
    """The tokens of a text do not spell it, so that no token can be found by its place in it."""


@dataclass(frozen=True)
class Sentence:
    """The canonical ids of a text, in three parts: before the tokens of the word, these tokens (all
    that hold a part of it), and after."""

    before: tuple[int, ...]
    word: tuple[int, ...]
    after: tuple[int, ...]


def sentence(tokenizer: Tokenizer, before: str, word: str, after: str) -> Sentence:
    """The parts of a text. Raises SentenceError where the bytes of its tokens are others than its
    own: a SentencePiece model may put a space before a text, others change its characters."""
    text = before + word + after
    ids = tokenizer.encode(text)
    spelled = [tokenizer.token_bytes(token) for token in ids]
    if b"".join(spelled) != text.encode():
        shown = b"".join(spelled).decode(errors="replace")
        raise SentenceError(
            f"the tokens of {text[:SHOWN]!r} spell {shown[:SHOWN]!r}: take a model whose tokenizer "
            "adds and changes nothing"
        )
    ends = list(accumulate(map(len, spelled)))
    begin = len(before.encode())
    end = begin + len(word.encode())
    first = next(k for k, place in enumerate(ends) if place > begin)
    last = next(k for k, place in enumerate(ends) if place >= end) + 1
    return Sentence(tuple(ids[:first]), tuple(ids[first:last]), tuple(ids[last:]))


def other_ways(
    tokenizer: Tokenizer, word: Sequence[int], rng: random.Random
) -> dict[str, tuple[int, ...]]:
    """Other ids for the same bytes, by the way that they are made; none twice, and none that is the
    word's own. Where single characters are its own, single bytes are taken."""
    pieces = Pieces(tokenizer)
    found: dict[str, tuple[int, ...]] = {}
    known = {tuple(word)}
    for way, candidates in (
        (CUT, pieces.cut_once(word, rng)),
        (RANDOM, pieces.at_random(word, rng)),
        (SMALLEST, pieces.smallest(word)),
    ):
        fresh = next((ids for ids in candidates if ids not in known), None)
        if fresh is not None:
            found[way] = fresh
            known.add(fresh)
    return found


class Pieces:
    """The ordinary tokens of a tokenizer, by what they spell."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._ids, self._longest = tokenizer.derived("ordinary tokens", _ordinary)

    def cut_once(self, word: Sequence[int], rng: random.Random) -> Iterator[tuple[int, ...]]:
        """One of its tokens in two parts that are tokens; in random order."""
        found = []
        for k, token in enumerate(word):
            data = self._tokenizer.token_bytes(token)
            for at in range(1, len(data)):
                left, right = self._ids.get(data[:at]), self._ids.get(data[at:])
                if left is not None and right is not None and is_utf8(data[:at]):
                    found.append((*word[:k], left, right, *word[k + 1 :]))
        rng.shuffle(found)
        yield from found

    def at_random(self, word: Sequence[int], rng: random.Random) -> Iterator[tuple[int, ...]]:
        """From left to right, each token of whole characters alike."""
        data = b"".join(map(self._tokenizer.token_bytes, word))
        for _ in range(_TRIES):
            ids: list[int] = []
            at = 0
            while at < len(data):
                ends = [e for e in self._ends(data, at) if is_utf8(data[at:e])]
                if not ends:
                    break
                end = rng.choice(ends)
                ids.append(self._ids[data[at:end]])
                at = end
            if at == len(data):
                yield tuple(ids)

    def smallest(self, word: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Its characters one by one, and its bytes."""
        text = b"".join(map(self._tokenizer.token_bytes, word)).decode("utf-8")
        for parts in (
            [part for c in text for part in self._character(c)],
            [bytes([byte]) for byte in text.encode()],
        ):
            if all(part in self._ids for part in parts):
                yield tuple(self._ids[part] for part in parts)

    def all_ways(self, data: bytes) -> Iterator[tuple[int, ...]]:
        """All sequences of tokens of whole characters that spell the bytes."""
        if not data:
            yield ()
        for end in self._ends(data, 0):
            if is_utf8(data[:end]):
                for rest in self.all_ways(data[end:]):
                    yield (self._ids[data[:end]], *rest)

    def _ends(self, data: bytes, at: int) -> list[int]:
        most = min(len(data), at + self._longest)
        return [end for end in range(at + 1, most + 1) if data[at:end] in self._ids]

    def _character(self, character: str) -> list[bytes]:
        data = character.encode()
        return [data] if data in self._ids else [bytes([byte]) for byte in data]


def _ordinary(tokenizer: Tokenizer) -> tuple[dict[bytes, int], int]:
    """(bytes -> id, the greatest length); a byte's fallback token only where it has no other."""
    fallback = frozenset(tokenizer.description.byte_tokens.values())
    ids: dict[bytes, int] = {}
    ordered = sorted(range(tokenizer.n_ids), key=lambda token: token not in fallback)
    for token in ordered:
        data = tokenizer.token_bytes(token)
        if data and token not in tokenizer.added_ids:
            ids[data] = token
    return ids, max(map(len, ids))


def with_another_word(
    tokenizer: Tokenizer, own: Sentence, before: str, words: Iterable[str], after: str, needed: int
) -> tuple[str, Sentence] | None:
    """The same sentence with the first of these words that leaves the ids around it as they are:
    all before it, and the first `needed` after it. None if none does."""
    for word in words:
        other = sentence(tokenizer, before, word, after)
        if other.before == own.before and other.after[:needed] == own.after[:needed]:
            return word, other
    return None


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


# The published example: what kind of animal some sharks are, by the tokens of "shark".
#
# After a prompt about one of four animals the ratio of the chances of two next words is taken, once
# with the tokenizer's own ids of "shark" and once with other ids. Source: the notebook beside the
# article (Tran-Thien, 2024), section on self-intoxication; Mistral-7B-v0.1 in 4 bits. There one
# other way to spell the word was measured, here all of them are.

PUBLISHED = {
    "whale": (0.12956, 0.20591),
    "tiger": (0.14835, 0.11374),
    "weasel": (0.08295, 0.23327),
    "cow": (0.18202, 0.13895),
}
"""By animal: the ratio after the word's own ids, and after `SPLIT`."""
BEFORE, WORD, AFTER = "A {}", " shark", " is a kind of"
ANSWERS = (" mammal", " fish")
SPLIT = (b" s", b"har", b"k")
_TITLE = "P(“mammal”) / P(“fish”) after “A … shark is a kind of”, by the tokens of “shark”"
_COLUMNS = (
    "animal",
    "model",
    "own tokens",
    "`␣s`+`har`+`k`",
    "least of the others",
    "median",
    "greatest",
    "others that raise it",
)


def ratios(loaded: LoadedModel, animal: str) -> Row:
    """ways: [tokens, ratio] of the word's own ids, then of others, those of few tokens first;
    split: the place of the published way among them, None where it is not. Raises SentenceError."""
    tokenizer = loaded.tokenizer
    before = BEFORE.format(animal)
    text = sentence(tokenizer, before, WORD, AFTER)
    spelled = b"".join(map(tokenizer.token_bytes, text.word))
    others = sorted(Pieces(tokenizer).all_ways(spelled), key=lambda ids: (len(ids), ids))
    ways = [text.word, *(ids for ids in others if ids != text.word)]
    answers = [_first(tokenizer, before + WORD + AFTER, answer) for answer in ANSWERS]
    found = [one / other for one, other in chances(loaded, text, ways, answers)]
    pieces = [tuple(map(tokenizer.token_bytes, ids)) for ids in ways]
    return {
        "animal": animal,
        "ways": [
            [visible_tokens(tokenizer, ids), float(f"{ratio:.6g}")]
            for ids, ratio in zip(ways, found, strict=True)
        ],
        "split": pieces.index(SPLIT) if SPLIT in pieces else None,
    }


def _first(tokenizer: Tokenizer, prompt: str, answer: str) -> int:
    """The first id of an answer. Raises SentenceError where it changes those of the prompt."""
    ids, whole = tokenizer.encode(prompt), tokenizer.encode(prompt + answer)
    if whole[: len(ids)] != ids:
        raise SentenceError(f"{answer!r} after {prompt!r} changes the ids before it")
    return whole[len(ids)]


def table(rows: Sequence[Row], names: Mapping[str, str]) -> Table:
    """names: what models are called, by their names in the rows."""
    lines = [
        [animal, "Mistral-7B-v0.1, 4 bits (published)", f"{own:.3f}", f"{other:.3f}", *[""] * 4]
        for animal, (own, other) in PUBLISHED.items()
    ]
    for row in rows:
        own, others = facts_of(row)["own"], [ratio for _, ratio in row["ways"][1:]]
        split = "" if row["split"] is None else f"{row['ways'][row['split']][1]:.3f}"
        spread = [f"{np.quantile(others, q):.3f}" for q in (0, 0.5, 1)] if others else [""] * 3
        raised = f"{facts_of(row)['raised']} of {len(others)}"
        model = names[row["model"]]
        lines.append([row["animal"], model, f"{own:.3f}", split, *spread, raised])
    notes = [
        "Published: in the notebook beside the article, all four animals. Its "
        "prompt has no mark of the beginning of a text; ours has what the model expects there.",
        "The others are all other ways to spell the word with tokens of whole characters. Of "
        "“mammal” and “fish” the first token counts.",
    ]
    return Table(_TITLE, [*_COLUMNS], lines, notes)


def facts_of(row: Row) -> dict[str, Any]:
    """own: the ratio after the word's own ids; others: how many; raised: how many are greater."""
    own, *others = [ratio for _, ratio in row["ways"]]
    return {"own": own, "others": len(others), "raised": sum(ratio > own for ratio in others)}
