"""Engines of other projects that are asked for regexes alone: kbnf, lm-format-enforcer and
genlm-control. Each answers with a list of ids, which is written as a packed mask here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata.kernels.bits import set_bits
from experiments.engines.interface import Begin, Peer, PeerError, one_eos, ordinary, refusals


class KBNF(Peer):
    """kbnf, the engine of Formatron: an Earley recogniser. It ends where a text first matches, so
    that the end of sequence has to be in the grammar, here as a control character."""

    name = "kbnf"
    install = "pip install kbnf==0.4.2"
    _END = "\x04"

    def __init__(self, tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> None:
        self._kbnf = self.module()
        end = self._END.encode()
        spelled = {i: text for i, text in ordinary(tokenizer).items() if end not in text}
        spelled[one_eos(eos_ids)] = end
        tokens = {i: self._kbnf.Token(text) for i, text in spelled.items()}
        texts = {i: text.decode("utf-8", "replace") for i, text in spelled.items()}
        self._vocabulary = self._kbnf.Vocabulary(tokens, texts)

    def prepare(self, regex: str) -> Begin:
        quoted = regex.replace("\\", "\\\\").replace("'", "\\'")
        grammar = f"start ::= #'{quoted}' '\\u{{4}}';"
        with refusals():
            engine = self._kbnf.Engine(grammar, self._vocabulary)
        return lambda: _KBNFSession(engine.__copy__())


class _KBNFSession:
    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def mask(self, out: np.ndarray) -> None:
        self._engine.compute_allowed_token_ids()
        ids = np.empty(self._engine.get_number_of_allowed_token_ids(), dtype=np.int64)
        if len(ids):
            self._engine.write_allowed_token_ids_to_buffer(ids.ctypes.data, len(ids))
        _write(ids, out)

    def advance(self, token: int) -> None:
        with refusals():
            result = self._engine.try_accept_new_token(token)
        if "Reject" in str(result):
            raise PeerError(f"id {token} is refused")


class LMFormatEnforcer(Peer):
    """lm-format-enforcer: characters of an automaton of interegular, walked with the vocabulary's
    trie in Python."""

    name = "lm-format-enforcer"
    install = "pip install --no-deps lm-format-enforcer==0.11.3"

    def __init__(self, tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> None:
        core = self.module("lmformatenforcer.tokenenforcer")
        self._parser_of = self.module("lmformatenforcer").RegexParser
        self._enforcer_of = core.TokenEnforcer
        # Fragments of characters are U+FFFD to it, as in its own integration of transformers.
        words = [(i, t.decode("utf-8", "replace"), False) for i, t in ordinary(tokenizer).items()]
        self._data = core.TokenEnforcerTokenizerData(
            words, tokenizer.decode, list(eos_ids), False, tokenizer.n_ids
        )

    def prepare(self, regex: str) -> Begin:
        with refusals():
            enforcer = self._enforcer_of(self._data, self._parser_of(regex))
        return lambda: _LMFESession(enforcer)


class _LMFESession:
    """It is asked with all ids so far, and keeps what it was asked before."""

    def __init__(self, enforcer: Any) -> None:
        self._enforcer, self._ids = enforcer, list[int]()

    def mask(self, out: np.ndarray) -> None:
        with refusals():
            allowed = self._enforcer.get_allowed_tokens(self._ids).allowed_tokens
        _write(np.array(allowed, dtype=np.int64), out)

    def advance(self, token: int) -> None:
        self._ids = [*self._ids, token]


class GenLM(Peer):
    """genlm-control: the product of its potential of a regex and of its filter, which looks at
    pairs of tokens by the merges alone; what a sampler of it asks at each step."""

    name = "genlm-control"
    install = (
        "pip install --no-deps genlm-control==0.4.1 genlm-backend==0.3.1 genlm-grammar==0.2.0 "
        "genlm-bytes==0.2.0 arsenal frozendict scipy pandas graphviz json-stream "
        "json-stream-rs-tokenizer"
    )

    def __init__(self, tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> None:
        canonical = self.module("genlm.control.potential.built_in.canonical")
        self._of_regex = self.module("genlm.control").BoolFSA.from_regex
        filtering = canonical.FastCanonicalityFilterBPE.from_tokenizer(_fast(tokenizer), [*eos_ids])
        self._canonical = canonical.CanonicalTokenization(filtering)
        self._ends, self._loop = list(eos_ids), asyncio.new_event_loop()

    def prepare(self, regex: str) -> Begin:
        with refusals():
            both = self._of_regex(regex).coerce(self._canonical, f=b"".join) * self._canonical
        texts = [token for token in both.vocab if token.token_id not in self._ends]
        places = np.array([both.lookup[token] for token in texts], dtype=np.int64)
        ids = np.array([token.token_id for token in texts], dtype=np.int64)

        def mask(context: list[Any], out: np.ndarray) -> None:
            found = self._loop.run_until_complete(both.logw_next(context))
            allowed = ids[np.asarray(found.weights)[places] > -np.inf]
            _write(np.append(allowed, self._ends if found[both.eos] > -np.inf else []), out)

        return lambda: _GenLMSession(mask, self._canonical.vocab)


class _GenLMSession:
    """It is asked with all tokens so far."""

    def __init__(
        self, mask: Callable[[list[Any], np.ndarray], None], tokens: Sequence[Any]
    ) -> None:
        self._mask, self._tokens, self._context = mask, tokens, list[Any]()

    def mask(self, out: np.ndarray) -> None:
        with refusals():
            self._mask(self._context, out)

    def advance(self, token: int) -> None:
        self._context = [*self._context, self._tokens[token]]


def _fast(tokenizer: Tokenizer) -> Any:
    """The tokenizer as transformers has it."""
    import tokenizers
    import transformers

    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer.from_str(tokenizer.to_json())
    )
    made.eos_token = made.convert_ids_to_tokens(one_eos(tokenizer.eos_ids))
    return made


def _write(ids: np.ndarray, out: np.ndarray) -> None:
    """The mask of these ids."""
    out[0] = 0
    set_bits(out[0], ids.astype(np.int64))
