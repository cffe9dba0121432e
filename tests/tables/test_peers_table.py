"""The table of peers: its cases and exams are what they say, and its counts count right."""

from __future__ import annotations

import json
import random
import re
from typing import ClassVar

import pytest
from experiments.serving.peers_cases import CASES
from experiments.serving.peers_exams import exam, spelled
from experiments.serving.peers_process import Process
from experiments.serving.peers_questions import Answers
from peers_rows import FIRST, exam_row

from bpe_automata import compile_regex, constrain
from bpe_automata.errors import ArgumentError
from bpe_automata.kernels.bits import members, packed
from bpe_automata.models import character_tokenizer
from bpe_automata.reference import lift_mask
from experiments.engines.interface import PeerError, ordinary
from experiments.engines.named import OURS, PEERS, engine_of
from experiments.run.executors import FAILURE
from experiments.run.measuring import Run, Settings
from experiments.serving import peers
from experiments.serving.peers import Config
from experiments.shared.watched import Limits

SMALL = [name for name, case in CASES.items() if case.is_small]


@pytest.mark.parametrize("name", CASES)
def test_texts_are_inside_and_outside(name):
    case, dfa = CASES[name], compile_regex(CASES[name].regex)
    for text in case.inside:
        assert re.fullmatch(case.regex, text)
        assert dfa.accepts(text.encode())
    for text in case.outside:
        assert not re.fullmatch(case.regex, text)
        assert not dfa.accepts(text.encode())


@pytest.mark.parametrize("name", SMALL)
def test_small_languages_are_listed_whole(name):
    tokenizer = character_tokenizer("".join(CASES[name].inside))
    listed = constrain(tokenizer, CASES[name].regex).automaton().enumerate()
    assert {tokenizer.decode(ids) for ids in listed} == set(CASES[name].inside)


@pytest.fixture(scope="module")
def exams(smollm2_tokenizer):
    made = {}

    def of(name):
        if name not in made:
            made[name] = exam(smollm2_tokenizer, CASES[name], 12, random.Random(3))
        return made[name]

    return of


def one_spelling(tokenizer, text):
    lift = constrain(tokenizer, re.escape(text), "lift", added_tokens=False)
    return len(list(lift.automaton().enumerate())) == 1


@pytest.mark.parametrize("name", CASES)
def test_offers_spell_texts_of_the_language_as_the_tokenizer_does_not(
    exams, smollm2_tokenizer, name
):
    dfa, added = compile_regex(CASES[name].regex), smollm2_tokenizer.added_ids
    assert exams(name).offers or all(
        one_spelling(smollm2_tokenizer, text) for text in CASES[name].inside
    )
    for ids in exams(name).offers:
        text = smollm2_tokenizer.text_bytes(ids)
        assert dfa.accepts(text)
        assert smollm2_tokenizer.encode(text.decode()) != ids
        assert added.isdisjoint(ids)


@pytest.mark.parametrize("name", SMALL)
def test_places_are_those_of_the_reference(exams, smollm2_tokenizer, name):
    """What may follow any ids, by trying every id; the tokenizer's own are among them."""
    dfa, made = compile_regex(CASES[name].regex), exams(name)
    plain = ordinary(smollm2_tokenizer)
    order = list(range(len(made.places)))
    for k in order[:: max(1, len(order) // 2)]:
        state = dfa.walk(smollm2_tokenizer.text_bytes(made.places[k]))
        tried = lift_mask(smollm2_tokenizer, dfa, state)
        assert {*members(made.possible[k]).tolist()} == tried & set(plain)
    assert len(made.canonical) == len(made.places) > 0
    assert not (made.canonical & ~made.possible).any()
    assert made.canonical.any(axis=1).all()


def test_texts_that_cannot_be_spelled_are_left_out(smollm2_tokenizer):
    assert spelled(smollm2_tokenizer, "yes") == smollm2_tokenizer.encode("yes")
    assert spelled(smollm2_tokenizer, "\x04") is None  # SmolLM2 has no token for that byte


def asked(engine, made, tokenizer, seconds=20.0):
    bits = packed(ordinary(tokenizer), tokenizer.n_ids)
    answers = Answers(engine, made, bits, tokenizer.eos_ids, 2, seconds)
    row = answers.compiled()
    return (
        row
        | answers.masks(answers.begin)
        | answers.admitted(answers.begin)
        | (answers.compared(answers.begin))
    )


@pytest.mark.parametrize("name", ["answer", "prefixes", "contraction", "words"])
@pytest.mark.parametrize("engine", OURS)
def test_engines_of_this_package_make_no_mistake(exams, smollm2_tokenizer, engine, name):
    if (engine, name) == ("explicit", "words"):
        pytest.skip("infinitely many texts, and too many transitions")
    row = asked(engine_of(engine, smollm2_tokenizer), exams(name), smollm2_tokenizer)
    assert (row["blocked"], row["completed"]) == ([], [])
    assert (row["missing"], row["impossible"], row["unreached"]) == (0, 0, 0)
    assert row["inside"] == len(exams(name).inside)
    assert row["offered"] == len(exams(name).offers)
    assert len(row["compile"]) == len(row["first"]) == 2
    inside = exams(name).inside
    assert len(row["warm"]) == sum(len(ids) + 1 for ids in inside)  # and the end of each
    new = {tuple(ids[:n]) for ids in inside for n in range(1, len(ids) + 1)}
    assert len(row["cold"]) == len(new)
    every = engine == "lift"
    assert row["admitted"] == (row["offered"] if every else 0)
    assert (row["other"] > 0) == (every and bool(row["places"]))


class Scripted:
    """An engine whose masks are what a function of the ids so far says."""

    def __init__(self, allowed, words):
        self._allowed, self._words = allowed, words

    def prepare(self, regex):
        return lambda: self.Session(self._allowed, self._words)

    class Session:
        def __init__(self, allowed, words):
            self._allowed, self._words, self._ids = allowed, words, []

        def mask(self, out):
            out[0] = packed(self._allowed(self._ids), 32 * self._words)

        def advance(self, token):
            self._ids.append(token)


def scripted(exams, tokenizer, allowed, name="answer", **given):
    engine = Scripted(allowed, (tokenizer.n_ids + 31) // 32)
    return asked(engine, exams(name), tokenizer, **given)


def test_an_engine_that_allows_everything_is_found_out(exams, smollm2_tokenizer):
    made, n = exams("answer"), smollm2_tokenizer.n_ids
    row = scripted(exams, smollm2_tokenizer, lambda ids: range(n))
    assert row["blocked"] == []
    assert row["completed"] == list(range(len(made.outside)))
    assert row["admitted"] == row["offered"] == len(made.offers)
    assert row["missing"] == 0
    plain = len(ordinary(smollm2_tokenizer))
    possible = sum(len(members(bits)) for bits in made.possible)
    assert row["impossible"] == plain * len(made.places) - possible
    own = sum(len(members(bits)) for bits in made.canonical)
    assert row["other"] == possible - own


def test_an_engine_that_allows_nothing_is_found_out(exams, smollm2_tokenizer):
    made = exams("answer")
    row = scripted(exams, smollm2_tokenizer, lambda ids: [])
    assert row["blocked"] == list(range(len(made.inside)))
    assert (row["completed"], row["admitted"], row["other"], row["impossible"]) == ([], 0, 0, 0)
    assert row["unreached"] == sum(bool(ids) for ids in made.places)
    assert row["missing"] == len(members(made.canonical[made.places.index([])]))


def test_an_engine_that_does_not_end_blocks(exams, smollm2_tokenizer):
    ends = set(smollm2_tokenizer.eos_ids)
    most = smollm2_tokenizer.n_ids
    row = scripted(exams, smollm2_tokenizer, lambda ids: set(range(most)) - ends)
    assert len(row["blocked"]) == row["inside"]
    assert row["completed"] == []


def test_an_engine_that_breaks_on_the_way_blocks(exams, smollm2_tokenizer):
    def breaks(ids):
        if ids:
            raise PeerError("broken")
        return range(smollm2_tokenizer.n_ids)

    row = scripted(exams, smollm2_tokenizer, breaks)
    assert len(row["blocked"]) == row["inside"]


def test_without_time_each_part_is_done_once(exams, smollm2_tokenizer):
    everything = range(smollm2_tokenizer.n_ids)
    row = scripted(exams, smollm2_tokenizer, lambda ids: everything, "contraction", seconds=0.0)
    assert len(row["compile"]) == row["inside"] == row["outside"] == row["offered"] == 1
    assert row["places"] == 1


CHILD = """
import json, sys, time
print(json.dumps({"ready": 1.5}), flush=True)
for line in sys.stdin:
    what = json.loads(line)
    if what == "die":
        sys.exit(3)
    if what == "sleep":
        time.sleep(60)
    if what == "grow":
        kept = bytearray(300_000_000)
        time.sleep(60)
    print(json.dumps({"answer": what}), flush=True)
"""


@pytest.fixture
def child(tmp_path, monkeypatch):
    (tmp_path / "peers_demo_child.py").write_text(CHILD, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def opened(**limits):
        return Process("peers_demo_child", [], Limits(**limits))

    return opened


def test_a_process_that_is_lost_is_a_failure_and_the_next_question_starts_it_anew(child):
    with child(seconds=0.5, mb=200) as process:
        assert process.start() == {"ready": 1.5}
        assert process.ask("one") == {"answer": "one"}
        assert process.ask("die") == {FAILURE: "crashed: exit code 3"}
        assert process.ask("sleep") == {FAILURE: "over time: more than 0.5 s"}
        assert process.ask("two") == {"answer": "two"}
    with child(seconds=30, mb=200) as process:
        assert process.ask("grow") == {FAILURE: "over memory: more than 200 MB"}


@pytest.mark.parametrize("cold", [1, 9])
def test_a_process_that_compiled_kernels_is_started_again_once(tmp_path, monkeypatch, cold):
    """What compiling takes is none of the times and the memory; cold: starts that compile."""
    log = tmp_path / "starts"
    (tmp_path / "peers_cold_child.py").write_text(
        "import json, pathlib, sys\n"
        f"log = pathlib.Path({str(log)!r})\n"
        "starts = len(log.read_text()) + 1 if log.exists() else 1\n"
        "log.write_text('x' * starts)\n"
        f"print(json.dumps({{'ready': starts, 'compiled': int(starts <= {cold})}}), flush=True)\n"
        "sys.stdin.read()\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Process("peers_cold_child", [], Limits()) as process:
        assert process.start()["ready"] == process.start()["ready"] == 2
    assert log.read_text() == "xx"


def test_the_child_counts_the_kernels_that_it_compiles():
    """Of the kernels, those of a fresh cache; there must be a count for a restart to be had."""
    settings = json.dumps({"repeats": 1, "seconds": 0.0})
    with Process(peers.CHILD, ["lift", "gpt2", settings], Limits()) as process:
        first = process.start()
    assert first["compiled"] == 0
    assert first["ready"] > 0
    assert first["process_mb"] > 20


def run_of(folder, **given):
    config = Config(**{"constraints": ("answer",), "tokenizers": ("smollm2",), **given})
    return Run("peers", peers.VERSION, config, folder, Settings())


class FakeProcess:
    """Answers at once."""

    started: ClassVar[list[list[str]]] = []
    first: ClassVar[dict[str, object]] = FIRST

    def __init__(self, module, arguments, limits):
        self._arguments = arguments

    def start(self):
        self.started.append(self._arguments[:2])
        return self.first

    def ask(self, path):
        return exam_row()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


@pytest.fixture
def fake(monkeypatch, smollm2_tokenizer):
    monkeypatch.setattr(FakeProcess, "started", [])
    monkeypatch.setattr(peers, "Process", FakeProcess)
    monkeypatch.setattr(peers.Tokenizer, "load", lambda source: smollm2_tokenizer)
    return FakeProcess


def test_rows_are_resumed(fake, tmp_path):
    run = run_of(tmp_path, engines=("lift",))
    measured(run)
    assert [row["key"] for row in run.rows] == ["lift smollm2", "lift smollm2 answer"]
    assert run.manifest()["complete"]
    measured(again := run_of(tmp_path, engines=("lift",)))
    assert (again.rows, len(fake.started)) == (run.rows, 1)


def test_an_interrupted_run_knows_how_much_is_missing(fake, tmp_path, monkeypatch):
    """All rows are announced before the first engine is started: two heads, four constraints."""

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(fake, "start", interrupted)
    run = run_of(tmp_path, engines=("lift", "canonical"), constraints=("answer", "city"))
    with pytest.raises(KeyboardInterrupt):
        peers.measure(run)
    assert (run.manifest()["rows"], run.manifest()["rows_expected"]) == (0, 6)


def test_an_engine_that_does_not_come_up_again_fails_at_what_is_left(fake, tmp_path, monkeypatch):
    """The head row says that it came up: that the rest is missing has to be said at the rest."""
    names = ("answer", "city", "prefixes")
    run = run_of(tmp_path, engines=("lift",), constraints=names)

    def dies(self, path):
        if len(run.rows) == 3:
            raise KeyboardInterrupt
        return exam_row()

    monkeypatch.setattr(fake, "ask", dies)
    with pytest.raises(KeyboardInterrupt):
        peers.measure(run)
    monkeypatch.setattr(fake, "first", {FAILURE: "PeerError: no"})
    measured(again := run_of(tmp_path, engines=("lift",), constraints=names))
    assert [FAILURE in row for row in again.rows] == [False, False, False, True]
    assert again.rows[-1]["constraint"] == "prefixes"
    assert again.manifest()["complete"]
    table = peers.render(again.rows, again.manifest()).tables[0]
    assert table.rows[0][[*table.columns].index("answered")] == "2 of 3"


def test_a_missing_engine_is_one_row_that_names_the_command(fake, tmp_path, monkeypatch):
    monkeypatch.setattr(PEERS["kbnf"], "version", classmethod(lambda cls: None))
    run = run_of(tmp_path, engines=("kbnf", "lift"))
    measured(run)
    (failed,) = (row for row in run.rows if row.get(FAILURE))
    assert failed[FAILURE] == f"not installed: {PEERS['kbnf'].install}"
    assert run.manifest()["complete"]
    (found,) = peers.render(run.rows, run.manifest()).facts["asked"]
    assert (found["name"], found["tokenizer"]) == ("lift", "smollm2")


def test_an_engine_that_refuses_a_tokenizer_is_one_row(fake, tmp_path, monkeypatch):
    monkeypatch.setattr(fake, "first", {FAILURE: "PeerError: no"})
    for _ in range(2):
        measured(run := run_of(tmp_path, engines=("lift",)))
        assert [row["key"] for row in run.rows] == ["lift smollm2"]
        assert run.manifest()["complete"]
    assert len(fake.started) == 1


def test_unknown_names_are_refused(tmp_path):
    for wrong in ({"engines": ("none",)}, {"constraints": ("none",)}):
        with pytest.raises(ArgumentError):
            peers.measure(run_of(tmp_path, **wrong))


def measured(run):
    peers.measure(run)
    run.finish()
