"""JSON and npz: what is written is read back, and what is damaged is refused."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from pickle import dumps, loads

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
