"""Hosts, each as an adapter that says what may follow the ids that its rows have now.

host = HOSTS["llama.cpp"](servers, rows, prefix)
host.masks(ids)  # bool [rows, V]; may be asked again with any other ids, all of one length
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import standins
import torch
from served import END, V, constraint, ids_of_mask, mask_after, tokenizer

from bpe_automata._decoding.drafts import checked_draft, common_length, draft_masks
from bpe_automata._decoding.token_table import TokenTable
from bpe_automata.errors import ArgumentError, DecodingError
from bpe_automata.integrations._follow import Follower
from bpe_automata.integrations.llama_cpp import ConstraintProcessor
from bpe_automata.integrations.transformers import (
    ConstraintLogitsProcessor,
    padded,
    prefix_allowed_tokens_fn,
)

ONLY_END = np.arange(V) == END


class Row(NamedTuple):
    """A request: its options, and the ids before the constrained text."""

    options: dict
    prompt: list[int]

    @property
    def constraint(self):
        return constraint(self.options["regex"], self.method)

    @property
    def method(self):
        return self.options.get("method", "canonical")

    def definition(self, prefix, ids):
        """bool [V]: only the end may follow one, or an id that was not allowed."""
        try:
            own = ids[: ids.index(END) + 1] if END in ids else ids
            before = self.prompt if prefix else ()
            return mask_after(self.options["regex"], before, own, self.method)
        except DecodingError:
            return ONLY_END


def bools(ids):
    """bool [V] of a collection of ids; without any, only the end."""
    return np.isin(np.arange(V), list(ids)) if ids else ONLY_END


def noise(rows):
    return np.random.default_rng(len(rows)).standard_normal((len(rows), V)).astype(np.float32)


def kept(found, given):
    """bool [rows, V]: which logits are left; all others are -inf, and none is changed."""
    mask = found != -np.inf
    assert np.array_equal(found[mask], given[mask])
    return mask


class Each:
    """A host that knows one row, for each row. made: (row, ids before) -> (ids -> bool [V])."""

    def __init__(self, made, servers, rows, prefix):
        self.each = [made(row, row.prompt if prefix else []) for row in rows]

    def masks(self, ids):
        return np.stack([mask(own) for mask, own in zip(self.each, ids, strict=True)])


def follower(row, before):
    made = Follower(row.constraint, before)
    return lambda ids: bools(ids_of_mask(made.mask(ids)))


def draft(row, before):
    """All ids are a draft of one matcher, which stays where it is."""
    matcher = row.constraint.matcher(before)

    def mask(ids):
        masks = [ids_of_mask(words) for words in draft_masks(matcher, ids)]
        known = checked_draft(matcher, ids)
        assert not any(masks[known + 1 :])
        assert not matcher.ids
        return bools(masks[-1])

    return mask


def token_table(row, before):
    table = TokenTable.of(row.constraint.automaton(before), [END], tokenizer().n_ids)
    made = ConstraintLogitsProcessor(table, torch.tensor([row.prompt]))
    return lambda ids: beams(made, [row.prompt], [ids])[1][0]


def beams(made, prompts, ids):
    """(ids [rows, n], bool [rows, V]): each row beside another one of its prompt, in an order that
    changes with each id."""
    place = len(ids[0]) % 2
    pairs = [[own, own[::-1]][:: 1 if place else -1] for own in ids]
    rows = [[*prompt, *own] for prompt, pair in zip(prompts, pairs, strict=True) for own in pair]
    logits = noise(rows)
    found = made(torch.tensor(rows).long(), torch.from_numpy(logits)).numpy()
    return torch.tensor(rows[1 - place :: 2]).long(), kept(found, logits)[1 - place :: 2]


class LlamaCpp:
    """One id more at each call, as C integers; scores lie apart in memory. An error is kept: after
    it there has to be a new processor."""

    def __init__(self, row, before):
        self.row, self.before = row, before
        self.made, self.known = self._new(), []

    def __call__(self, ids):
        if self.made.error is not None:
            self.made, self.known = self._new(), []
        for end in range(min(len(self.known), len(ids)), len(ids) + 1):
            found = self._step(ids[:end])
        self.known = list(ids)
        return found

    def _new(self):
        return ConstraintProcessor(self.row.constraint, prefix=bool(self.before))

    def _step(self, ids):
        records = np.zeros(V, dtype=[("id", np.intc), ("logit", np.single), ("p", np.single)])
        records["logit"] = noise([0])[0]
        before = records.copy()
        found = self.made(np.array([*self.row.prompt, *ids], np.intc), records["logit"])
        assert np.array_equal(records, before)
        return kept(found, before["logit"])


def outlines(row, before):
    pytest.importorskip("outlines", reason="outlines is missing: pip install outlines")
    from bpe_automata.integrations.outlines import ConstraintLogitsProcessor

    made = ConstraintLogitsProcessor(row.constraint, prefix=bool(before))

    def mask(ids):
        logits = noise([row])
        given = torch.tensor([[*row.prompt, *ids]]), torch.from_numpy(logits.copy())
        return kept(made.process_logits(*given).numpy(), logits)[0]

    mask([])  # the prompts' width is that of the first call
    return mask


class Transformers:
    """Prompts of several lengths are padded on the left."""

    def __init__(self, servers, rows, prefix):
        inputs = padded([row.prompt for row in rows], END)
        self.prompts = inputs["input_ids"].tolist()
        constraints = [row.constraint for row in rows]
        self.processor = ConstraintLogitsProcessor(constraints, **inputs, prefix=prefix)
        self.function = prefix_allowed_tokens_fn(constraints, **inputs, prefix=prefix)

    def masks(self, ids):
        """By the processor, and the function allows the same."""
        rows, found = beams(self.processor, self.prompts, ids)
        for row, mask in enumerate(found):
            assert self.function(row, rows[row]) == np.flatnonzero(mask).tolist()
        forced = [mask.argmax() if mask.sum() == 1 else -1 for mask in found]
        assert self.processor.forced(rows).tolist() == forced
        return found


def vllm_config(**model):
    given = {"hosted": tokenizer(), "vocab_size": V, "generation": {"eos_token_id": [END]}}
    return standins.VllmConfig(standins.ModelConfig(**{**given, **model}))


def params(row, prefix=True):
    return standins.SamplingParams({"bpe_automata": {"prefix": prefix, **row.options}})


class Vllm:
    """The V1 runner. Lists of ids grow; a request whose ids are others was preempted, and comes
    again. The first row and the last, which has no constraint, swap places at each call."""

    def __init__(self, servers, rows, prefix):
        made = servers.vllm.ConstraintLogitsProcessor
        self.processor = made(vllm_config(), torch.device("cpu"), False)
        self.rows, self.prefix = rows, prefix
        self.ids = [[] for _ in rows]
        self.places = list(range(len(rows) + 1))
        self.update(range(len(rows)), [])

    def update(self, added, moved):
        added = [
            (self.places[k], params(self.rows[k], self.prefix), self.rows[k].prompt, self.ids[k])
            for k in added
        ]
        self.processor.update_state(standins.BatchUpdate(len(self.places), [], added, moved))

    def masks(self, ids):
        for own, now in zip(self.ids, ids, strict=True):
            if now[: len(own)] == own:
                own += now[len(own) :]
        again = [k for k, own in enumerate(ids) if own != self.ids[k]]
        for k in again:
            self.ids[k] = list(ids[k])
        ends = self.places[0], self.places[-1]
        self.update(again, [(*ends, standins.MoveDirectionality.SWAP)])
        self.places[0], self.places[-1] = self.places[-1], self.places[0]
        logits = noise(self.places)
        given = torch.from_numpy(logits.copy())
        assert self.processor.apply(given) is given
        found = kept(given.numpy(), logits)[self.places]
        assert found[-1].all()
        return found[:-1]


class VllmRunner:
    """The V2 runner: a table with a slot for each request, the last without a constraint. The last
    ids, up to two, are a draft; a request whose ids are others is added again."""

    def __init__(self, servers, rows, prefix):
        self.rows, self.prefix = rows, prefix
        slots = len(rows) + 1
        self.table = torch.full((slots, 640), 7777, dtype=torch.int32)
        self.total = torch.zeros(slots, dtype=torch.int32)
        self.prompt = np.zeros(slots, dtype=np.int32)
        states = standins.LogitsProcRequestState(
            torch.device("cpu"), slots, V, SimpleNamespace(gpu=self.table),
            SimpleNamespace(np=self.prompt), None, SimpleNamespace(gpu=self.total),
        )  # fmt: skip
        self.processor = servers.vllm_runner.ConstraintLogitsProcessor(vllm_config(), states)
        for slot, row in enumerate(rows):
            self.add(slot, row.prompt, params(row, prefix))
        assert self.add(slots - 1, [0], standins.SamplingParams()) is False

    def add(self, slot, prompt, asked):
        """The ids are staged: they reach the table after `add_request`, before `apply`."""
        self.prompt[slot] = len(prompt)
        found = self.processor.add_request(slot, asked)
        self.write(slot, prompt)
        return found

    def write(self, slot, ids):
        self.table[slot, : len(ids)] = torch.tensor(ids, dtype=torch.int32)
        self.total[slot] = len(ids)

    def masks(self, ids):
        """After each id of a draft the mask is the definition; returns those after the last."""
        drafts: list[int] = []
        for slot, own in enumerate(ids):
            start = int(self.prompt[slot])
            known = self.table[slot, start : int(self.total[slot])].tolist()
            if own[: len(known)] != known:
                self.add(slot, self.rows[slot].prompt, params(self.rows[slot], self.prefix))
                known = []
            drafts.append(min(2, len(own) - len(known)))
            self.write(slot, [*self.rows[slot].prompt, *own[: len(own) - drafts[-1]]])
        lines = [(slot, k) for slot, own in enumerate([*drafts, 0]) for k in range(own + 1)][::-1]
        logits = noise(lines)
        found = torch.from_numpy(logits.copy())
        assert self.processor.apply(found, self.context(lines, [*ids, []])) is found
        last = {}
        for (slot, k), mask in zip(lines, kept(found.numpy(), logits), strict=True):
            if slot == len(self.rows):
                assert mask.all()
                continue
            seen = ids[slot][: len(ids[slot]) - drafts[slot] + k]
            if "regex" in self.rows[slot].options:
                assert np.array_equal(mask, self.rows[slot].definition(self.prefix, seen))
            if k == drafts[slot]:
                last[slot] = mask
        return np.stack([last[slot] for slot in range(len(ids))])

    def context(self, lines, ids):
        places = [int(self.total[slot]) - 1 + k for slot, k in lines]
        whole = [[*row.prompt, *own] for row, own in zip(self.rows, ids[:-1], strict=True)] + [[0]]
        slots = list(dict.fromkeys(slot for slot, _ in lines))
        return standins.LogitsContext(
            expanded_idx_mapping=torch.tensor([slot for slot, _ in lines]),
            idx_mapping=torch.tensor(slots),
            idx_mapping_np=np.array(slots),
            expanded_local_pos=torch.tensor([k for _, k in lines]),
            input_ids=torch.tensor(
                [whole[slot][at] for (slot, _), at in zip(lines, places, strict=True)]
            ),
            pos=torch.tensor(places),
            seq_lens_upper_bound_np=self.total.numpy()[slots],
        )


def grammar_of(backend, kind, text, prompt):
    """A request's grammar, by the steps of SGLang's grammar manager."""
    key = backend.get_request_grammar_key((kind, text), input_ids=prompt, thinking_budget=None)
    value, hit = backend.get_cached_or_future_value(key, False)
    if not hit:
        value = value.result()
        backend.set_cache(key, value.copy())
    return value


def filled(grammar):
    """bool [V]: row 1 of a mask of two, of which the other is left alone."""
    mask = grammar.allocate_vocab_mask(V, 2, "cpu")
    grammar.fill_vocab_mask(mask, 1)
    assert (mask[0] == -1).all()
    return bools(ids_of_mask(mask[1].numpy()))


class Sglang:
    """Requests read ids and take them back."""

    def __init__(self, servers, rows, prefix):
        self.grammars, self.read = [], [[] for _ in rows]
        for row in rows:
            made = {"method": row.method, "prefix": prefix}
            backend = servers.sglang.RegexBackend(tokenizer(), V, {END}, **made)
            kind = "regex" if "regex" in row.options else "schema"
            sent = {"regex": "regex", "schema": "json"}[kind]
            self.grammars.append(grammar_of(backend, sent, row.options[kind], row.prompt))

    def masks(self, ids):
        return np.stack([self.mask(k, own) for k, own in enumerate(ids)])

    def mask(self, row, ids):
        grammar, read = self.grammars[row], self.read[row]
        ids = ids[: ids.index(END) + 1] if END in ids else ids
        same = common_length(read, ids)
        grammar.rollback(len(read) - same)
        del read[same:]
        for token in ids[same:]:
            try:
                grammar.accept_token(token)
            except ArgumentError:  # a ValueError, as SGLang asks for
                return ONLY_END
            read.append(token)
        assert grammar.is_terminated() == (END in read)
        mask = filled(grammar)
        forced = grammar.try_jump_forward(None)
        assert forced is None or forced[0][0] == mask.argmax()
        return mask


HOSTS = {
    "follower": partial(Each, follower),
    "drafts": partial(Each, draft),
    "token table": partial(Each, token_table),
    "llama.cpp": partial(Each, LlamaCpp),
    "outlines": partial(Each, outlines),
    "transformers": Transformers,
    "vLLM V1": Vllm,
    "vLLM V2": VllmRunner,
    "SGLang": Sglang,
}
