"""Banned words, by the mask and by going back: does one ever get through, and what does it cost?

First the article's words and prompt, with a real model: Clay, "Using Finite State Machine (FSM) and
Rollback Mechanism to Restrict LLM from Generating Banned Words" (2024), whose companion notebook
bans `talk`, `listen` and `fuck you` after the prompt `Can we talk?`. Then random lists (`--n`, 200
by default) over the tokenizer's own vocabulary, with a model that is drawn to the banned words.
SmolLM2, much smaller than the article's model, seldom says them there; a prompt of ours is beside.
All texts are looked through for banned words by plain string search. Exit code 1 if one is found.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata.banning import Ban, Spellings
from bpe_automata.sampling.banned import free, tail
from experiments import banned_report, models
from experiments.banned_lists import WordList, wanting_model, word_lists
from experiments.banned_runs import Row, runs
from experiments.optional import require
from experiments.runner import Options, Run, read_run

WORDS = ("talk", "listen", "fuck you")
PROMPT = "Can we talk?"
OURS = "When you are sad, a good friend will sit down with you, and"
"""A prompt that SmolLM2 goes on from with the words, which it does not do after the article's."""
LISTS = 200
LISTED_EACH = 10
"""Of so many lists, the spellings of one are written down and counted."""
_NEW_TOKENS = 40
_SEEDS = 2
_LIST_TOKENS = 40


def run(options: Options) -> None:
    """Measure unless told to render only; then print the tables. Exit code 1 where a banned word
    got through."""
    if not options.render_only:
        models.use_threads()
        with require("rich.console").Console(stderr=True).status("loading the model"):
            loaded = models.load_model(options.model, options.device)
        causal = require("bpe_automata.integrations.transformers").CausalModel(loaded.model)
        measure(options, loaded.tokenizer, causal, loaded.provenance(), options.n or LISTS)
    rows, manifest = read_run(options)
    banned_report.render(rows, manifest, options)
    if banned_report.passed(rows):
        raise SystemExit(1)


def measure(
    options: Options,
    tokenizer: Tokenizer,
    model: Callable[[Sequence[int]], np.ndarray],
    provenance: dict[str, Any],
    n: int,
    new_tokens: int = _NEW_TOKENS,
) -> None:
    """Rows of the article's words, then one per list."""
    started = time.perf_counter()
    settings = _settings(tokenizer)
    config = {
        "prompts": [PROMPT, OURS],
        "new_tokens": new_tokens,
        "list_tokens": _LIST_TOKENS,
        "lists": n,
        "words": WORDS,
    }
    more = {**provenance, "load_average": list(os.getloadavg())}
    run_ = Run(options, config, more, len(settings) + n, started)
    console = require("rich.console").Console(stderr=True)
    with console.status("") as status:
        for number, (name, prompt, ban, temperature, seed) in enumerate(settings, start=1):
            status.update(f"the article's words: {number} of {len(settings)}")
            drawn = {"temperature": temperature, "seed": seed}
            drawing = {**drawn, "max_new_tokens": new_tokens, "turn": number}
            row = {**drawn, **_article(tokenizer, model, prompt, ban, drawing)}
            run_.add({"kind": "article", "prompt": name, "ban": _shown(ban)} | row)
        for number, words in enumerate(word_lists(tokenizer, n, options.seed)):
            status.update(f"lists: {number + 1} of {n}")
            row = _list(tokenizer, words, options.seed + number, number)
            listed = number % LISTED_EACH == 0
            run_.add(row | {"spellings": _size(tokenizer, words.ban()) if listed else None})


def _settings(tokenizer: Tokenizer) -> list[tuple[str, list[int], Ban, float, int]]:
    """(name of the prompt, its ids, ban, temperature, seed)."""
    chat = f"<|im_start|>user\n{PROMPT}<|im_end|>\n<|im_start|>assistant\n"
    texts = {"the article's": PROMPT, "the same as chat": chat, "ours": OURS}
    prompts = {name: tokenizer.encode(text) for name, text in texts.items()}
    anywhere, whole = Ban(WORDS, ignore_case=True), Ban(WORDS, whole_word=True)
    return [
        *((name, ids, anywhere, 0.0, 0) for name, ids in prompts.items()),
        ("ours", prompts["ours"], whole, 0.0, 0),
        *(
            (name, ids, anywhere, 1.0, seed)
            for seed in range(_SEEDS)
            for name, ids in prompts.items()
        ),
    ]


def _shown(ban: Ban) -> str:
    return "whole words" if ban.whole_word else "anywhere, any case"


def _article(
    tokenizer: Tokenizer,
    model: Callable[[Sequence[int]], np.ndarray],
    prompt: list[int],
    ban: Ban,
    drawing: dict[str, Any],
) -> Row:
    """Every mode after one prompt."""
    before = tail(tokenizer, prompt)
    found = runs(model, tokenizer, ban, free(tokenizer), prompt, before, **drawing)
    return {"spellings": _size(tokenizer, ban), **found}


def _list(tokenizer: Tokenizer, words: WordList, seed: int, turn: int) -> Row:
    """Every mode with one list."""
    plain = free(tokenizer)
    model = wanting_model(tokenizer, words, seed, plain.eos_ids)
    prompt = tokenizer.encode(words.before)
    drawing = {"seed": seed, "max_new_tokens": _LIST_TOKENS, "turn": turn}
    found = runs(model, tokenizer, words.ban(), plain, prompt, words.before, **drawing)
    row = {"kind": "list", "words": words.words, "ban": words.kind, "before": words.before}
    return {**row, **found}


def _size(tokenizer: Tokenizer, ban: Ban) -> Row:
    automaton = Spellings(tokenizer, ban).automaton()
    return {
        "states": automaton.n_states,
        "transitions": automaton.n_transitions,
        "sequences": float(automaton.total()),
    }
