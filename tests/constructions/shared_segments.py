"""What the tests of segments have in common."""

from __future__ import annotations

import pytest

from bpe_automata import Tokenizer, constrain
from bpe_automata.constructions.segments import Segments
from bpe_automata.constructions.segments_eager import all_configurations
from bpe_automata.errors import MissingDependencyError

NAMES = ("smollm2", "mistral-v1", "llama-3")
PLAIN = '"[ !#-[^-~]*"'  # ASCII: few enough configurations to make the rows of all of them
PLAIN_JSON = r'\{"name":' + PLAIN + r',"city":' + PLAIN + r',"age":(0|[1-9][0-9]{0,2})\}'
SMALL_JSON = r'\{"on":(true|false|null),"day":"20[0-2][0-9]-[01][0-9]","ok":(true|false|null)\}'


def named(name):
    """A tokenizer, or a skipped test."""
    try:
        return Tokenizer.load(name)
    except MissingDependencyError as error:
        pytest.skip(str(error))


def engine_of(tokenizer, language, eos=()):
    """A new one, which knows nothing yet."""
    return constrain(tokenizer, language, eos_ids=eos).engine


def segments_of(engine):
    """Those in which the configurations of an engine are."""
    segments = Segments(engine.tables)
    state_pairs = (
        (engine.tables.state_pair(q, text), n)
        for q, text, n in all_configurations(engine, engine.initial())
    )
    configurations = [segments.of(*configuration) for configuration in state_pairs]
    return {
        id(configuration.segment): configuration.segment
        for configuration in configurations
        if configuration is not None
    }.values()


def cuts_of(engine):
    """The DFA states that are cuts wherever a segment comes to them: every canonical sequence of
    every text through one has a joint there."""
    found, passed = set(), set()
    for segment in segments_of(engine):
        for number, state in enumerate(segment.order.tolist()):
            if number in segment.cuts:
                found.add(state)
            elif number:
                passed.add(state)
    return found - passed
