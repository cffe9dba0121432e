"""SGLang's grammar backend: requests as its scheduler runs them, drafts included.

SGLang needs a GPU build, so a stand-in for the parts of 0.5.23 that the integration touches is in
its place: names and signatures of sglang/srt/constrained/base_grammar_backend.py and
sglang/srt/arg_groups/choices.py (offered by sglang/srt/server_args.py).
"""

from __future__ import annotations

import types
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from served import END, REGEXES, START, V, ids_of_mask, mask_after, tokenizer
from standins import class_of, imported_with, methods, parameters, real_source
from support import examples

from bpe_automata import constrain
from bpe_automata.errors import ArgumentError, BpeAutomataError, BufferShapeError
from bpe_automata.testing import texts, trained_tokenizers

torch = pytest.importorskip("torch")


GRAMMAR_BACKEND_REGISTRY = {}
GRAMMAR_BACKEND_CHOICES = ["xgrammar", "none"]


class GrammarRow(NamedTuple):
    row: int
    grammar: BaseGrammarObject


class BaseGrammarObject:
    def __init__(self):
        self._finished = False
        self.grammar_stats = None
        self.current_token = None

    def maybe_init_reasoning(self, reasoning):
        pass

    def accept_token(self, token):
        raise NotImplementedError

    def rollback(self, k):
        raise NotImplementedError

    def is_terminated(self):
        return False

    def allocate_vocab_mask(self, vocab_size, batch_size, device):
        raise NotImplementedError

    def fill_vocab_mask(self, vocab_mask, idx):
        raise NotImplementedError

    @staticmethod
    def fill_vocab_mask_batched(entries, vocab_mask):
        for entry in entries:
            entry.grammar.fill_vocab_mask(vocab_mask, entry.row)

    @staticmethod
    def reset_vocab_mask(vocab_mask):
        raise NotImplementedError

    @staticmethod
    def move_vocab_mask(vocab_mask, device):
        raise NotImplementedError

    @staticmethod
    def apply_vocab_mask(logits, vocab_mask):
        raise NotImplementedError

    def copy(self):
        return self

    @property
    def finished(self):
        return self._finished

    @finished.setter
    def finished(self, finished):
        self._finished = finished

    def try_jump_forward(self, tokenizer):
        raise NotImplementedError

    def jump_forward_str_state(self, helper):
        raise NotImplementedError

    def jump_and_retokenize(self, old_output_ids, new_output_ids, next_state):
        raise NotImplementedError


class InvalidGrammarObject(BaseGrammarObject):
    def __init__(self, error_message="Unknown grammar error"):
        super().__init__()
        self.error_message = error_message


class BaseGrammarBackend:
    def __init__(self):
        self.executor = ThreadPoolExecutor()
        self.cache = {}

    def get_request_grammar_key(self, key, *, input_ids, thinking_budget):
        return key

    def dispatch_fallback(self, key_type, key_string):
        raise ValueError(key_type)

    def dispatch_json(self, key_string):
        return InvalidGrammarObject()

    def dispatch_regex(self, key_string):
        return InvalidGrammarObject()

    def dispatch_ebnf(self, key_string):
        return InvalidGrammarObject()

    def _init_value_dispatch(self, key, require_reasoning):
        kind, text = key
        if kind == "json":
            return self.dispatch_json(text)
        if kind == "regex":
            return self.dispatch_regex(text)
        if kind == "ebnf":
            return self.dispatch_ebnf(text)
        return self.dispatch_fallback(kind, text)

    def get_cached_or_future_value(self, key, require_reasoning):
        if value := self.cache.get(key):
            found = value.copy()
            found.maybe_init_reasoning(require_reasoning)
            return found, True
        return self.executor.submit(self._init_value_dispatch, key, require_reasoning), False

    def set_cache(self, key, value):
        self.cache[key] = value

    def reset(self):
        self.cache.clear()


def register_grammar_backend(name, init_func):
    GRAMMAR_BACKEND_REGISTRY[name] = init_func


def stand_in() -> dict[str, types.ModuleType]:
    """What `sys.modules` needs to hold."""
    base = types.ModuleType("sglang.srt.constrained.base_grammar_backend")
    offered = [BaseGrammarBackend, BaseGrammarObject, GrammarRow, InvalidGrammarObject]
    vars(base).update({member.__name__: member for member in (*offered, register_grammar_backend)})
    base.GRAMMAR_BACKEND_REGISTRY = GRAMMAR_BACKEND_REGISTRY
    arguments = types.ModuleType("sglang.srt.server_args")
    arguments.GRAMMAR_BACKEND_CHOICES = GRAMMAR_BACKEND_CHOICES
    arguments.add_grammar_backend_choices = GRAMMAR_BACKEND_CHOICES.extend
    names = ["sglang", "sglang.srt", "sglang.srt.constrained"]
    found = {name: types.ModuleType(name) for name in names}
    return {**found, base.__name__: base, arguments.__name__: arguments}


# ---------------------------------------------------------------- requests

PROMPTS = [[START], [START, *tokenizer().encode("de a")], tokenizer().encode("a")]


@pytest.fixture(scope="module")
def ours():
    names = ["bpe_automata.integrations.sglang"]
    yield from (found[0] for found in imported_with(stand_in(), names))


@pytest.fixture(scope="module")
def backend(ours):
    return ours.RegexBackend(tokenizer(), V, {END})


def asked(backend, regex, prompt, kind="regex"):
    """A request's grammar, by the steps of SGLang's grammar manager."""
    key = backend.get_request_grammar_key((kind, regex), input_ids=prompt, thinking_budget=None)
    value, hit = backend.get_cached_or_future_value(key, False)
    assert hit != isinstance(value, Future)
    if not hit:
        value = value.result()
        backend.set_cache(key, value.copy())
    return value


def mask_of(grammar):
    """The row of a mask of two that the grammar fills; the other row is left alone."""
    mask = grammar.allocate_vocab_mask(V, 2, "cpu")
    assert mask.shape == (2, (V + 31) // 32)
    grammar.fill_vocab_mask(mask, 1)
    assert (mask[0] == -1).all()
    return ids_of_mask(mask[1].numpy())


@given(st.sampled_from(REGEXES), st.sampled_from(PROMPTS[:2]), st.data())
@examples(40)
def test_a_request_is_the_definition(backend, regex, prompt, data):
    grammar = asked(backend, regex, prompt)
    ids = []
    for _ in range(data.draw(st.integers(0, 6))):
        expected = np.flatnonzero(mask_after(regex, prompt, ids)).tolist()
        assert mask_of(grammar) == set(expected)
        other = sorted(set(range(V)) - set(expected))
        with pytest.raises(ValueError, match="id") as caught:
            grammar.accept_token(data.draw(st.sampled_from(other)))
        assert isinstance(caught.value, ArgumentError)
        ids.append(data.draw(st.sampled_from(expected)))
        twin = grammar.copy()
        grammar.accept_token(ids[-1])
        assert grammar.is_terminated() == (ids[-1] == END)
        assert not twin.is_terminated()
        assert mask_of(twin) == set(expected)
        back = data.draw(st.integers(0, len(ids)))
        grammar.rollback(back)
        del ids[len(ids) - back :]
        if END in ids:
            break


def test_equal_requests_share_what_is_compiled_and_nothing_else(backend):
    one, other = (asked(backend, "[a-c]{2,5}", PROMPTS[1]) for _ in range(2))
    before = mask_of(other)
    one.accept_token(tokenizer().encode("c")[0])
    assert mask_of(other) == before != mask_of(one)
    third = asked(backend, "[a-c]{2,5}", PROMPTS[1])
    assert mask_of(third) == before


@given(trained_tokenizers(), st.data())
@examples(4)
def test_the_text_under_way_leads_to_the_state_of_the_whole_prompt(ours, trained, data):
    apart = sorted(trained.added_ids)
    pieces = [texts(trained)] + [st.sampled_from(apart).map(lambda i: i)] * bool(apart)
    parts = data.draw(st.lists(st.one_of(pieces), max_size=4))
    ids = [i for part in parts for i in ([part] if type(part) is int else trained.encode(part))]
    try:
        engine = constrain(trained, "[ -~]{1,9}", eos_ids=()).engine
        whole = engine.initial(ids)
    except BpeAutomataError:
        return
    assert engine.initial(ours.under_way(trained, ids)) == whole


def test_what_cannot_be_compiled_is_told_to_the_request(backend):
    for regex, prompt, reason in (
        ("a(", PROMPTS[0], "position"),
        ("a\u00e9", PROMPTS[0], "no answer is canonical"),
        ("bab", PROMPTS[2], "would merge with the answer"),
    ):
        found = asked(backend, regex, prompt)
        assert isinstance(found, InvalidGrammarObject)
        assert reason in found.error_message
    assert 'prefix "if possible"' in found.error_message
    found = asked(backend, '{"properties": {"a": {"type": "int"}}}', PROMPTS[0], "json")
    assert "/properties/a" in found.error_message
    assert isinstance(asked(backend, "{}", PROMPTS[0], "ebnf"), InvalidGrammarObject)
    with pytest.raises(ValueError, match="unknown"):
        backend.dispatch_fallback("unknown", "x")


def test_a_schema_is_followed_like_the_regex_of_its_texts(ours, backend):
    """After a prompt, and alone."""
    plain = ours.RegexBackend(tokenizer(), V, END, prefix=False)
    for one in (backend, plain):
        schema = asked(one, '{"enum": [7, 71]}', PROMPTS[0], "json")
        regex = asked(one, "71?", PROMPTS[0])
        for token in [*tokenizer().encode("71"), END]:
            assert mask_of(schema) == mask_of(regex)
            schema.accept_token(token)
            regex.accept_token(token)
        assert schema.is_terminated()


def test_masks_are_applied_moved_and_reset(backend):
    grammar = asked(backend, "yes|no|node", PROMPTS[0])
    mask = grammar.move_vocab_mask(grammar.allocate_vocab_mask(V, 2, "cpu"), "cpu")
    rows = [GrammarRow(1, grammar)]
    grammar.fill_vocab_mask_batched(rows, mask)
    logits = torch.zeros(2, V)
    grammar.apply_vocab_mask(logits, mask)
    assert (logits[0] == 0).all()
    expected = mask_after("yes|no|node", PROMPTS[0], ())
    assert np.array_equal((logits[1] == 0).numpy(), expected)
    grammar.reset_vocab_mask(mask)
    assert (mask == -1).all()
    with pytest.raises(BufferShapeError):
        grammar.fill_vocab_mask(mask[:, :1].contiguous(), 1)


def test_registration_is_a_call_and_names_what_it_makes(ours):
    assert not GRAMMAR_BACKEND_REGISTRY
    ours.register(method="lift")
    ours.register(method="lift")
    assert GRAMMAR_BACKEND_CHOICES.count("bpe_automata") == 1
    made = GRAMMAR_BACKEND_REGISTRY.pop("bpe_automata")(None, tokenizer(), V, [END])
    assert isinstance(made, BaseGrammarBackend)
    grammar = asked(made, "abab", PROMPTS[0])
    assert mask_of(grammar) == set(np.flatnonzero(mask_after("abab", (), (), "lift")).tolist())


def test_what_cannot_work_is_refused_at_the_start(ours):
    with pytest.raises(ArgumentError, match="9 logits"):
        ours.RegexBackend(tokenizer(), 9, END)
    with pytest.raises(ArgumentError, match="end-of-sequence ids"):
        ours.RegexBackend(tokenizer(), V, None)
    with pytest.raises(ArgumentError, match="end-of-sequence ids"):
        ours.RegexBackend(tokenizer(), V, [V + 1])
    with pytest.raises(ArgumentError, match="prefix of bpe_automata is 'yes'"):
        ours.RegexBackend(tokenizer(), V, END, prefix="yes")
    with pytest.raises(ArgumentError, match="method 'both'"):
        ours.RegexBackend(tokenizer(), V, END, method="both")


# ---------------------------------------------------------------- the real files, if installed

BASE = "srt/constrained/base_grammar_backend.py"


@pytest.mark.parametrize("standin", [BaseGrammarObject, InvalidGrammarObject, BaseGrammarBackend])
def test_methods_of_sglang_take_the_same_parameters(standin):
    theirs = class_of(real_source("sglang", BASE), standin.__name__)
    for method, expected in methods(standin).items():
        assert parameters(theirs, method) == expected, method


def test_backends_are_made_with_four_arguments():
    tree = real_source("sglang", BASE)
    assert parameters(tree, "register_grammar_backend") == ["name", "init_func"]
    made = parameters(tree, "create_grammar_backend")
    assert made[:4] == ["server_args", "tokenizer", "vocab_size", "eos_token_ids"]
