"""The automaton of D, the canonical sequences of a tokenizer: { ids : encode(decode(ids)) = ids }.

A state is (text, hypotheses, last): the state of the text automaton, a set of boundary hypotheses,
and the last id (-1: none that a token could merge with). A token may follow if there can be a
boundary before it, or if there can be none and the pair is canonical. `cartesian_merge` makes its
product with a language.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from bpe_automata._budget import READING, Budget, check, spending
from bpe_automata._sharing import Immutable
from bpe_automata.canonical.arrays import BEGINNING, NO_SET, NO_TOKEN
from bpe_automata.canonical.geometry import Geometry
from bpe_automata.canonical.sets import HypothesisSets
from bpe_automata.canonical.stored import Parts, cached
from bpe_automata.canonical.token_actions import (
    TokenActions,
    WholePretokens,
    classify,
    find_unmade,
)
from bpe_automata.canonical.vocabulary import Nodes, Trie, vocabulary_trie
from bpe_automata.errors import TokenizerMismatchError, UnsupportedTokenizerError
from bpe_automata.tokenizer.derivation import derive
from bpe_automata.tokenizer.description import Description
from bpe_automata.tokenizer.pipeline import compile_pipeline
from bpe_automata.tokenizer.tokenizer import Tokenizer, sample_texts

_MOST_JOINTS = 24  # tokens of a text that are tried in other ids


class CanonicalState(NamedTuple):
    """text: state of the text automaton; hypotheses: number of a hypothesis set; last: the last id,
    or NO_TOKEN."""

    text: int
    hypotheses: int
    last: int


class CanonicalAutomaton(Immutable):
    """D as an automaton over ids. Build it with `canonical_automaton`, which caches it.

    Attributes: derivation, geometry (BPE alone), pipeline (everything around it), whole (tokens
    that are legal only as a whole pretoken), usable (bool [n_ids], tokens that ordinary text may be
    spelled with), trie (of their bytes), actions (classes of tokens), nodes (what the trie's nodes
    stand for), sets (interned hypothesis sets), start (the state at the beginning of a text).
    """

    def __init__(self, tokenizer: Tokenizer, parts: Parts | None = None) -> None:
        """`parts`: those of this tokenizer, if they were built before. Raises what `build_parts`
        raises."""
        parts = parts or build_parts(tokenizer)
        self.tokenizer, self.parts = tokenizer, parts
        self.derivation, self.pipeline, self.usable = parts.derivation, parts.pipeline, parts.usable
        self.trie, self.actions, self.nodes = parts.trie, parts.actions, parts.nodes
        self.geometry = Geometry(parts.derivation, parts.tables)
        self.whole = WholePretokens(tokenizer.n_ids, parts.unmade)
        self.sets = HypothesisSets(self.pipeline, self.actions, self.whole)
        self._added_number = {int(i): k for k, i in enumerate(self.pipeline.text.ids)}
        self.start = CanonicalState(self.pipeline.text.start, BEGINNING, NO_TOKEN)

    def __reduce__(self) -> tuple[object, ...]:
        return canonical_automaton, (self.tokenizer,)

    def accepts(self, ids: Iterable[int]) -> bool:
        """Is the whole sequence canonical?"""
        state = self.start
        for token in ids:
            after = self.step(state, token)
            if after is None:
                return False
            state = after
        return self.ends(state)

    def step(self, state: CanonicalState, token: int) -> CanonicalState | None:
        """The state after one more id; None if no canonical sequence goes on so. (Rarely there is a
        state although none does; then no later state `ends`.)"""
        number = self._added_number.get(token)
        if number is not None:
            return self._step_added(state, number)
        text = self.text_after(state.text, state.hypotheses, token)
        if text < 0:
            return None
        free, bound = self.sets.successors(state.hypotheses)
        token_class = self.actions.of_token[token]
        after = int(free[token_class])
        if bound[token_class] != NO_SET and self.allowed(state.last, token):
            after = self.sets.union(after, int(bound[token_class]))
        return None if after == NO_SET else CanonicalState(text, after, token)

    def _step_added(self, state: CanonicalState, number: int) -> CanonicalState | None:
        text = self.pipeline.text
        after = int(text.after[text.after_row[state.text], number])
        if after < 0 or not self.sets.ends(state.hypotheses):
            return None
        return CanonicalState(after, BEGINNING, NO_TOKEN)

    def text_after(self, text: int, hypotheses: int, token: int) -> int:
        """State of the text automaton after the text of an ordinary token; -1: no text with
        canonical ids goes on so."""
        utf8_row = self.sets.utf8_row(hypotheses)
        if text == 0 and utf8_row == 0:
            return int(self.actions.text[token])
        utf8 = self.pipeline.alphabet.utf8
        for byte in self.tokenizer.spellings[token]:
            entry = int(utf8[utf8_row, byte])
            if entry == -1:
                return -1
            utf8_row = max(entry, 0)
            if entry < 0:
                text = int(self.pipeline.text.next[text, -2 - entry])
                if text < 0:
                    return -1
        return text

    def is_added(self, token: int) -> bool:
        """Is the id one of an added token?"""
        return token in self._added_number

    def allowed(self, left: int, right: int) -> bool:
        """May the two tokens stand side by side inside one pretoken? After an unreachable token
        or none, no token can follow without a boundary."""
        return (
            left >= 0
            and bool(self.derivation.reachable[left])
            and bool(self.derivation.reachable[right])
            and self.geometry.breaking_merge(left, right) < 0
        )

    def ends(self, state: CanonicalState) -> bool:
        """Is what has been read canonical as it stands?"""
        return bool(self.pipeline.text.ends[state.text]) and self.sets.ends(state.hypotheses)


def build_parts(tokenizer: Tokenizer) -> Parts:
    """All parts, computed from the tokenizer itself.

    Raises UnsupportedTokenizerError, ImproperMergeTableError, BudgetExceededError."""
    description = tokenizer.description
    derivation = derive(description)
    tables = Geometry(derivation).tables
    pipeline = compile_pipeline(description, tokenizer.backend.engine)
    unmade = find_unmade(description, derivation)
    usable = derivation.reachable.copy()
    usable[unmade.ids] = True
    _refuse_single_words(description, usable)
    usable[[token.id for token in description.added]] = False
    trie = vocabulary_trie(tokenizer.spellings, np.flatnonzero(usable))
    told_apart = WholePretokens(description.n_ids, unmade).told_apart
    byte_tokens = np.array(sorted(description.byte_tokens.values()), dtype=np.int64)
    actions = classify(trie, usable, told_apart, byte_tokens, pipeline)
    nodes = _nodes(trie, actions)
    return Parts(derivation, tables, pipeline, unmade, usable, trie, actions, nodes)


def _nodes(trie: Trie, actions: TokenActions) -> Nodes:
    """Arrays in the order of the trie's nodes, so that a walk reads memory in order."""
    token_class = np.where(trie.token < 0, 0, actions.of_token[trie.token])
    return Nodes(token_class, actions.text[trie.token], actions.first[trie.token])


def _refuse_single_words(description: Description, usable: np.ndarray) -> None:
    """Refuse a `single_word` token that is an ordinary token as well: where it is not cut out, the
    text may become the same id."""
    for token in description.added:
        ordinary = description.tokens[token.id]
        if token.single_word and ordinary and (usable[token.id] or description.ignore_merges):
            raise UnsupportedTokenizerError(
                f"added token {token.content!r}",
                "single_word=True",
                "it is an ordinary token as well, which stays in the text beside word characters",
            )


def canonical_automaton(tokenizer: Tokenizer, budget: Budget = READING) -> CanonicalAutomaton:
    """The automaton of a tokenizer. It is made once and cached on the tokenizer, and its parts on
    disk (see `stored`). Raises what `build_parts` raises; warns of a damaged cache file."""
    with spending(budget):
        return tokenizer.derived("canonical", _kept)


def _kept(tokenizer: Tokenizer) -> CanonicalAutomaton:
    parts = cached(Parts, tokenizer, lambda: _tried_parts(tokenizer))
    return CanonicalAutomaton(tokenizer, parts)


def _tried_parts(tokenizer: Tokenizer) -> Parts:
    parts = build_parts(tokenizer)
    try_automaton(CanonicalAutomaton(tokenizer, parts))
    return parts


# ---------------------------------------------------------------- compared with `encode`


def try_automaton(automaton: CanonicalAutomaton) -> None:
    """Compare the automaton with the tokenizer's own `encode` on the sample texts. The ids of a
    text must be accepted if they decode to a text with the same ids, and other ids of that text
    rejected.

    Raises TokenizerMismatchError at the first difference."""
    tokenizer = automaton.tokenizer
    texts = sample_texts(tokenizer)
    encoded = tokenizer.encode_batch(texts)
    spelled = list(map(tokenizer.text_bytes, encoded))
    again = tokenizer.encode_batch([text.decode("utf-8", "replace") for text in spelled])
    parts = _spelling(tokenizer, {part for ids in encoded for part in _parts(tokenizer, ids)})
    for text, data, ids, own in zip(texts, spelled, encoded, again, strict=True):
        check()
        canonical = ids == own and _is_text(data)
        _try(automaton, text, ids, canonical)
        if canonical:
            for other in _segmented_otherwise(tokenizer, ids, parts):
                _try(automaton, text, other, False)


def _is_text(data: bytes) -> bool:
    """Are these whole characters? (Where a byte has no token, fragments remain.)"""
    return data.decode("utf-8", "ignore").encode("utf-8") == data


def _try(automaton: CanonicalAutomaton, text: str, ids: list[int], canonical: bool) -> None:
    if automaton.accepts(ids) != canonical:
        said = {True: "canonical", False: "not canonical"}
        name = automaton.tokenizer.name
        raise TokenizerMismatchError(name, text, tuple(ids), said[not canonical], said[canonical])


def _parts(tokenizer: Tokenizer, ids: list[int]) -> Iterator[bytes]:
    """What any two neighbours spell together, and the parts of each token cut in two anywhere."""
    spelled = [tokenizer.spellings[token] for token in ids]
    yield from map(operator.add, spelled, spelled[1:])
    for token in spelled:
        for k in range(1, len(token)):
            yield token[:k]
            yield token[k:]


def _spelling(tokenizer: Tokenizer, wanted: set[bytes]) -> dict[bytes, int]:
    """For each of the wanted spellings an id that has it and is no added token, if there is one."""
    added = tokenizer.added_ids
    spelled = enumerate(tokenizer.spellings)
    return {text: n for n, text in spelled if text in wanted and n not in added}


def _segmented_otherwise(
    tokenizer: Tokenizer, ids: list[int], id_of: dict[bytes, int]
) -> Iterator[list[int]]:
    """Other ids of the same text: one token in two, or two neighbours in one."""
    texts = [tokenizer.spellings[token] for token in ids]
    for k, token in enumerate(ids[:_MOST_JOINTS]):
        if token in tokenizer.added_ids:
            continue
        halves = ((texts[k][:i], texts[k][i:]) for i in range(1, len(texts[k])))
        for left, right in halves:
            if left in id_of and right in id_of:
                yield [*ids[:k], id_of[left], id_of[right], *ids[k + 1 :]]
        if k + 1 < len(ids) and ids[k + 1] not in tokenizer.added_ids:
            joined = texts[k] + texts[k + 1]
            if joined in id_of:
                yield [*ids[:k], id_of[joined], *ids[k + 2 :]]
