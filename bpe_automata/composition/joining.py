"""Languages one after another, one of several, and one again and again, as one linked automaton.

Regexes, lists of texts, schemas and grammars are joined as nets (see `automata.rounds`): each is
a rule that is entered when a text leads there, so a join takes no longer than its parts. A text may
be cut into texts of the parts in several ways; the automaton reads all of them at once. The result
is one language, so its masks are exact across the seams, too: where a part ends inside a token, the
next one goes on in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from bpe_automata._arguments import at_least, short
from bpe_automata._budget import Budget, spending
from bpe_automata._sharing import Lock
from bpe_automata.automata.algebra import difference
from bpe_automata.automata.assembly import alphabet
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.linked import ByteAutomaton, LinkedDFA
from bpe_automata.automata.parts import BYTE, FAR, ODD, Marks, check_length, length_of
from bpe_automata.automata.rounds import NO_END, Edge, Node, Repeat, beginning, length
from bpe_automata.automata.sources import from_strings
from bpe_automata.automata.trees import Joined, JoinTree, Named, OneOf, Rounds
from bpe_automata.composition.language import automaton_of
from bpe_automata.errors import (
    ArgumentError,
    BudgetExceededError,
    EmptyLanguageError,
    UnsupportedFeatureError,
)

_DEFAULT = Budget()
_DEEPEST = 50  # joins in one another


def join(*languages: Any, budget: Budget = _DEFAULT) -> LinkedDFA:
    """{ u v ... : u in the first language, v in the second one, ... }, as one automaton.

    languages: what `constrain` takes, automata among them; at least one. budget: as of
    `link_regex`. Raises ArgumentError, EmptyLanguageError where one of them has no text,
    BudgetExceededError for more than 50 joins in one another, UnsupportedFeatureError for a linked
    automaton that `begun_with` or `live_by` made, and the errors of what makes them.

        join("<answer>", {"type": "object"}, "</answer>")
    """
    return _joined(languages, budget, partial(join, budget=budget))[0]


def part(name: str, language: Any, *, budget: Budget = _DEFAULT) -> LinkedDFA:
    """A language with a name, for a `join`: a `Stream` tells each of its texts (but empty ones)
    once it is finished. Raises ArgumentError for a name that is no text, and what `join` raises."""
    if not isinstance(name, str):
        raise ArgumentError(f"the name of a part is {short(name)}: give a text")
    made, (one,) = _joined([language], budget, partial(part, name, budget=budget))
    made.tree = Named(name, one.source if made.tree is None else made.tree)
    return made


def _joined(languages: Sequence[Any], budget: Budget, make: Any) -> tuple[LinkedDFA, list[_Part]]:
    with spending(budget):
        parts = _parts(languages, budget, "join")
        rank = _rank(parts)
        then = _node([], True, rank)
        for one in reversed(parts):
            edges = [(one.texts, then)] if one.texts else []
            if one.may_be_empty:
                edges += then.edges
            then = _node(edges, one.may_be_empty and then.ends, rank)
        return _with_tree(_linked(then, parts, budget, make), languages, parts, Joined), parts


def either(*languages: Any, budget: Budget = _DEFAULT) -> LinkedDFA:
    """The union of languages, as one automaton. Arguments and errors are those of `join`."""
    with spending(budget):
        parts = _parts(languages, budget, "either")
        rank = _rank(parts)
        end = _node([], True, rank)
        edges = [(one.texts, end) for one in parts if one.texts]
        root = _node(edges, any(one.may_be_empty for one in parts), rank)
        made = _linked(root, parts, budget, partial(either, budget=budget))
        return _with_tree(made, languages, parts, OneOf)


def repeat(
    language: Any, least: int = 0, most: int | None = None, *, budget: Budget = _DEFAULT
) -> LinkedDFA:
    """From `least` to `most` texts of a language (None: any number), one after another, as one
    automaton. `most` is at least 1 and at least `least`, or ArgumentError is raised; the other
    arguments and errors are those of `join`."""
    least = at_least(0, least, "least")
    end_of = NO_END if most is None else at_least(max(1, least), most, "most")
    with spending(budget):
        parts = _parts([language], budget, "repeat")
        (one,), rank = parts, _rank(parts)
        end = _node([], True, rank)
        edges = list[Edge]()
        if one.texts:  # an empty text is never counted as a round
            body = _node([(one.texts, _node([], True, rank + 1))], False, rank + 1)
            edges.append((Repeat(body, 1 if one.may_be_empty else max(1, least), end_of), end))
        root = _node(edges, one.may_be_empty or least == 0, rank)
        again = partial(repeat, least=least, most=most, budget=budget)
        made = _linked(root, parts, budget, again)
        return _with_tree(made, [language], parts, lambda of: Rounds(of[0], least, most))


def special(text: str) -> LinkedDFA:
    """The language of one added token, such as "</think>", for a `join`: `constrain` lets the
    tokenizer's token of that text be read, although it may be marked as special.

    It is the id: nothing else spells it under "canonical", and method "lift" refuses it. Where the
    language holds its text elsewhere, as in a string of JSON, that is the id, too, as it is to
    `encode`. `to_dfa` keeps the text alone: name it in `added_tokens` of `constrain` then. Raises
    ArgumentError for what is no text."""
    if not isinstance(text, str) or not text or not is_unicode(text):
        raise ArgumentError(
            f"the special token is {short(text)}: give its text, such as '</think>'"
        )
    marks = Marks(special=frozenset((text,)), tags=frozenset((text.encode(),)))
    return naming(from_strings([text]), marks, partial(special, text))


def is_unicode(text: str) -> bool:
    """Has a text UTF-8, that is no half of a surrogate pair?"""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def perhaps_special(text: str) -> LinkedDFA:
    """One text; where the tokenizer has a special token of it, that token."""
    marks = Marks(perhaps=frozenset((text,)), tags=frozenset((text.encode(),)))
    return naming(from_strings([text]), marks, partial(perhaps_special, text))


def naming(dfa: ByteDFA, marks: Marks, make: Any, budget: Budget = _DEFAULT) -> LinkedDFA:
    """A language without the empty text, whose texts end with the tags of the marks. make: makes
    it anew."""
    one = _tagged(dfa, marks)
    root = _node([(one.texts, _node([], True, -2))], False, -2)
    return _linked(root, [one], budget, make, is_whole=True)


def with_automata(tree: JoinTree) -> JoinTree:
    """The tree with an automaton for each part that has no name in it."""
    if isinstance(tree, Named | Rounds):
        return replace(tree, inner=with_automata(tree.inner))
    if isinstance(tree, Joined | OneOf):
        return replace(tree, inner=tuple(map(with_automata, tree.inner)))
    return _made_again(lambda made: made, (tree,))


def _with_tree(
    made: LinkedDFA, languages: Sequence[Any], parts: list[_Part], node: Any
) -> LinkedDFA:
    """Keep how it was joined, if that matters."""
    trees = [one.tree if isinstance(one, LinkedDFA) else None for one in languages]
    if any(tree is not None for tree in trees):
        pairs = zip(trees, parts, strict=True)
        made.tree = node(tuple(one.source if tree is None else tree for tree, one in pairs))
    return made


class _Part(NamedTuple):
    """A language of a join. texts: what reads those that are not empty, None if there are none;
    source: what makes it anew; rank: that of the node where it begins; lock: that of its nets, if
    it has some; depth: of joins. (Linked automata are not kept, as each has room of its own.)"""

    texts: Any
    may_be_empty: bool
    byte_class: np.ndarray
    source: Any
    rank: int = 0
    lock: Lock | None = None
    marks: Marks = Marks()
    depth: int = 0


def _parts(languages: Sequence[Any], budget: Budget, what: str) -> list[_Part]:
    if not languages:
        raise ArgumentError(f"there is nothing to {what}: give at least one language")
    found = [  # linked automata come last, once all locks have been seen
        one if isinstance(one, LinkedDFA) else _part(automaton_of(one, budget), at, budget)
        for at, one in enumerate(languages)
    ]
    # One lock for all nets: those of another one are made anew, so that nobody else enters them.
    locks = [one.lock for one in found if one.lock]
    lock = max(locks, key=attrgetter("is_global"), default=None)
    return [
        _part(one if one.lock is lock else one.anew(), at, budget)
        if isinstance(one, LinkedDFA)
        else one
        for at, one in enumerate(found)
    ]


def _part(made: ByteDFA | LinkedDFA, at: int, budget: Budget) -> _Part:
    if made.is_empty:
        raise EmptyLanguageError(f"language {at} of those that are joined has no text")
    may_be_empty = bool(made.accepting[made.start])
    if isinstance(made, ByteDFA):
        tag = _only_text(made)
        if tag is not None and length_of(tag) % BYTE:
            return _tagged(made, Marks(tags=frozenset((tag,))))
        texts = difference(made, compile_regex(""), budget) if may_be_empty else made
        return _Part(None if texts.is_empty else texts, may_be_empty, made.byte_class, made)
    if made.rule is None:
        why = "it does not tell what it was made of: give the language itself"
        raise UnsupportedFeatureError("joining this linked automaton", why)
    rule: Any = made.rule
    read = rule if rule.body.reads else None
    given = read, may_be_empty, made.byte_class, _source(made), rule.body.rank
    return _Part(*given, made.lock, made.marks, made.depth)


def _tagged(dfa: ByteDFA, marks: Marks) -> _Part:
    """A language in which, from each state, the rest of a tag is a shortest way to the end."""
    body = _node([(dfa, _node([], True, 0))], False, 0, is_tag=True)
    return _Part(Repeat(body, 1, 1), False, dfa.byte_class, dfa, marks=marks)


def _only_text(dfa: ByteDFA) -> bytes | None:
    """The text of a language that has one."""
    text = dfa.shortest()
    if text is None or dfa.n_states != len(text) + 2:
        return None
    letters = (dfa.trans[:, dfa.byte_class] > 0).sum()
    return text if letters == len(text) else None


def _rank(parts: list[_Part]) -> int:
    """Two less than the least rank of the parts: `repeat` puts a node in between."""
    return min(0, *(one.rank for one in parts)) - 2


def _node(edges: list[Edge], ends: bool, rank: int, is_tag: bool = False) -> Node:
    more = 1 if is_tag else ODD
    lengths = [to.far + length(what, more) for what, to in edges]
    far = 0 if ends else min(lengths, default=FAR)
    if far < FAR:
        check_length(far, "the languages that are joined")
    return Node(lambda: edges, ends, far, rank, is_tag=is_tag)


def _linked(
    root: Node, parts: list[_Part], budget: Budget, make: Any, is_whole: bool = False
) -> LinkedDFA:
    """make: makes it anew out of its parts, or if it is_whole without them."""
    depth = 1 + max(part.depth for part in parts)
    if depth > _DEEPEST:
        raise BudgetExceededError("joins in one another", _DEEPEST, "give more languages to one")
    rule = Repeat(_node(list(root.edges), False, root.rank), 1, 1)
    classes = alphabet([part.byte_class for part in parts], b" ")[0].astype(np.uint8)
    locks = [part.lock for part in parts if part.lock]
    sources = () if is_whole else tuple(part.source for part in parts)
    made = LinkedDFA(
        beginning(rule, root.ends),
        classes,
        budget,
        lock=max(locks, key=attrgetter("is_global"), default=None),
        origin=(_made_again, (make, sources)),
        rule=rule,
        marks=Marks().union(part.marks for part in parts),
    )
    made.depth = depth
    return made


class _Origin(NamedTuple):
    """A function and its arguments, which make a linked automaton anew."""

    of: tuple[Any, tuple[Any, ...]]


def _source(made: ByteAutomaton) -> ByteDFA | _Origin:
    return made if isinstance(made, ByteDFA) else _Origin(made.__reduce__())


def _made_again(make: Any, sources: tuple[Any, ...]) -> Any:
    """Parts that come several times are made once."""
    memo: dict[int, LinkedDFA] = {}

    def made(make: Any, sources: tuple[Any, ...]) -> LinkedDFA:
        return make(*map(one, sources))

    def one(source: Any) -> Any:
        if not isinstance(source, _Origin):
            return source
        if id(source.of) not in memo:
            make, given = source.of
            memo[id(source.of)] = made(*given) if make is _made_again else make(*given)
        return memo[id(source.of)]

    return made(make, sources)
