"""Forced tokens: counts against those by hand."""

import pytest

from bpe_automata import compile_regex
from bpe_automata.testing import small_tokenizer
from experiments.artefacts import forced
from experiments.chop import METHODS, walked
from experiments.inputs import Case

MERGES = [("b", "c"), ("a", "bc"), ("b", "d"), ("a", "bd")]
TOKENIZER = small_tokenizer([*"abcdefghx", "bc", "abc", "bd", "abd"], MERGES)


def counts(regex, *texts):
    found = {row.pop("method"): row for row in walked(TOKENIZER, compile_regex(regex), texts)}
    assert tuple(found) == METHODS
    return {m: {k: n for k, n in row.items() if n} for m, row in found.items()}


def test_counts_by_hand():
    """x,abc and x,abd: x is certain; the heuristic adds a b, of which neither is in any text that
    matches. At 1 it keeps a, at 2 none. No id after x is certain, and the lift has x a b."""
    found = counts("xab(c|d)", "xabc", "xabd")
    right = {"ids": 4, "known": 2, "runs": 2}
    for method in ("canonical", "lift", "chop 2", "chop 4"):
        assert found[method] == right
    for method in ("chop 0", "chop 1"):
        assert found[method] == right | {"departing": 2, "no_match": 2}
    assert set(map(str, counts("e(f|g)+h", "efgh").values())) == {
        "{'ids': 4, 'known': 1, 'runs': 1}"
    }


def test_schemas_in_both_styles():
    pytest.importorskip("outlines_core")
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
    schema["additionalProperties"] = False
    for style, text in (("compact", '{"a":true}'), ("spaced", '{"a": true}')):
        case = Case("s", "g", {"schema": schema}, (text, "no"), (True, True))
        dfa, texts, other, refused = forced.item_of(case, style)
        assert (texts, other, refused) == ((text,), 1, "")
        assert dfa.accepts(b'{"a": true}') == (style == "spaced")
    refused = forced.item_of(Case("s", "g", {"schema": {"type": "nonsense"}}, (), ()), "compact")
    assert refused[0] is None
    assert refused[3].startswith("outlines-core: ")
