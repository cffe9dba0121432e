"""Engines that turn a regex or a JSON Schema into masks, behind one interface: this package, and
outlines-core, llguidance, xgrammar and glrmask, each by its own calls.

A mask is packed int32 [1, words]: bit i of it is 1 where id i may follow. The engines of other
projects are optional and inexact: like our lift, they admit ids that the tokenizer itself would not
produce. (llguidance does not admit all of them: where only one text can follow, it chooses ids for
it, before it knows what comes after.) Texts of schemas have a space after each comma and colon, and
no other white space, as this is the one style that all engines support.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bpe_automata import Constraint, Tokenizer, constrain
from bpe_automata._kernels.bits import has
from bpe_automata.decoding.constraint import Method
from bpe_automata.errors import BpeAutomataError
from bpe_automata.schemas import json_schema
from bpe_automata.schemas._nets import Order
from experiments.files import require, version_of
from experiments.lab import Row

INSTALL = "pip install --group peers"
ITEM, NAME = ", ", ": "
"""The separators of items, and of a name and its value."""


class PeerError(BpeAutomataError):
    """An engine refuses a regex, a schema or an id. The message says why, in one line."""


@contextmanager
def refusals() -> Iterator[None]:
    """Turns whatever an engine raises into a PeerError; Rust panics are not even an `Exception`."""
    try:
        yield
    except (PeerError, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        raise PeerError(f"{type(error).__name__}: {first_line(str(error))}") from error


def first_line(text: str) -> str:
    """The first line of a message, cut off after 200 characters."""
    return text.strip().partition("\n")[0][:200]


class Session:
    """One sequence under a compiled constraint. matcher: the engine's own object for it."""

    def __init__(self, matcher: Any) -> None:
        self.matcher = matcher

    def filling(self, out: np.ndarray) -> Callable[[], object]:
        """The engine's own call that writes the mask of the next id into `out`; work that a server
        does once for a buffer is done before."""
        return partial(self.matcher.mask, out)

    def advance(self, token: int) -> None:
        """Read one id. Raises BpeAutomataError where it is refused."""
        self.matcher.advance(token)

    def may_end(self, mask: np.ndarray, eos_ids: tuple[int, ...]) -> bool:
        """May the text end here? mask: the last one, packed int32 [words]."""
        return any(has(mask, end) for end in eos_ids)

    def again(self) -> Session | None:
        """This session at its beginning, with its caches, if a new one would not have them."""
        return None


Begin = Callable[[], Session]
"""Begins a sequence under a compiled constraint."""


class Engine:
    """An engine for one tokenizer. What it compiles serves several sessions."""

    def prepare(self, regex: str) -> Begin:
        """Compile a regex. Raises BpeAutomataError."""
        raise NotImplementedError

    def prepare_schema(self, schema: str) -> Begin:
        """Compile the text of a JSON Schema. Properties that it does not name are allowed unless it
        forbids them. Raises BpeAutomataError."""
        raise NotImplementedError

    def prepared(self, source: Row) -> Begin:
        """Compile {"regex": text} or {"schema": value}. Raises BpeAutomataError."""
        if "regex" in source:
            return self.prepare(source["regex"])
        return self.prepare_schema(json.dumps(source["schema"]))


@dataclass(frozen=True)
class Ours(Engine):
    """ "canonical" admits the tokenizer's own ids alone, "lift" any ids that spell the text.

    within: the most ids of a complete text; order: of the members of objects; loosen: keywords of
    schemas that are ignored."""

    tokenizer: Tokenizer
    method: Method = "canonical"
    within: int | None = None
    order: Order = "schema"
    loosen: Sequence[str] = ()

    def prepare(self, regex: str) -> Begin:
        return self._beginning(constrain(self.tokenizer, regex, self.method))

    def prepare_schema(self, schema: str) -> Begin:
        language = json_schema(schema, whitespace="spaced", order=self.order, loosen=self.loosen)
        return self._beginning(constrain(self.tokenizer, language, self.method))

    def _beginning(self, constraint: Constraint) -> Begin:
        limited = constraint if self.within is None else constraint.within(self.within)
        return lambda: Session(limited.matcher())


# Engines of other projects.


class Peer(Engine):
    """name: of its package; install: the command that installs it."""

    name: str
    install = INSTALL

    @classmethod
    def version(cls) -> str | None:
        """The version of the installed package; None if there is none."""
        return version_of(cls.name)

    @classmethod
    def module(cls) -> Any:
        """Raises MissingDependencyError where it is not installed."""
        return require(cls.name, install=cls.install)


def one_eos(eos_ids: tuple[int, ...]) -> int:
    """The one end-of-sequence id that other engines get. Raises PeerError."""
    if not eos_ids:
        raise PeerError("needs an end-of-sequence id, and the tokenizer names none")
    return eos_ids[0]


def ordinary(tokenizer: Tokenizer) -> dict[int, bytes]:
    """The bytes of each id that spells text and is no added token."""
    spellings, added = enumerate(tokenizer.spellings), tokenizer.added_ids
    return {i: spelled for i, spelled in spellings if spelled and i not in added}


class OutlinesCore(Peer):
    """outlines-core: an index of every state, with all masks."""

    name = "outlines_core"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._module = self.module()
        ids_of: dict[bytes, list[int]] = {}
        for token, spelled in ordinary(tokenizer).items():
            ids_of.setdefault(spelled, []).append(token)
        self._vocabulary = self._module.Vocabulary(one_eos(tokenizer.eos_ids), ids_of)

    def prepare(self, regex: str) -> Begin:
        index = self._module.Index(regex, self._vocabulary)
        return lambda: _OutlinesSession(self._module.Guide(index))

    def prepare_schema(self, schema: str) -> Begin:
        # No style has spaces after separators only; the default (None) allows one anywhere.
        return self.prepare(self._module.json_schema.build_regex_from_schema(schema, None))


class _OutlinesSession(Session):
    def filling(self, out: np.ndarray) -> Callable[[], object]:
        return partial(self.matcher.write_mask_into, out.ctypes.data, out.size, out.itemsize)

    def advance(self, token: int) -> None:
        try:  # quicker than `refusals`, for it is timed
            self.matcher.advance(token, False)
        except Exception as error:
            raise PeerError(first_line(str(error))) from error


class LLGuidance(Peer):
    """llguidance: derivatives of regexes, grammars of schemas, masks by a walk of the vocabulary's
    trie."""

    name = "llguidance"

    def __init__(self, tokenizer: Tokenizer) -> None:
        module = self.module()
        self._matcher = module.LLMatcher
        ends = [one_eos(tokenizer.eos_ids), *tokenizer.eos_ids[1:]]
        plain = module.TokenizerWrapper(_PlainTokenizer(tokenizer, ends[0]))
        self._tokenizer = module.LLTokenizer(plain, eos_token=ends)
        self._for_schemas = self._tokenizer.with_slices(module.LLTokenizer.json_slices())

    def prepare(self, regex: str) -> Begin:
        return self._beginning(self._tokenizer, self._matcher.grammar_from_regex(regex))

    def prepare_schema(self, schema: str) -> Begin:
        style = {"whitespace_flexible": False, "item_separator": ITEM, "key_separator": NAME}
        grammar = self._matcher.grammar_from_json_schema(schema, overrides=style)
        return self._beginning(self._for_schemas, grammar)

    def _beginning(self, tokenizer: Any, grammar: str) -> Begin:
        matcher = self._matcher(tokenizer, grammar, log_level=0)
        _LLSession(matcher)  # says what is wrong with the grammar, if anything is
        return lambda: _LLSession(matcher.deep_copy())


class _PlainTokenizer:
    """A tokenizer as llguidance takes it: the bytes of each id, and a call that encodes."""

    bos_token_id = None

    def __init__(self, tokenizer: Tokenizer, end: int) -> None:
        self._encode, self.eos_token_id = tokenizer.encode, end
        self.tokens = list(tokenizer.spellings)
        self.special_token_ids = sorted(tokenizer.added_ids)
        for token in self.special_token_ids:  # llguidance takes what begins with 0xff for no text
            self.tokens[token] = b"\xff" + self.tokens[token]

    def __call__(self, text: str) -> list[int]:
        return self._encode(text)


class _LLSession(Session):
    """A session of llguidance, whose matcher raises nothing, but goes into an error state. Raises
    PeerError when it is in one."""

    def __init__(self, matcher: Any) -> None:
        super().__init__(matcher)
        self._check()

    def filling(self, out: np.ndarray) -> Callable[[], object]:
        return partial(self.matcher.unsafe_compute_mask_ptr, out.ctypes.data, out.nbytes)

    def advance(self, token: int) -> None:
        if not self.matcher.consume_token(token):
            self._check()

    def again(self) -> Session:
        self.matcher.reset()
        return self

    def _check(self) -> None:
        if self.matcher.is_error():
            raise PeerError(first_line(self.matcher.get_error()))


class GLRMask(Peer):
    """glrmask: a regex is the one terminal of a Lark grammar. Its masks hold no end of sequence."""

    name = "glrmask"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._grammar = self.module().Grammar
        self._vocab = self.module().Vocab.from_id_to_bytes(ordinary(tokenizer))

    def prepare(self, regex: str) -> Begin:
        terminal = regex.replace("/", "\\/")
        return self._compiled(self._grammar.from_lark(f"start: /{terminal}/"))

    def prepare_schema(self, schema: str) -> Begin:
        return self._compiled(self._grammar.from_json_schema(schema))

    def _compiled(self, grammar: Any) -> Begin:
        compiled = grammar.compile(self._vocab)
        return lambda: _GLRSession(compiled.start())


class _GLRSession(Session):
    def filling(self, out: np.ndarray) -> Callable[[], object]:
        return partial(self.matcher.fill_mask, out[0])

    def advance(self, token: int) -> None:
        if not self.matcher.commit_token(token):
            raise PeerError(f"id {token} is refused")

    def may_end(self, mask: np.ndarray, eos_ids: tuple[int, ...]) -> bool:
        return bool(self.matcher.is_accepting())


class XGrammar(Peer):
    """xgrammar: a regex or a schema becomes a grammar; the masks of its states are made while
    compiling, by one thread, and no grammar profits from an earlier one."""

    name = "xgrammar"
    install = "pip install --no-deps xgrammar==0.2.8 'apache-tvm-ffi>=0.1.11'"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._xgrammar = module = self.module()
        spelled = ordinary(tokenizer)
        texts = [spelled.get(i, b"") for i in range(tokenizer.n_ids)]
        ends = list(tokenizer.eos_ids)
        info = module.TokenizerInfo(
            texts, module.VocabType.RAW, vocab_size=len(texts), stop_token_ids=ends
        )
        self._compiler = module.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    def prepare(self, regex: str) -> Begin:
        return self._beginning(self._compiler.compile_regex(regex))

    def prepare_schema(self, schema: str) -> Begin:
        style = {"any_whitespace": False, "separators": (ITEM, NAME), "strict_mode": False}
        return self._beginning(self._compiler.compile_json_schema(schema, **style))

    def _beginning(self, grammar: Any) -> Begin:
        return lambda: _XGSession(self._xgrammar.GrammarMatcher(grammar))


class _XGSession(Session):
    def filling(self, out: np.ndarray) -> Callable[[], object]:
        import torch  # xgrammar is fastest with a tensor that shares the memory

        return partial(self.matcher.fill_next_token_bitmask, torch.from_numpy(out))

    def advance(self, token: int) -> None:
        if not self.matcher.accept_token(token):
            raise PeerError(f"id {token} is refused")


# All engines by their names.


WITHIN = 1000
"""The most ids of an answer, as servers limit it."""
OURS: dict[str, Callable[[Tokenizer], Engine]] = {
    "canonical": Ours,
    "within": lambda tokenizer: Ours(tokenizer, within=WITHIN),
    "lift": lambda tokenizer: Ours(tokenizer, "lift"),
    "any-order": lambda tokenizer: Ours(tokenizer, order="any"),
    "loosened": lambda tokenizer: Ours(tokenizer, order="any", loosen=("uniqueItems",)),
}
PEERS: dict[str, type[Peer]] = {
    peer.name: peer for peer in (LLGuidance, GLRMask, XGrammar, OutlinesCore)
}


def engine_of(name: str, tokenizer: Tokenizer) -> Engine:
    """Raises PeerError for one that is missing, or refuses the tokenizer."""
    if name in OURS:
        return OURS[name](tokenizer)
    if name not in PEERS:
        raise PeerError(f"no engine is named {name!r}")
    made: Any = PEERS[name]
    with refusals():
        engine: Engine = made(tokenizer)
    return engine


def label(name: str) -> str:
    """An engine with the version of its package."""
    version = PEERS[name].version() if name in PEERS else None
    return f"{name} {version}" if version else name


def passes(begin: Begin, ids: Sequence[int], tokenizer: Tokenizer) -> bool:
    """Do the masks allow these ids, and then the end?"""
    buffer = np.zeros((1, (tokenizer.n_ids + 31) // 32), dtype=np.int32)
    try:
        with refusals():
            session = begin()
            fill = session.filling(buffer)
            for token in ids:
                fill()
                if not has(buffer[0], token):
                    return False
                session.advance(token)
            fill()
            return session.may_end(buffer[0], tokenizer.eos_ids)
    except PeerError:  # the engine refuses an id
        return False
