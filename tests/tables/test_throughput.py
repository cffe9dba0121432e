"""Throughput: what its rows are, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bpe_automata.errors import ArgumentError
from bpe_automata.testing import byte_level, small_tokenizer
from experiments.run.config import changed
from experiments.run.measuring import Run, Settings
from experiments.run.tables import frame
from experiments.serving import throughput
from experiments.serving.throughput import Config
from experiments.shared.models import LoadedModel

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TOKENIZER = small_tokenizer([*"abĠĊ", "ab"], [("a", "b")], byte_level(), added=["<end>"])
SMALL = {"ab": r"((a|b){2}\n)*"}
CONFIG = Config(
    dtypes=("float32",), batches=(1, 3), languages=("ab",), length=4, repeats=2, device="cpu"
)


@pytest.fixture
def tiny(monkeypatch):
    """A random model in place of those that are loaded; the languages are as small. How often one
    was loaded."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=TOKENIZER.n_ids,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    loads = []

    class Tiny(LoadedModel):
        def prompt_ids(self, prompt):
            return [0, 3]

        def provenance(self):
            return {"model": "tiny", "device": "cpu", "note": ""}

    def load(source, device, dtype):
        loads.append((source, device, dtype))
        return Tiny("tiny", "", model, TOKENIZER, (), device, 0.0)

    monkeypatch.setattr(throughput, "load_model", load)
    monkeypatch.setattr(throughput, "LANGUAGES", SMALL)
    return loads


def measured(folder, config=CONFIG):
    run = Run("throughput", throughput.VERSION, config, folder, Settings())
    throughput.measure(run)
    run.finish()
    return run


def test_a_row_for_each_batch_language_and_method(tiny, tmp_path):
    run = measured(tmp_path)
    assert len(tiny) == 1
    assert [row["key"] for row in run.rows] == [
        f"float32 {batch} ab {method}" for batch in (1, 3) for method in ("canonical", "lift")
    ]
    for row in run.rows:
        assert len(row["free"]) == len(row["constrained"]) == 2
        assert len(row["masks"]) == row["length"] == 4
        assert min(*row["free"], *row["constrained"], *row["cold"], *row["masks"]) > 0
    assert run.manifest()["complete"]


def test_samples_have_the_length_that_is_counted(tiny, monkeypatch, tmp_path):
    """Neither the model nor the language may end one: tokens per second would be wrong."""
    lengths = []
    plain = throughput.sample_batch

    def watched(*given, **named):
        drawn = plain(*given, **named)
        lengths.extend(len(text.ids) for text in drawn)
        return drawn

    monkeypatch.setattr(throughput, "sample_batch", watched)
    measured(tmp_path)
    assert set(lengths) == {4}


def test_an_interrupted_run_knows_how_much_is_missing(tiny, tmp_path, monkeypatch):
    """All rows are announced before the first model is loaded."""

    def no_memory(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(throughput, "load_model", no_memory)
    config = replace(CONFIG, dtypes=("float32", "bfloat16"))
    run = Run("throughput", throughput.VERSION, config, tmp_path, Settings())
    with pytest.raises(KeyboardInterrupt):
        throughput.measure(run)
    assert run.manifest()["rows_expected"] == 2 * 2 * 2
    assert not run.manifest()["complete"]


def test_the_first_batch_under_masks_is_under_a_throwaway_constraint(tiny, tmp_path, monkeypatch):
    """Else the first method pays for loading or compiling what all of them use."""
    order = []
    plain = throughput.sample_batch

    def watched(model, prompt, constraint, n, **named):
        order.append((n, constraint and (constraint.method, constraint.dfa.accepts(b"aaa "))))
        return plain(model, prompt, constraint, n, **named)

    monkeypatch.setattr(throughput, "sample_batch", watched)
    measured(tmp_path)
    for batch in (1, 3):
        own = [constraint for n, constraint in order if n == batch]
        assert own[:3] == [None, ("canonical", True), ("lift", True)]
        assert own.count(("canonical", True)) == own.count(("lift", True)) == 1
        assert ("canonical", False) in own


def test_a_device_or_a_dtype_that_there_is_not_is_one_line(tmp_path):
    for field, text in (("device", "foo"), ("dtypes", "bfloat16,foo")):
        with pytest.raises(ArgumentError, match=f"--{field} 'foo' is none of"):
            changed(CONFIG, {field: text})
    assert changed(CONFIG, {"dtypes": "float64"}).dtypes == ("float64",)


@pytest.mark.parametrize(
    "wrong", [{"languages": ("ba",)}, {"methods": ("naive",)}, {"repeats": 0}, {"batches": (0,)}]
)
def test_arguments_are_looked_at_first(tiny, tmp_path, wrong):
    config = Config(**{"languages": ("ab",), **wrong})
    with pytest.raises(ArgumentError):
        measured(tmp_path, config)
    assert not tiny


MANIFEST = {"config": {"model": "tiny"}, "complete": True}


def row(free, constrained, **other):
    given = {"device": "cpu", "dtype": "float32", "batch": 64, "language": "ab", "length": 8}
    given |= {"method": "lift", "free": free, "constrained": constrained, "cold": [1.0, 4.0]}
    return given | {"masks": [0.001], "key": str(other)} | other


def test_the_ratio_is_that_within_a_round():
    """The machine was half as fast in the second round; that is nobody's fault."""
    found = throughput.summary(frame([row([1.0, 2.0], [1.25, 2.5])])).iloc[0]
    assert found["ratio"] == pytest.approx(0.8)
    assert found["free"] == pytest.approx(64 * 8 / 1.5)
    assert found["first"] == 0.25


def test_less_than_six_rounds_are_shown_whole():
    found = throughput.summary(frame([row([1.0, 2.0, 4.0], [2.0, 2.0, 5.0])])).iloc[0]
    assert found["interval"] == [0.5, 1.0]


def test_the_goal_is_asked_at_batch_64_only():
    rows = frame([row([1.0], [2.0], batch=n) for n in (1, 8, 64)] + [row([1.0], [1.0])])
    (table,) = throughput.tables(rows, {"complete": True})
    place = [*table.columns].index("at least 97%\nat batch 64")
    assert [line[place] for line in table.rows] == ["", "", "NO", "yes"]


def test_the_readme_has_the_largest_batch():
    rows = frame([row([1.0], [1.0]), row([1.0], [2.0], batch=8)])
    text = throughput.readme(throughput.facts(rows, {}))
    assert "| float32 | ab | lift | 100.0 % (100.0 to 100.0) |" in text
    assert "50.0 %" not in text
