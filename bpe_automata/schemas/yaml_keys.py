"""Names of properties as keys of block YAML.

    keys(names) = { spelled(t) : t in names }              if no name has over 32 characters
                = { spelled(t) : t in names and in WRITTEN }   otherwise

YAML ends a key after 1,024 characters of source, so a set of names without a bound has to be cut,
and each character that is counted costs about half the states of all scalars: some 120. WRITTEN
holds the names of up to 4 characters; those of up to 8 if they are printable ASCII; and those of
up to 64 if they are moreover either plain and begin with a letter, `_`, `/` or `$`, or need quotes
because of the first character (`@scope/name`, `*.md`) and no escapes.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from bpe_automata.automata.algebra import any_of, intersection
from bpe_automata.automata.assembly import reduced
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.budget import Budget
from bpe_automata.errors import UnsupportedSchemaError
from bpe_automata.schemas.yaml_quotes import yaml_texts
from bpe_automata.schemas.yaml_scalars import plain, spelled

_SOURCE = 1024  # characters of a key: YAML 1.1, section 9.1.3 (simple keys)
_SHORT = 32
_DEFAULT = Budget()


def key(name: str) -> bytes:
    """The one name, with a colon. Raises UnsupportedSchemaError if it is too long."""
    text = spelled(name)
    if len(text) > _SOURCE:
        why = f"a key of YAML takes at most {_SOURCE} characters, {name[:20]!r}... is longer"
        raise UnsupportedSchemaError("properties", "#", why)
    return f"{text}:".encode()


def keys(names: ByteDFA, budget: Budget = _DEFAULT) -> ByteDFA:
    """The names, each with a colon; see above. Raises BudgetExceededError.

    A part of a set that is written whole is written whole, so that differences of texts stay right.
    """
    if not intersection(names, _long()).is_empty:
        names = intersection(names, written(), budget)
    return _with_colon(yaml_texts(names, budget), budget)


@lru_cache(maxsize=1)
def written() -> ByteDFA:
    """WRITTEN, see above."""
    named = intersection(compile_regex(r"[A-Za-z_/$][ -~]{0,63}"), plain())
    in_quotes = compile_regex(r"[,\[\]{}#&*!|>'%@`][ !#-\[\]-~]{0,63}")
    return any_of([compile_regex(r"(?s:.{0,4})"), compile_regex(r"[ -~]{0,8}"), named, in_quotes])


@lru_cache(maxsize=1)
def _long() -> ByteDFA:
    return compile_regex(f"(?s:.{{{_SHORT + 1},}})")


def _with_colon(texts: ByteDFA, budget: Budget) -> ByteDFA:
    """{ t ":" : t in L(texts) }. Where t ":" begins another text, the two go on together: what is
    read so far is then both a key that is over and a part of a longer one."""
    ends = np.flatnonzero(texts.accepting)
    n, colon = texts.n_states, texts.byte_class[ord(":")]
    if (texts.byte_class == colon).sum() > 1:
        return _with_colon(_colon_alone(texts), budget)
    trans = np.concatenate([texts.trans, texts.trans[texts.trans[ends, colon]]])
    trans[ends, colon] = n + np.arange(len(ends), dtype=np.int32)
    accepting = np.arange(len(trans)) >= n
    # A copied row must not lose the end after a second colon: `a:` and `a::`.
    trans[n:, colon] = trans[texts.trans[ends, colon], colon]
    return reduced((trans, texts.byte_class), accepting, texts.start, budget)


def _colon_alone(texts: ByteDFA) -> ByteDFA:
    """The same automaton with a column for the colon only."""
    byte_class = texts.byte_class.copy()
    old = byte_class[ord(":")]
    byte_class[ord(":")] = texts.n_classes
    trans = np.concatenate([texts.trans, texts.trans[:, old : old + 1]], axis=1)
    return ByteDFA(np.ascontiguousarray(trans), byte_class, texts.accepting, texts.start)
