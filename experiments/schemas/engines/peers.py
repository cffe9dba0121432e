"""Engines of other projects that take regexes and JSON Schemas: outlines-core, llguidance, xgrammar
and glrmask, each by its own calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata._kernels.bits import set_bits
from bpe_automata.errors import TokenizerError
from experiments.schemas.engines.interface import (
    SEPARATORS,
    Begin,
    Fill,
    Peer,
    PeerError,
    Whitespace,
    first_line,
    one_eos,
    ordinary,
    refusals,
)


class OutlinesCore(Peer):
    """outlines-core: an index of every state, with all masks."""

    name = "outlines_core"

    def __init__(self, tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> None:
        self._module = self.module()
        self._vocabulary = outlines_vocabulary(self._module, tokenizer, eos_ids)

    def prepare(self, regex: str) -> Begin:
        with refusals():
            index = self._module.Index(regex, self._vocabulary)
        return lambda: _OutlinesSession(self._module.Guide, index)

    def prepare_schema(self, schema: str, whitespace: Whitespace) -> Begin:
        # It has no style with spaces after separators only; its default allows one anywhere.
        pattern = "" if whitespace == "compact" else None
        with refusals():
            regex = self._module.json_schema.build_regex_from_schema(schema, pattern)
        return self.prepare(regex)


def outlines_vocabulary(module: Any, tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> Any:
    """The ids of each text, and one end of sequence. Raises PeerError where there is none."""
    ids_of: dict[bytes, list[int]] = {}
    for token, spelled in ordinary(tokenizer).items():
        ids_of.setdefault(spelled, []).append(token)
    return module.Vocabulary(one_eos(eos_ids), ids_of)


class _OutlinesSession:
    """A guide of outlines-core through an index."""

    def __init__(self, guide_of: Callable[[Any], Any], index: Any) -> None:
        self._guide_of, self._index, self._made = guide_of, index, None

    @property
    def _guide(self) -> Any:
        """Made at the first mask: the time of compiling is that of the index alone."""
        if self._made is None:
            self._made = self._guide_of(self._index)
        return self._made

    def filling(self, out: np.ndarray) -> Fill:
        return partial(self._guide.write_mask_into, out.ctypes.data, out.size, out.itemsize)

    def mask(self, out: np.ndarray) -> None:
        with refusals():
            self.filling(out)()

    def advance(self, token: int) -> None:
        try:  # quicker than `refusals`, for it is timed
            self._guide.advance(token, False)
        except Exception as error:
            raise PeerError(first_line(str(error))) from error


class LLGuidance(Peer):
    """llguidance: derivatives of regexes, grammars of schemas, masks by a walk of the vocabulary's
    trie."""

    name = "llguidance"

    def __init__(self, tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> None:
        self._llguidance = module = self.module()
        ends = [one_eos(eos_ids), *eos_ids[1:]]
        try:
            self._tokenizer = module.LLTokenizer(tokenizer.to_json(), eos_token=ends)
        except TokenizerError:  # there is no tokenizer.json that is equal
            plain = module.TokenizerWrapper(_PlainTokenizer(tokenizer, ends[0]))
            self._tokenizer = module.LLTokenizer(plain, eos_token=ends)
        self._for_schemas = self._tokenizer.with_slices(module.LLTokenizer.json_slices())
        self._executor: Any = None

    def prepare(self, regex: str) -> Begin:
        with refusals():
            grammar = self._llguidance.LLMatcher.grammar_from_regex(regex)
            return self._beginning(self._tokenizer, grammar)

    def prepare_schema(self, schema: str, whitespace: Whitespace) -> Begin:
        item, name = SEPARATORS[whitespace]
        style = {"whitespace_flexible": whitespace == "flexible", "item_separator": item}
        style["key_separator"] = name
        with refusals():
            of_schema = self._llguidance.LLMatcher.grammar_from_json_schema
            return self._beginning(self._for_schemas, of_schema(schema, overrides=style))

    def batch(self, sessions: Sequence[Any], out: np.ndarray) -> Fill:
        if self._executor is None:
            self._executor = self._llguidance.LLExecutor(os.cpu_count())
        numbered = [(session.matcher, k) for k, session in enumerate(sessions)]
        place = (out.ctypes.data, out.shape[1] * out.itemsize, len(out))
        return partial(self._executor.unsafe_compute_mask_ptr, numbered, *place)

    def _beginning(self, tokenizer: Any, grammar: str) -> Begin:
        matcher = self._llguidance.LLMatcher(tokenizer, grammar, log_level=0)
        _LLSession(matcher)  # says what is wrong with the grammar, if anything is
        return lambda: _LLSession(matcher.deep_copy())


class _PlainTokenizer:
    """A tokenizer as llguidance takes any: its bytes by id, and what encodes."""

    bos_token_id = None

    def __init__(self, tokenizer: Tokenizer, end: int) -> None:
        self._encode, self.eos_token_id = tokenizer.encode, end
        self.tokens = list(tokenizer.spellings)
        self.special_token_ids = sorted(tokenizer.added_ids)
        for token in self.special_token_ids:  # 0xff is how it knows that they are no text
            self.tokens[token] = b"\xff" + self.tokens[token]

    def __call__(self, text: str) -> list[int]:
        return self._encode(text)


class _LLSession:
    """A matcher of llguidance: it raises nothing, but goes into a state of error. Raises PeerError
    for one that is in it."""

    def __init__(self, matcher: Any) -> None:
        self.matcher = matcher
        self._check()

    def filling(self, out: np.ndarray) -> Fill:
        return partial(self.matcher.unsafe_compute_mask_ptr, out.ctypes.data, out.nbytes)

    def mask(self, out: np.ndarray) -> None:
        self.filling(out)()
        self._check()

    def advance(self, token: int) -> None:
        if not self.matcher.consume_token(token):
            self._check()

    def again(self) -> None:
        """From the beginning. Its copies do not know what it has learned since."""
        self.matcher.reset()

    def _check(self) -> None:
        if self.matcher.is_error():
            raise PeerError(first_line(self.matcher.get_error()))


class GLRMask(Peer):
    """glrmask: a regex is the one terminal of a Lark grammar. Its masks hold no end of sequence."""

    name = "glrmask"

    def __init__(self, tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> None:
        self._grammar = self.module().Grammar
        self._vocab = self.module().Vocab.from_id_to_bytes(ordinary(tokenizer))

    def prepare(self, regex: str) -> Begin:
        terminal = regex.replace("/", "\\/")
        return self._compiled(lambda: self._grammar.from_lark(f"start: /{terminal}/"))

    def prepare_schema(self, schema: str, whitespace: Whitespace) -> Begin:
        if whitespace != "spaced":
            raise PeerError("its texts of schemas have a space after each separator, and no other")
        return self._compiled(lambda: self._grammar.from_json_schema(schema))

    def _compiled(self, grammar: Callable[[], Any]) -> Begin:
        with refusals():
            compiled = grammar().compile(self._vocab)
        return lambda: _GLRSession(compiled)


class _GLRSession:
    def __init__(self, constraint: Any) -> None:
        self._state = constraint.start()

    def filling(self, out: np.ndarray) -> Fill:
        return partial(self._state.fill_mask, out[0])

    def mask(self, out: np.ndarray) -> None:
        self._state.fill_mask(out[0])

    def advance(self, token: int) -> None:
        if not self._state.commit_token(token):
            raise PeerError(f"id {token} is refused")

    def may_end(self) -> bool:
        return bool(self._state.is_accepting())


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
        import asyncio  # takes megabytes of a process whose memory is measured

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
    import tokenizers
    import transformers

    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer.from_str(tokenizer.to_json())
    )
    made.eos_token = made.convert_ids_to_tokens(one_eos(tokenizer.eos_ids))
    return made


def _write(ids: np.ndarray, out: np.ndarray) -> None:
    out[0] = 0
    set_bits(out[0], ids.astype(np.int64))
