"""DirectMerge of complete tokenizers, through marked text: the second, independent path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples, named

from bpe_automata import compile_regex, constrain
from bpe_automata.constructions.explicit import explore
from bpe_automata.errors import BudgetExceededError, EmptyLanguageError, ImproperMergeTableError
from bpe_automata.reference import direct_merged
from bpe_automata.testing import (
    bpe_tokenizers,
    cyclic_regexes,
    finite_regexes,
    trained_tokenizers,
)
from bpe_automata.testing._inputs import own_pieces
from bpe_automata.tokenizer.sources.named import names

MOST_EDGES = 20_000
REGEXES = (
    r'(\{"a": ?(true|[0-9]{1,2})\}|  \n x)',
    r"(foo<\|im_end\|>|<s>|</s>|<\|endoftext\|>)?x",
    " ( g|g)eliş|[A-Z]{2}",
)
MORE_REGEXES = ("(true|false)", r"\s{0,3}(don't|DON'T|é日)\s{0,2}", "(ab)*c?", "[a-c1 ]{0,3}")
FEW = ("smollm2", "mistral-v1")


def check(tokenizer, regex):
    """The two paths, compared by a shortest counterexample; how many states the minimal automaton
    has, None if nothing can be spelled."""
    dfa = compile_regex(regex)
    try:
        engine = constrain(tokenizer, dfa, added_tokens=True).engine
        fast = explore(engine, engine.initial(), MOST_EDGES)
    except EmptyLanguageError:
        assert direct_merged(tokenizer, dfa, tokenizer.eos_ids).is_empty
        return None
    merged = direct_merged(tokenizer, dfa, tokenizer.eos_ids)
    found = merged.equivalent(fast)
    assert found is None, f"{regex!r}: {found}"
    assert fast.minimised().n_states == merged.n_states
    return merged.n_states


@examples(30)
@given(st.data())
def test_random_tokenizers(data):
    tokenizer = data.draw(bpe_tokenizers())
    regexes = finite_regexes if data.draw(st.booleans()) else cyclic_regexes
    try:
        check(tokenizer, data.draw(regexes(own_pieces(tokenizer))))
    except (BudgetExceededError, ImproperMergeTableError):
        return


@examples(8)
@given(st.data())
def test_trained_tokenizers(data):
    """Normalizers, prefixes, byte fallback, every kind of pretokenizer and added token."""
    tokenizer = data.draw(trained_tokenizers())
    try:
        check(tokenizer, data.draw(finite_regexes(own_pieces(tokenizer))))
    except (BudgetExceededError, ImproperMergeTableError):
        return


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FEW else pytest.mark.long) for name in names()]
)
def test_real_tokenizers(name, request):
    tokenizer = named(name)
    more = MORE_REGEXES if request.config.getoption("--long") else ()
    found = [check(tokenizer, regex) for regex in (*REGEXES, *more)]
    assert sum(n is not None for n in found) >= len(found) - bool(more)
