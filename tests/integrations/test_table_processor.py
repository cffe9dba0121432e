"""The logits processor of a token table against the matcher and the constraint's processor."""

from __future__ import annotations

import numpy as np
import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st
from listed_automata import listings

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from small_tables import END, FORMS, ON, PATH, finite, hand_made  # noqa: E402

from bpe_automata import TokenAutomaton, constrain  # noqa: E402
from bpe_automata.constructions import Listed  # noqa: E402
from bpe_automata.decoding import Matcher, TokenTable, matcher_of  # noqa: E402
from bpe_automata.errors import (  # noqa: E402
    BufferShapeError,
    DecodingError,
    LogitsError,
    TokenOutOfRangeError,
    UnsupportedFeatureError,
)
from bpe_automata.integrations.torch_table import TorchTable  # noqa: E402
from bpe_automata.integrations.transformers.processor import (  # noqa: E402
    ConstraintLogitsProcessor,
)
from bpe_automata.integrations.transformers.table_processor import (  # noqa: E402
    TokenTableProcessor,
)
from bpe_automata.testing import byte_spelling, small_tokenizer  # noqa: E402

# ---------------------------------------------------------------- the processor


def rows_of(engine, rng, rows, length):
    """Ids of any kind, most of them allowed where they stand."""
    found = []
    for _ in range(rows):
        matcher, ids = Matcher(engine), []
        for _ in range(length):
            options = matcher.allowed_ids().tolist()
            token = rng.choice(options) if options else rng.randrange(engine.n_ids)
            if rng.random() < 0.1:
                token = rng.randrange(engine.n_ids + 2)
            if token in options:
                matcher.advance(token)
            ids.append(token)
        found.append(ids)
    return found


def allowed_after(engine, ids, fill):
    """By the matcher: a row that has ended, or read what it may not, reads `fill` alone."""
    matcher = Matcher(engine)
    for token in ids:
        if token not in matcher.allowed_ids():
            return fill
        matcher.advance(token)
    return matcher.allowed_ids().tolist() or fill


@ON
@FORMS
@given(listing=listings(), rng=st.randoms(use_true_random=False))
@examples(25)
def test_the_processor_equals_the_matcher_however_rows_are_reordered(device, dense, listing, rng):
    """Step by step as beam search goes: any row may follow any row of its own prompt."""
    pad, prompts, beams, steps = listing.n_ids - 1, 2, 3, 5
    table = TokenTable.of(listing.automaton, listing.eos_ids, listing.n_ids, dense=dense)
    prompt = torch.zeros(prompts, 4, dtype=torch.long, device=device)
    processor = TokenTableProcessor(table, prompt, pad_id=pad)
    fill = sorted({*listing.eos_ids, pad})
    engine = Listed(listing.automaton, listing.eos_ids, listing.n_ids)
    final = rows_of(engine, rng, prompts * beams, steps)
    scores = torch.zeros(prompts * beams, listing.n_ids + 3, device=device)
    for step in range(steps + 1):
        for start in range(0, len(final), beams):
            own = final[start : start + beams]
            final[start : start + beams] = [rng.choice(own) for _ in own]
        ids = torch.tensor([[0] * 4 + row[:step] for row in final], device=device)
        masked = finite(processor(ids, scores))
        assert masked == [allowed_after(engine, row[:step], fill) for row in final]
        fresh = TokenTableProcessor(table, prompt, pad_id=pad)
        assert torch.equal(fresh.states(ids), processor.states(ids))


def test_the_memo_makes_one_step_of_a_reordered_row():
    class Counting(TorchTable):
        steps = 0

        def advance(self, states, ids):
            Counting.steps += 1
            return super().advance(states, ids)

    prompt = torch.zeros(1, 2, dtype=torch.long)
    processor = TokenTableProcessor(hand_made(), prompt)
    processor._table = Counting(**vars(processor._table))
    rows = torch.tensor([[0, 0, 3, 4, 3, 5], [0, 0, 3, 5, END, END], [0, 0, 3, 4, 3, 4]])
    for length in range(2, 7):
        processor(rows[:, :length], torch.zeros(3, 10))
        rows = rows[[2, 0, 1]]
    assert Counting.steps == 4
    processor.states(rows[:, :4])
    assert Counting.steps == 6


def test_rows_that_the_last_call_did_not_have_are_read_from_their_beginning():
    processor = TokenTableProcessor(hand_made(), torch.zeros(1, 1, dtype=torch.long))
    processor(torch.tensor([[0, 3, 5], [0, 3, 4]]), torch.zeros(2, 10))
    rows = torch.tensor([[0, 3, 4, 3], [0, 4, 4, 3], [0, 3, 5, END]])
    assert finite(processor(rows, torch.zeros(3, 10))) == [[4, 5], [END], [END]]


def test_dead_beams_are_no_error():
    """But a row of its own that nothing can be drawn from is."""
    processor = TokenTableProcessor(hand_made(), torch.zeros(1, 1, dtype=torch.long))
    rows, nothing = torch.zeros(2, 1, dtype=torch.long), torch.full((2, 10), -torch.inf)
    assert finite(processor(rows, nothing)) == [[], []]
    with pytest.raises(LogitsError, match="row 0"):
        processor(rows[:1], nothing[:1])


def test_prompts_may_start_in_states_of_their_own():
    """Rows of equal ids, of prompts in different states, are not mixed up by the memo."""
    table = TokenTable.from_transitions(
        [("x", 1, "y"), ("z", 1, "w"), ("y", 2, "f"), ("w", 3, "f"), ("s", 5, "x"), ("s", 6, "z")],
        "s",
        n_ids=8,
        eos_ids=[0],
    )
    starts = torch.tensor([table.names.index("x"), table.names.index("z")])
    prompt = torch.zeros(2, 1, dtype=torch.long)
    processor = TokenTableProcessor(table, prompt, states=starts)
    before = torch.tensor([[0, 1], [0, 7], [0, 1], [0, 7]])
    assert finite(processor(before, torch.zeros(4, 8))) == [[2], [0], [3], [0]]
    after = torch.tensor([[0, 7, 0], [0, 1, 2], [0, 7, 0], [0, 1, 2]])
    assert finite(processor(after, torch.zeros(4, 8))) == [[0], [0], [0], [0]]
    complete = table.accepting[processor.states(after)]
    assert complete.tolist() == [False, True, False, False]


# ---------------------------------------------------------------- constraints written out


EOS = (11, 12)


@pytest.fixture(scope="module")
def tokenizer():
    vocabulary = ["a", "b", "c", "ab", "abc", "<", "|", "x", ">", *byte_spelling("é".encode())]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    steps = {**byte_level, "trim_offsets": True}
    merges = [("a", "b"), ("ab", "c")]
    return small_tokenizer(vocabulary, merges, steps, ["<end>", "<stop>", "<|x|>"])


@FORMS
@pytest.mark.parametrize("method", ["canonical", "lift"])
@pytest.mark.parametrize("regex", [r"(abc){0,2}|ab|c<\|x\|>|é|bca<\|", "(a|bc)*é?", "ab"])
def test_a_constraint_written_out_masks_like_the_constraint(dense, method, regex, tokenizer):
    """At every sequence of up to four ids, allowed or not."""
    constraint = constrain(tokenizer, regex, method=method, eos_ids=EOS)
    table = TokenTable.of(constraint.automaton(), EOS, tokenizer.n_ids, dense=dense)
    prompt = torch.tensor([[0]])
    ours = TokenTableProcessor(table, prompt, pad_id=1)
    theirs = ConstraintLogitsProcessor(constraint, prompt, prefix=False, pad_id=1)
    rng, rows = np.random.default_rng(5), torch.zeros(1, 1, dtype=torch.long)
    for _ in range(5):
        rows = rows[torch.from_numpy(rng.permutation(len(rows)))][:300]
        scores = torch.from_numpy(rng.normal(size=(len(rows), tokenizer.n_ids + 5)))
        assert torch.equal(ours(rows, scores), theirs(rows, scores))
        follow = torch.arange(tokenizer.n_ids).repeat(len(rows))
        rows = torch.column_stack((rows.repeat_interleave(tokenizer.n_ids, 0), follow))
        # Half of what goes on is allowed, so that the paths get long.
        read = ours(rows[:, :-1], torch.zeros(len(rows), tokenizer.n_ids)).isfinite()
        good = read.gather(1, follow[:, None])[:, 0]
        rows = torch.cat((rows[good], rows[~good][: int(good.sum())]))


# ---------------------------------------------------------------- real generation


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(2)
    config = transformers.LlamaConfig(
        vocab_size=16,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        initializer_range=0.5,
        bos_token_id=1,
        eos_token_id=END,
        pad_token_id=0,
    )
    return transformers.LlamaForCausalLM(config).eval()


@FORMS
@pytest.mark.parametrize(
    "options",
    [
        {"do_sample": False},
        {"do_sample": True, "num_return_sequences": 4},
        {"num_beams": 4, "num_return_sequences": 3},
    ],
    ids=["greedy", "sampling", "beams"],
)
def test_what_a_model_writes_is_accepted(dense, options, model):
    """Ended rows are filled with pad_token_id, and beams outnumber what may follow."""
    table = hand_made(dense)
    prompts = torch.tensor([[0, 1, 2], [1, 8, 9]])
    mask = torch.tensor([[0, 1, 1], [1, 1, 1]])
    processor = TokenTableProcessor(table, prompts, pad_id=0)
    torch.manual_seed(3)
    written = model.generate(
        prompts,
        attention_mask=mask,
        logits_processor=[processor],
        max_new_tokens=9,
        **options,
    )
    assert len(written) == 2 * options.get("num_return_sequences", 1)
    for ids in written[:, 3:].tolist():
        matcher = matcher_of(TokenAutomaton.from_transitions(PATH, "a", ["c"]), [END], 10)
        for token in ids:
            if matcher.is_finished:
                assert token in (0, END)  # beam search fills with the end where padding is 0
            else:
                matcher.advance(token)


@pytest.mark.parametrize("ends", [(), (END,)])
@FORMS
def test_a_walk_without_an_end_goes_on_until_max_new_tokens(dense, ends, model):
    ring = [(0, 1, 1), (1, 2, 2), (2, 3, 0)]
    table = TokenTable.from_transitions(ring, 0, n_ids=10, eos_ids=ends, dense=dense)
    prompt = torch.full((2, 3), 4)
    for options in ({"do_sample": True}, {"num_beams": 3}):
        processor = TokenTableProcessor(table, prompt)
        written = model.generate(
            prompt, logits_processor=[processor], max_new_tokens=8, eos_token_id=END, **options
        )
        assert written[:, 3:].tolist() == [[1, 2, 3, 1, 2, 3, 1, 2]] * 2


def test_what_a_processor_refuses():
    prompt = torch.zeros(2, 3, dtype=torch.long)
    processor = TokenTableProcessor(hand_made(), prompt)
    bare = TokenTable.from_transitions(PATH, "a", n_ids=10)
    with pytest.raises(DecodingError, match="pad_id"):
        TokenTableProcessor(bare, prompt)
    with pytest.raises(TokenOutOfRangeError, match="10"):
        TokenTableProcessor(bare, prompt, pad_id=10)
    with pytest.raises(BufferShapeError, match="states"):
        TokenTableProcessor(bare, prompt, pad_id=0, states=torch.zeros(3))
    with pytest.raises(BufferShapeError, match="3 rows"):
        processor(torch.zeros(3, 3, dtype=torch.long), torch.zeros(3, 10))
    with pytest.raises(BufferShapeError, match="rows of 2 ids"):
        processor(torch.zeros(2, 2, dtype=torch.long), torch.zeros(2, 10))
    with pytest.raises(LogitsError, match="10 ids"):
        processor(prompt, torch.zeros(2, 9))
    with pytest.raises(LogitsError, match="row 0: the logit"):
        processor(prompt, torch.full((2, 10), torch.nan))
    with pytest.raises(UnsupportedFeatureError, match="continuous"):
        processor(prompt[0], torch.zeros(2, 10))
    with pytest.raises(UnsupportedFeatureError, match="continuous"):
        processor.supports_continuous_batching  # noqa: B018
    unchecked = TokenTableProcessor(hand_made(), prompt, check=False)
    assert unchecked(prompt, torch.full((2, 10), torch.nan))[0, 3].isnan()
