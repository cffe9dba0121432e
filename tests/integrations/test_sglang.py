"""SGLang's grammar backend, beyond what holds for every host: requests that share, masks of the
scheduler, text that is led, and what a client is told."""

import re

import numpy as np
import pytest
import standins
from hosts import filled, grammar_of, masked
from hypothesis import given
from hypothesis import strategies as st
from served import END, START, V, mask_after, thinking, tokenizer
from support import examples

from bpe_automata import constrain
from bpe_automata.errors import ArgumentError, BpeAutomataError, BufferShapeError
from bpe_automata.testing import texts, trained_tokenizers

PROMPT = [START, *tokenizer().encode("de a")]
REGEX = "[a-c]{2,5}"
A, C = (tokenizer().encode(letter)[0] for letter in "ac")


@pytest.fixture(scope="module")
def backend(servers):
    return servers.sglang.RegexBackend(tokenizer(), V, {END})


def asked(backend, regex=REGEX, prompt=PROMPT):
    return grammar_of(backend, "regex", regex, prompt)


def test_requests_and_copies_share_what_is_compiled_and_nothing_else(backend):
    one, other = (asked(backend) for _ in range(2))
    before = filled(other)
    twin = one.copy()
    one.accept_token(C)
    for unmoved in (other, twin, asked(backend)):
        assert np.array_equal(filled(unmoved), before)
    assert not np.array_equal(filled(one), before)


def test_ids_that_are_led_are_read_anew_or_nothing_changes(backend):
    grammar = asked(backend)
    grammar.accept_token(C)
    grammar.jump_and_retokenize([C], [A, C], -1)
    expected = mask_after(REGEX, PROMPT, [A, C])
    assert np.array_equal(filled(grammar), expected)
    with pytest.raises(ArgumentError):
        grammar.jump_and_retokenize([A, C], [A, END], -1)
    assert np.array_equal(filled(grammar), expected)
    led = asked(backend, "yes no", [START])
    ids, text = led.try_jump_forward(None)
    assert (tokenizer().decode(ids), text) == ("yes no", "")
    assert led.jump_forward_str_state((ids, text)) == ("", -1)


@given(trained_tokenizers(), st.data())
@examples(4)
def test_the_text_under_way_leads_to_the_state_of_the_whole_prompt(servers, trained, data):
    apart = [st.sampled_from(sorted(trained.added_ids)).map(lambda i: [i])]
    pieces = st.one_of(texts(trained).map(trained.encode), *apart * bool(trained.added_ids))
    ids = [i for part in data.draw(st.lists(pieces, max_size=4)) for i in part]
    try:
        engine = constrain(trained, "[ -~]{1,9}", eos_ids=()).engine
        whole = engine.initial(ids)
    except BpeAutomataError:
        return
    assert engine.initial(servers.sglang.under_way(trained, ids)) == whole


@pytest.mark.parametrize(
    ("kind", "text", "prompt", "reason"),
    [
        ("regex", "a(", [START], "position"),
        ("regex", "a\u00e9", [START], "no answer is canonical"),
        ("regex", "bab", tokenizer().encode("a"), 'merge with the answer.*prefix "if possible"'),
        ("json", '{"properties": {"a": {"type": "int"}}}', [START], "/properties/a"),
        ("ebnf", "{}", [START], "GBNF, line 1"),
        ("structural_tag", "{}", [START], "with one trigger"),
    ],
)
def test_what_cannot_be_compiled_is_told_to_the_request(backend, kind, text, prompt, reason):
    found = grammar_of(backend, kind, text, prompt)
    assert isinstance(found, standins.InvalidGrammarObject)
    assert re.search(reason, found.error_message)


def test_other_kinds_are_the_base_class_s_and_thinking_is_refused(backend):
    with pytest.raises(ValueError, match="unknown"):
        backend.dispatch_fallback("unknown", "x")
    found, hit = backend.get_cached_or_future_value(("regex", "a"), True)
    assert hit
    assert "reasoning" in found.error_message


def test_with_after_a_request_thinks_first(servers):
    thinks = servers.sglang.RegexBackend(tokenizer(), V, {END}, after="<pad>")
    found, _ = thinks.get_cached_or_future_value(("regex", "yes"), True)
    grammar = found.result()
    for mask, token in thinking(()):
        assert np.array_equal(filled(grammar), mask)
        grammar.accept_token(token)


def test_masks_are_applied_moved_and_reset(backend):
    grammar = asked(backend)
    mask = grammar.move_vocab_mask(grammar.allocate_vocab_mask(V, 2, "cpu"), "cpu")
    grammar.fill_vocab_mask(mask, 1)
    found = masked(lambda logits: grammar.apply_vocab_mask(logits, mask) or logits, 2)
    assert np.array_equal(found, [np.ones(V, bool), mask_after(REGEX, PROMPT, ())])
    grammar.reset_vocab_mask(mask)
    assert (mask == -1).all()
    with pytest.raises(BufferShapeError):
        grammar.fill_vocab_mask(mask[:, :1].contiguous(), 1)


def test_registration_is_a_call_and_names_what_it_makes(servers):
    assert not standins.GRAMMAR_BACKEND_REGISTRY
    for _ in range(2):
        servers.sglang.register(method="lift")
    assert standins.GRAMMAR_BACKEND_CHOICES.count("bpe_automata") == 1
    made = standins.GRAMMAR_BACKEND_REGISTRY.pop("bpe_automata")(None, tokenizer(), V, [END])
    assert np.array_equal(filled(asked(made)), mask_after(REGEX, PROMPT, (), "lift"))
