"""A stand-in for the parts of SGLang 0.5.23 that the integration touches: names and signatures of

sglang/srt/constrained/base_grammar_backend.py and sglang/srt/arg_groups/choices.py (offered by
sglang/srt/server_args.py).

SGLang itself needs a GPU build. `test_sglang_signatures` holds these against the real files, where
they are installed.
"""

from __future__ import annotations

import types
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

VERSION = "0.5.23"
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


def modules() -> dict[str, types.ModuleType]:
    """What `sys.modules` needs to hold."""
    base = types.ModuleType("sglang.srt.constrained.base_grammar_backend")
    vars(base).update({k: v for k, v in globals().items() if k[:1].isupper() or "register" in k})
    arguments = types.ModuleType("sglang.srt.server_args")
    arguments.GRAMMAR_BACKEND_CHOICES = GRAMMAR_BACKEND_CHOICES
    arguments.add_grammar_backend_choices = GRAMMAR_BACKEND_CHOICES.extend
    names = ["sglang", "sglang.srt", "sglang.srt.constrained"]
    found = {name: types.ModuleType(name) for name in names}
    return {**found, base.__name__: base, arguments.__name__: arguments}
