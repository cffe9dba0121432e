"""What is measured of banned words: the article's prompt and ours, and random lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bpe_automata import Tokenizer
from bpe_automata.banning import Ban, Spellings
from bpe_automata.sampling.banned import free, tail
from experiments.run.executors import Row
from experiments.serving.banned_lists import WordList, wanting_model
from experiments.serving.banned_runs import runs
from experiments.shared import models
from experiments.shared.models import Named, causal

WORDS = ("talk", "listen", "fuck you")
PROMPT = "Can we talk?"
OURS = "When you are sad, a good friend will sit down with you, and"
"""A prompt that SmolLM2 goes on from with the words, which it does not do after the article's."""
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


def article(named: Named, setting: Setting, new_tokens: int, turn: int) -> Row:
    """Every mode after one prompt. turn: see `runs`."""
    loaded = models.opened(*named)
    tokenizer, model = loaded.tokenizer, causal(loaded)
    prompt, ban = loaded.prompt_ids(PROMPTS[setting.prompt]), setting.ban()
    drawing = {"temperature": setting.temperature, "seed": setting.seed}
    drawing["max_new_tokens"] = new_tokens
    before = tail(tokenizer, prompt)
    found = runs(model, tokenizer, ban, free(tokenizer), prompt, before, turn, **drawing)
    row = {"kind": "article", **setting.described(), "spellings": size(tokenizer, ban)}
    return {**row, **found}


def listed(named: Named, words: WordList, seed: int, turn: int, sized: bool) -> Row:
    """Every mode with one list. sized: are the spellings of its words counted?"""
    tokenizer = models.opened(*named).tokenizer
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
