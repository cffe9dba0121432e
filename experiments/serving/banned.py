"""Banned words, by the mask and by going back: does one ever get through, and what does it cost?

First the article's words and prompt, with a real model: Clay, "Using Finite State Machine (FSM) and
Rollback Mechanism to Restrict LLM from Generating Banned Words" (2024), whose companion notebook
bans `talk`, `listen` and `fuck you` after the prompt `Can we talk?`. Then random lists over the
tokenizer's own vocabulary, with a model that is drawn to the banned words. SmolLM2, much smaller
than the article's model, seldom says them there, so a second prompt is ours. All texts are looked
through for banned words by plain string search; one that is found is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bpe_automata import Constraint, Tokenizer
from bpe_automata._decoding.constraint import rebuilt
from bpe_automata._decoding.matcher import Generation
from bpe_automata.banning import AppliedBan, Ban, Spellings
from bpe_automata.errors import EmptyLanguageError, LogitsError, ModelError
from bpe_automata.sampling import BannedGeneration, decode, decode_allowed, decode_without
from bpe_automata.sampling._banned import free, tail
from bpe_automata.sampling._loop import asked
from experiments.models import OneModel, causal
from experiments.run.config import option
from experiments.run.executors import Cell, Row
from experiments.run.measuring import Run
from experiments.serving.banned_report import (
    KINDS,
    MODES,
    OURS,
    PROMPT,
    TITLE,
    WORDS,
    facts,
    readme,
    tables,
    wrong,
)
from experiments.shared.resources import timed

__all__ = ["TITLE", "facts", "readme", "tables", "wrong"]

VERSION = 1
SIZED_EACH = 10
"""Of so many lists, the spellings of one are written down and counted."""


@dataclass(frozen=True)
class Config(OneModel):
    """What determines the texts."""

    draws: int = option(2, "texts drawn after each prompt of the article's words")
    new_tokens: int = option(40, "at most so many ids of each of them")
    lists: int = option(200, "random lists of banned words")


SMOKE = Config(draws=0, new_tokens=2, lists=4)


def measure(run: Run[Config]) -> None:
    """A row per text of the article's words, then one per list. The modes of a row are timed."""
    made = run.config
    loaded = made.opened()
    run.note(**loaded.provenance())
    cells = [
        Cell(f"article {turn}", article, (made, setting, turn))
        for turn, setting in enumerate(settings(made.draws))
    ]
    for turn, words in enumerate(word_lists(loaded.tokenizer, made.lists, made.seed)):
        sized = turn % SIZED_EACH == 0
        given = (made, words, made.seed + turn, turn, sized)
        cells.append(Cell(f"list {turn}", listed, given))
    run.cells(cells, alone=True)


# One text of each mode, timed, and looked through for banned words by plain string search.

Model = Callable[[Sequence[int]], np.ndarray]


def found(words: Sequence[str], text: str, before: str, whole: bool, any_case: bool) -> list[str]:
    """The words that stand in `before + text` and end in `text`: by searching strings, with nothing
    of the library."""
    return [word for word in words if _stands(word, before + text, len(before), whole, any_case)]


def _stands(word: str, text: str, past: int, whole: bool, any_case: bool) -> bool:
    """Does the word end somewhere after `past`?"""
    spans = _folded_spans(word, text) if any_case else []
    pattern = re.compile(f"(?={re.escape(word)})", re.IGNORECASE if any_case else 0)
    spans += [(m.start(), m.start() + len(word)) for m in pattern.finditer(text)]
    return any(end > past and (not whole or _alone(text, start, end)) for start, end in spans)


def _folded_spans(word: str, text: str) -> list[tuple[int, int]]:
    """Where whole characters of the text fold to what the word folds to."""
    indices = {0: 0}
    for k, character in enumerate(text):
        indices[max(indices) + len(character.casefold())] = k + 1
    folded, wanted = text.casefold(), word.casefold()
    starts = [m.start() for m in re.finditer(f"(?={re.escape(wanted)})", folded)]
    ends = [(s, s + len(wanted)) for s in starts]
    return [(indices[s], indices[e]) for s, e in ends if s in indices and e in indices]


def _alone(text: str, start: int, end: int) -> bool:
    around = text[max(0, start - 1) : start] + text[end : end + 1]
    return re.search(r"\w", around) is None


def runs(
    model: Model,
    tokenizer: Tokenizer,
    ban: Ban,
    plain: Constraint,
    prompt: Sequence[int],
    before: str,
    turn: int = 0,
    **options: Any,
) -> dict[str, Row]:
    """A row for each mode. before: the text that the prompt ends in. turn: how far the order of the
    modes is rotated.

    No mode finds anything ready that one before it made: each has a constraint and a ban of its
    own, and the prompt is read before its clock starts (to a model that keeps a cache, what the
    mode before wrote is taken back by that)."""
    found = {}
    options |= {"prompt": prompt}
    for mode in _order(turn):
        own, its_ban = rebuilt(plain, plain.dfa), replace(ban)
        prepare, call = _mode(mode, model, tokenizer, its_ban, own, before, **options)
        found[mode] = _row(lambda: asked(model, prompt, ()), prepare, call, ban, before)
    return {mode: found[mode] | {"turn": _order(turn).index(mode)} for mode in MODES}


def _order(turn: int) -> tuple[str, ...]:
    first = turn % len(MODES)
    return MODES[first:] + MODES[:first]


def _mode(
    mode: str,
    model: Model,
    tokenizer: Tokenizer,
    ban: Ban,
    plain: Constraint,
    before: str,
    **given: Any,
) -> tuple[Callable[[], Any], Callable[[Any], Generation]]:
    """(what makes all that several calls could share, the mode as a function of that)."""
    under = given | {"constraint": plain, "after": before}

    def applied() -> AppliedBan:
        made = AppliedBan(ban, plain)
        made.after(before)
        return made

    def spellings() -> Spellings:
        return Spellings(tokenizer, ban, plain.eos_ids, plain.added_tokens)

    if mode == "free":
        return lambda: None, lambda _: decode(model, plain, **given)
    if mode == "exact":
        return applied, lambda made: decode_allowed(model, ban, tokenizer, banned=made, **under)
    return spellings, lambda made: decode_without(model, ban, tokenizer, spellings=made, **under)


def _row(
    read: Callable[[], Any],
    prepare: Callable[[], Any],
    call: Callable[[Any], Generation],
    ban: Ban,
    before: str,
) -> Row:
    """What one mode wrote, or why it did not. read: the model reads the prompt."""
    try:
        prepared, made = timed(prepare)
        read()
        seconds, run = timed(lambda: call(made))
    except (EmptyLanguageError, LogitsError, ModelError) as error:
        return {"error": str(error), "raised": type(error).__name__, "banned": []}
    row: Row = {
        "text": run.text,
        "ids": len(run.ids),
        "finish_reason": run.finish_reason,
        "passes": run.passes,
        "seconds": seconds,
        "prepared": prepared,
        "banned": found(ban.words, run.text, before, ban.whole_word, ban.ignore_case),
    }
    if isinstance(run, BannedGeneration):
        row["acted"], row["discarded"] = run.acted, run.discarded
        row["log_mass_removed"] = run.log_mass_removed
        row["rollbacks"] = [[r.position, r.token, r.word, r.discarded] for r in run.rollbacks]
    return row


# Random lists of banned words, and a model that wants to write them.
#
# Words come from a tokenizer's own vocabulary: tokens that are words, parts of tokens, two or three
# tokens in a row, and such with characters beyond ASCII.

SPLITS = 12  # tokenizations of each word that the model knows
_LONGEST = 6  # ids of which it recognises where it is in one


@dataclass(frozen=True)
class WordList:
    """words: what is banned; kind: of KINDS; before: what the text comes after."""

    words: tuple[str, ...]
    kind: str
    before: str

    def ban(self) -> Ban:
        """The ban of the words."""
        return Ban(self.words, (), "whole" in self.kind, "case" in self.kind)


def word_lists(tokenizer: Tokenizer, n: int, seed: int) -> list[WordList]:
    """`n` lists of one to eight words each; every second text comes after the beginning of one."""
    rng = np.random.default_rng(seed)
    plain, beyond = _texts_of_tokens(tokenizer)
    found = []
    for number in range(n):
        words = [_word(rng, plain, beyond) for _ in range(int(rng.integers(1, 9)))]
        distinct = {word.casefold(): word for word in words}
        chosen = tuple(distinct.values())
        half = chosen[0][: (len(chosen[0]) + 1) // 2] if number % 2 else ""
        found.append(WordList(chosen, KINDS[number // 2 % len(KINDS)], half))
    return found


def _texts_of_tokens(tokenizer: Tokenizer) -> tuple[list[str], list[str]]:
    """(ASCII texts, others) of the ordinary tokens that hold more than spaces."""
    texts = []
    for token, spelled in enumerate(tokenizer.spellings):
        if token in tokenizer.added_ids or token in tokenizer.description.controls:
            continue
        try:
            text = spelled.decode()
        except UnicodeDecodeError:
            continue
        if text.strip():
            texts.append(text)
    return [t for t in texts if t.isascii()], [t for t in texts if not t.isascii()]


def _word(rng: np.random.Generator, plain: Sequence[str], beyond: Sequence[str]) -> str:
    """A token, its middle, some in a row, or some with others than ASCII characters."""

    def pick(texts: Sequence[str]) -> str:
        return texts[int(rng.integers(len(texts)))]

    kind, one = rng.integers(4), pick(plain)
    if kind == 0:
        return one.strip()
    if kind == 1:
        return one[1:-1].strip() or one
    if kind == 2 or not beyond:
        return "".join(pick(plain) for _ in range(int(rng.integers(2, 4)))).strip()
    return (pick(beyond) + pick(plain if rng.integers(2) else beyond)).strip()


def wanting_model(
    tokenizer: Tokenizer, words: WordList, seed: int, eos_ids: Sequence[int]
) -> Callable[[Sequence[int]], np.ndarray]:
    """Logits that draw towards the banned words by many tokenizations: random numbers, and more for
    ids that begin or go on with one of `SPLITS` random tokenizations of each word."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(16, tokenizer.n_ids)).astype(np.float32)
    follows: dict[tuple[int, ...], list[int]] = {}
    by_bytes = _ids_by_bytes(tokenizer)
    for ids in _tokenizations(by_bytes, words, rng):
        for at, token in enumerate(ids):
            follows.setdefault(ids[max(0, at - _LONGEST) : at], []).append(token)
    for token in eos_ids:
        noise[:, token] = 9

    def model(so_far: Sequence[int]) -> np.ndarray:
        logits = noise[so_far[-1] % len(noise) if len(so_far) else 0].copy()
        for size in range(min(_LONGEST, len(so_far)) + 1):
            ids = tuple(so_far[len(so_far) - size :])
            logits[follows.get(ids, [])] += 9 + 2 * bool(size)
        return logits

    return model


def _ids_by_bytes(tokenizer: Tokenizer) -> dict[bytes, int]:
    silent = tokenizer.added_ids | tokenizer.description.controls
    return {s: i for i, s in enumerate(tokenizer.spellings) if s and i not in silent}


def _tokenizations(
    by_bytes: dict[bytes, int], words: WordList, rng: np.random.Generator
) -> list[tuple[int, ...]]:
    """Random tokenizations of the words, of their rests after `before`, and of words with a space
    before and a mark after."""
    found = []
    for word in words.words:
        texts = [word, f" {word}", f" {word}.", word.upper()]
        texts += [word.removeprefix(words.before)] if words.before else []
        for k in range(SPLITS):
            ids = _split(by_bytes, texts[k % len(texts)].encode(), rng)
            found += [tuple(ids)] if ids else []
    return found


def _split(by_bytes: dict[bytes, int], data: bytes, rng: np.random.Generator) -> list[int]:
    """Ids that spell `data`, each of random length; none where some byte has no token."""
    ids, at = [], 0
    while at < len(data):
        ends = [e for e in range(at + 1, min(len(data), at + 16) + 1) if data[at:e] in by_bytes]
        if not ends:
            return []
        end = ends[int(rng.integers(len(ends)))]
        ids.append(by_bytes[data[at:end]])
        at = end
    return ids


# What is measured of banned words: the article's prompt and ours, and random lists.

PROMPTS = {
    "the article's": PROMPT,
    "the same as chat": f"<|im_start|>user\n{PROMPT}<|im_end|>\n<|im_start|>assistant\n",
    "ours": OURS,
}
LIST_TOKENS = 40
"""At most so many ids of a text under a random list."""


@dataclass(frozen=True)
class Setting:
    """prompt: of PROMPTS; whole: are the words banned as whole words, or anywhere in any case?"""

    prompt: str
    whole: bool = False
    temperature: float = 0.0
    seed: int = 0

    def ban(self) -> Ban:
        """Of the article's words."""
        return Ban(WORDS, whole_word=True) if self.whole else Ban(WORDS, ignore_case=True)

    def described(self) -> Row:
        """For its row."""
        ban = "whole words" if self.whole else "anywhere, any case"
        drawn = {"temperature": self.temperature, "seed": self.seed}
        return {"prompt": self.prompt, "ban": ban, **drawn}


def settings(drawn: int) -> list[Setting]:
    """Greedy after each prompt, ours with whole words too; then `drawn` seeds after each."""
    greedy = [Setting(name) for name in PROMPTS]
    seeds = [Setting(name, False, 1.0, seed) for seed in range(drawn) for name in PROMPTS]
    return [*greedy, Setting("ours", whole=True), *seeds]


def article(made: Config, setting: Setting, turn: int) -> Row:
    """Every mode after one prompt. turn: see `runs`."""
    loaded = made.opened()
    tokenizer, model = loaded.tokenizer, causal(loaded)
    prompt, ban = loaded.prompt_ids(PROMPTS[setting.prompt]), setting.ban()
    drawing = {"temperature": setting.temperature, "seed": setting.seed}
    drawing["max_new_tokens"] = made.new_tokens
    before = tail(tokenizer, prompt)
    found = runs(model, tokenizer, ban, free(tokenizer), prompt, before, turn, **drawing)
    row = {"kind": "article", **setting.described(), "spellings": size(tokenizer, ban)}
    return {**row, **found}


def listed(made: Config, words: WordList, seed: int, turn: int, sized: bool) -> Row:
    """Every mode with one list. sized: are the spellings of its words counted?"""
    tokenizer = made.opened().tokenizer
    plain = free(tokenizer)
    model = wanting_model(tokenizer, words, seed, plain.eos_ids)
    prompt: Sequence[int] = tokenizer.encode(words.before)
    drawing = {"seed": seed, "max_new_tokens": LIST_TOKENS}
    found = runs(model, tokenizer, words.ban(), plain, prompt, words.before, turn, **drawing)
    row = {"kind": "list", "words": words.words, "ban": words.kind, "before": words.before}
    return {**row, "spellings": size(tokenizer, words.ban()) if sized else None, **found}


def size(tokenizer: Tokenizer, ban: Ban) -> Row:
    """Of the automaton of all spellings."""
    automaton = Spellings(tokenizer, ban).automaton()
    return {
        "states": automaton.n_states,
        "transitions": automaton.n_transitions,
        "sequences": float(automaton.total()),
    }
