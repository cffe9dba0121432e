"""Banned words, kept out by a mask or by going back: does one get through, and what does it cost?

The first tables take the words and the prompt of Clay, "Using Finite State Machine (FSM) and
Rollback Mechanism to Restrict LLM from Generating Banned Words" (2024), whose companion notebook
bans `talk`, `listen` and `fuck you` after the prompt `Can we talk?`. SmolLM2, much smaller than the
article's model, seldom says them there, so we add a prompt of our own. The other tables take random
lists from the tokenizer's vocabulary, and a model that is drawn to the banned words. Every text is
searched for banned words as plain strings. The modes are timed one after the other, in an order
that rotates; they share nothing, and each has read the prompt before its clock starts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd

from bpe_automata import Tokenizer
from bpe_automata.banning import AppliedBan, Ban, Spellings, any_text
from bpe_automata.decoding.constraint import rebuilt
from bpe_automata.sampling import BannedGeneration, decode, decode_allowed, decode_without
from bpe_automata.sampling._banned import tail
from bpe_automata.sampling._loop import asked
from experiments.cases import FORMATS
from experiments.lab import Row
from experiments.models import SMOLLM2, causal, opened
from experiments.resources import timed
from experiments.show import Table, fixed, whole

TITLE, TIMED = "Banned words", True
MODES = ("free", "exact", "rollback")
KINDS = ("anywhere", "whole words", "any case", "whole words, any case")
WORDS, PROMPT = ("talk", "listen", "fuck you"), "Can we talk?"
OURS = "When you are sad, a good friend will sit down with you, and"
"""A prompt after which SmolLM2 does say the words; after the article's it seldom does."""
PROMPTS = {
    "the article's": PROMPT,
    "the same as chat": PROMPT.join(FORMATS[SMOLLM2]),
    "ours": OURS,
}
LIST_IDS, SPLITS, LONGEST = 40, 12, 6
"""Ids of a text under a list; tokenizations of each word that the list's model is drawn to, and the
ids by which it recognises where in one of them it is."""


@dataclass(frozen=True)
class Config:
    """new_ids: the most of a greedy text after each prompt; lists: how many random ones."""

    model: str = "smollm2"
    new_ids: int = 40
    lists: int = 200
    device: str = "auto"
    dtype: str = "float32"
    seed: int = 0


SMOKE = Config(new_ids=2, lists=4)


def cells(config: Config) -> list[Row]:
    """The article's words after each prompt (after ours also as whole words), then the lists. turn:
    how far the order of the modes is rotated."""
    settings: list[Row] = [{"prompt": name, "ban": KINDS[2]} for name in PROMPTS]
    settings += [{"prompt": "ours", "ban": KINDS[1]}]
    settings += [{"number": k} for k in range(config.lists)]
    return [setting | {"turn": k} for k, setting in enumerate(settings)]


def measure(
    config: Config, turn: int, prompt: str = "", ban: str = "", number: int = -1
) -> list[Row]:
    """A row for each mode; spellings: states, transitions and sequences of all as one automaton."""
    loaded = opened(config.model, config.device, config.dtype)
    tokenizer, plain = loaded.tokenizer, any_text(loaded.tokenizer)
    if number < 0:
        banned, ids = ban_of(WORDS, ban), loaded.prompt_ids(PROMPTS[prompt])
        drawing: Row = {"temperature": 0.0, "max_new_tokens": config.new_ids}
        made = Spellings(tokenizer, banned).automaton()
        size = [made.n_states, made.n_transitions, float(made.total())]
        said: Row = {"model": loaded.name, "spellings": size}
        before, model = tail(tokenizer, ids), causal(loaded)
    else:
        words, ban, before = word_lists(tokenizer, config.lists, config.seed)[number]
        banned, ids, seed = ban_of(words, ban), tokenizer.encode(before), config.seed + number
        drawing = {"seed": seed, "max_new_tokens": LIST_IDS}
        said = {"words": words, "ban": ban, "before": before}
        model = wanting_model(tokenizer, words, before, seed, plain.eos_ids)
    rows = runs(model, AppliedBan(banned, plain), ids, before, turn, **drawing)
    return [said | row for row in rows]


def ban_of(words: Sequence[str], kind: str) -> Ban:
    """The ban of these words; kind: one of KINDS."""
    return Ban(tuple(words), (), "whole" in kind, "case" in kind)


# One text of each mode, timed.

Model = Callable[[Sequence[int]], np.ndarray]


def runs(
    model: Any,
    banned: AppliedBan,
    prompt: Sequence[int],
    before: str,
    turn: int = 0,
    **options: Any,
) -> list[Row]:
    """A row for each mode, in the order in which they were timed. before: the text that the prompt
    ends in. No mode profits from an earlier one: each has a constraint and a ban of its own, and
    its prompt is read before its clock starts, which removes other texts from a model's cache."""
    rows, first = list[Row](), turn % len(MODES)
    for mode in MODES[first:] + MODES[:first]:
        plain = banned.constraint
        own = AppliedBan(replace(banned.ban), rebuilt(plain, plain.dfa))
        prepared, loop = timed(partial(ready, mode, own, before))
        asked(model, prompt, ())
        spent, run = timed(partial(loop, model, prompt=prompt, **options))
        row: Row = {"mode": mode, "text": run.text, "ids": len(run.ids), "passes": run.passes}
        row |= {"spent": spent, "prepared": prepared, "banned": found(banned.ban, run.text, before)}
        if isinstance(run, BannedGeneration):
            row |= {"acted": run.acted, "discarded": run.discarded}
            back = [[r.position, r.token, r.word, len(r.discarded)] for r in run.rollbacks]
            row["rollbacks"] = back
        rows.append(row)
    return rows


def ready(mode: str, banned: AppliedBan, before: str) -> Callable[..., Any]:
    """The loop of a mode, with what several texts could share."""
    if mode == "free":
        return partial(decode, constraint=banned.constraint)
    if mode == "exact":
        banned.after(before)
        return partial(decode_allowed, banned=banned, after=before)
    _ = banned.spellings
    return partial(decode_without, banned=banned, after=before)


# The search for banned words compares strings, and uses nothing of the library.


def found(ban: Ban, text: str, before: str) -> list[str]:
    """The words that stand in `before + text` and end in `text`."""
    return [word for word in ban.words if stands(word, before + text, len(before), ban)]


def stands(word: str, text: str, past: int, ban: Ban) -> bool:
    """Does the word end somewhere after `past`? Cases are ignored as `re` does, or full folding."""
    same = re.compile(re.escape(word), re.IGNORECASE if ban.ignore_case else 0).fullmatch
    fold: Callable[[str], str] = str.casefold if ban.ignore_case else str

    def is_word(begin: int, end: int) -> bool:
        some, around = text[begin:end], text[max(0, begin - 1) : begin] + text[end : end + 1]
        is_same = same(some) or fold(some) == fold(word)
        return bool(is_same and not (ban.whole_word and re.search(r"\w", around)))

    ends = range(past + 1, len(text) + 1)  # a character folds to three at most
    return any(is_word(b, e) for e in ends for b in range(max(0, e - 3 * len(word)), e))


# Random lists, and a model that wants to write their words.


@lru_cache(maxsize=1)
def word_lists(tokenizer: Tokenizer, n: int, seed: int) -> list[tuple[list[str], str, str]]:
    """`n` times (one to eight words, a kind of ban, what the text comes after: every second time
    the beginning of a word). Words are tokens, their middles, some in a row, and some with
    characters beyond ASCII."""
    rng, texts = np.random.default_rng(seed), list[str]()
    for token, spelled in enumerate(tokenizer.spellings):
        if token not in tokenizer.added_ids and token not in tokenizer.description.controls:
            text = spelled.decode(errors="ignore")
            texts += [text] if text.strip() and text.encode() == spelled else []
    plain = [text for text in texts if text.isascii()]
    beyond = [text for text in texts if not text.isascii()]

    def pick(among: Sequence[str]) -> str:
        return among[int(rng.integers(len(among)))]

    def word() -> str:
        kind, one = rng.integers(4), pick(plain)
        if kind == 0:
            return one.strip()
        if kind == 1:
            return one[1:-1].strip() or one
        if kind == 2 or not beyond:
            return "".join(pick(plain) for _ in range(int(rng.integers(2, 4)))).strip()
        return (pick(beyond) + pick(plain if rng.integers(2) else beyond)).strip()

    found_ = []
    for number in range(n):
        words = [word() for _ in range(int(rng.integers(1, 9)))]
        chosen = [*{word.casefold(): word for word in words}.values()]
        half = chosen[0][: (len(chosen[0]) + 1) // 2] if number % 2 else ""
        found_.append((chosen, KINDS[number // 2 % len(KINDS)], half))
    return found_


def wanting_model(
    tokenizer: Tokenizer, words: Sequence[str], before: str, seed: int, eos_ids: Sequence[int]
) -> Model:
    """A model that is drawn to the banned words in many tokenizations: its logits are random, and
    higher for ids that begin or continue one of `SPLITS` random tokenizations of each word, of the
    word's rest after `before`, and of the word with a space before and a mark after it."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(16, tokenizer.n_ids)).astype(np.float32)
    silent = tokenizer.added_ids | tokenizer.description.controls
    by_bytes = {s: i for i, s in enumerate(tokenizer.spellings) if s and i not in silent}
    follows: dict[tuple[int, ...], list[int]] = {}
    for word in words:
        texts = [word, f" {word}", f" {word}.", word.upper()]
        texts += [word.removeprefix(before)] if before else []
        for k in range(SPLITS):
            ids = split(by_bytes, texts[k % len(texts)].encode(), rng)
            for at, token in enumerate(ids):
                follows.setdefault(tuple(ids[max(0, at - LONGEST) : at]), []).append(token)
    noise[:, list(eos_ids)] = 9

    def model(so_far: Sequence[int]) -> np.ndarray:
        logits: np.ndarray = noise[so_far[-1] % len(noise) if len(so_far) else 0].copy()
        for size in range(min(LONGEST, len(so_far)) + 1):
            ids = tuple(so_far[len(so_far) - size :])
            logits[follows.get(ids, [])] += 9 + 2 * bool(size)
        return logits

    return model


def split(by_bytes: dict[bytes, int], data: bytes, rng: np.random.Generator) -> list[int]:
    """Ids that spell `data`, each of random length; none where some byte has no token."""
    ids, at = list[int](), 0
    while at < len(data):
        ends = [e for e in range(at + 1, min(len(data), at + 16) + 1) if data[at:e] in by_bytes]
        if not ends:
            return []
        end = ends[int(rng.integers(len(ends)))]
        ids.append(by_bytes[data[at:end]])
        at = end
    return ids


# What the rows say.


def written(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of texts. each: seconds for each id that stayed in the text; times: these seconds as
    a multiple of the free text's, if every mode has an id; holds: is a banned word in the text?"""
    found_ = rows.assign(each=rows["spent"] / rows["ids"].clip(lower=1))
    found_["kind"] = np.where(found_["number"].isna(), "the article's words", "random lists")
    found_["holds"] = found_["banned"].map(bool)
    found_["mode"] = pd.Categorical(found_["mode"], MODES)
    found_ = found_.sort_values(["turn", "mode"], kind="stable")
    base = found_[found_["mode"] == "free"].set_index("turn")["each"]
    found_["compared"] = found_.groupby("turn")["ids"].transform("min") > 0
    found_["times"] = (found_["each"] / found_["turn"].map(base)).where(found_["compared"])
    return found_.reset_index(drop=True)


def tables(rows: pd.DataFrame) -> list[Table]:
    """The article's words; rollbacks; lists; cost; sizes."""
    texts = written(rows)
    lists, ours = texts[texts["number"].notna()], texts[texts["number"].isna()].copy()
    ours["prompt, ban"] = ours["prompt"] + ", " + ours["ban"]
    ours["ms a token"] = 1e3 * ours["each"]
    answers = ours[["prompt, ban", "mode", "text", "banned", "acted", "passes", "ms a token"]]
    back = ours[ours["mode"] == "rollback"].explode("rollbacks").dropna(subset=["rollbacks"])
    columns = ["back to position", "id banned there", "because of", "ids thrown away"]
    log = pd.DataFrame([*back["rollbacks"]], columns=columns)
    log.insert(0, "prompt, ban", [*back["prompt, ban"]])
    sizes = pd.DataFrame(
        [*ours["spellings"]], columns=["states", "transitions", "sequences of ids"]
    )
    sizes.insert(0, "ban", [*ours["ban"]])
    words = ", ".join(f"`{word}`" for word in WORDS)
    note = f"""the model: {ours["model"].iloc[0]}; acted: for exact, steps at which the ban removed
        ids from the mask; for rollback, how often decoding went back; ours: `{OURS}`

        published, with gemma-2-2b-it, greedy: free `I'm here to listen and help in any way I can.`;
        with the filter one rollback, from step 8 to step 7, where ` listen` is masked: `I'm here to
        help you with whatever you need.` (29 steps). Its machine has 150 states for 140 routes, and
        words begin and end where tokens do"""
    formats: Row = {"text": lambda t: shorten(repr(t), 56, placeholder="..."), "banned": ", ".join}
    formats["ms a token"] = whole
    sized = {"sequences of ids": "{:.3g}".format}
    return [
        Table(f"The article's words: {words} after `{PROMPT}`", answers, formats, note),
        Table("Log of the rollbacks", log, {"id banned there": str}),
        Table("Their spellings as one automaton", sizes.drop_duplicates(), sized),
        lists_table(lists),
        costs(texts),
    ]


def lists_table(lists: pd.DataFrame) -> Table:
    """A line for each kind of ban."""
    every = pd.concat([lists, lists.assign(ban="all")])
    sums = every.pivot_table(
        index="ban",
        columns="mode",
        values=["holds", "acted", "passes", "discarded", "ids"],
        aggfunc="sum",
        sort=False,
    )
    data = pd.DataFrame({"lists": every.groupby("ban", sort=False)["number"].nunique()})
    for mode in MODES:
        data[f"{mode}: texts with banned words"] = sums["holds", mode]
    data["exact: steps at which the ban acted"] = sums["acted", "exact"]
    data["of all"] = sums["passes", "exact"]
    data["rollbacks"] = sums["acted", "rollback"]
    data["ids thrown away"], data["kept"] = sums["discarded", "rollback"], sums["ids", "rollback"]
    note = """one to eight words each: tokens, parts of tokens, several tokens in a row, characters
        beyond ASCII; every second text comes after the beginning of a banned word"""
    title = "Random lists of banned words, with a model that is drawn to them"
    return Table(title, data.reset_index(), {}, note)


def costs(texts: pd.DataFrame) -> Table:
    """Medians of texts with at least one id in every mode."""
    of = texts[texts["compared"]].assign(calls=lambda t: t["passes"] / t["ids"])
    by = of.groupby(["kind", "mode"], sort=False, observed=True)
    by = by[["each", "times", "calls", "prepared"]].median()
    by[["each", "prepared"]] *= 1e3
    names = ["", "mode", "ms a token", "times free", "calls of the model a token", "to prepare, ms"]
    data = by.reset_index().set_axis(names, axis=1)
    formats = dict.fromkeys(names[2:5], fixed(2)) | {names[5]: fixed(1)}
    note = """medians of texts with at least one id in every mode; a token: one that stayed in the
        text; to prepare: the constraint or the spellings, which several texts can share; the model
        of the lists costs next to nothing, so its lines show what the loops themselves cost"""
    return Table("Cost", data, formats, note)


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """Whether a word of the lists got through, and what the two modes cost."""
    texts = written(rows)
    through = (texts["holds"] & (texts["mode"] != "free")).sum()
    lists = texts[texts["number"].notna()]
    times = lists.groupby("mode", observed=True)["times"].median()
    free_ = lists[lists["mode"] == "free"]
    what = f"{through} texts hold a banned word"
    what = what if through else "neither the mask nor going back let a word through"
    return {
        "banned": f"""In {len(free_)} random lists {what} (unconstrained, {free_["holds"].sum()}
        texts do); where the model itself costs next to nothing, an id takes {times["exact"]:.1f}
        times as long by the mask, {times["rollback"]:.1f} by going back
        ([table](paper_figures/banned.md), `python -m experiments run banned`)."""
    }
