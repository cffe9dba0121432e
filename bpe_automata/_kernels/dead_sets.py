"""The dead sets of configurations: see `_constructions.relevance`.

    dead(c) = { r : every id that leads on from the configuration c is forbidden after r }

A configuration is a state pair with a hypothesis set, whatever the last id was
(`_kernels.product`); its key is both in one integer. A depth-first search over the configurations
that ids lead to, which it numbers as it meets them. The candidates of a configuration, ids that may
be dead there, are narrowed down by what costs least: a few ids that are known to lead on, then
those that lead to ALIVE configurations, then those that lead to configurations that are settled. An
id that leads to another configuration can matter only if it may follow a candidate that is left,
and then that configuration is settled first. Where much can follow, tokens that took candidates of
other configurations are tried first, then those of a few bytes, then all.

Where a configuration needs one that is on its way, both are on a cycle. Then all configurations
that they need are settled together: every candidate counts as dead, until ids that lead on show
otherwise. So leading on is a least fixpoint."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._kernels import kernel
from bpe_automata._kernels.geometry import (
    ForbiddenSets,
    all_positions,
    exceeds,
    forbid,
    forbid_after,
    how_many,
    keep,
    listed,
    take_out,
    take_out_leading,
    which_follow,
)
from bpe_automata._kernels.hashing import grown, grown_rows
from bpe_automata._kernels.leading_ids import (
    SHALLOW,
    Tokens,
    first_allowed,
    is_void,
    leading_among,
    leading_ids,
    reads_much,
)
from bpe_automata._kernels.product import (
    ALIVE,
    Product,
    key_number,
    key_state_pair,
    remember_status,
)
from bpe_automata._kernels.settled import (
    NOTHING,
    UNDER_WAY,
    UNSETTLED,
    Dead,
    Met,
    Settled,
    lacks,
    meet,
    met_with_room,
    none_met,
    stored,
    with_all,
)
from bpe_automata._kernels.watch import poll, stopped

_CANDIDATES, _ON_CYCLE = -4, -5
_MOST_HINTS = 64
DONE, AGAIN = -1, -2
_NONE = -1  # no configuration
_FEW_CANDIDATES = 16  # of which followers are looked for one by one
_FRAMES, _SETS, _POOL, _HINTS, _NOTED = 0, 1, 2, 3, 4  # of a stack: how many; hints ever noted
_CONFIGURATION, _BEGIN, _NEXT, _END = 0, 1, 2, 3  # of a frame: its open ids in the pool
_FEWER = 4  # of a frame: are there fewer candidates than when its open ids were listed?
_STAGE = 5  # of a frame: which of its ids are these?
_TRIED, _SHORT, _ALL = 0, 1, 2  # hints, those of a few bytes, all
_SAVED = 6  # of a frame: were its candidates put aside? If not, they are all ids.
_HINTED = 7  # of a frame: how many hints had been noted when its ids were listed


_Array = np.ndarray
_Arrays = tuple[tuple[_Array, _Array, _Array], tuple[_Array, _Array, _Array, _Array]]


class _Stack(NamedTuple):
    """The configurations under way. frames int64 [room, 8]: see the constants; saved int64 [room,
    words]: candidates of those that wait; pool int64 [room, 2]: ids that may take out more, and the
    configuration that each leads to, ~ of it once it was passed on its way; hints int64 [64]: the
    last ids that took candidates of a configuration away; n int64 [5]: how many of each, and hints
    ever noted."""

    frames: np.ndarray
    saved: np.ndarray
    pool: np.ndarray
    hints: np.ndarray
    n: np.ndarray


@kernel
def settle(
    configurations: np.ndarray,
    known: Settled,
    tokens: Tokens,
    forbidden_sets: ForbiddenSets,
    w: Product,
) -> tuple[_Arrays, int]:
    """Settle configurations (int64, `product.configuration_key`), and those that they need; best
    with those nearest to acceptance first.

    Returns ((the arrays of what is settled now, those of `Settled.dead`); DONE, or AGAIN where the
    memo had no room to remember more, or the number of a hypothesis set whose row must be known
    first). A search that was stopped returns `known` as it was; any other may have written into it,
    so that only what is returned is of use. Each configuration has one frame in all, and each turn
    begins or ends one, passes an open id of it, or turns to other ids of it.
    """
    met, everything = none_met(), all_positions(len(forbidden_sets.before.order))
    # Where state pairs run out the search is begun again with what was known.
    sets, slots, values, n_sets = known.dead
    dead = Dead(sets, slots.copy(), values.copy(), n_sets)
    left, stack, wanted = everything.copy(), _empty_stack(len(everything)), DONE
    for key in configurations:
        met = met_with_room(met, 1)
        needed = meet(key, met, known)
        if met.found[needed] != UNSETTLED:
            continue
        while (needed != _NONE or stack.n[_FRAMES] > 0) and not is_void(w):
            if needed != _NONE:
                wanted = _hindrance(met.key[needed], tokens, w)
                if wanted != DONE:
                    break
                stack, met.found[needed] = _pushed(needed, left, everything, stack), UNDER_WAY
                stage = _TRIED if stack.n[_HINTS] > 0 else _SHORT
                met, stack = _listed(
                    stage, stack, met, known, dead, left, tokens, forbidden_sets, w
                )
            frame = stack.frames[stack.n[_FRAMES] - 1]
            configuration = frame[_CONFIGURATION]
            verdict, needed = _advanced(
                frame, met.found, dead, left, stack.pool, forbidden_sets, w.watch
            )
            if needed != _NONE:
                continue
            if verdict != NOTHING and frame[_STAGE] != _ALL:
                stage = _ALL
                if frame[_STAGE] == _TRIED:  # there may be better hints by now
                    stage = _TRIED if frame[_HINTED] < stack.n[_NOTED] else _SHORT
                met, stack = _listed(
                    stage, stack, met, known, dead, left, tokens, forbidden_sets, w
                )
                continue
            if verdict == NOTHING:
                _note_alive(configuration, met, w)
            elif verdict == _CANDIDATES:
                dead, met.found[configuration] = stored(left, dead)
            else:
                met, dead, wanted = _settle_together(
                    configuration, met, known, dead, tokens, forbidden_sets, w
                )
                if wanted != DONE:
                    break
            _pop(stack, met.found, left, everything)
        if wanted != DONE or is_void(w):
            break
    void = is_void(w)
    found = known if void else with_all(known, met, dead)
    # Plain tuples: named ones are made by calls of Python, where the handler of a signal may run;
    # of one inside another numba goes on without it, and crashes.
    arrays, dead = (found.slots, found.values, found.n), found.dead
    arrays_of_dead = dead.sets, dead.slots, dead.values, dead.n
    return (arrays, arrays_of_dead), DONE if void else wanted


# ---------------------------------------------------------------- what is known


@kernel
def _note_alive(configuration: int, met: Met, w: Product) -> None:
    """Nothing is dead at a configuration: rows that lead there need not ask again."""
    met.found[configuration], key = NOTHING, met.key[configuration]
    remember_status(key_state_pair(key), key_number(key), ALIVE, w.memo, w.watch)


@kernel
def _hindrance(key: int, tokens: Tokens, w: Product) -> int:
    """Why a configuration cannot be opened now, as `settle` says it."""
    if 2 * w.memo.n_configurations[0] >= len(w.memo.configurations):
        return AGAIN
    number = key_number(key)
    return number if tokens.row_of[number] < 0 else DONE


# ---------------------------------------------------------------- the configurations under way


@kernel
def _empty_stack(words: int) -> _Stack:
    frames, saved = np.empty((32, _HINTED + 1), np.int64), np.empty((8, words), np.int64)
    pool, hints = np.empty((64, 2), np.int64), np.empty(_MOST_HINTS, np.int64)
    return _Stack(frames, saved, pool, hints, np.zeros(5, np.int64))


@kernel
def _pushed(configuration: int, left: np.ndarray, everything: np.ndarray, stack: _Stack) -> _Stack:
    """With a frame for a configuration, of which all ids are candidates; those of the one above are
    saved."""
    frames, saved, pool, hints, n = stack
    if n[_FRAMES] > 0:
        if n[_HINTS] == 0:  # what is open here will mostly be so there
            for i in range(frames[n[_FRAMES] - 1, _BEGIN], n[_POOL]):
                _note_hint(pool[i, 0], stack)
                if n[_HINTS] == len(hints):
                    break
        frames[n[_FRAMES] - 1, _SAVED] = exceeds(everything, left)
        if frames[n[_FRAMES] - 1, _SAVED]:
            if n[_SETS] == len(saved):
                saved = grown_rows(saved)
            saved[n[_SETS]] = left
            n[_SETS] += 1
    if n[_FRAMES] == len(frames):
        frames = grown_rows(frames)
    left[:] = everything
    frames[n[_FRAMES], _CONFIGURATION], frames[n[_FRAMES], _BEGIN] = configuration, n[_POOL]
    n[_FRAMES] += 1
    return _Stack(frames, saved, pool, hints, n)


@kernel
def _pop(stack: _Stack, found: np.ndarray, left: np.ndarray, everything: np.ndarray) -> None:
    """Without its last frame, and those above that were settled as part of a cycle; `left` are the
    candidates of the one that is last then."""
    frames, saved, n = stack.frames, stack.saved, stack.n
    n[_FRAMES] -= 1
    n[_POOL] = frames[n[_FRAMES], _BEGIN]
    while n[_FRAMES] > 0 and found[frames[n[_FRAMES] - 1, _CONFIGURATION]] != UNDER_WAY:
        n[_FRAMES] -= 1
        n[_SETS] -= frames[n[_FRAMES], _SAVED]
        n[_POOL] = frames[n[_FRAMES], _BEGIN]
    left[:] = everything
    if n[_FRAMES] > 0 and frames[n[_FRAMES] - 1, _SAVED]:
        n[_SETS] -= 1
        left[:] = saved[n[_SETS]]


@kernel
def _listed(
    stage: int,
    stack: _Stack,
    met: Met,
    known: Settled,
    dead: Dead,
    left: np.ndarray,
    tokens: Tokens,
    forbidden_sets: ForbiddenSets,
    w: Product,
) -> tuple[Met, _Stack]:
    """With the open ids of the last frame's configuration in the pool; what surely leads on is
    taken out of its candidates."""
    frame, n = stack.frames[stack.n[_FRAMES] - 1], stack.n
    key = met.key[frame[_CONFIGURATION]]
    if stage == _TRIED and not reads_much(w.memo.state[key_state_pair(key)], w):
        stage = _SHORT  # which are all there are
    if stage == _TRIED:
        complete = False
        ids, rows = leading_among(stack.hints[: n[_HINTS]], key, tokens, w)
    else:
        much = stage == _SHORT and reads_much(w.memo.state[key_state_pair(key)], w)
        deepest = SHALLOW if much else tokens.vocabulary.trie.deepest
        ids, rows = leading_ids(key, deepest, tokens, w)
        complete = deepest == tokens.vocabulary.trie.deepest
    if stage == _ALL and how_many(left) <= _FEW_CANDIDATES:
        for candidate in listed(left):
            _note_follower(candidate, ids, rows, forbidden_sets, stack)
    met = met_with_room(met, len(rows))
    open_, helped = _begun(key, ids, rows, met, known, dead, left, forbidden_sets, w)
    if stage != _TRIED:
        for token in helped:
            _note_hint(token, stack)
    elif 0 < len(helped) < n[_HINTS] and not keep(left, left):
        fewer, others = helped[::-1].copy(), all_positions(len(forbidden_sets.before.order))
        take_out(fewer, others, forbidden_sets, w.watch)
        if not keep(others, others):  # they are all that it takes, best first
            n[_HINTS] = len(fewer)
            stack.hints[: n[_HINTS]] = fewer
    pool = _appended(stack.pool, frame[_BEGIN], open_)
    n[_POOL] = frame[_BEGIN] + len(open_)
    frame[_NEXT], frame[_END], frame[_FEWER] = frame[_BEGIN], n[_POOL], 0
    frame[_STAGE], frame[_HINTED] = _ALL if complete else stage, n[_NOTED]
    return met, _Stack(stack.frames, stack.saved, pool, stack.hints, n)


@kernel
def _note_hint(token: int, stack: _Stack) -> None:
    n, hints = stack.n, stack.hints
    for i in range(n[_HINTS]):
        if hints[i] == token:
            return
    if n[_HINTS] < len(hints):
        hints[n[_HINTS]] = token
        n[_HINTS] += 1
    else:
        hints[n[_NOTED] % len(hints)] = token
    n[_NOTED] += 1


@kernel
def _note_follower(
    candidate: int, ids: np.ndarray, rows: np.ndarray, forbidden_sets: ForbiddenSets, stack: _Stack
) -> None:
    """Note an id that may follow a candidate, if there is one."""
    forbidden = np.empty((len(forbidden_sets.after.order) + 63) >> 6, np.int64)
    forbid_after(forbidden_sets.before.order[candidate], forbidden_sets, forbidden)
    follower = first_allowed(ids, forbidden, forbidden_sets.right_at)
    if follower < 0:
        follower = first_allowed(rows[:, 0], forbidden, forbidden_sets.right_at)
    if follower >= 0:
        _note_hint(follower, stack)


@kernel
def _appended(pool: np.ndarray, n: int, rows: np.ndarray) -> np.ndarray:
    """The pool with rows after its first n, and room."""
    while n + len(rows) > len(pool):
        pool = grown_rows(pool)
    pool[n : n + len(rows)] = rows
    return pool


# ---------------------------------------------------------------- candidates


@kernel
def _begun(
    key: int,
    ids: np.ndarray,
    rows: np.ndarray,
    met: Met,
    known: Settled,
    dead: Dead,
    candidates: np.ndarray,
    forbidden_sets: ForbiddenSets,
    w: Product,
) -> tuple[np.ndarray, np.ndarray]:
    """Take out of the candidates what all that is known to lead on from a configuration leaves.
    ids, rows: of `leading_ids`. Returns (int64 [n, 2], what may take out more: (id, number of the
    configuration that it leads to); of `take_out`)."""
    number, state = key_number(key), w.memo.state[key_state_pair(key)]
    if number == w.fixed_set.number and w.memo.text_state[key_state_pair(key)] == 0:
        take_out_leading(w.fixed_set.leading[state], candidates, forbidden_sets)
    helped = take_out(ids, candidates, forbidden_sets, w.watch)
    lively, n_lively = np.empty(len(rows), np.int64), 0
    others, n_others = np.empty((len(rows), 2), np.int64), 0
    for i in range(len(rows)):
        token, target = rows[i, 0], meet(rows[i, 1], met, known)
        if lacks(token, met.found[target], dead, forbidden_sets.left_at):
            lively[n_lively] = token
            n_lively += 1
        elif met.found[target] <= UNSETTLED:
            others[n_others, 0], others[n_others, 1] = token, target
            n_others += 1
    more = take_out(lively[:n_lively], candidates, forbidden_sets, w.watch)
    others = others[:n_others]
    others = others[which_follow(others[:, 0].copy(), candidates, forbidden_sets, w.watch)]
    return others, np.append(helped, more)


# ---------------------------------------------------------------- one step, and cycles


@kernel
def _advanced(
    frame: np.ndarray,
    found: np.ndarray,
    dead: Dead,
    candidates: np.ndarray,
    pool: np.ndarray,
    forbidden_sets: ForbiddenSets,
    watch: np.ndarray,
) -> tuple[int, int]:
    """(verdict, number of the configuration that must be settled before, or _NONE). If there is
    such a configuration the verdict says nothing. Else NOTHING is dead, or _CANDIDATES are what is
    dead, or an id that matters leads to a configuration on its way: _ON_CYCLE."""
    forbidden, before = np.empty(len(candidates), np.int64), forbidden_sets.before
    birth = forbidden_sets.birth
    if not keep(candidates, candidates):
        return NOTHING, _NONE
    while frame[_NEXT] < frame[_END] and not poll(watch):
        token, target = pool[frame[_NEXT], 0], pool[frame[_NEXT], 1]
        unknown = found[target] == UNSETTLED
        if unknown and not frame[_FEWER]:
            return _CANDIDATES, target
        if unknown or lacks(token, found[target], dead, forbidden_sets.left_at):
            forbid(token, birth, 1, before, forbidden)
            if unknown and exceeds(candidates, forbidden):
                return _CANDIDATES, target
            if not unknown and not keep(candidates, forbidden):
                return NOTHING, _NONE
            frame[_FEWER] = 1
        if found[target] == UNDER_WAY:
            pool[frame[_NEXT], 1] = ~target
        frame[_NEXT] += 1
    # What was on its way when it was passed may be settled by now, as part of a cycle.
    for i in range(frame[_BEGIN], frame[_END]):
        token, target = pool[i, 0], ~pool[i, 1]
        if target < 0 or poll(watch):
            continue
        under_way = found[target] == UNDER_WAY
        if under_way or lacks(token, found[target], dead, forbidden_sets.left_at):
            forbid(token, birth, 1, before, forbidden)
            if under_way and exceeds(candidates, forbidden):
                return _ON_CYCLE, _NONE
            if not under_way and not keep(candidates, forbidden):
                return NOTHING, _NONE
    return _CANDIDATES, _NONE


@kernel
def _settle_together(
    first: int,
    met: Met,
    known: Settled,
    dead: Dead,
    tokens: Tokens,
    forbidden_sets: ForbiddenSets,
    w: Product,
) -> tuple[Met, Dead, int]:
    """The least fixpoint over a configuration and all unsettled ones that it needs: see the
    module's docstring. The third: as in `settle`; if it is not DONE, none of them is settled.

    The first loop opens each configuration once; each pass of the second but the last takes ids
    away."""
    everything = all_positions(len(forbidden_sets.before.order))
    region, at = np.empty(64, np.int64), np.full(len(met.key), _NONE, np.int32)
    candidates = np.empty((64, len(everything)), np.int64)
    pool, begin, end = np.empty((64, 2), np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    region[0], at[first], count, n, n_pool = first, 0, 1, 0, 0
    while n < count:
        wanted = _hindrance(met.key[region[n]], tokens, w)
        if wanted != DONE or is_void(w):
            return met, dead, wanted
        ids, rows = leading_ids(met.key[region[n]], tokens.vocabulary.trie.deepest, tokens, w)
        met = met_with_room(met, len(rows))
        while len(met.key) > len(at):
            at = grown(at, len(at))
            at[len(at) >> 1 :] = _NONE
        candidates[n] = everything
        needs, _ = _begun(
            met.key[region[n]], ids, rows, met, known, dead, candidates[n], forbidden_sets, w
        )
        pool, begin[n], end[n] = _appended(pool, n_pool, needs), n_pool, n_pool + len(needs)
        n_pool = end[n]
        n += 1
        for target in needs[:, 1]:
            if at[target] != _NONE:
                continue
            if count == len(region):
                region, candidates = grown(region, count), grown_rows(candidates)
                begin, end = grown(begin, count), grown(end, count)
            at[target], region[count] = count, target
            count += 1
    changed, forbidden = True, np.empty_like(everything)
    while changed:
        changed = False
        for i in range(count):
            k = begin[i]
            while k < end[i] and not poll(w.watch):
                token, target = pool[k]
                position = forbidden_sets.left_at[token]
                if (candidates[at[target], position >> 6] >> (position & 63)) & 1:
                    k += 1
                    continue
                forbid(token, forbidden_sets.birth, 1, forbidden_sets.before, forbidden)
                keep(candidates[i], forbidden)
                end[i] -= 1
                pool[k] = pool[end[i]]
                changed = True
    if not stopped(w.watch):
        for i in range(count):
            if how_many(candidates[i]) == 0:
                _note_alive(region[i], met, w)
            else:
                dead, met.found[region[i]] = stored(candidates[i], dead)
    return met, dead, DONE
