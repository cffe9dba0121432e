"""SGLang: a grammar backend.

    from bpe_automata.integrations.sglang import register
    register()
    if __name__ == "__main__":
        engine = sglang.Engine(model_path=..., grammar_backend="bpe_automata")
        engine.generate("Is it?", {"regex": " (yes|no)"})

Written against SGLang 0.5.23. Importing this module registers nothing. SGLang's scheduler is a new
process that reads the script again, so `register` must be called above the guard. A grammar begins
after the prompt of its request: its cache key holds the ids of the text that is under way (those
from the last added token on, a few with chat templates). EBNF is read as GBNF; structural tags are
those with `structures` and one trigger. A request of SGLang has no room for other options: they are
given to `register`, and the seconds in `BPE_AUTOMATA_MAX_SECONDS`. Where no answer can follow a
prompt, SGLang aborts the request and tells its client why; with `register(prefix="if possible")`
the answer then begins as if it stood alone.

SGLang compiles grammars in threads of their own while the scheduler asks other grammars for masks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bpe_automata._optional import require
from bpe_automata.composition.descriptions import described
from bpe_automata.decoding.drafts import common_length
from bpe_automata.decoding.matcher import Matcher
from bpe_automata.errors import ArgumentError, BpeAutomataError
from bpe_automata.integrations._requests import (
    Constraints,
    Options,
    Prefix,
    check_options,
    listed_ids,
    text_of,
    told,
)
from bpe_automata.integrations.bitmask import apply_bitmask
from bpe_automata.tokenizer.tokenizer import AddedTokens, Tokenizer

_host: Any = require("sglang.srt.constrained.base_grammar_backend", "pip install sglang")
_torch: Any = require("torch", "pip install torch")

NAME = "bpe_automata"
AFTER_PROMPT = "after prompt"
"""The kind of key whose text is JSON: the kind that was asked for, its text, the prompt's ids that
matter."""

KINDS = {"regex": "regex", "json": "schema", "ebnf": "grammar", "structural_tag": "structural_tag"}
"""What SGLang calls a language, and what a description calls it."""

ANY_OBJECT = "$$ANY$$"
"""What SGLang gives instead of a schema where any JSON object is wanted."""

MOST_KEYS = 1024
"""How many grammars are kept ready; each is a matcher at its beginning."""


def register(name: str = NAME, **options: Any) -> None:
    """Let `--grammar-backend NAME` mean this backend. options: for `RegexBackend` (method, prefix,
    added_tokens, after, and those of a schema)."""
    _offer(name)
    _host.register_grammar_backend(
        name,
        lambda server_args, tokenizer, vocab_size, eos_token_ids=None: RegexBackend(
            tokenizer, vocab_size, eos_token_ids, **options
        ),
    )


def _offer(name: str) -> None:
    """Add a name to the list of those that SGLang's command line accepts."""
    arguments = require("sglang.srt.server_args", "pip install sglang")
    if name not in arguments.GRAMMAR_BACKEND_CHOICES:
        arguments.add_grammar_backend_choices([name])


class RegexGrammar(_host.BaseGrammarObject):  # type: ignore[misc]
    """One request: a matcher under SGLang's names."""

    def __init__(self, matcher: Matcher) -> None:
        super().__init__()
        self._matcher = matcher

    def accept_token(self, token: int) -> None:
        """Raises ArgumentError, a ValueError, upon which SGLang aborts the request."""
        self.current_token = token
        if self.is_terminated():
            return
        try:
            self._matcher.advance(token)
        except BpeAutomataError as error:
            raise ArgumentError(str(error)) from error

    def rollback(self, k: int) -> None:
        """Take back the last k ids. Raises DecodingError if there are fewer."""
        self._matcher.rollback(k)

    def is_terminated(self) -> bool:
        """Was an end of sequence read?"""
        return self._matcher.is_finished

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> Any:
        """int32 [batch_size, ceil(vocab_size / 32)] on the CPU, everything allowed."""
        return _torch.full((batch_size, (vocab_size + 31) // 32), -1, dtype=_torch.int32)

    def fill_vocab_mask(self, vocab_mask: Any, idx: int) -> None:
        """Row `idx` of int32 [batch, words]: what may follow. Raises BufferShapeError."""
        rows = vocab_mask if vocab_mask.device.type == "cpu" else vocab_mask[idx : idx + 1].cpu()
        self._matcher.mask(rows.numpy(), idx if rows is vocab_mask else 0)
        if rows is not vocab_mask:
            vocab_mask[idx] = rows[0].to(vocab_mask.device)

    @staticmethod
    def reset_vocab_mask(vocab_mask: Any) -> None:
        """Everything allowed."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: Any, device: Any) -> Any:
        """The mask on the device of the logits."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: Any, vocab_mask: Any) -> None:
        """Mask the logits [batch, V] in place."""
        apply_bitmask(logits, vocab_mask)

    def copy(self) -> RegexGrammar:
        """An independent grammar in the same state."""
        return RegexGrammar(self._matcher.copy())

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The ids that the constraint leaves no choice about, and no text; None if there are none.
        They are ids, so nothing has to be tokenized again."""
        forced = self._matcher.forced_tokens()
        return (list(forced), "") if forced else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """No text: see `try_jump_forward`."""
        return helper[1], -1

    def jump_and_retokenize(
        self, old_output_ids: Sequence[int], new_output_ids: Sequence[int], next_state: int
    ) -> None:
        """Go from the state after `old_output_ids` to that after `new_output_ids`. Raises
        ArgumentError, a ValueError, for ids that are not allowed; nothing is changed then."""
        kept = common_length(list(old_output_ids), list(new_output_ids))
        try:
            moved = self._matcher.copy()
            moved.rollback(len(old_output_ids) - kept)
            for token in new_output_ids[kept:]:
                moved.advance(token)
        except BpeAutomataError as error:
            raise ArgumentError(str(error)) from error
        self._matcher = moved


class RegexBackend(_host.BaseGrammarBackend):  # type: ignore[misc]
    """Makes the grammars of one server.

    tokenizer: the server's, or anything that `Tokenizer.load` reads. vocab_size: how many logits
    the model gives. eos_token_ids: by default the tokenizer's. For all requests: method, prefix,
    added_tokens, after, as in `Options`, and as style the options of `json_schema` (order,
    whitespace, ...). With `after`, each request thinks first, whether it says so or not.
    Raises ArgumentError and what `Tokenizer.load` raises.
    """

    def __init__(
        self,
        tokenizer: Any,
        vocab_size: int,
        eos_token_ids: Iterable[int] | int | None = None,
        *,
        method: Any = "canonical",
        prefix: Prefix = True,
        added_tokens: AddedTokens = "plain",
        after: str | None = None,
        **style: Any,
    ) -> None:
        super().__init__()
        given = {"method": method, "prefix": prefix, "added_tokens": added_tokens, "after": after}
        check_options(given)
        loaded = Tokenizer.load(tokenizer)
        if vocab_size < loaded.n_ids:
            raise ArgumentError(f"{vocab_size} logits for a tokenizer of {loaded.n_ids} ids")
        self._constraints = Constraints(loaded, listed_ids(eos_token_ids))
        self._options, self._style = Options("", **given), style
        described({"schema": True, **style}, where=f"register of {NAME}")

    def get_request_grammar_key(
        self, key: tuple[str, str], *, input_ids: Sequence[int], thinking_budget: int | None
    ) -> tuple[str, str]:
        """The key of a language together with the prompt's end; other keys stay as they are."""
        kind, text = key
        if kind not in KINDS or not self._options.prefix:
            return key
        ids = np.asarray(input_ids, dtype=np.int64).tolist()
        return AFTER_PROMPT, json.dumps([kind, text, under_way(self._constraints.tokenizer, ids)])

    def get_cached_or_future_value(self, key: tuple[str, str], require_reasoning: bool) -> Any:
        """As the base class, but a request that thinks first is refused without `after`: the ids
        of its thinking are read, too, and `after` ends the part where all of them are allowed."""
        if require_reasoning and self._options.after is None:
            why = "reasoning is read, too: give register(after='</think>'), the text that ends it"
            return _host.InvalidGrammarObject(why), True
        return super().get_cached_or_future_value(key, False)

    def set_cache(self, key: tuple[str, str], value: Any) -> None:
        """As the base class, but of more than `MOST_KEYS` the oldest is evicted, since there may be
        many prompts."""
        super().set_cache(key, value)
        if len(self.cache) > MOST_KEYS:
            del self.cache[next(iter(self.cache))]

    def dispatch_regex(self, key_string: str) -> Any:
        """The grammar of a regex that stands alone, as if there were no prompt."""
        return self._grammar("regex", key_string, ())

    def dispatch_json(self, key_string: str) -> Any:
        """The grammar of a JSON schema that stands alone."""
        return self._grammar("json", key_string, ())

    def dispatch_ebnf(self, key_string: str) -> Any:
        """The grammar of a GBNF that stands alone."""
        return self._grammar("ebnf", key_string, ())

    def dispatch_structural_tag(self, key_string: str) -> Any:
        """The grammar of structural tags that stand alone."""
        return self._grammar("structural_tag", key_string, ())

    def dispatch_fallback(self, key_type: str, key_string: str) -> Any:
        """The grammar of a language after the end of a prompt."""
        if key_type != AFTER_PROMPT:
            return super().dispatch_fallback(key_type, key_string)
        return self._grammar(*json.loads(key_string))

    def _grammar(self, kind: str, text: str, prompt: Sequence[int]) -> Any:
        """A RegexGrammar, or, as SGLang expects it, an object that holds what is wrong."""
        asked_for = '{"type": "object"}' if (kind, text) == ("json", ANY_OBJECT) else text
        options = {"format": "gbnf"} if kind == "ebnf" else {} if kind == "regex" else self._style
        try:
            asked = replace(self._options, language=text_of({KINDS[kind]: asked_for, **options}))
            constraint = self._constraints.of(asked)
            matcher = constraint.matcher(asked.followed(constraint, prompt))
        except BpeAutomataError as error:
            return _host.InvalidGrammarObject(told(error))
        return RegexGrammar(matcher)


def under_way(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int]:
    """The last ids of a prompt, those from the last added token or control id on. They lead to the
    same state as the whole prompt: added tokens and controls are cut out of a text before anything
    else is done, so what comes before and after them is encoded separately."""
    cut_out = tokenizer.added_ids | tokenizer.description.controls
    last = max((k for k, token in enumerate(ids) if token in cut_out), default=0)
    return list(ids[last:])
