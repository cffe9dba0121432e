"""The product of a byte DFA with the canonical automaton of a tokenizer: what its kernels run on.

A state pair is a DFA state q together with a state a of the text automaton; state pair p < n_states
is (p, 0), others are interned as they come up. A configuration is a state pair with a hypothesis
set. It is

    ALIVE    if some text goes on from it to acceptance whatever the last id was: it accepts, or a
             boundary can come right here, or texts are known that are enough for every id
    PARTLY   if some text goes on, and it may depend on what the last id would merge with
    DEAD     if no text goes on to acceptance
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._kernels import kernel
from bpe_automata._kernels.fixed_set import FixedSet
from bpe_automata._kernels.geometry import Pairs
from bpe_automata._kernels.hashing import slot_of
from bpe_automata._kernels.links import Steps, step
from bpe_automata._kernels.references import by_reference
from bpe_automata._kernels.trie import walk
from bpe_automata._kernels.watch import stopped

UNKNOWN, ALIVE, DEAD, PARTLY = 0, 1, 2, 3
SET_BITS = 24
MOST_SETS = 1 << SET_BITS
IN_VAIN = -2  # of a witness: none that was looked for led on
MOST_SHOWN = 3  # bytes: what is left of a character after its first


@by_reference
class Dfa(NamedTuple):
    """steps: where bytes lead, see `_kernels.links`; accepting bool [n_states];
    added_from, after_added int32 [n_states]: where the text of an added token is read from (0: not
    here), and the state that is meant by the one where it ends (see `_constructions.lift`); plain
    bool [n_states]: does a text of PLAIN bytes lead to acceptance, as far as is known?"""

    steps: Steps
    accepting: np.ndarray
    added_from: np.ndarray
    after_added: np.ndarray
    plain: np.ndarray


@by_reference
class Reading(NamedTuple):
    """Of n hypotheses and c coarse atoms: utf8 int32 [UTF-8 rows, 256] and coarse int32 [n_atoms],
    see `_tokenizer.alphabet`; ends bool [n]; step_start int32 [2*n*c + 1], step_to int32: CSR of
    the hypotheses that follow hypothesis h by coarse atom k with (b = 1) or without a boundary
    before it, at index (b*n + h)*c + k; universal bool [n]: can every text be read from there to
    its end?"""

    utf8: np.ndarray
    coarse: np.ndarray
    ends: np.ndarray
    step_start: np.ndarray
    step_to: np.ndarray
    universal: np.ndarray


@by_reference
class Added(NamedTuple):
    """next int32 [n_states, n_atoms], ends bool [n_states]; harmless bool [n_states], see
    `_constructions.text_quotient`; after_row int32 [n_states] into after int32 [rows, n_added],
    start int32 [n_added + 1], data uint8: see `_tokenizer.text_automaton`; ids int32 [n_added], -1
    for one that may not be read."""

    next: np.ndarray
    ends: np.ndarray
    harmless: np.ndarray
    after_row: np.ndarray
    after: np.ndarray
    start: np.ndarray
    data: np.ndarray
    ids: np.ndarray


@by_reference
class Sets(NamedTuple):
    """start int32 [n_sets + 1] into the members; hypothesis, boundary int32; may_break, may_bind
    bool: can there be, or not be, a boundary after this member; utf8_row int32 [n_sets]: UTF-8
    row of the character being read, 0: none;
    ends bool [n_sets]: can a text end, in state 0 of the text automaton; given_up bool [n_sets]:
    has the search of `_kernels.split_characters` failed once? shown int32 [n_sets, ways, 3]: texts
    that show the status of a configuration, see `shown_status`. Of each text

        0    its bytes, MOST_SHOWN at most, the first one lowest
        1    4 * (1 + the hypothesis after it) + how many bytes; 0 behind the last text
        2    the atom that it completes
    """

    start: np.ndarray
    hypothesis: np.ndarray
    boundary: np.ndarray
    may_break: np.ndarray
    may_bind: np.ndarray
    utf8_row: np.ndarray
    ends: np.ndarray
    given_up: np.ndarray
    shown: np.ndarray


@by_reference
class Fragments(NamedTuple):
    """Tokens around characters that are split between tokens. open_start int32 [UTF-8 rows + 1] and
    open_ids int32: by UTF-8 row, the tokens that can end there inside a character; start int32 [n +
    1], data uint8, ids int32 [n]: tokens that are nothing but next bytes of a character, the
    fragments. covers int32 [UTF-8 rows, covers, ways, 4]: a way is up to four fragments that may
    follow one another, and of the ways of a cover each id that ends in the row may be followed by
    some; filled up with -1, the cover that was found last comes first."""

    open_start: np.ndarray
    open_ids: np.ndarray
    start: np.ndarray
    data: np.ndarray
    ids: np.ndarray
    covers: np.ndarray


@by_reference
class Witnesses(NamedTuple):
    """Ids that show that others are not dead: after id t that led to set H, the id n may follow and
    leads to set H'. A new witness overwrites the one in its slot. key int64 [slots]: t and H, see
    `configuration_key`, -1 where there is none; id, after int32 [slots]: n, -1 where no id of the
    tokenizer may follow, IN_VAIN where no n led on from some configuration, and H'."""

    key: np.ndarray
    id: np.ndarray
    after: np.ndarray


@by_reference
class Memo(NamedTuple):
    """What is known. configurations int64, status uint8: hash table of statuses by
    `configuration_key`; n_configurations int64 [1]; at_end uint8 [state pairs, n / 4]: see
    `known_at_end`; free uint8 [state pairs, n]: see `_kernels.split_characters`; keys int64, values
    int32: hash table of state pairs; state, text_state int32 [state pairs]; n_state_pairs int64
    [1]."""

    configurations: np.ndarray
    status: np.ndarray
    n_configurations: np.ndarray
    at_end: np.ndarray
    free: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    state: np.ndarray
    text_state: np.ndarray
    n_state_pairs: np.ndarray


@by_reference
class Product(NamedTuple):
    """All of it: one DFA, one tokenizer, and what is known of their product. watch: that of the
    thread that asks, see `_kernels.watch`."""

    dfa: Dfa
    reading: Reading
    added: Added
    sets: Sets
    memo: Memo
    fragments: Fragments
    pairs: Pairs
    fixed_set: FixedSet
    witnesses: Witnesses
    watch: np.ndarray


@kernel
def intern_state_pair(state: int, added: int, w: Product) -> int:
    """The number of a state pair. Where there is no room for it the memo says so (`is_full`), and
    what the kernel answers then is worth nothing. (No exception: numba never frees the arrays that
    a kernel holds when it raises one.)"""
    if added == 0:
        return state
    key = state * len(w.added.next) + added
    at = slot_of(w.memo.keys, key)
    if w.memo.keys[at] != key:
        if w.memo.n_state_pairs[0] >= len(w.memo.state):
            w.memo.n_state_pairs[0] = len(w.memo.state) + 1
            return 0
        w.memo.keys[at] = key
        w.memo.values[at] = w.memo.n_state_pairs[0]
        w.memo.state[w.memo.n_state_pairs[0]] = state
        w.memo.text_state[w.memo.n_state_pairs[0]] = added
        w.memo.n_state_pairs[0] += 1
    return w.memo.values[at]


@kernel
def configuration_key(state_pair: int, number: int) -> int:
    """Of a state pair and one of MOST_SETS hypothesis sets."""
    return (state_pair << SET_BITS) | number


@kernel
def key_state_pair(key: int) -> int:
    return key >> SET_BITS


@kernel
def key_number(key: int) -> int:
    return key & (MOST_SETS - 1)


@kernel
def known_at_end(state_pair: int, hypothesis: int, memo: Memo) -> int:
    """ALIVE or DEAD for a hypothesis at a character's end, or UNKNOWN: two bits, as there may be a
    million state pairs, and some 25 hypotheses."""
    return memo.at_end[state_pair, hypothesis >> 2] >> 2 * (hypothesis & 3) & 3


@kernel
def know_at_end(state_pair: int, hypothesis: int, status: int, memo: Memo) -> None:
    at = 2 * (hypothesis & 3)
    others = memo.at_end[state_pair, hypothesis >> 2] & ~(3 << at)
    memo.at_end[state_pair, hypothesis >> 2] = others | status << at


@kernel
def known_status(state_pair: int, number: int, memo: Memo) -> int:
    """UNKNOWN where nobody has asked yet: automata are large, and few of their configurations are
    met."""
    return memo.status[slot_of(memo.configurations, configuration_key(state_pair, number))]


@kernel
def quick_status(state: int, number: int, w: Product) -> int:
    """The status of a configuration at a DFA state, in state 0 of the text automaton, if it is
    remembered or known texts show it; UNKNOWN if not."""
    status = known_status(state, number, w.memo)
    if status == UNKNOWN:
        status = shown_status(state, number, w)
        if status != UNKNOWN:
            remember_status(state, number, status, w.memo, w.watch)
    return status


@kernel
def shown_status(state: int, number: int, w: Product) -> int:
    """What known texts of a hypothesis set show of its configuration at a DFA state, in state 0 of
    the text automaton: ALIVE, PARTLY (where it was given up to look for more), UNKNOWN.

    At a character's end one text is enough: the empty one, or a character before which a boundary
    can come, and after which acceptance is within reach. Inside a character all must complete it,
    and then the text can end or a boundary come: whatever the last id was, one of them is spelled
    by ids that may follow it. One that completes it, and leads to acceptance, shows PARTLY.

    The texts are those of the tokenizer; that they leave the text automaton in state 0 depends on
    the DFA, which may not see all of it (`_constructions.text_quotient`)."""
    if w.dfa.accepting[state] and w.sets.ends[number]:
        return ALIVE
    given_up, found = w.sets.given_up[number], UNKNOWN
    whole = w.sets.utf8_row[number] == 0 or given_up
    for i in range(w.sets.shown.shape[1]):
        code = w.sets.shown[number, i, 1]
        if code == 0:
            break
        if w.added.next[0, w.sets.shown[number, i, 2]] != 0:
            return UNKNOWN
        q, hypothesis, text = state, (code >> 2) - 1, w.sets.shown[number, i, 0]
        for _ in range(code & 3):
            q = step(q, text & 0xFF, w.dfa.steps)
            text >>= 8
        leads = known_at_end(q, hypothesis, w.memo) if whole else w.memo.free[q, hypothesis]
        if leads != ALIVE:
            return UNKNOWN
        found = PARTLY if given_up else ALIVE
    return found


@kernel
def remember_status(
    state_pair: int, number: int, status: int, memo: Memo, watch: np.ndarray
) -> None:
    """As long as there is room, and nothing was stopped: what is not remembered is found again."""
    if 2 * memo.n_configurations[0] >= len(memo.configurations) or stopped(watch):
        return
    key = configuration_key(state_pair, number)
    slot = slot_of(memo.configurations, key)
    memo.n_configurations[0] += memo.configurations[slot] != key
    memo.configurations[slot], memo.status[slot] = key, status


@kernel
def step_range(boundary: int, hypothesis: int, atom: int, w: Product) -> tuple[int, int]:
    """The range in `reading.step_to` of what follows a hypothesis by an atom of the alphabet."""
    n = len(w.reading.ends)
    n_coarse = (len(w.reading.step_start) - 1) // (2 * n)
    index = (boundary * n + hypothesis) * n_coarse + w.reading.coarse[atom]
    return w.reading.step_start[index], w.reading.step_start[index + 1]


@kernel
def set_ends(number: int, w: Product) -> bool:
    """Can a text end with some member of a hypothesis set, at a character's end?"""
    if w.sets.utf8_row[number] != 0:
        return False
    for m in range(w.sets.start[number], w.sets.start[number + 1]):
        if w.sets.may_break[m] and w.reading.ends[w.sets.hypothesis[m]]:
            return True
    return False


@kernel
def added_step(state: int, added: int, k: int, w: Product) -> tuple[int, int]:
    """(state of the text automaton, DFA state) after added token k; -1 or 0: impossible."""
    after = w.added.after[w.added.after_row[added], k]
    state = w.dfa.added_from[state]
    if w.added.ids[k] < 0 or after < 0 or state == 0:
        return -1, 0
    data = w.added.data[w.added.start[k] : w.added.start[k + 1]]
    return after, w.dfa.after_added[walk(w.dfa.steps, state, data)]
