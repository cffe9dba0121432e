"""Small models, and the exact distribution of what they write in a language, by trying all
sequences."""

import re
from itertools import product

import numpy as np
from scipy.special import softmax

from bpe_automata import constrain
from bpe_automata.testing import small_tokenizer

END, STOP = 4, 5
TOKENIZER = small_tokenizer(["a", "b", "c", "ab"], [("a", "b")], None, ["<end>", "<stop>"])
REGEX = r"(ab){1,2}c?|b[ac]|"
LONGEST = 6  # ids, end-of-sequence included: `abab`, `c` and its end, all spelled by single ones


class TableModel:
    """A random distribution for each context, drawn once from the seed; wider than the vocabulary
    by `padding`. `calls`: what it was asked."""

    def __init__(self, seed=0, padding=0, prompt=()):
        self.seed, self.width = seed, TOKENIZER.n_ids + padding
        self.prompt, self.calls, self._known = tuple(prompt), [], {}

    def __call__(self, ids):
        assert tuple(ids[: len(self.prompt)]) == self.prompt
        self.calls.append(tuple(ids))
        if tuple(ids) not in self._known:
            rng = np.random.default_rng((self.seed, *ids))
            self._known[tuple(ids)] = rng.normal(size=self.width)
        return self._known[tuple(ids)].copy()


def logs(weights):
    with np.errstate(divide="ignore"):
        return np.log(np.array(weights, dtype=float))


def constraint_of(method, eos_ids, regex=REGEX):
    return constrain(TOKENIZER, regex, method=method, eos_ids=eos_ids)


def exact(model, method, eos_ids, *, prompt=(), temperature=1.0, longest=LONGEST, regex=REGEX):
    """ids -> p(ids, then the end): all sequences of ordinary ids, those kept whose text matches
    and, for the canonical method, are what `encode` makes of it. No automaton is asked.

    Without end-of-sequence ids: those that no other such sequence goes on from."""
    kept = []
    for length in range(longest + 1 - bool(eos_ids)):
        for ids in product(range(END), repeat=length):
            text = TOKENIZER.decode(ids)
            own = method == "lift" or tuple(TOKENIZER.encode(text)) == ids
            if re.fullmatch(regex, text) and own:
                kept.append(ids)
    if not eos_ids:
        kept = [ids for ids in kept if not any(a[: len(ids)] == ids for a in kept if a != ids)]
    found = {}
    for ids in kept:
        p = 1.0
        for at, token in enumerate(ids):
            p *= softmax(model((*prompt, *ids[:at])) / temperature)[token]
        if eos_ids:
            p *= softmax(model((*prompt, *ids)) / temperature)[list(eos_ids)].sum()
        found[ids] = p
    return found
