"""What lets one object serve many threads, forked processes and copies.

Values here are immutable to their users, and find out what they are asked for the first time. So

    cached     what is found is one object for all threads, though two may look for it at once
    locked     what grows (tables, numberings) is added to by one thread at a time
    fork       waits until no thread is in the middle of that, so a child has whole tables
    Immutable  a copy is the object itself; what travels to other processes is what it was made of

Locks are taken in one order: that of a constraint's tables, so that the kernels of one run beside
those of another; that of their tokenizer; then those of the parts that both use, such as sets of
hypotheses. What is known already is read without a lock.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import wraps
from math import inf
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from bpe_automata._budget import out_of_time, seconds_left

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class cached(Generic[T_co]):  # noqa: N801 - used as a decorator, as `functools.cached_property`
    """A property that is found once and kept in the object's `__dict__`.

    Unlike `functools.cached_property` it never holds a lock while it is found (Python 3.11 has one
    for all objects of a class, which a forked child may find taken for ever), and threads that look
    at once get the same object, the one that was found first."""

    def __init__(self, find: Callable[[Any], T_co]) -> None:
        self._find = find
        self.__doc__ = find.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T_co: ...
    def __get__(self, instance: object, owner: type) -> Self | T_co:
        if instance is None:
            return self
        found: T_co = instance.__dict__.setdefault(self._name, self._find(instance))
        return found


class Immutable:
    """Of what never changes: copies are the object itself, and what was `cached` is not pickled."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __getstate__(self) -> dict[str, object]:
        kind = type(self)
        found = self.__dict__.items()
        return {k: v for k, v in found if not isinstance(getattr(kind, k, None), cached)}


# ---------------------------------------------------------------- locks


class Lock(type(threading.RLock())):  # type: ignore[misc]
    """A re-entrant lock that a fork waits for. Taken by `with`, or by `locked` methods. is_global:
    does it guard what all objects of a kind share, those that are made anew, too?"""

    is_global = False

    def __init__(self) -> None:
        # Nothing of Python's runs when a lock goes: Ctrl-C would be lost in a callback.
        _live.add(weakref.ref(self, _live.discard))


_live: set[weakref.ref[Lock]] = set()


class _Guarded(Protocol):
    @property
    def lock(self) -> Lock: ...


G = TypeVar("G", bound=_Guarded)


def locked(
    method: Callable[Concatenate[G, P], T],
) -> Callable[Concatenate[G, P], T]:
    """The method, run by one thread at a time of those that share `self.lock`. One wait takes at
    most the seconds that are left of the thread's budget: raises BudgetExceededError."""

    @wraps(method)
    def alone(self: G, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self.lock._is_owned():  # already, by this thread
            return method(self, *args, **kwargs)
        held, acquire = False, self.lock.acquire
        try:
            # No call of its own: an interrupt right after it would leave the lock taken for ever.
            (held,) = map(acquire, (False,))
            if not held:
                seconds = seconds_left()
                (held,) = map(acquire, (True,), (-1 if seconds == inf else seconds,))
            if not held:
                raise out_of_time()
            return method(self, *args, **kwargs)
        finally:
            if held:
                self.lock.release()

    return alone


# ---------------------------------------------------------------- fork


class _Held(threading.local):
    """The locks that a thread holds while it forks."""

    def __init__(self) -> None:
        self.locks: list[Any] = []


_held = _Held()


def _hold_all() -> None:
    """Take every lock, without waiting for one while others are held: so it does not matter in
    which order other threads take them."""
    first: Any = None
    while True:
        locks = [lock for ref in list(_live) if (lock := ref()) is not None]
        if first is not None:
            first.acquire()
            _held.locks.append(first)
        busy = next((k for k in locks if k is not first and not _taken(k)), None)
        if busy is None:
            return
        _release_all()
        first = busy


def _taken(lock: Any) -> bool:
    if lock.acquire(blocking=False):
        _held.locks.append(lock)
        return True
    return False


def _release_all() -> None:
    while _held.locks:
        _held.locks.pop().release()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_hold_all, after_in_parent=_release_all, after_in_child=_release_all)


# A memo of bounded size: the oldest entries go first.

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

BYTES = 64_000_000


class BoundedMemo(Generic[K, V]):
    """About `BYTES` of entries that take some `entry_bytes` each, and room for `least` in any case.
    For any number of threads."""

    def __init__(self, entry_bytes: int, least: int = 64) -> None:
        self._most = max(least, BYTES // max(1, entry_bytes))
        self._entries: dict[K, V] = {}
        self.get = self._entries.get

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value
        while len(self._entries) > self._most:
            with suppress(KeyError, RuntimeError):  # another thread came first, and it goes on
                del self._entries[next(iter(self._entries))]
