"""What a request of a server asks for, and the constraints that are kept between requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from bpe_automata.automata.compile import Budget, compile_regex
from bpe_automata.decoding.constraint import Constraint, Method, constrain
from bpe_automata.errors import ArgumentError, BpeAutomataError, BudgetExceededError
from bpe_automata.sharing import Lock, locked
from bpe_automata.tokenizer import AddedTokens, Tokenizer

KEY = "bpe_automata"
"""The key of a request's extra arguments under which its constraint is."""

METHODS: tuple[Method, ...] = ("canonical", "lift")
MOST = 64
"""How many constraints are kept. One may hold a few times 64 MB of rows that were visited."""


@dataclass(frozen=True)
class Options:
    """The constraint of one request.

    regex: Python syntax, `re.fullmatch` semantics. method: "canonical" or "lift". prefix: begin
    after the prompt's own ids; False: as if the text stood alone. added_tokens: as `constrain`.
    eos_ids: None for those of the model.
    """

    regex: str
    method: Method = "canonical"
    prefix: bool = True
    added_tokens: AddedTokens = "plain"
    eos_ids: tuple[int, ...] | None = None


def read_options(extra_args: Mapping[str, Any] | None) -> Options | None:
    """The options under `KEY`; None if the request has no constraint. Raises ArgumentError."""
    given = (extra_args or {}).get(KEY)
    if given is None:
        return None
    if not isinstance(given, Mapping) or not isinstance(given.get("regex"), str):
        raise ArgumentError(f'{KEY} is {given!r}; give {{"regex": "...", "method": "canonical"}}')
    known = set(Options.__dataclass_fields__)
    if unknown := set(given) - known:
        raise ArgumentError(f"{KEY} has no option {min(map(str, unknown))!r}, only {sorted(known)}")
    options = Options(**{**given, "eos_ids": _read_eos_ids(given.get("eos_ids"))})
    if options.method not in METHODS:
        raise ArgumentError(f"method {options.method!r} of {KEY} is none of {METHODS}")
    if not isinstance(options.prefix, bool):
        raise ArgumentError(f"prefix of {KEY} is {given['prefix']!r}, neither True nor False")
    if options.added_tokens not in ("plain", True, False):
        given_is = f"added_tokens of {KEY} is {options.added_tokens!r}"
        raise ArgumentError(f"{given_is}, neither 'plain' nor True nor False")
    return options


def _read_eos_ids(given: object) -> tuple[int, ...] | None:
    if given is None:
        return None
    listed = list(given) if isinstance(given, Sequence) else []
    if not listed or not all(type(token) is int and token >= 0 for token in listed):
        raise ArgumentError(f"eos_ids of {KEY} is {given!r}; give a list of ids")
    return tuple(listed)


def listed_ids(found: Iterable[int] | int | None) -> list[int]:
    """End-of-sequence ids as configurations name them: one, several, or None."""
    if found is None:
        return []
    return [found] if isinstance(found, int) else sorted(found)


def check_regex(options: Options) -> None:
    """Refuse, before a request is queued, a regex that does not compile or that nothing matches.
    Raises ArgumentError."""
    try:
        if _is_empty(options.regex):
            raise ArgumentError(f"no text matches {options.regex!r}")
    except BpeAutomataError as error:
        raise ArgumentError(f"{KEY}: {told(error)}") from error


@lru_cache(MOST)
def _is_empty(regex: str) -> bool:
    """Only the answer is kept, so that a regex that comes again is not compiled again."""
    return compile_regex(regex, Budget()).is_empty


def told(error: BpeAutomataError) -> str:
    """What the client of a server is told: of budgets, which the server sets, only the limit."""
    if not isinstance(error, BudgetExceededError):
        return str(error)
    return (
        f"the constraint takes more than {error.limit:g} {error.resource}: use smaller repeat "
        "counts, or a shorter regex"
    )


class Constraints:
    """The constraints of one tokenizer, made when first asked for; the `MOST` last used are kept.
    For any number of threads. eos_ids: where a request names none; by default the tokenizer's.
    Raises ArgumentError."""

    def __init__(self, tokenizer: Tokenizer, eos_ids: Sequence[int] = ()) -> None:
        self.tokenizer = tokenizer
        self.eos_ids = tuple(dict.fromkeys(eos_ids)) or tokenizer.eos_ids
        known = all(0 <= token < tokenizer.n_ids for token in self.eos_ids)
        if not self.eos_ids or not known:
            raise ArgumentError(
                f"end-of-sequence ids {self.eos_ids} of {tokenizer!r}: at least one is needed, and "
                "each in its range"
            )
        self.lock = Lock()
        self._kept: dict[tuple[object, ...], Constraint] = {}

    def ends_of(self, options: Options) -> tuple[int, ...]:
        """The end-of-sequence ids of a request. Raises ArgumentError for one out of range."""
        if options.eos_ids is None:
            return self.eos_ids
        if max(options.eos_ids) >= self.tokenizer.n_ids:
            raise ArgumentError(
                f"eos_ids of {KEY} is {list(options.eos_ids)}; the last id of the tokenizer is "
                f"{self.tokenizer.n_ids - 1}"
            )
        return options.eos_ids

    def of(self, options: Options) -> Constraint:
        """Raises what `ends_of` and `constrain` raise."""
        eos_ids = self.ends_of(options)
        key = (options.regex, options.method, options.added_tokens, eos_ids)
        found = self._kept.get(key)
        if found is None:
            found = constrain(
                self.tokenizer,
                options.regex,
                method=options.method,
                eos_ids=eos_ids,
                added_tokens=options.added_tokens,
            )
        return self._used(key, found)

    @locked
    def _used(self, key: tuple[object, ...], made: Constraint) -> Constraint:
        """The constraint that is kept, which another thread may have made meanwhile."""
        self._kept[key] = found = self._kept.pop(key, made)
        if len(self._kept) > MOST:
            del self._kept[next(iter(self._kept))]
        return found
