"""A constraint: a language over a tokenizer, ready to be matched."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from bpe_automata._arguments import end_ids, sequence_of_ids, short
from bpe_automata._budget import Budget, spending
from bpe_automata._kernels.distance import NEVER, distances
from bpe_automata._sharing import Immutable, cached
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.linked import ByteAutomaton, LinkedDFA
from bpe_automata.canonical.canonical import canonical_automaton
from bpe_automata.composition.language import automaton_of
from bpe_automata.constructions.engine import TextEngine
from bpe_automata.decoding.matcher import Matcher
from bpe_automata.errors import (
    ArgumentError,
    EmptyLanguageError,
    EndlessTextWarning,
    UnsupportedFeatureError,
)
from bpe_automata.tokenizer.tokenizer import AddedTokens, Tokenizer

if TYPE_CHECKING:
    from bpe_automata.decoding.removed import Removed
    from bpe_automata.token_automata.automaton import TokenAutomaton

Method = Literal["canonical", "lift"]
_DEFAULT = Budget()


@dataclass(frozen=True)
class Constraint(Immutable):
    """A language over a tokenizer. The language never changes, and what matchers visit is cached,
    so keep a constraint and share it: any number of threads may use it, each with a matcher of its
    own. Once a linked automaton has filled half of its room, `matcher` begins on a new one; older
    matchers keep the old one, and the rest of its room. A pickle holds only what the constraint was
    made of; the process that loads it builds it again, with the tokenizer's tables on disk.

    tokenizer, dfa: what it is made of; method: "canonical" or "lift"; engine: the lazy automaton;
    added_tokens: which added tokens may be read as text; budget: that of each call, be it for a
    mask or `automaton`. A call that goes over it raises BudgetExceededError, and leaves the
    constraint and its matchers as they were.
    """

    tokenizer: Tokenizer
    dfa: ByteAutomaton
    method: Method
    engine: TextEngine[Any]
    added_tokens: AddedTokens = "plain"
    budget: Budget = _DEFAULT

    @property
    def n_ids(self) -> int:
        """One more than the largest id of the tokenizer."""
        return self.tokenizer.n_ids

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """The end-of-sequence ids."""
        return self.engine.eos_ids

    @cached
    def unread(self) -> frozenset[int]:
        """The ids that are never read as text: end-of-sequence, and the added tokens that
        `added_tokens` leaves out."""
        text = self.tokenizer.added_as_text(self.added_tokens)
        return frozenset(self.eos_ids) | (self.tokenizer.added_ids - text)

    @cached
    def removed(self) -> Removed | None:
        """What the tokenizer's normalizer removes from the language; None if it removes nothing,
        and for method "lift". Raises BudgetExceededError if the search for it is too long."""
        if self.method == "lift":
            return None
        from bpe_automata.decoding.removed import removed_by_normalizer

        with spending(self.budget):
            return removed_by_normalizer(self.tokenizer, self.dfa)

    def matcher(self, prefix: Sequence[int] = ()) -> Matcher:
        """A matcher at the beginning of the constrained text, after the prompt ids `prefix`. See
        `heal` for a prompt whose last tokens would merge with the answer.

        Raises PromptError if the prompt is not canonical or makes the constraint impossible, and
        ArgumentError if `prefix` is no sequence of ids.
        """
        return Matcher(self.engine_with_room(), prefix)

    def engine_with_room(self) -> TextEngine[Any]:
        """The engine for a new text. It is made anew where its linked automaton is nearly full."""
        engine = self.engine
        walked = getattr(engine, "dfa", None)
        if (
            isinstance(walked, LinkedDFA)
            and walked.is_nearly_full
            and isinstance(self.dfa, LinkedDFA)
        ):
            made = rebuilt(self, self.dfa.anew())
            for name in ("dfa", "engine"):  # two threads may do so at once; either engine will do
                object.__setattr__(self, name, getattr(made, name))
            engine = made.engine
        return engine

    def within(self, max_tokens: int) -> Constraint:
        """The texts of at most `max_tokens` ids, end-of-sequence not counted: every mask keeps only
        ids after which the remaining ids suffice to complete the text. While many remain, a mask
        has every such id. Near the end it has those for which a short completion, tokenized by the
        tokenizer itself, proves it, and may lack others. No mask is empty before the text is
        complete. If no short enough text is found after the prompt, `matcher` raises
        BudgetTooSmallError. Of nested calls the smallest limit counts. Raises ArgumentError, and
        UnsupportedFeatureError for an engine that `constrain` did not make.
        """
        with spending(self.budget):
            from bpe_automata.constructions.within import Within

            return replace(self, engine=Within(self.engine, max_tokens))

    def automaton(self, prefix: Sequence[int] = (), max_edges: int = 1_000_000) -> TokenAutomaton:
        """The explicit automaton of all id sequences that may follow `prefix`, to count, draw,
        compare or export. It has no end-of-sequence ids; accepting states say where they may come.
        It is not minimised. For many languages with common parts, `Segments` makes each part once.

        Raises PromptError, ArgumentError, and BudgetExceededError over `max_edges` transitions.
        """
        with spending(self.budget):
            from bpe_automata.constructions.explicit import explore

            return explore(self.engine, self.engine.initial(sequence_of_ids(prefix)), max_edges)


def constrain(
    tokenizer: Tokenizer,
    language: Any,
    method: Method = "canonical",
    eos_ids: Iterable[int] | None = None,
    *,
    added_tokens: AddedTokens = "plain",
    after: Any = None,
    budget: Budget | None = None,
) -> Constraint:
    """Constrain a model to a language.

    language: a regex (Python syntax, `re.fullmatch` semantics; if its counts make its DFA too
    large, it is linked, see `link_regex`), a list of texts, an automaton (such as `compile_grammar`
    makes of a grammar), or a schema as `schemas.json_schema` takes it, with its defaults: a dict, a
    pydantic model, a function. method: "canonical" (the tokenizer's own tokenization of each text)
    or "lift" (all tokenizations). eos_ids: ids that end the text, allowed exactly where it is
    complete; by default those that the tokenizer's source names. If it names none and some text
    could never end, an EndlessTextWarning says so (linked languages are not checked).
    added_tokens: which added tokens may be read as the text that they spell: "plain", the default,
    those that the tokenizer does not mark as special (a special one means something to the model,
    and is skipped where text is displayed); a tuple of texts: these too; True: all but
    end-of-sequence; False: none. Under "canonical" a text that spells any other added token is not
    in the language, since `encode` would write it with that id; under "lift" it is, spelled by
    ordinary tokens. after: the text or special token, such as "</think>", that ends a free text
    before the language; None where there is none. budget: that of this call and of each later call
    on the constraint. A given one also pays for the tokenizer's automaton where that is not made
    yet (see `canonical_automaton`); the default, `Budget()`, does not.

    Raises ArgumentError, RegexError, SchemaError, BudgetExceededError, EmptyLanguageError,
    TokenOutOfRangeError; for method "canonical", UnsupportedTokenizerError and
    ImproperMergeTableError; for "lift", UnsupportedFeatureError where special tokens are named.
    """
    if not isinstance(tokenizer, Tokenizer):
        raise ArgumentError(
            f"the tokenizer is {short(tokenizer)}: give a Tokenizer, as Tokenizer.load makes of a "
            "path, a name or another library's tokenizer"
        )
    check_added(added_tokens)
    if method not in get_args(Method):
        raise ArgumentError(f"method {method!r} is neither 'canonical' nor 'lift'")
    eos = tokenizer.eos_ids if eos_ids is None else end_ids(eos_ids, tokenizer.n_ids)
    if method == "canonical" and budget is None:
        canonical_automaton(tokenizer)
    budget = _DEFAULT if budget is None else budget
    with spending(budget):
        dfa = automaton_of(language, budget)
        if dfa.is_empty:
            described = repr(language) if isinstance(language, str) else "the constraint"
            raise EmptyLanguageError(f"no text matches {described}")
        if after is not None:
            from bpe_automata.composition.free import text_until
            from bpe_automata.composition.joining import join, special

            added = {token.content for token in tokenizer.description.added if token.special}
            after = special(after) if isinstance(after, str) and after in added else after
            parts = text_until(after, budget=budget), dfa
            dfa = join(*parts, budget=budget)
        if eos_ids is None and not eos and isinstance(dfa, ByteDFA) and _never_ends(dfa):
            warnings.warn(
                f"{tokenizer!r} names no end-of-sequence id, so a text can go on for ever: give "
                "eos_ids, the ids with which the model ends, or [] if the caller ends the text",
                EndlessTextWarning,
                stacklevel=2,
            )
        added_tokens = _with_special(tokenizer, dfa, method, eos, added_tokens)
        engine = _engine(method)(tokenizer, dfa, eos, added_tokens, budget=budget)
    return Constraint(tokenizer, dfa, method, engine, added_tokens, budget)


def check_added(added_tokens: object) -> None:
    """Raises ArgumentError for a value that `constrain` does not take as `added_tokens`."""
    are_texts = isinstance(added_tokens, tuple) and all(isinstance(t, str) for t in added_tokens)
    if not are_texts and added_tokens != "plain" and not isinstance(added_tokens, bool):
        why = f"added_tokens is {short(added_tokens)}"
        raise ArgumentError(f"{why}: give 'plain', True, False or a tuple of texts")


def _with_special(
    tokenizer: Tokenizer,
    dfa: ByteAutomaton,
    method: Method,
    eos: tuple[int, ...],
    added_tokens: AddedTokens,
) -> AddedTokens:
    """The added tokens that may be read, those of the language (see `special`) among them. Raises
    ArgumentError, UnsupportedFeatureError."""
    if not isinstance(dfa, LinkedDFA):
        return added_tokens
    ids = {token.content: token.id for token in tokenizer.description.added if token.special}
    names = tuple(sorted(dfa.marks.special | (dfa.marks.perhaps & ids.keys())))
    if not names:
        return added_tokens
    if method == "lift":
        why = f"other ids spell {names[0]!r}, too: use method='canonical'"
        raise UnsupportedFeatureError("a language with special tokens under method 'lift'", why)
    if added_tokens is False:
        raise ArgumentError(f"added_tokens=False leaves out {names}, which the language names")
    ending = [name for name in names if ids.get(name) in eos]
    if ending:
        why = f"{ending[0]!r} is an end-of-sequence id, and the language names it"
        raise ArgumentError(f"{why}: give eos_ids without it")
    given = added_tokens if isinstance(added_tokens, tuple) else ()
    tokenizer.added_as_text(names)
    return True if added_tokens is True else (*given, *names)


def _never_ends(dfa: ByteDFA) -> bool:
    """Can a text be begun that, complete or not, can always go on?"""
    alive = dfa.far != NEVER
    stops = dfa.accepting & ~alive[dfa.trans].any(axis=1)
    return bool((alive & (distances(dfa.trans, stops) == NEVER)).any())


def _engine(method: Method) -> Callable[..., TextEngine[Any]]:
    if method == "canonical":
        from bpe_automata.constructions.cartesian_merge import CartesianMerge

        return CartesianMerge
    from bpe_automata.constructions.lift import Lift

    return Lift


def rebuilt(constraint: Constraint, dfa: ByteAutomaton) -> Constraint:
    """The same constraint, its budget included, over another language. Raises what `constrain`
    raises, and UnsupportedFeatureError for an engine that `constrain` did not make (such as that of
    `reference.naive_constraint`), as its masks need not be those of `method`."""
    from bpe_automata.constructions.within import Within

    engine = constraint.engine
    inner = engine.inner if isinstance(engine, Within) else engine
    if type(inner) is not _engine(constraint.method):
        why = "only engines made by `constrain` can be made anew over another language"
        raise UnsupportedFeatureError(f"the engine {type(inner).__name__}", why)
    made = constrain(
        constraint.tokenizer,
        dfa,
        constraint.method,
        constraint.eos_ids,
        added_tokens=constraint.added_tokens,
        budget=constraint.budget,
    )
    return made.within(engine.max_tokens) if isinstance(engine, Within) else made
