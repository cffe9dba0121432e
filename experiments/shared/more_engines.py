"""More engines behind the interface of `engines`: the written-out automaton of this package, and
peers that regexes alone are given to; and all engines by their names."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from bpe_automata import Matcher, Tokenizer
from bpe_automata.constructions.explicit import Listed
from bpe_automata.errors import ArgumentError
from bpe_automata.kernels.bits import set_bits
from experiments.shared.engines import (
    SEPARATORS,
    Begin,
    Engine,
    Fill,
    GLRMask,
    LLGuidance,
    Ours,
    OutlinesCore,
    Peer,
    PeerError,
    Whitespace,
    one_eos,
    ordinary,
    refusals,
)


class Explicit(Ours):
    """This package: all states and transitions of the canonical automaton, made while compiling."""

    def __init__(self, tokenizer: Tokenizer, eos_ids: tuple[int, ...], max_edges: int) -> None:
        super().__init__(tokenizer, "canonical", eos_ids)
        self.name, self._max_edges = "explicit", max_edges

    def prepare(self, regex: str) -> Begin:
        listed = self._listed(regex)
        return lambda: Matcher(listed)

    def _listed(self, regex: str) -> Listed:
        automaton = self._constrain(regex).automaton(max_edges=self._max_edges)
        return Listed(automaton, self._eos_ids, self._tokenizer.n_ids)


class XGrammar(Peer):
    """xgrammar: a regex or a schema becomes a grammar; the masks of its states are made while
    compiling, by one thread, and nothing is kept from one to the next."""

    name = "xgrammar"
    install = "pip install --no-deps xgrammar==0.2.8 'apache-tvm-ffi>=0.1.11'"

    def __init__(self, tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> None:
        self._xgrammar = module = self.module()
        spelled = ordinary(tokenizer)
        texts = [spelled.get(i, b"") for i in range(tokenizer.n_ids)]
        info = module.TokenizerInfo(
            texts, module.VocabType.RAW, vocab_size=len(texts), stop_token_ids=list(eos_ids)
        )
        self._compiler = module.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self._together: Any = None

    def prepare(self, regex: str) -> Begin:
        return self._compiled(lambda: self._compiler.compile_regex(regex))

    def prepare_schema(self, schema: str, whitespace: Whitespace) -> Begin:
        flexible = whitespace == "flexible"
        style = {"separators": None if flexible else SEPARATORS[whitespace]}
        compiler = partial(self._compiler.compile_json_schema, any_whitespace=flexible, **style)
        return self._compiled(lambda: compiler(schema, strict_mode=False))

    def batch(self, sessions: Sequence[Any], out: np.ndarray) -> Fill:
        if self._together is None:
            self._together = self._xgrammar.BatchGrammarMatcher(os.cpu_count())
        matchers = [session.matcher for session in sessions]
        return partial(self._together.batch_fill_next_token_bitmask, matchers, _tensor(out))

    def _compiled(self, compiling: Callable[[], Any]) -> Begin:
        with refusals():
            grammar = compiling()
        return lambda: _XGSession(self._xgrammar.GrammarMatcher(grammar))


class _XGSession:
    """A matcher of xgrammar. Raises PeerError for an id that it does not take."""

    def __init__(self, matcher: Any) -> None:
        self.matcher = matcher

    def filling(self, out: np.ndarray) -> Fill:
        # It says whether the mask rules anything out, and writes it in either case.
        return partial(self.matcher.fill_next_token_bitmask, _tensor(out))

    def mask(self, out: np.ndarray) -> None:
        self.matcher.fill_next_token_bitmask(out)

    def advance(self, token: int) -> None:
        if not self.matcher.accept_token(token):
            raise PeerError(f"id {token} is refused")


def _tensor(out: np.ndarray) -> Any:
    """The same memory, as xgrammar reads it quickest."""
    import torch

    return torch.from_numpy(out)


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


MAX_EDGES = 2_000_000
"""Of an automaton that is written out."""
WITHIN = 1000
"""Ids, as servers limit answers."""
OURS: dict[str, Callable[[Tokenizer], Engine]] = {
    "canonical": lambda tokenizer: Ours(tokenizer, "canonical", tokenizer.eos_ids),
    "explicit": lambda tokenizer: Explicit(tokenizer, tokenizer.eos_ids, MAX_EDGES),
    "lift": lambda tokenizer: Ours(tokenizer, "lift", tokenizer.eos_ids),
    "within": lambda tokenizer: Ours(tokenizer, "canonical", tokenizer.eos_ids, WITHIN),
}
PEERS: dict[str, type[Peer]] = {
    peer.name: peer
    for peer in (OutlinesCore, LLGuidance, XGrammar, GLRMask, LMFormatEnforcer, KBNF, GenLM)
}


def engine_of(name: str, tokenizer: Tokenizer) -> Engine:
    """Raises PeerError, and BpeAutomataError for a tokenizer that is not modelled."""
    if name in OURS:
        return OURS[name](tokenizer)
    peer: Any = PEERS[name]
    with refusals():
        made: Engine = peer(tokenizer, tokenizer.eos_ids)
    return made


def versions(names: Iterable[str]) -> dict[str, str]:
    """Of the peers among these that are installed."""
    found = {name: PEERS[name].version() for name in names if name in PEERS}
    return {name: version for name, version in found.items() if version}


def missing(name: str) -> str | None:
    """How to install a peer that is not there."""
    is_there = name not in PEERS or PEERS[name].version() is not None
    return None if is_there else f"not installed: {PEERS[name].install}"


def check_known(option: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raises ArgumentError for a name that is none of those."""
    names = list(known)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ArgumentError(f"--{option} {unknown[0]!r} is none of {', '.join(names)}")
