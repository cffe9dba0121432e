"""Every error that the package raises on purpose.

An error names what was wrong, where (position, id, path, value) and what to do about it. All of
them derive from `BpeAutomataError`, so a caller can tell a refused input from a bug. Two warnings
are here too.
"""

from __future__ import annotations


class BpeAutomataError(Exception):
    """Base of all typed errors of this package."""


class ArgumentError(BpeAutomataError, ValueError):
    """An argument of the wrong kind; the message says which, and what to give."""


# ---------------------------------------------------------------- missing things


class MissingDependencyError(BpeAutomataError):
    """An optional package is not installed; the message holds the command that installs it."""


class MissingFileError(BpeAutomataError):
    """A file or folder that was named does not exist, or is not what it should be."""


# ---------------------------------------------------------------- tokenizers


class TokenizerError(BpeAutomataError):
    """A tokenizer cannot be used."""


class BrokenTokenizerError(TokenizerError):
    """A tokenizer contradicts itself: unknown merge parts, ids listed twice, truncated files."""


class EncodingError(BrokenTokenizerError):
    """The tokenizer's own library gives up on a text: its pattern backtracks without end."""


class TokenizerMismatchError(TokenizerError):
    """On some text the tokenizer's own library does not do what was read out of its file, so
    constraints on it would be wrong. Attributes: `text`, `ids`, `ours`, `theirs` (what is said of
    the ids here, and what the library says)."""

    def __init__(
        self, name: str, text: str, ids: tuple[int, ...], ours: object, theirs: object
    ) -> None:
        self.text, self.ids, self.ours, self.theirs = text, ids, ours, theirs
        super().__init__(
            f"{name} is refused, for it was not read rightly. Tried on the text {text!r}, with the "
            f"ids {list(ids)}: {ours!r} by what was read, {theirs!r} by the tokenizer itself. "
            "Load it in another form (its tokenizer.json, or the model file that it was made "
            "from), and report this text with the tokenizer"
        )


MASK_OTHERWISE = "take an engine that masks any tokenization, such as llguidance or outlines"
"""What to do with a tokenizer that stays refused."""

ONLY_BPE = f"only BPE is modelled; for a tokenizer of another kind {MASK_OTHERWISE}"
"""What a reader says of Unigram, WordPiece and the like."""


class ImproperMergeTableError(TokenizerError):
    """A merge uses a token before the merge that makes it."""


class UnsupportedTokenizerError(TokenizerError):
    """A component that changes `encode` and is not modelled exactly, so it is refused.

    Attributes: `component` (for instance "normalizer"), `value` (as the tokenizer spells it),
    `why`.
    """

    def __init__(self, component: str, value: object, why: str) -> None:
        self.component, self.value, self.why = component, value, why
        super().__init__(f"{component} {value!r} is not supported: {why}")


# ---------------------------------------------------------------- regexes


class RegexError(BpeAutomataError):
    """A regex cannot be used. Attributes: `pattern`, `position` (0-based character index)."""

    def __init__(self, pattern: str, position: int, reason: str) -> None:
        self.pattern, self.position, self.reason = pattern, position, reason
        start, end = max(0, position - 30), position + 30
        near = pattern[start:end]
        super().__init__(f"{reason} at position {position} of the regex, near {near!r}")


class RegexSyntaxError(RegexError):
    """The regex is not well formed."""


class UnsupportedRegexError(RegexError):
    """A construct that is not regular, or not modelled: backreference, lookaround, ..."""


class BudgetExceededError(BpeAutomataError):
    """A construction went over a budget. Attributes: `resource`, `limit` (same unit)."""

    def __init__(self, resource: str, limit: float, advice: str) -> None:
        self.resource, self.limit = resource, limit
        most = f"{int(limit):,}" if limit == int(limit) else f"{limit:g}"
        super().__init__(f"budget of {most} {resource} exceeded: {advice}")


class EmptyLanguageError(BpeAutomataError):
    """Nothing matches the constraint (or nothing that the tokenizer can write)."""


# ---------------------------------------------------------------- schemas


def _cut(pointer: str) -> str:
    """For a message: a pointer without its middle, if it is long."""
    return pointer if len(pointer) <= 300 else f"{pointer[:150]}…{pointer[-100:]}"


class SchemaError(BpeAutomataError):
    """A JSON Schema cannot be used. Attribute: `pointer`, where in it, as a JSON pointer in a URI
    fragment ("#" is the whole); the message leaves out the middle of a long one."""

    def __init__(self, pointer: str, reason: str) -> None:
        self.pointer = pointer
        super().__init__(f"{reason} (at {_cut(pointer)} of the schema)")


class InvalidSchemaError(SchemaError):
    """It is no JSON Schema: a keyword with a value of the wrong kind, a $ref that leads nowhere."""


class UnsupportedSchemaError(SchemaError):
    """A keyword that no automaton here expresses exactly. Attribute: `keyword`."""

    def __init__(self, keyword: str, pointer: str, why: str) -> None:
        self.keyword = keyword
        super().__init__(pointer, f"{keyword} is not supported here: {why}")


class LoosenedSchemaWarning(UserWarning):
    """A keyword of a schema is ignored, as `loosen` asks: texts may break it."""


class UnsatisfiableSchemaError(SchemaError, EmptyLanguageError):
    """No value is valid under the schema, or none that can be written in the style asked for."""


class SchemaTooLargeError(SchemaError, BudgetExceededError):
    """The automaton of the schema goes over its budget. Attributes: `resource`, `limit`."""

    def __init__(self, pointer: str, resource: str, limit: float, advice: str) -> None:
        where = f"(at {_cut(pointer)} of the schema)"
        BudgetExceededError.__init__(self, resource, limit, f"{advice} {where}")
        self.pointer = pointer


# ---------------------------------------------------------------- grammars


class GrammarError(BpeAutomataError):
    """A grammar cannot be used: lark cannot read it, and the message says why."""


class UnsupportedGrammarError(GrammarError):
    """Something of a grammar that no automaton here expresses exactly. Attributes: `symbol`, the
    rule or terminal; `why`."""

    def __init__(self, symbol: str, why: str) -> None:
        self.symbol, self.why = symbol, why
        super().__init__(f"{symbol} is not supported: {why}")


# ---------------------------------------------------------------- token automata


class MalformedAutomatonError(BpeAutomataError):
    """Arrays, transitions or a file that are not a token automaton; the message says where."""


class NondeterministicError(MalformedAutomatonError):
    """One symbol leads from one state to two, or a transition reads nothing (symbol None).
    Attributes: `first`, `second`, the transitions (state, symbol, next state); `advice`."""

    def __init__(
        self, first: tuple[object, ...], second: tuple[object, ...], advice: str = ""
    ) -> None:
        self.first, self.second, self.advice = first, second, advice
        silent = next((given for given in (first, second) if given[1] is None), None)
        found = (
            f"the transitions {first!r} and {second!r} begin alike but lead to two states"
            if silent is None
            else f"the transition {silent!r} reads nothing (its symbol is None)"
        )
        super().__init__(f"{found}: {advice}" if advice else found)


class InfiniteLanguageError(BpeAutomataError):
    """All sequences of an infinite language were asked for; give a length."""


# ---------------------------------------------------------------- decoding


class EndlessTextWarning(UserWarning):
    """The tokenizer names no end-of-sequence id, and some text can never end without one."""


class DecodingError(BpeAutomataError):
    """A step of decoding was refused; the state is as it was before."""


class TokenNotAllowedError(DecodingError):
    """The id is not in the current mask. Attributes: `token_id`, `position` (ids so far)."""

    def __init__(self, token_id: int, position: int, reason: str) -> None:
        self.token_id, self.position = token_id, position
        super().__init__(f"token id {token_id} is not allowed at position {position}: {reason}")


class TokenOutOfRangeError(DecodingError):
    """The id is not one of the tokenizer's."""


class PromptError(DecodingError):
    """The prompt is not canonical, or it makes the constraint impossible."""


class BufferShapeError(DecodingError):
    """A caller-owned mask buffer has the wrong shape, dtype or row."""


class LogitsError(DecodingError):
    """Logits that no id can be drawn from: NaN, all -inf, too narrow; the message says which."""


class ModelError(DecodingError):
    """The model itself raised; see `__cause__`. Attributes: `ids`, what had been generated."""

    def __init__(self, ids: tuple[int, ...], reason: str) -> None:
        self.ids = ids
        super().__init__(f"the model failed after {len(ids)} generated ids: {reason}")


class BudgetTooSmallError(DecodingError):
    """No text can be complete within the ids allowed. Attributes: `needed`, `given`, in ids."""

    def __init__(self, needed: int, given: int) -> None:
        self.needed, self.given = needed, given
        super().__init__(f"the shortest answer takes {needed} ids, only {given} are allowed")


class UnsupportedFeatureError(DecodingError):
    """A feature of the host library under which a constraint would not hold. Attributes:
    `feature`, `why`."""

    def __init__(self, feature: str, why: str) -> None:
        self.feature, self.why = feature, why
        super().__init__(f"{feature} is not supported: {why}")
