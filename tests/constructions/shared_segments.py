"""What the tests of segments have in common."""

from __future__ import annotations

import pytest

from bpe_automata import Tokenizer, compile_regex, constrain
from bpe_automata.errors import MissingDependencyError

NAMES = ("smollm2", "mistral-v1", "llama-3")
PLAIN = '"[ !#-[^-~]*"'  # ASCII: few enough nodes to make the rows of all of them
PLAIN_JSON = r'\{"name":' + PLAIN + r',"city":' + PLAIN + r',"age":(0|[1-9][0-9]{0,2})\}'
SMALL_JSON = r'\{"on":(true|false|null),"day":"20[0-2][0-9]-[01][0-9]","ok":(true|false|null)\}'


def named(name):
    """A tokenizer, or a skipped test."""
    try:
        return Tokenizer.load(name)
    except MissingDependencyError as error:
        pytest.skip(str(error))


def engines(tokenizer, regex, cache, eos=()):
    """The engine without segments, and the one with them."""
    dfa = compile_regex(regex)
    plain = constrain(tokenizer, dfa, eos_ids=eos).engine
    return plain, constrain(tokenizer, dfa, eos_ids=eos, segments=cache).engine
