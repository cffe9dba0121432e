"""JSON and npz: what is written is read back, and what is damaged is refused."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest
from brute import automata
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata.errors import MalformedAutomatonError, MissingFileError
from bpe_automata.token_automata import TokenAutomaton

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
    with pytest.raises(MalformedAutomatonError, match=f"'{name}.*is missing|{name} is not"):
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
        ({"accepting": ["x"]}, "not integers"),
        ({"accepting": [-1]}, "not integers"),
        ({"transitions": [[0, 1]]}, "reshape"),
        ({"transitions": [[0, 1, 1], [0, 1, 2]]}, "do not ascend"),
        ({"transitions": [[0, 1.5, 1]]}, "not integers"),
        ({"transitions": [[0, 4, 1]], "alphabet": [[0, 3]]}, "not in the alphabet"),
        ({"spellings": [1]}, "JSON"),
        ({"spellings": ["日"]}, "latin-1"),
        ({"start": "0"}, "start is '0'"),
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
