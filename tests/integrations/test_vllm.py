"""vLLM's V1 runner on a simulated batch: rows come, go, move and grow; masks are the definition's.

vLLM needs a GPU build, so a stand-in with the interface of 0.33.0 is in its place.
"""

from __future__ import annotations

import dataclasses
import logging

import numpy as np
import pytest
import standins as host
from hypothesis import given
from hypothesis import strategies as st
from served import END, REGEXES, START, V, mask_after, tokenizer
from standins import class_of, fields, imported_with, methods, parameters, real_source
from support import examples

from bpe_automata.errors import ArgumentError, TokenizerError, UnsupportedFeatureError

torch = pytest.importorskip("torch")
OURS = ["bpe_automata.integrations.vllm"]


@pytest.fixture(scope="module")
def ours():
    yield from (found[0] for found in imported_with(host.modules(), OURS))


def config(**model):
    given = {"hosted": tokenizer(), "vocab_size": V, "generation": {"eos_token_id": [END]}}
    return host.VllmConfig(host.ModelConfig(**{**given, **model}))


def asking(regex, **options):
    return host.SamplingParams({"bpe_automata": {"regex": regex, **options}})


class Request:
    """One request of the simulated engine; regex None: without a constraint."""

    def __init__(self, regex, method="canonical", prefix=True):
        self.regex, self.method, self.prefix = regex, method, prefix
        self.prompt = [START, *tokenizer().encode("de a")]
        self.output: list[int] = []

    def params(self):
        if self.regex is None:
            return host.SamplingParams({"other": 1})
        return asking(self.regex, method=self.method, prefix=self.prefix)

    def mask(self):
        prompt = self.prompt if self.prefix else ()
        return mask_after(self.regex, prompt, self.output, self.method)


class Engine:
    """A persistent batch as vLLM keeps it: `rows` without holes, updates in the order removed,
    added, moved, ids that are placeholders until just before the logits are processed."""

    def __init__(self, processor, rng):
        self.processor, self.rng = processor, rng
        self.rows: list[Request] = []

    def update(self, finished, arriving, swaps):
        """Rows in `finished` go, `arriving` fill the holes, the last rows fill what is left."""
        removed = sorted(finished, reverse=True)
        holes, added, moved = sorted(finished), [], []
        rows: list[Request | None] = list(self.rows)
        for index in removed:
            rows[index] = None
        for request in arriving:
            index = holes.pop(0) if holes else len(rows)
            if index == len(rows):
                rows.append(None)
            rows[index] = request
            added.append((index, request.params(), request.prompt, request.output))
        for hole in holes:
            while rows and rows[-1] is None:
                rows.pop()
            if hole < len(rows):
                rows[hole] = rows.pop()
                moved.append((len(rows), hole, host.MoveDirectionality.UNIDIRECTIONAL))
        for one, other in swaps:
            if max(one, other) < len(rows):
                rows[one], rows[other] = rows[other], rows[one]
                moved.append((one, other, host.MoveDirectionality.SWAP))
        self.rows = rows
        left = [index for index in removed if index not in {index for index, *_ in added}]
        update = host.BatchUpdate(len(rows), left, added, moved)
        self.processor.update_state(update if left or added or moved else None)

    def step(self):
        """Check all rows against the definition, and draw an id for each."""
        noise = self.rng.standard_normal((len(self.rows), V)).astype(np.float32)
        logits = torch.from_numpy(noise.copy())
        found = self.processor.apply(logits)
        assert found is logits
        for index, request in enumerate(self.rows):
            row = found[index].numpy()
            if request.regex is None:
                assert np.array_equal(row, noise[index])
                continue
            mask = request.mask()
            assert np.array_equal(row, np.where(mask, noise[index], -np.inf))
            request.output.append(int(row.argmax()))


@given(data=st.data())
@examples(15)
def test_masks_of_a_changing_batch_are_the_definition(ours, data):
    processor = ours.ConstraintLogitsProcessor(config(), torch.device("cpu"), False)
    engine = Engine(processor, np.random.default_rng(data.draw(st.integers(0, 2**31))))
    requests = st.builds(
        Request,
        st.sampled_from([None, *REGEXES]),
        st.sampled_from(["canonical", "lift"]),
        st.booleans(),
    )
    waiting: list[Request] = []
    for _ in range(data.draw(st.integers(1, 8))):
        count = len(engine.rows)
        ended = {k for k, request in enumerate(engine.rows) if END in request.output}
        preempted = data.draw(st.sets(st.integers(0, count - 1))) if count else set()
        coming = data.draw(st.lists(requests, max_size=2)) + waiting
        # A preempted request comes back later, with another list that holds the same ids.
        waiting = [engine.rows[k] for k in preempted - ended]
        for request in waiting:
            request.output = list(request.output)
        pairs = st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda p: p[0] != p[1])
        engine.update(ended | preempted, coming, data.draw(st.lists(pairs, max_size=2)))
        engine.step()


def test_a_text_that_cannot_go_on_may_only_end_and_is_logged(ours, caplog):
    """An id that was not allowed, an id that never came: the other rows are served."""
    processor = ours.ConstraintLogitsProcessor(config(), torch.device("cpu"), False)
    wrong, missing, good = (Request("abab") for _ in range(3))
    wrong.output += tokenizer().encode("z")
    missing.output.append(-1)
    rows = [wrong, missing, good]
    added = [(k, one.params(), one.prompt, one.output) for k, one in enumerate(rows)]
    with caplog.at_level(logging.ERROR):
        processor.update_state(host.BatchUpdate(3, [], added, []))
        found = processor.apply(torch.zeros(3, V)) == 0
        processor.apply(torch.zeros(3, V))
    for row in found[:2]:
        assert row.nonzero().flatten().tolist() == [END]
    assert np.array_equal(found[2].numpy(), good.mask())
    assert len(caplog.records) == 2


def test_a_move_replaces_and_a_swap_keeps_what_was_there(ours):
    regexes = ["abab", "yes", "[a-c]{2,5}"]
    for direction, expected in (
        (host.MoveDirectionality.UNIDIRECTIONAL, [None, "abab", "[a-c]{2,5}"]),
        (host.MoveDirectionality.SWAP, ["yes", "abab", "[a-c]{2,5}"]),
    ):
        processor = ours.ConstraintLogitsProcessor(config(), torch.device("cpu"), False)
        added = [(row, asking(regex), [START], []) for row, regex in enumerate(regexes)]
        processor.update_state(host.BatchUpdate(3, [], added, []))
        processor.update_state(host.BatchUpdate(3, [], [], [(0, 1, direction)]))
        found = (processor.apply(torch.zeros(3, V)) == 0).numpy()
        for row, regex in zip(found, expected, strict=True):
            mask = np.ones(V, bool) if regex is None else mask_after(regex, [START], ())
            assert np.array_equal(row, mask)


def test_a_request_that_cannot_be_served_ends_by_its_own_ids(ours):
    processor = ours.ConstraintLogitsProcessor(config(), torch.device("cpu"), False)
    wrong = tokenizer().encode("z")
    added = [(0, asking("abab", eos_ids=[START]), [START], wrong)]
    processor.update_state(host.BatchUpdate(1, [], added, []))
    found = processor.apply(torch.zeros(1, V)) == 0
    assert found[0].nonzero().flatten().tolist() == [START]


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        (host.SamplingParams({"bpe_automata": "yes"}), "give"),
        (host.SamplingParams({"bpe_automata": {"method": "lift"}}), "give"),
        (asking("a", regexes="b"), "has no option 'regexes'"),
        (asking("a", schema=True), "in place of the regex"),
        (asking(None, schema=[1]), "schema of bpe_automata is"),
        (asking(None, schema="{"), "bpe_automata: "),
        (asking(None, schema={"properties": {"a": {"type": "int"}}}), "/properties/a"),
        (asking("a", max_seconds=0), "max_seconds is 0"),
        (asking("a", max_seconds=float("nan")), "max_seconds is nan"),
        (asking("a", max_seconds=True), "max_seconds is True"),
        (host.SamplingParams({"bpe_automata": "[1]"}), "give"),
        (host.SamplingParams({"bpe_automata_regex": 7}), "give"),
        (host.SamplingParams({"bpe_automata_regexes": "a"}), "has no option 'regexes'"),
        (host.SamplingParams({"bpe_automata": "{}", "bpe_automata_regex": "a"}), "not both"),
        (host.SamplingParams({"bpe_automata_regex": "a("}), "position"),
        (asking("a", method="both"), "method 'both'"),
        (asking("a", prefix=1), "prefix of bpe_automata is 1"),
        (asking("a", prefix="yes"), "give True, False or 'if possible'"),
        (asking("a", eos_ids=[]), "give a list of ids"),
        (asking("a", eos_ids=["</s>"]), "give a list of ids"),
        (asking("a", eos_ids=[-1]), "give a list of ids"),
        (asking(r"[^\x00-\U0010ffff]"), "no text matches"),
        (asking("a("), "position"),
        (asking(r"a\1"), "position"),
        (host.SamplingParams({"bpe_automata": {"regex": "a"}}, min_tokens=2), "min_tokens"),
        (host.SamplingParams({"bpe_automata": {"regex": "a"}}, bad_words=["b"]), "bad_words"),
        (
            host.SamplingParams(
                {"bpe_automata": {"regex": "a"}}, structured_outputs={"json": "{}"}
            ),
            "structured_outputs",
        ),
    ],
)
def test_bad_requests_are_refused_before_they_are_queued(params, reason, ours):
    with pytest.raises(ValueError, match=reason) as caught:
        ours.ConstraintLogitsProcessor.validate_params(params)
    assert isinstance(caught.value, ArgumentError)


YES = [
    {"bpe_automata": '{"regex": "yes", "prefix": false}'},
    {"bpe_automata_regex": "yes", "bpe_automata_prefix": 0, "bpe_automata_eos_ids": [END]},
    {"bpe_automata_schema": '{"const": 7}', "bpe_automata_method": "lift"},
    {"bpe_automata": {"schema": {"const": 7}, "max_seconds": 1}},
    {"bpe_automata_schema": '{"const": 7}', "bpe_automata_prefix": "False"},
]


@pytest.mark.parametrize("extra", YES)
def test_flat_keys_json_text_and_schemas_are_read(extra, ours):
    """As `vllm_xargs` takes them: strings, numbers and lists of these."""
    params, text = host.SamplingParams(extra), "7" if "schema" in str(extra) else "yes"
    ours.ConstraintLogitsProcessor.validate_params(params)
    processor = ours.ConstraintLogitsProcessor(config(), torch.device("cpu"), False)
    output = []
    processor.update_state(host.BatchUpdate(1, [], [(0, params, [START], output)], []))
    for token in [*tokenizer().encode(text), END]:
        found = processor.apply(torch.zeros(1, V)) == 0
        assert np.array_equal(found[0].numpy(), mask_after(text, (), output, "canonical"))
        output.append(token)


def test_what_cannot_work_is_refused_at_the_start(ours):
    make = ours.ConstraintLogitsProcessor
    drafting = host.VllmConfig(config().model_config, speculative_config=object())
    with pytest.raises(UnsupportedFeatureError, match="vllm_runner"):
        make(drafting, torch.device("cpu"), False)
    with pytest.raises(ArgumentError, match="the model gives 9 logits"):
        make(config(vocab_size=9), torch.device("cpu"), False)
    with pytest.raises(ArgumentError, match="end-of-sequence ids"):
        make(config(generation={}), torch.device("cpu"), False)
    with pytest.raises(TokenizerError, match="skip_tokenizer_init"):
        make(config(hosted=None), torch.device("cpu"), False)


def test_the_classes_derive_from_the_one_that_vllm_asks_for(ours):
    assert issubclass(ours.ConstraintLogitsProcessor, host.LogitsProcessor)


# ---------------------------------------------------------------- the real files, if installed

V1 = "v1/sample/logits_processor/"
V2 = "v1/worker/gpu/sample/logits_processor/interface.py"


@pytest.mark.parametrize(
    ("ours", "path", "name"),
    [
        (host.LogitsProcessor, f"{V1}interface.py", "LogitsProcessor"),
        (host.RunnerLogitsProcessor, V2, "LogitsProcessor"),
    ],
)
def test_methods_take_the_same_parameters(ours, path, name):
    theirs = class_of(real_source("vllm", path), name)
    for method, expected in methods(ours).items():
        assert parameters(theirs, method) == expected, method


@pytest.mark.parametrize(
    ("ours", "path"),
    [
        (host.BatchUpdate, f"{V1}interface.py"),
        (host.LogitsContext, V2),
        (host.LogitsProcRequestState, V2),
    ],
)
def test_records_have_the_same_fields(ours, path):
    theirs = class_of(real_source("vllm", path), ours.__name__)
    assert set(fields(theirs)) == {field.name for field in dataclasses.fields(ours)}


def test_sampling_parameters_have_the_fields_that_are_read():
    theirs = fields(class_of(real_source("vllm", "sampling_params.py"), "SamplingParams"))
    assert {field.name for field in dataclasses.fields(host.SamplingParams)} <= set(theirs)


def test_the_tokenizer_comes_from_the_model_config():
    theirs = real_source("vllm", "tokenizers/registry.py")
    assert parameters(theirs, "cached_tokenizer_from_config")[0] == "model_config"
