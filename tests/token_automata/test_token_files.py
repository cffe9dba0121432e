"""Token automata as people and programs get them: files that are read back, or refused if damaged;
pictures and explanations.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples
from support.drawn import automata, words

from bpe_automata.errors import MalformedAutomatonError, MissingFileError
from bpe_automata.token_automata.automaton import TokenAutomaton

SPELLED = TokenAutomaton.from_transitions(
    [(0, 1, 1), (1, 2, 1), (1, 0, 2)], 0, [1, 2], range(5), [b"a", b"\xff\x00", b"", b"\xc3\xa9"]
)


@examples(60)
@given(automata(spelled=True))
def test_there_and_back(tmp_path_factory, automaton):
    folder = tmp_path_factory.getbasetemp()
    for made in (automaton, replace(automaton, spellings=None)):
        assert TokenAutomaton.load(made.save(folder / "a.npz")).identical(made)


@examples(60)
@given(st.data())
def test_a_damaged_npz_is_refused_or_says_the_same(tmp_path_factory, data):
    """One bit changed, or cut short: never another automaton, never another error."""
    path = SPELLED.save(tmp_path_factory.getbasetemp() / "damaged.npz")
    raw = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del raw[data.draw(st.integers(0, len(raw) - 1)) :]
    path.write_bytes(raw)
    try:
        found = TokenAutomaton.load(path)
    except MalformedAutomatonError:
        return
    assert found.identical(SPELLED)


class Trap:
    """Whoever unpickles it ends the process."""

    def __reduce__(self):
        return exec, ("raise SystemExit",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "format is 'other'"),
        ({"accepting": [True]}, "4 offsets for 1 states"),
        ({"symbols": [1, 1.5, 2]}, "not an array of integers"),
        ({"ends": 7}, "no file of a token automaton"),
        ({"symbols": np.array([Trap()])}, "no file of a token automaton"),
    ],
)
def test_a_file_that_is_wrong_says_what(tmp_path, change, message):
    path = SPELLED.save(tmp_path / "a.npz")
    with np.load(path) as content:
        parts = {**content, **{name: np.array(part) for name, part in change.items()}}
    np.savez(path, **parts)
    with pytest.raises(MalformedAutomatonError, match=message):
        TokenAutomaton.load(path)


def test_files_that_are_not_there_or_not_such_files(tmp_path):
    with pytest.raises(MissingFileError, match=r"c\.npz"):
        TokenAutomaton.load(tmp_path / "c.npz")
    with pytest.raises(MissingFileError, match=r"there is no folder .*far to write a\.npz to"):
        SPELLED.save(tmp_path / "far" / "a.npz")
    for act in (SPELLED.save, TokenAutomaton.load):
        with pytest.raises(MalformedAutomatonError, match=r"a\.json"):
            act(tmp_path / "a.json")
    (tmp_path / "text.npz").write_text("[" * 100_000)
    with pytest.raises(MalformedAutomatonError, match="a token automaton"):
        TokenAutomaton.load(tmp_path / "text.npz")


# ---------------------------------------------------------------- pictures

SPELLINGS = [b"a", b" b", b"\n", b"\xff", b"c"]
SMALL = TokenAutomaton.from_transitions(
    [(0, 0, 1), (0, 1, 1), (0, 4, 2), (1, 2, 2), (1, 3, 3)], 0, [2], range(5), SPELLINGS
)


def test_one_arrow_for_the_ids_between_two_states():
    drawing = SMALL.picture().drawing
    assert [(e.source, e.target, e.label) for e in drawing.edges] == [
        (0, 1, "a, ␣b"),
        (0, 2, "c"),
        (1, 2, "\\n"),
        (1, 3, "\\xff"),
    ]
    assert [node.accepting for node in drawing.nodes] == [False, False, True, False]
    assert [node.start for node in drawing.nodes] == [True, False, False, False]
    assert repr(SMALL) == "TokenAutomaton(4 states, 5 transitions)"


SAID = [
    ([0, 2], [0, 1, 2], "accepted: 0 (a), 2 (\\n)"),
    ([0], [0, 1],
     "not accepted: the sequence ends too early; the shortest completion is 2 (\\n)"),
    ([0, 3], [0, 1, 3],
     "not accepted: the sequence cannot go on with 3 (\\xff) at position 1; what can be read "
     "there: 2 (\\n); the shortest end: 2 (\\n)"),
]  # fmt: skip


@pytest.mark.parametrize(("ids", "lit", "said"), SAID)
def test_the_path_of_a_sequence_is_lit_and_explained(ids, lit, said):
    drawing = SMALL.picture(ids).drawing
    assert [k for k, node in enumerate(drawing.nodes) if node.lit] == lit
    assert all({e.source, e.target} <= set(lit) for e in drawing.edges if e.lit)
    assert str(SMALL.explain(ids)) == said


def test_a_large_automaton_is_summarised():
    listed = [(k, a, k + 1) for k in range(40) for a in range(3)]
    big = TokenAutomaton.from_transitions(listed, 0, [40], spellings=SPELLINGS)
    drawing = big.picture().drawing
    assert [(node.label, node.note) for node in drawing.nodes] == [("0", "3 out"), ("1", "3 out")]
    assert [e.lit for e in big.picture([0, 1, 2]).drawing.edges] == [True, True, True, False]


@examples(40)
@given(automata(), st.lists(st.sampled_from((3, 5, 8, 9)), max_size=4))
def test_an_explanation_is_true(automaton, ids):
    found, walks = automaton.explain(ids), words(automaton.n_states)
    assert found.accepted == automaton.accepts(ids)

    def alive(word):
        return any(automaton.accepts((*word, *rest)) for rest in walks)

    first = next((k for k in range(len(ids)) if not alive(ids[: k + 1])), None)
    assert found.position == first
    before = ids[:first]
    assert found.readable == tuple(a for a in (3, 5, 8) if alive([*before, a]))
    ends = [rest for rest in walks if automaton.accepts((*before, *rest))]
    assert found.completion == (ends[0] if ends else None)
