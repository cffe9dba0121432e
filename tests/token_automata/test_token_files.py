"""Token automata as people and programs get them: files that are read back, or refused if damaged;
pictures and explanations.
"""

from __future__ import annotations

import copy
import io
import json
import zipfile
from pickle import dumps, loads

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples
from support.drawn import SYMBOLS, automata, words

from bpe_automata._token_automata.automaton import TokenAutomaton
from bpe_automata.errors import ArgumentError, MalformedAutomatonError, MissingFileError

SPELLED = TokenAutomaton.from_transitions(
    [(0, 1, 1), (1, 2, 1), (1, 0, 2)], 0, [1, 2], range(5), [b"a", b"\xff\x00", b"", b"\xc3\xa9"]
)


@examples(150)
@given(automata(spelled=True))
def test_there_and_back(tmp_path_factory, automaton):
    assert TokenAutomaton.from_json(automaton.to_json()).identical(automaton)
    folder = tmp_path_factory.getbasetemp()
    for name in ("a.npz", "a.json"):
        path = automaton.save(folder / name)
        assert TokenAutomaton.load(path).identical(automaton)


def test_only_whole_files_appear(tmp_path):
    SPELLED.save(tmp_path / "a.npz")
    SPELLED.save(str(tmp_path / "a.json"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.npz"]


def test_files_that_are_not_there_or_not_such_files(tmp_path):
    with pytest.raises(MissingFileError, match=r"b\.npz"):
        TokenAutomaton.load(tmp_path / "b.npz")
    for act in (SPELLED.save, TokenAutomaton.load):
        with pytest.raises(MalformedAutomatonError, match=r"a\.pkl"):
            act(tmp_path / "a.pkl")


@examples(400)
@given(st.data())
def test_a_damaged_file_is_refused_or_says_the_same(tmp_path_factory, data):
    """One byte changed, or cut short: never another automaton, never another error."""
    suffix = data.draw(st.sampled_from([".npz", ".json"]))
    path = SPELLED.save(tmp_path_factory.getbasetemp() / f"damaged{suffix}")
    raw = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del raw[data.draw(st.integers(0, len(raw) - 1)) :]
    path.write_bytes(raw)
    try:
        loaded = TokenAutomaton.load(path)
    except MalformedAutomatonError:
        return
    assert loaded.identical(SPELLED)


def test_an_npz_that_says_it_is_encrypted(tmp_path):
    path = SPELLED.save(tmp_path / "a.npz")
    raw = bytearray(path.read_bytes())
    raw[raw.rindex(b"PK\x01\x02") + 8] |= 1  # the flag of the last member, in the directory
    path.write_bytes(raw)
    with pytest.raises(MalformedAutomatonError, match="encrypted"):
        TokenAutomaton.load(path)


@pytest.mark.parametrize(
    "name", ["accepting", "symbols", "targets", "alphabet", "offsets", "crc32"]
)
def test_an_npz_whose_arrays_were_exchanged(tmp_path, name):
    path = SPELLED.save(tmp_path / "a.npz")
    with np.load(path) as content:
        arrays = dict(content)
    arrays[name] = np.roll(arrays[name], 1) if arrays[name].ndim else arrays[name] + 1
    np.savez(path, **arrays)
    with pytest.raises(MalformedAutomatonError):
        TokenAutomaton.load(path)
    del arrays[name]
    np.savez(path, **arrays)
    with pytest.raises(MalformedAutomatonError, match=f"it holds no array '{name}'"):
        TokenAutomaton.load(path)


def test_nothing_is_unpickled(tmp_path):
    opened = []

    class Trap:
        def __reduce__(self):
            return (opened.append, (1,))

    path = SPELLED.save(tmp_path / "a.npz")
    member = io.BytesIO()
    np.save(member, np.array([Trap()], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w") as new:
        for name, part in parts.items():
            new.writestr(name, member.getvalue() if name == "symbols.npy" else part)
    with pytest.raises(MalformedAutomatonError):
        TokenAutomaton.load(path)
    assert not opened


def test_a_json_written_by_hand():
    text = json.dumps(
        {
            "format": "bpe_automata token automaton 1",
            "n_states": 2,
            "start": 0,
            "accepting": [1],
            "transitions": [[1, 4, 1], [0, 3, 1]],
            "alphabet": [[0, 9]],
        }
    )
    automaton = TokenAutomaton.from_json(text)
    assert list(automaton.enumerate(max_length=2)) == [(3,), (3, 4)]
    assert automaton.alphabet.tolist() == list(range(10))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "format is 'other'"),
        ({"n_states": 1}, "names state 2, but has 1 states"),
        ({"n_states": 2, "accepting": [1]}, "names state 2"),
        ({"n_states": 0, "accepting": [], "transitions": []}, "no state"),
        ({"n_states": 10**30}, "JSON"),
        ({"accepting": [7]}, "names state 7, but has 3 states"),
        ({"accepting": ["x"]}, "accepting at 0 is 'x', not an integer"),
        ({"accepting": [-1]}, "accepting at 0 is -1, not an integer"),
        ({"transitions": [[0, 1]]}, r"transitions at 0 is \[0, 1\], not 3"),
        ({"transitions": [[0, 1, 1], [0, 1, 2]]}, "do not ascend"),
        ({"transitions": [[0, 1.5, 1]]}, "transitions at 1 is 1.5, not an integer"),
        ({"transitions": [[0, 4, 1]], "alphabet": [[0, 3]]}, "not in the alphabet"),
        ({"spellings": [1]}, "spelling of symbol 0 is 1: give bytes"),
        ({"spellings": ["日"]}, "latin-1"),
        ({"start": "0"}, "start is '0'"),
        ({"start": True}, "start is True"),
        ({"spellings": "abc"}, "spellings is abc, not a list"),
        ({"n_states": 3.7}, "n_states is 3.7"),
        ({"n_states": "3"}, "n_states is '3'"),
        ({"n_states": 3_000_000_000}, "n_states is 3000000000"),
        ({"n_states": 2_000_000_000}, "name far fewer"),
        ({"accepting": {}}, "accepting is {}, not a list"),
        ({"accepting": 0}, "accepting is 0, not a list"),
        ({"accepting": None}, "accepting is None, not a list"),
        ({"accepting": [True]}, "accepting at 0 is True"),
        ({"transitions": [0, 1, 1]}, "transitions at 0 is 0, not 3 integers"),
        ({"alphabet": [[0, 2147483647]]}, "ranges of at most"),
        ({"alphabet": [[3, 2]]}, "ascending ranges"),
        ({"crc32": 5}, "damaged"),
        ({"start": 1}, "damaged"),
        ({"spellings": None}, "damaged"),
    ],
)
def test_a_json_that_is_wrong_says_what(change, message):
    content = {**json.loads(SPELLED.to_json()), **change}
    with pytest.raises(MalformedAutomatonError, match=message):
        TokenAutomaton.from_json(json.dumps(content))


@pytest.mark.parametrize("text", ["", "[]", "7", "null", '{"format": 1', "[" * 100_000, b"\xff"])
def test_text_that_is_no_json_of_an_automaton(text):
    with pytest.raises(MalformedAutomatonError, match="not the JSON of a token automaton"):
        TokenAutomaton.from_json(text)


# ---------------------------------------------------------------- where, and what else


@pytest.mark.parametrize("name", ["a.npz", "a.json"])
def test_a_folder_that_is_not_there(tmp_path, name):
    with pytest.raises(MissingFileError, match=f"there is no folder .*far to write {name} to"):
        SPELLED.save(tmp_path / "far" / name)
    assert not list(tmp_path.iterdir())


def test_an_npz_that_is_something_else(tmp_path):
    path = tmp_path / "a.npz"
    path.write_text(SPELLED.to_json())
    with pytest.raises(MalformedAutomatonError, match=r"a\.npz: .* no npz \(zip\) file$"):
        TokenAutomaton.load(path)
    with path.open("wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(MalformedAutomatonError, match=r"no npz \(zip\) file$"):
        TokenAutomaton.load(path)


def test_states_and_symbols_that_nothing_mentions_are_kept():
    """As many as one is likely to have."""
    automaton = TokenAutomaton.from_transitions([], 0, [], range(300_000), states=range(100_000))
    assert TokenAutomaton.from_json(automaton.to_json()).identical(automaton)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda a: loads(dumps(a))])
def test_a_copy_cannot_be_changed_either(copied):
    twin = copied(SPELLED)
    assert twin.identical(SPELLED)
    for name in ("accepting", "offsets", "symbols", "targets", "alphabet"):
        assert not getattr(twin, name).flags.writeable


# ---------------------------------------------------------------- pictures

SPELLINGS = [b"a", b" b", b"\n", b"\xff", b"c"]
SMALL = TokenAutomaton.from_transitions(
    [(0, 0, 1), (0, 1, 1), (0, 4, 2), (1, 2, 2), (1, 3, 3)], 0, [2], range(5), SPELLINGS
)


def wide(n):
    """n states in a row, 3 ids from one to the next."""
    listed = [(k, a, k + 1) for k in range(n - 1) for a in range(3)]
    return TokenAutomaton.from_transitions(listed, 0, [n - 1], spellings=SPELLINGS)


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
    assert drawing.caption == "4 states, 5 transitions"
    assert not any(part.lit for part in (*drawing.nodes, *drawing.edges))


def test_the_path_of_a_sequence_is_lit():
    drawing = SMALL.picture([0, 2]).drawing
    assert [node.lit for node in drawing.nodes] == [True, True, True, False]
    assert [edge.lit for edge in drawing.edges] == [True, False, True, False]
    assert drawing.caption.endswith("the path is accepted")
    assert SMALL.picture([0]).drawing.caption.endswith("the path ends too early")
    broken = SMALL.picture([0, 1, 2]).drawing
    assert [node.lit for node in broken.nodes] == [True, True, False, False]
    assert broken.caption.endswith("␣b cannot be read at position 1")
    for ids in ([0, 3], [0, 3, 1]):
        caption = SMALL.picture(ids).drawing.caption
        assert caption.endswith("nothing can be accepted after \\xff at position 1")
    nothing = TokenAutomaton.from_transitions([(0, 1, 1)], 0, [])
    assert nothing.picture([1]).drawing.caption.endswith("nothing is accepted at all")


def test_all_ways_of_a_text_are_lit():
    """ab is written a b, ab and (not accepted) in a way that ends too early."""
    listed = [(0, 0, 1), (1, 1, 2), (0, 2, 2), (2, 3, 2), (0, 4, 3), (1, 0, 3)]
    spelled = [b"a", b"b", b"ab", b"", b"ab"]
    automaton = TokenAutomaton.from_transitions(listed, 0, [2], spellings=spelled)
    for text in ("ab", b"ab"):
        drawing = automaton.picture(text).drawing
        assert [node.lit for node in drawing.nodes] == [True, True, True, False]
        lit = [(e.source, e.target) for e in drawing.edges if e.lit]
        assert lit == [(0, 1), (0, 2), (1, 2)]
        assert drawing.caption.endswith("2 accepted sequences spell ab")
    none = automaton.picture("aa").drawing
    assert none.caption.endswith("no accepted sequence spells aa")
    assert not any(part.lit for part in (*none.nodes, *none.edges))
    with pytest.raises(ArgumentError, match="no spellings"):
        TokenAutomaton.from_transitions(listed, 0, [2]).picture("ab")
    with pytest.raises(ArgumentError, match="surrogate at position 1"):
        automaton.picture("a\ud800")


@examples(100)
@given(automata(spelled=True), st.binary(max_size=4))
def test_the_ways_of_a_text_by_trying_all(automaton, text):
    """Symbols that spell nothing are left out."""
    data = automaton.spellings

    def spelled(symbol):
        return data[symbol] if symbol < len(data) else b""

    ways = [
        word
        for word in words(len(text), SYMBOLS)
        if all(map(spelled, word)) and b"".join(map(spelled, word)) == text
    ]
    ways = [word for word in ways if automaton.accepts(word)]
    drawing = automaton.picture(text).drawing
    assert f"{len(ways) or 'no'} accepted sequence" in drawing.caption
    lit = {automaton.walk(word[:k]) for word in ways for k in range(len(word) + 1)}
    assert {i for i, node in enumerate(drawing.nodes) if node.lit} == lit


def test_a_large_automaton_is_summarised():
    assert len(wide(40).picture().drawing.nodes) == 40
    big = wide(41)
    drawing = big.picture().drawing
    assert [(node.label, node.note) for node in drawing.nodes] == [("0", "3 out"), ("1", "3 out")]
    assert drawing.caption.startswith("41 states, 120 transitions; too large to draw")
    lit = big.picture([0, 1, 2]).drawing
    assert [node.label for node in lit.nodes] == ["0", "1", "2", "3"]
    assert all(edge.lit for edge in lit.edges)
    assert big.to_dot().count("->") >= 40
    many = TokenAutomaton.from_transitions([(0, a, 1) for a in range(30)], 0, [1])
    assert "28, 29" in many.to_dot()
    assert "28, 29" not in many.to_dot(labels=6)


def test_long_labels_are_cut():
    listed = [(0, a, 1) for a in range(1000)]
    label = TokenAutomaton.from_transitions(listed, 0, [1]).picture(labels=2).drawing.edges[0].label
    assert label == "0, 1 … +998 more"
    automaton = TokenAutomaton.from_transitions(listed, 0, [1])
    assert automaton.picture([700], labels=2).drawing.edges[0].label == "700, 0 … +998 more"


def test_notebooks_get_what_a_picture_gives():
    shown = SMALL._repr_mimebundle_()
    assert shown == SMALL.picture()._repr_mimebundle_()
    assert "text/plain" in shown
    assert repr(SMALL) == "TokenAutomaton(4 states, 5 transitions)"
    one = TokenAutomaton.from_transitions([(0, 1, 0)], 0, [])
    assert repr(one) == "TokenAutomaton(1 state, 1 transition)"
    assert one.picture().drawing.caption == "1 state, 1 transition"


# ---------------------------------------------------------------- explanations


def test_explanations_to_read():
    assert str(SMALL.explain([0, 2])) == "accepted: 0 (a), 2 (\\n)"
    assert str(SMALL.explain([0])) == (
        "not accepted: it ends too early; the shortest completion is 2 (\\n)"
    )
    assert str(SMALL.explain([0, 3])) == (
        "not accepted: nothing can be accepted after 3 (\\xff) at position 1; what can be read "
        "there and lead on: 2 (\\n); the shortest end: 2 (\\n)"
    )
    assert str(SMALL.explain([0, 1])) == (
        "not accepted: 1 (␣b) cannot be read at position 1; what can be read there: 2 (\\n); "
        "the shortest end: 2 (\\n)"
    )
    empty = TokenAutomaton.from_transitions([], 0, [0])
    assert str(empty.explain([])) == "accepted: the empty sequence"
    assert str(SMALL.explain([4, 4])).endswith(
        "what can be read there: nothing; it could end there"
    )
    nothing = TokenAutomaton.from_transitions([(0, 1, 1)], 0, [])
    assert str(nothing.explain([1])) == "not accepted: the automaton accepts nothing at all"


@examples(200)
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
