"""A safe end: how many ids it takes, and masks that keep the end within reach, against plain
breadth-first search over the written-out automaton."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support import examples

from bpe_automata import Matcher, compile_regex, constrain
from bpe_automata._constructions.cartesian_merge import CartesianMerge
from bpe_automata._constructions.explicit import Explored, explored
from bpe_automata._constructions.horizon import GraphHorizon
from bpe_automata._constructions.lift import Lift
from bpe_automata._constructions.within import EngineReader, Within, horizon_of, min_tokens
from bpe_automata._decoding.token_table import Listed
from bpe_automata._kernels.bits import members, set_bits
from bpe_automata._token_automata.automaton import TokenAutomaton
from bpe_automata.errors import (
    ArgumentError,
    BudgetExceededError,
    BudgetTooSmallError,
    EmptyLanguageError,
    PromptError,
)
from bpe_automata.testing import (
    bpe_tokenizers,
    byte_level,
    byte_spelling,
    cyclic_regexes,
    finite_regexes,
    merge_tables,
    small_tokenizer,
    texts,
)
from bpe_automata.testing._inputs import own_pieces

MOST_EDGES = 3000


def distances(automaton):
    """Ids from each state to acceptance, by plain search."""
    found = {s: 0 for s in automaton.states() if automaton.accepting[s]}
    edges = list(automaton.transitions())
    grown = True
    while grown:
        near = {s: 1 + found[t] for s, _, t in edges if s not in found and t in found}
        grown = bool(near)
        found.update(near)  # one level: all of `near` were found at the same distance
    return found


def at_most(alphabet, n):
    """All sequences of at most n ids."""
    edges = [(k, token, k + 1) for k in range(n) for token in alphabet.tolist()]
    return TokenAutomaton.from_transitions(edges, 0, range(n + 1), alphabet=alphabet)


def known_without_search(engine, states, rows, far, rng):
    """What texts show of nodes holds for all last ids: a bound is never too low, and an id after
    which more than k others are needed leads to a node of which that is not known."""
    reader, tables = horizon_of(engine)._reader, engine.tables
    actions, sets = engine.canonical.actions.of_token, engine.canonical.sets
    for s in rng.sample(range(len(states)), min(20, len(states))):
        for key in {reader.key(states[s]), reader.before(states[s])[0]}:
            assert reader.at_most(key) >= far[s], states[s]
            k = rng.randrange(2 + max(far.values()))
            unsure = {(tables.memo.state[key >> 32], key >> 1) for key in reader.unsure(key, k)}
            unsure = {(int(state), key & 0x7FFFFFFF) for state, key in unsure}
            for token, after in rows(s):
                here = int(tables.memo.state[states[after].state_pair])
                sides = [states[after].hypotheses]
                if not engine.canonical.is_added(token):
                    sides += [
                        side[actions[token]] for side in sets.successors(states[s].hypotheses)
                    ]
                assert far[after] <= k or any((here, n) in unsure for n in sides), (states[s], k)


def check(engine, prefix=(), most=4, order=None, whole=None):
    """Every state's distance and, for each number of ids left, every mask. Each in a random order,
    so that what is known already differs. Returns the number of states."""
    whole = whole or explored(engine, engine.initial(prefix), MOST_EDGES)
    far = distances(whole.automaton)
    states, eos = whole.states, set(engine.eos_ids)
    deepest = max(far.values()) + most
    cases = [(s, k) for s in range(len(states)) for k in (None, *range(deepest + 1))]
    rng = random.Random(order)
    rng.shuffle(cases)
    horizon = Within(engine, 0).inner_horizon

    def rows(s):
        return zip(*(part.tolist() for part in whole.automaton.row(s)), strict=True)

    if isinstance(engine, CartesianMerge):
        known_without_search(engine, states, rows, far, rng)
    for s, k in cases[:600]:
        if k is None:
            assert min_tokens(engine, states[s]) == far[s], states[s]
            continue
        wanted = eos if engine.accepting(states[s]) else set()
        wanted = wanted | {token for token, after in rows(s) if far[after] < k}
        assert set(members(horizon.mask(states[s], k)).tolist()) == wanted, (states[s], k)
        assert horizon.reaches(states[s], k) == (far[s] <= k)
    if isinstance(engine, CartesianMerge):
        known_without_search(engine, states, rows, far, rng)
    return len(states)


def budgets_are_intersections(constraint, prefix=(), most=5):
    """The law of `within`, for every budget up to some."""
    whole = constraint.automaton(prefix, MOST_EDGES)
    needed = constraint.matcher(prefix).min_tokens_to_accept()
    for n in range(needed + most):
        if n < needed:
            with pytest.raises(BudgetTooSmallError) as caught:
                constraint.within(n).matcher(prefix)
            assert (caught.value.needed, caught.value.given) == (needed, n)
            continue
        bounded = constraint.within(n).automaton(prefix, 20 * MOST_EDGES)
        assert bounded.relevant().all()
        wanted = whole.intersection(at_most(whole.alphabet, n))
        assert bounded.equivalent(wanted) is None, n


@examples(20)
@given(st.data())
def test_every_state_and_mask_of_random_tokenizers(data):
    tokenizer = data.draw(bpe_tokenizers())
    pieces = own_pieces(tokenizer)
    regex = data.draw(st.one_of(finite_regexes(pieces), cyclic_regexes(pieces)))
    added = [token.id for token in tokenizer.description.added]
    eos = data.draw(st.sets(st.sampled_from(added), max_size=2)) if added else ()
    before = tokenizer.encode(data.draw(texts(tokenizer, 2)))
    prefix = data.draw(st.sampled_from([(), tuple(before)]))
    method, apart = (
        data.draw(st.sampled_from(["canonical", "canonical", "lift"])),
        data.draw(st.booleans()),
    )
    try:
        engine = constrain(tokenizer, regex, method, tuple(eos), added_tokens=apart).engine
        whole = explored(engine, engine.initial(prefix), MOST_EDGES)
    except (BudgetExceededError, EmptyLanguageError, PromptError):
        return
    check(engine, prefix, order=data.draw(st.integers(0, 3)), whole=whole)


@examples(25)
@given(st.data())
def test_the_lift_of_counts(data):
    """Counts of words whose tokens take a text nearer by different numbers of bytes: the bounds
    from below hold before any search, and every answer is that of breadth-first search."""
    tokenizer = data.draw(bpe_tokenizers())
    pieces = own_pieces(tokenizer)
    inner = data.draw(st.one_of(finite_regexes(pieces), cyclic_regexes(pieces)))
    least, more = data.draw(st.integers(0, 6)), data.draw(st.integers(0, 6))
    try:
        lift = constrain(tokenizer, f"(?:{inner}){{{least},{least + more}}}", "lift").engine
        whole = explored(lift, lift.initial(), MOST_EDGES)
    except (BudgetExceededError, EmptyLanguageError):
        return
    far = distances(whole.automaton)
    states = np.array(whole.states)
    true = np.array([far[s] for s in range(len(states))])
    assert (horizon_of(lift).at_least[states] <= true).all()
    for k in data.draw(st.permutations(range(4))):
        lower = horizon_of(lift).lower(states, k)
        assert (lower <= true).all()
        assert ((lower > k) == (true > k)).all()
    check(lift, order=data.draw(st.integers(0, 3)), whole=whole)


@examples(40)
@given(st.data())
def test_every_state_and_mask_of_one_pretoken(data):
    """Merges alone: what is in reach depends on the last id nearly everywhere."""
    table = data.draw(merge_tables())
    pieces = ["a", "b", "c", "ab", "ca"]
    regex = data.draw(st.one_of(finite_regexes(pieces), cyclic_regexes(pieces)))
    try:
        engine = constrain(small_tokenizer(table.vocabulary, table.merges), regex).engine
        whole = explored(engine, engine.initial(), MOST_EDGES)
    except (BudgetExceededError, EmptyLanguageError):
        return
    check(engine, order=data.draw(st.integers(0, 3)), whole=whole)


class Forgetful(dict):
    """A memo that keeps nothing."""

    def put(self, key, value):
        pass


@examples(12)
@given(st.data())
def test_ids_that_were_forgotten_are_found_again(data):
    """By then more is known of the lift, and less would be read."""
    tokenizer = data.draw(bpe_tokenizers())
    pieces = own_pieces(tokenizer)
    regex = data.draw(st.one_of(finite_regexes(pieces), cyclic_regexes(pieces)))
    try:
        engine = constrain(tokenizer, regex).engine
        whole = explored(engine, engine.initial(), MOST_EDGES)
    except (BudgetExceededError, EmptyLanguageError):
        return
    reader = horizon_of(engine)._reader
    reader._ids = reader._few_ids = Forgetful()
    check(engine, order=data.draw(st.integers(0, 3)), whole=whole)


@examples(8)
@given(st.data())
def test_within_is_the_intersection_with_short_sequences(data):
    tokenizer = data.draw(bpe_tokenizers())
    pieces = own_pieces(tokenizer)
    regex = data.draw(st.one_of(finite_regexes(pieces), cyclic_regexes(pieces)))
    prefix = tuple(tokenizer.encode(data.draw(texts(tokenizer, 2))))
    method = data.draw(st.sampled_from(["canonical", "lift"]))
    try:
        made = constrain(tokenizer, regex, method)
        made.automaton(prefix, MOST_EDGES)
    except (BudgetExceededError, EmptyLanguageError, PromptError):
        return
    budgets_are_intersections(made, prefix)


# ---------------------------------------------------------------- written tokenizers


def written():
    """Merges that forbid pairs, characters in several tokens, an added token, and GPT-2's pattern,
    whose lookahead makes the canonical sequences not closed under prefixes."""
    accents = [byte_spelling(bytes([b])) for b in sorted({*"éèñ".encode(), *"日本".encode()})]
    space, newline = byte_spelling(b" "), byte_spelling(b"\n")
    vocabulary = [
        "a",
        "b",
        "c",
        "ab",
        "abc",
        "bc",
        "<",
        "|",
        "x",
        ">",
        "'",
        "s",
        "'s",
        space,
        newline,
    ]
    vocabulary += [space + "a", space * 2, newline * 2, *accents]
    merges = [("a", "b"), ("ab", "c"), ("b", "c"), ("'", "s"), (space, "a"), (space, space)]
    merges += [(newline, newline)]
    added = ["<end>", "<|x|>"]
    return small_tokenizer(vocabulary, merges, byte_level(use_regex=True), added)


TOKENIZER = written()
EOS = tuple(t.id for t in TOKENIZER.description.added if t.content == "<end>")
LANGUAGES = {
    "merges": "(abc|ab|b){0,4}c",
    "forced": "(abcbcab){2}",
    "on the last id": "(x|b)x(a|c)(b|cc)",
    "on two ids": "(x|b)(a|c)x(b|x)(a|c){2}(b|cc)",
    "dead after some": "(b|x)(a|c)b(x|c)",
    "white space": r"[ \n]*a?",
    "lookahead": r"\n\n+a[ \n]+|(  )*a",
    "added": r"(a|<\|x\|>){1,3}",
    "added in a row": r"(<\|x\|>)+c| a",
    "characters": "(é|è|日){1,3}a",
    "one byte more": "(é|ñ|本)+",
    "contractions": r"(a|'s| )*'s",
    "infinite": "(ab|c)+a{2,}",
    "complete from the start": "[abc ]*",
}


@pytest.mark.parametrize("method", ["canonical", "lift"])
@pytest.mark.parametrize("name", LANGUAGES)
def test_every_state_and_mask(name, method):
    for order in range(3):
        made = constrain(TOKENIZER, LANGUAGES[name], method, EOS)
        assert check(made.engine, order=order)


@pytest.mark.parametrize("method", ["canonical", "lift"])
@pytest.mark.parametrize("name", LANGUAGES)
def test_within(name, method):
    budgets_are_intersections(constrain(TOKENIZER, LANGUAGES[name], method, EOS), most=3)


@pytest.mark.parametrize("prompt", ["a", "a ", "\n", "<|x|>", "é", "ab"])
def test_after_a_prompt(prompt):
    seen = 0
    for language in (r"[ \n]*b?c", "(abc|bc| a)+", r"\n?(a|b)"):
        try:
            budgets_are_intersections(
                constrain(TOKENIZER, language, "canonical", EOS), TOKENIZER.encode(prompt), 3
            )
            seen += 1
        except PromptError:
            continue
    assert seen


def test_the_shortest_text_is_not_the_one_with_the_fewest_ids():
    """`aaab` takes four ids, the longer `abcabc` two."""
    matcher = constrain(TOKENIZER, "aaa?b|abcabc", "lift").matcher()
    assert matcher.min_tokens_to_accept() == 2
    made = constrain(TOKENIZER, "bbb?b|abcabc").within(2)
    assert made.automaton().total() == 1


@pytest.mark.parametrize(
    "regex",
    ["[aqe\u0300\u0323]{1,4}b", "(a\u0300?|q<?|<\u0323?|à)+", "[^a]{2,3}", "(q|<|<x>){2,4}"],
)
def test_what_normalization_composes(regex):
    """NFC: a text that begins with a mark is read otherwise after `a` than after `<`."""
    vocabulary = ["a", "q", "e", "b", "<", "x", ">", "\u0300", "\u0323", "à", "ạ", "ab", "<x"]
    merges = [("a", "b"), ("<", "x")]
    tokenizer = small_tokenizer(vocabulary, merges, None, ["<x>"], normalizer={"type": "NFC"})
    for order in range(4):
        assert check(constrain(tokenizer, regex).engine, order=order)


@pytest.mark.parametrize("regex", ["(b|é|<){5}", "(é|<){1,5}b?", "(éé<){2,3}"])
def test_tokens_to_which_nothing_is_bound(regex):
    """With `ignore_merges` a whole pretoken is one token that no merge makes; `<` is added."""
    vocabulary, merges = ["b", "é", "bé", "éé", "béé"], [("b", "é"), ("bé", "é")]
    tokenizer = small_tokenizer(vocabulary, merges, None, ["<"], ignore_merges=True)
    for order in range(3):
        assert check(constrain(tokenizer, regex).engine, order=order)
    budgets_are_intersections(constrain(tokenizer, regex), most=3)


def test_two_ends_of_one_text_on_a_lookahead():
    """GPT-2: newline, newline is no canonical text, though it begins one."""
    tokenizer = small_tokenizer(["a", byte_spelling(b"\n")], [], byte_level(use_regex=True))
    matcher = constrain(tokenizer, r"\n*a?").matcher()
    distances_met = []
    for token in (1, 1, 0):
        distances_met.append(matcher.min_tokens_to_accept())
        matcher.advance(token)
    assert check(constrain(tokenizer, r"\n*a?").engine) > 2
    assert distances_met[0] == 0


# ---------------------------------------------------------------- other engines, bad input


@given(st.data())
@examples(20)
def test_any_engine(data):
    """The fallback, on automata that are written down and on the lift."""
    edges = data.draw(
        st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4), st.integers(0, 6)), max_size=20)
    )
    edges = {(s, i): (s, i, t) for s, i, t in edges}.values()
    accepting = data.draw(st.sets(st.integers(0, 6), min_size=1))
    automaton = TokenAutomaton.from_transitions(
        edges, 0, accepting, states=range(7), alphabet=range(5)
    )
    assume(automaton.relevant()[automaton.start])
    automaton = automaton.trimmed()
    engine = Listed(automaton, (5,), 6)
    whole = Explored(automaton, tuple(map(engine.table.names.index, automaton.states())))
    check(engine, order=data.draw(st.integers(0, 9)), whole=whole)


class Brackets:
    """Id 0 opens two brackets, id 1 closes one; the state is how many are open, without a bound."""

    n_ids, eos_ids, seen = 2, (), 0

    def mask(self, state):
        self.seen += 1
        bits = np.zeros(1, dtype=np.int32)
        set_bits(bits, np.array([0, 1] if state > 0 else [0]))
        return bits

    def steps(self, state, tokens):
        return [state - 1 if token else state + 2 for token in tokens.tolist()]

    def accepting(self, state):
        return state == 0


@pytest.mark.parametrize("k", [100, 4096])
def test_what_is_looked_at_depends_on_the_way_and_not_on_the_ids_that_are_left(k):
    engine = Brackets()
    horizon = GraphHorizon(EngineReader(engine))
    assert not horizon.reaches(6, 5)
    assert horizon.reaches(6, k)
    assert members(horizon.mask(6, k)).tolist() == [0, 1]
    assert engine.seen < 50


def test_the_fallback_says_the_same_of_the_lift():
    lift = Lift(TOKENIZER, compile_regex("(abc|é| a)*c"), EOS)
    state, other = lift.initial(), GraphHorizon(EngineReader(lift))
    assert other.least(state) == min_tokens(lift, state)
    for k in range(6):
        assert (other.mask(state, k) == horizon_of(lift).mask(state, k)).all()


def test_the_fallback_has_a_budget():
    lift = Lift(TOKENIZER, compile_regex("(abc|é| a)*c"), EOS)
    with pytest.raises(BudgetExceededError):
        GraphHorizon(EngineReader(lift, max_edges=3)).least(lift.initial())


def test_groups_that_were_forgotten_are_counted_once():
    lift = Lift(TOKENIZER, compile_regex("(ab|ba)*a"))
    edges = explored(lift, lift.initial()).automaton.n_transitions
    reader = EngineReader(lift, max_edges=edges)
    key = reader.key(lift.initial())
    for _ in range(edges + 1):
        reader.groups(key)


class Slotted:
    """An engine of somebody else: no room for attributes, and a horizon of another kind."""

    __slots__ = ("inner",)
    horizon = 3

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)


def test_an_engine_of_somebody_else():
    lift = Lift(TOKENIZER, compile_regex("(ab|ba){2}a"))
    assert min_tokens(Slotted(lift), lift.initial()) == min_tokens(lift, lift.initial())


@pytest.mark.parametrize("budget", [-1, 1.5, "3", None, True, float("inf")])
def test_a_budget_is_a_number_of_ids(budget):
    with pytest.raises(ArgumentError, match="max_tokens"):
        constrain(TOKENIZER, "a").within(budget)


def test_no_ids_at_all():
    """Where the empty text is complete, end-of-sequence comes at once."""
    matcher = constrain(TOKENIZER, "a*", eos_ids=EOS).within(0).matcher()
    assert matcher.allowed_ids().tolist() == list(EOS)
    with pytest.raises(BudgetTooSmallError) as caught:
        constrain(TOKENIZER, "a+", eos_ids=EOS).within(0).matcher()
    assert (caught.value.needed, caught.value.given) == (1, 0)


def test_of_two_budgets_the_smaller_one_counts():
    made = constrain(TOKENIZER, "a{1,5}")
    wanted = made.within(2).automaton()
    for twice in (made.within(2).within(np.int64(9)), made.within(9).within(2)):
        assert twice.automaton().equivalent(wanted) is None


def test_min_tokens_under_a_budget_and_at_the_end():
    matcher = constrain(TOKENIZER, "abca+", eos_ids=EOS).within(4).matcher()
    needed = []
    for token in TOKENIZER.encode("abcaaa"):
        needed.append(matcher.min_tokens_to_accept())
        matcher.advance(token)
    needed.append(matcher.min_tokens_to_accept())
    assert needed == [2, 1, 0, 0, 0]
    assert matcher.allowed_ids().tolist() == list(EOS)
    matcher.advance(EOS[0])
    assert matcher.min_tokens_to_accept() == 0


def walk(constraint, budget, rng, prefix=()):
    """The ids of a random walk that turns for the end only when it has to."""
    matcher = Matcher(constraint.within(budget).engine, prefix)
    while len(ids := np.setdiff1d(matcher.allowed_ids(), constraint.eos_ids)):
        assert matcher.min_tokens_to_accept() <= budget - len(matcher.ids)
        matcher.advance(int(rng.choice(ids)))
    assert matcher.is_accepting
    assert len(matcher.ids) <= budget
    return matcher.ids


def test_where_no_text_is_longer_than_ids_are_left_nothing_is_searched(
    smollm2_tokenizer, monkeypatch
):
    made = constrain(smollm2_tokenizer, "[a-z]{60}", eos_ids=())

    def searched(*_):
        pytest.fail("there is nothing to be found out")

    monkeypatch.setattr(made.engine.tables, "unsure", searched)
    monkeypatch.setattr(GraphHorizon, "_row", searched)
    within, plain = made.within(60).matcher([]), made.matcher([])
    for token in smollm2_tokenizer.encode("thequickbrownfoxjumps"):
        assert np.array_equal(within.mask(), plain.mask())
        within.advance(token)
        plain.advance(token)


@pytest.mark.parametrize("method", ["canonical", "lift"])
@pytest.mark.parametrize(
    "regex",
    [
        r'\{"name": "[^"\\]{0,40}", "age": [0-9]+\}',
        r"(?s:.{5,20})",
        r"[ -~]{0,40}\n",
        r"\w{300}",
        r'(?:[^"\\]){250,500}',
    ],
)
def test_walks_in_smollm2_end_in_time(smollm2_tokenizer, regex, method):
    made = constrain(smollm2_tokenizer, regex, method)
    needed = made.matcher().min_tokens_to_accept()
    for budget in (needed, needed + 1, needed + 5, 40):
        ids = walk(made, budget, np.random.default_rng(budget))
        text = smollm2_tokenizer.decode(ids)
        assert made.dfa.accepts(text.encode())
        assert method == "lift" or smollm2_tokenizer.encode(text) == list(ids)
    with pytest.raises(BudgetTooSmallError):
        made.within(needed - 1).matcher()
