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
import torch
from served import END, V, bools, constraint, mask_after, tokenizer, unpacked
from standins import MoveDirectionality

from bpe_automata.decoding.drafts import checked_draft, common_length, draft_masks
from bpe_automata.decoding.token_table import TokenTable
from bpe_automata.errors import ArgumentError, DecodingError
from bpe_automata.integrations.llama_cpp import ConstraintProcessor
from bpe_automata.integrations.transformers import (
    ConstraintLogitsProcessor,
    padded,
    prefix_allowed_tokens_fn,
)

ONLY_END = bools([])


class Row(NamedTuple):
    """A request: its options, none for one without a constraint, and the ids before its text."""

    options: dict
    prompt: list[int]

    @property
    def constraint(self):
        return constraint(**self.options)

    def definition(self, prefix, ids):
        """bool [V]: only the end may follow one, or an id that was not allowed."""
        if not self.options:
            return np.ones(V, bool)
        own = ids[: ids.index(END) + 1] if END in ids else ids
        try:
            return mask_after(**self.options, prompt=self.prompt if prefix else (), ids=own)
        except DecodingError:
            return ONLY_END


def masked(apply, rows):
    """bool [rows, V]: which logits `apply` leaves; all others are -inf, and none is changed."""
    given = torch.randn(rows, V)
    found = apply(given.clone())
    mask = found != -torch.inf
    assert torch.equal(found[mask], given[mask])
    return mask.numpy()


class Each:
    """A host that knows one row, for each row. made: (row, ids before) -> (ids -> bool [V])."""

    def __init__(self, made, servers, rows, prefix):
        self.each = [made(row, row.prompt if prefix else []) for row in rows]

    def masks(self, ids):
        return np.stack([mask(own) for mask, own in zip(self.each, ids, strict=True)])


def draft(row, before):
    """All ids are a draft of one matcher, which stays where it is."""
    matcher = row.constraint.matcher(before)

    def mask(ids):
        masks, known = draft_masks(matcher, ids), checked_draft(matcher, ids)
        assert not masks[known + 1 :].any()
        assert not matcher.ids
        return unpacked(masks[-1])

    return mask


class LlamaCpp:
    """One id more at each call, as C integers; scores lie apart in memory. An error is kept: after
    it there has to be a new processor."""

    def __init__(self, row, before):
        self.prompt = row.prompt
        self.new = partial(ConstraintProcessor, row.constraint, prefix=bool(before))
        self.made, self.known = self.new(), []

    def __call__(self, ids):
        if self.made.error is not None:
            self.made, self.known = self.new(), []
        for end in range(min(len(self.known), len(ids)), len(ids) + 1):
            read = np.array([*self.prompt, *ids[:end]], np.intc)
            (found,) = masked(partial(self.step, read), 1)
        self.known = list(ids)
        return found

    def step(self, ids, logits):
        apart = np.repeat(logits[0].numpy(), 3)[::3]
        return torch.from_numpy(self.made(ids, apart))[None]


def outlines(row, before):
    pytest.importorskip("outlines", reason="outlines is missing: pip install outlines")
    from bpe_automata.integrations.outlines import ConstraintLogitsProcessor

    made = ConstraintLogitsProcessor(row.constraint, prefix=bool(before))

    def mask(ids):
        return masked(partial(made.process_logits, torch.tensor([[*row.prompt, *ids]])), 1)[0]

    mask([])  # the prompts' width is that of the first call
    return mask


class Transformers:
    """Prompts of several lengths are padded on the left, and there are two rows of each."""

    def __init__(self, servers, rows, prefix):
        inputs = padded([row.prompt for row in rows], END)
        self.prompts = inputs["input_ids"].tolist()
        constraints = [row.constraint for row in rows]
        self.processor = ConstraintLogitsProcessor(constraints, **inputs, prefix=prefix)
        self.function = prefix_allowed_tokens_fn(constraints, **inputs, prefix=prefix)
        automata = [row.constraint.automaton(row.prompt if prefix else ()) for row in rows]
        tables = [TokenTable.of(one, [END], tokenizer().n_ids) for one in automata]
        self.of_tables = ConstraintLogitsProcessor(tables, **inputs)

    def masks(self, ids):
        """By the processor; that of token tables and the function allow the same."""
        pairs = [(own, own[::-1]) for own in ids]
        each = zip(self.prompts, pairs, strict=True)
        rows = torch.tensor([[*prompt, *own] for prompt, pair in each for own in pair]).long()
        found = masked(partial(self.processor, rows), len(rows))
        assert np.array_equal(masked(partial(self.of_tables, rows), len(rows)), found)
        for row, mask in enumerate(found):
            assert self.function(row // 2, rows[row]) == np.flatnonzero(mask).tolist()
        forced = [mask.argmax() if mask.sum() == 1 else -1 for mask in found]
        assert self.processor.forced(rows).tolist() == forced
        return found[::2]


def vllm_config(**model):
    """As vLLM has it; `hosted`, of a stand-in alone: what its own function makes of it."""
    given = {"hosted": tokenizer(), "vocab_size": V, "generation": {"eos_token_id": [END]}, **model}
    made = SimpleNamespace(hosted=given["hosted"], tokenizer="a name of no folder")
    made.get_vocab_size = lambda: given["vocab_size"]
    made.try_get_generation_config = lambda: given["generation"]
    return SimpleNamespace(model_config=made)


def params(extra=None, **options):
    """SamplingParams of vLLM."""
    return SimpleNamespace(extra_args=extra, **options)


def asking(**options):
    return params({"bpe_automata": options} if options else None)


def batch_update(removed=(), added=(), moved=()):
    return SimpleNamespace(removed=removed, added=added, moved=moved)


class Vllm:
    """The V1 runner. Lists of ids grow; a request whose ids are others was preempted, and comes
    again. The first row and the last, which has no constraint, swap places at each call."""

    def __init__(self, servers, rows, prefix):
        made = servers.vllm.ConstraintLogitsProcessor
        self.processor = made(vllm_config(), torch.device("cpu"), False)
        assert not self.processor.is_argmax_invariant()
        self.rows, self.prefix = rows, prefix
        self.ids = [[] for _ in rows]
        self.places = list(range(len(rows) + 1))
        self.update(range(len(rows)))

    def update(self, added, moved=()):
        asked = [asking(**{"prefix": self.prefix, **row.options}) for row in self.rows]
        added = [(self.places[k], asked[k], self.rows[k].prompt, self.ids[k]) for k in added]
        self.processor.update_state(batch_update((), added, moved))

    def masks(self, ids):
        for own, now in zip(self.ids, ids, strict=True):
            if now[: len(own)] == own:
                own += now[len(own) :]
        again = [k for k, own in enumerate(ids) if own != self.ids[k]]
        for k in again:
            self.ids[k] = list(ids[k])
        ends = self.places[0], self.places[-1]
        self.update(again, [(*ends, MoveDirectionality.SWAP)])
        self.places[0], self.places[-1] = self.places[-1], self.places[0]
        found = masked(self.processor.apply, len(self.places))[self.places]
        assert found[-1].all()
        return found[:-1]


class VllmRunner:
    """The V2 runner: a table with a slot for each request, the last without a constraint. The last
    ids, up to two, are a draft; a request whose ids are others is added again."""

    def __init__(self, servers, rows, prefix):
        self.rows, self.prefix = [*rows, Row({}, [0])], prefix
        slots = len(self.rows)
        self.table = torch.full((slots, 640), 7777, dtype=torch.int32)
        self.total = torch.zeros(slots, dtype=torch.int32)
        prompts = np.array([len(row.prompt) for row in self.rows], dtype=np.int32)
        states = SimpleNamespace(
            all_token_ids=SimpleNamespace(gpu=self.table),
            prompt_len=SimpleNamespace(np=prompts),
            total_len=SimpleNamespace(gpu=self.total),
        )
        self.processor = servers.vllm_runner.ConstraintLogitsProcessor(vllm_config(), states)
        for slot in range(slots):
            self.add(slot)

    def add(self, slot):
        """The ids are staged: they reach the table after `add_request`, before `apply`."""
        options = self.rows[slot].options
        asked = asking(**({"prefix": self.prefix, **options} if options else {}))
        assert self.processor.add_request(slot, asked) == bool(options)
        self.write(slot, self.rows[slot].prompt)

    def write(self, slot, whole):
        self.table[slot, : len(whole)] = torch.tensor(whole, dtype=torch.int32)
        self.total[slot] = len(whole)

    def masks(self, ids):
        """After each id of a draft the mask is the definition; returns those after the last."""
        whole = [[*row.prompt, *own] for row, own in zip(self.rows, [*ids, []], strict=True)]
        lines = [(k, at) for k, own in enumerate(whole) for at in self.drafted(k, own)][::-1]
        slots, places = zip(*lines, strict=True)
        context = SimpleNamespace(
            expanded_idx_mapping=torch.tensor(slots),
            idx_mapping_np=np.array(list(dict.fromkeys(slots))),
            input_ids=torch.tensor([whole[slot][at] for slot, at in lines]),
            pos=torch.tensor(places),
        )
        found = masked(lambda logits: self.processor.apply(logits, context), len(lines))
        masks = dict(zip(lines, found, strict=True))
        for (slot, at), mask in masks.items():
            row = self.rows[slot]
            if row.options.keys() <= {"regex", "method"}:
                seen = whole[slot][len(row.prompt) : at + 1]
                assert np.array_equal(mask, row.definition(self.prefix, seen))
        return np.stack([masks[k, len(own) - 1] for k, own in enumerate(whole)])[:-1]

    def drafted(self, slot, whole):
        """The places whose masks are asked for: of the last id that is committed, and of the draft.
        All others are written."""
        known = self.table[slot, : int(self.total[slot])].tolist()
        if whole[: len(known)] != known:
            self.add(slot)
            known = self.rows[slot].prompt
        n = min(2, len(whole) - len(known))
        self.write(slot, whole[: len(whole) - n])
        return range(len(whole) - n - 1, len(whole))


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
    return unpacked(mask[1].numpy())


SGLANG = {
    "regex": "regex",
    "schema": "json",
    "grammar": "ebnf",
    "structural_tag": "structural_tag",
}


class Sglang:
    """Requests read ids and take them back."""

    def __init__(self, servers, rows, prefix):
        self.grammars, self.read = [], [[] for _ in rows]
        for row in rows:
            options = {"prefix": prefix, **row.options}
            options.pop("format", None)  # it is GBNF
            (own,) = options.keys() & SGLANG.keys()
            text, kind = options.pop(own), SGLANG[own]
            backend = servers.sglang.RegexBackend(tokenizer(), V, {END}, **options)
            self.grammars.append(grammar_of(backend, kind, text, row.prompt))

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
    "drafts": partial(Each, draft),
    "llama.cpp": partial(Each, LlamaCpp),
    "outlines": partial(Each, outlines),
    "transformers": Transformers,
    "vLLM V1": Vllm,
    "vLLM V2": VllmRunner,
    "SGLang": Sglang,
}
