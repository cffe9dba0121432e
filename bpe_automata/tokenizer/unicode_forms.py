"""The filters of the Unicode normalization forms: { t : form(t) == t }.

A text is in NFD iff it has no character that NFD changes, and in each run of marks the combining
classes do not fall. It is in NFC iff it has no character that NFC changes, the classes do not fall,
and no character composes with the starter S before it. NFKC and NFKD differ only in the characters
that they change.

When does c compose? Let S decompose to B d1...dn, and let the marks m1...mj stand between S and c.
NFC decomposes all of this and sorts it by class, the d before the m of the same class.
  - c is a mark of class k, above that of mj (otherwise mj blocks it, or is out of order). It is
    tried with the composition of B and the d of class <= k. If the two do not compose, c stays; it
    does not block the later d, since their class is higher, and these rebuild S.
  - c is a starter: any mark in between blocks it. Without one, S is tried with the first character
    of c's decomposition, and if the two compose, S is gone.
So of the text before c only the set of characters that would compose now matters: at first that of
S, and after a mark of class k its members of a higher class. The two conditions are two filters,
both small (55 and 203 states in Unicode 14); their product has some 5,000 states.
"""

from __future__ import annotations

import unicodedata
from functools import cache, partial

import numpy as np
import tokenizers
from tokenizers import normalizers

from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.description import Normalization
from bpe_automata.tokenizer.filter_table import N_CODE_POINTS, TableFilter, stored, tabulate
from bpe_automata.tokenizer.probing import Apply, Composing, combining_order, composing, images

FORMS = ("nfc", "nfd", "nfkc", "nfkd")
TOKENIZERS = f"tokenizers {tokenizers.__version__}"
PYTHON = f"unicodedata {unicodedata.unidata_version}"
_VERSION = 2  # of this algorithm: a change invalidates the stored filters

Composable = frozenset[int]
"""A state: the labels of the characters that would compose now."""


@cache
def tokenizers_form(kind: str) -> Normalization:
    """One of `FORMS` as the library `tokenizers` computes it."""
    return Normalization(kind, getattr(normalizers, kind.upper())().normalize_str, TOKENIZERS)


@cache
def python_form(kind: str) -> Normalization:
    """One of `FORMS` as Python's `unicodedata` computes it."""
    apply = partial(_python_normalize, kind.upper())
    return Normalization(kind, apply, PYTHON)


def _python_normalize(form: str, text: str) -> str:
    return unicodedata.normalize(form, text)  # type: ignore[arg-type]


def sibling(step: Normalization, kind: str) -> Normalization:
    """Another form of the same engine. Raises UnsupportedTokenizerError for an unknown engine."""
    for made in (tokenizers_form(kind), python_form(kind)):
        if made.library == step.library:
            return made
    raise UnsupportedTokenizerError(
        f"normalizer {step.kind.upper()}", step.library, f"known are {TOKENIZERS} and {PYTHON}"
    )


def form_filters(step: Normalization) -> tuple[TableFilter, ...]:
    """Filters that together accept { t : step.apply(t) == t }. Raises UnsupportedTokenizerError
    for an unknown library."""
    key = f"unicode {_VERSION} {step.library} {step.kind}"
    if step.kind in ("nfd", "nfkd"):
        return (stored(f"{key} order", lambda: _order_of_decomposed(step.apply)),)
    decompose = sibling(step, "nfd").apply
    facts = cache(lambda: composing(step.apply, decompose))
    return (
        stored(f"{key} order", lambda: _order_filter(facts().unstable, facts().order)),
        stored(f"{key} compose", lambda: _compose_filter(facts())),
    )


# ---------------------------------------------------------------- marks in order


def _order_of_decomposed(apply: Apply) -> TableFilter:
    unstable = frozenset(images(apply, whole_blocks=True))
    return _order_filter(unstable, combining_order(apply, unstable))


def _order_filter(unstable: frozenset[str], order: dict[str, int]) -> TableFilter:
    """The filter of texts without characters that the form changes, in which no class is lower than
    the one before it in a run of marks. A state is the class of the last character."""
    changed = max(order.values()) + 1
    labels = np.zeros(N_CODE_POINTS, dtype=np.int32)
    labels[[ord(c) for c in order]] = list(order.values())
    labels[[ord(c) for c in unstable]] = changed

    def follow(last: int, label: int) -> int | None:
        return None if label == changed or 0 < label < last else label

    return tabulate(labels, 0, follow, lambda last: True)


# ---------------------------------------------------------------- nothing composes


def _compose_filter(facts: Composing) -> TableFilter:
    """The filter of texts in which no character composes with the starter before it. It assumes
    that the other filter accepts them: marks are in order, and no character is unstable."""
    joins = {c: _joining(c, facts) for c in {*facts.composes, *facts.decomposed}}
    seconds = frozenset[str]().union(*joins.values())
    marked = {*joins, *facts.order, *seconds}
    nothing: frozenset[str] = frozenset()
    roles = {
        c: (facts.order.get(c, 0), joins.get(c, nothing), _tried(c, facts, seconds)) for c in marked
    }
    distinct = [(0, nothing, ""), *sorted(set(roles.values()) - {(0, nothing, "")}, key=repr)]
    numbers = {role: number for number, role in enumerate(distinct)}
    labels = np.zeros(N_CODE_POINTS, dtype=np.int32)
    labels[[ord(c) for c in roles]] = [numbers[role] for role in roles.values()]
    after_starter = [
        frozenset(n for n, (_, _, tried) in enumerate(distinct) if tried in joined)
        for _, joined, _ in distinct
    ]

    def follow(composing_now: Composable, label: int) -> Composable | None:
        if label in composing_now:
            return None
        level = distinct[label][0]
        if level == 0:
            return after_starter[label]
        return frozenset(other for other in composing_now if distinct[other][0] > level)

    return tabulate(labels, frozenset[int](), follow, lambda state: True)


def _tried(c: str, facts: Composing, seconds: frozenset[str]) -> str:
    """The first character of c's decomposition; "" if it composes with no character before it."""
    first = facts.decomposed.get(c, c)[0]
    return first if first in seconds else ""


def _joining(starter: str, facts: Composing) -> frozenset[str]:
    """The characters that compose with `starter`, or with the part of its decomposition that sorts
    before them."""
    whole = facts.decomposed.get(starter, starter)
    found: set[str] = set()
    for size, part in enumerate(_parts(whole, facts), start=1):
        complete = size == len(whole)
        most = len(facts.order) if complete else facts.order.get(whole[size], 0) - 1
        if most <= 0:  # a starter of the decomposition follows, which no mark gets before
            continue
        for second in facts.composes.get(part, ()):
            # Its class is not below those in `part`: the two are a sorted decomposition.
            level = facts.order.get(second, 0)
            if complete or 0 < level <= most:
                found.add(second)
    return frozenset(found)


def _parts(whole: str, facts: Composing) -> list[str]:
    """The composition of each prefix of a decomposition; each is a single character."""
    parts = [whole[0]]
    for second in whole[1:]:
        parts.append(facts.composes[parts[-1]][second])
    return parts
