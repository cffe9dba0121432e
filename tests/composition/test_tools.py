"""Calls of tools: what is drawn from each format is read by a reader of that format."""

import json
import random
import re

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples, named

from bpe_automata import TOOL_FORMATS, Tokenizer, ToolFormat, constrain, tools
from bpe_automata.errors import ArgumentError, UnsupportedSchemaError
from bpe_automata.schemas import json_schema
from bpe_automata.testing import added_token, byte_level, byte_spelling, small_tokenizer

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"enum": ["Paris", 'Q\u00fcrt "x"']},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "hours": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
    },
    "required": ["city"],
    "additionalProperties": False,
}
NOTHING = {"type": "object", "additionalProperties": False}


def close(door: str, gently: bool = True) -> None:
    """A function of Python."""


def positional(door: str, /) -> None:
    """Its argument has no name for its callers."""


FUNCTIONS = [
    {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}},
    {"name": "get_weather_now", "parameters": WEATHER},
    {"name": "stop"},
    close,
]
SCHEMAS = {
    "get_weather": WEATHER,
    "get_weather_now": WEATHER,
    "stop": NOTHING,
    "close": {
        "type": "object",
        "properties": {"door": {"type": "string"}, "gently": {"type": "boolean"}},
        "required": ["door"],
        "additionalProperties": False,
    },
}


def of_llama(text):
    """As the reader in `llama-models` does, of one call."""
    utilities = pytest.importorskip("llama_models.llama3.tool_utils").ToolUtils
    found = [utilities.maybe_extract_custom_tool_call(one) for one in split(text)]
    return [(name, arguments) for name, arguments in found]


def split(text):
    """At each semicolon between two JSON objects."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        _, end = decoder.raw_decode(text, at)
        yield text[at:end]
        assert text[end : end + 2] in ("; ", "")
        at = end + 2


def of_python(text):
    """As the reader in `llama-models` does, which is Python's own."""
    found = pytest.importorskip("llama_models.llama3.tool_utils")
    assert found.is_valid_python_list(text)
    return found.parse_python_list_for_function_calls(text)


def objects(found, arguments="arguments"):
    return [(one["name"], one[arguments]) for one in found]


READERS = {
    "json": lambda text: objects(json.loads(text)),
    "hermes": lambda text: objects(
        map(json.loads, re.findall(r"<tool_call>(.*?)</tool_call>", text, re.DOTALL))
    ),
    "llama-3": of_llama,
    "llama-python": of_python,
    "mistral-v3": lambda text: objects(json.loads(text.removeprefix("[TOOL_CALLS]"))),
    "mistral-tekken": lambda text: objects(json.loads(text.removeprefix("[TOOL_CALLS]"))),
    "mistral-v13": lambda text: [
        (name, json.loads(arguments))
        for name, _, arguments in (
            one.partition("[ARGS]") for one in text.split("[TOOL_CALLS]")[1:]
        )
    ],
}


def drawn(automaton, rng, free=40):
    """A text: so many random bytes, and then the nearest end."""
    state, found = automaton.start, bytearray()
    while True:
        after = automaton.successors(state)
        if automaton.accepting[state] and (len(found) > free or not after or rng.random() < 0.3):
            return found.decode()
        if len(found) > free:
            byte = min(after, key=lambda one: (automaton.far[after[one]], one))
        else:
            byte = rng.choice(list(after))
        found.append(byte)
        state = after[byte]


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_calls_that_are_drawn_are_read_by_their_format(name) -> None:
    rng, read, automaton = random.Random(0), READERS[name], tools(FUNCTIONS, name, "required")
    several, names = 0, set()
    for _ in range(100):
        text = drawn(automaton, rng, rng.choice((0, 40, 90, 140)))
        calls = read(text)
        assert calls, text
        several += len(calls) > 1
        for called, arguments in calls:
            names.add(called)
            jsonschema.validate(arguments, SCHEMAS[called])
    assert several
    assert names == {*SCHEMAS}


CALLS = {
    "json": '[{"name": "stop", "arguments": {}}]',
    "hermes": '<tool_call>\n{"name": "stop", "arguments": {}}\n</tool_call>',
    "llama-3": '{"name": "stop", "parameters": {}}',
    "llama-python": "[stop()]",
    "mistral-v3": '[TOOL_CALLS] [{"name": "stop", "arguments": {}}]',
    "mistral-tekken": '[TOOL_CALLS][{"name": "stop", "arguments": {}}]',
    "mistral-v13": "[TOOL_CALLS]stop[ARGS]{}",
}


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_free_text_may_hold_calls(name) -> None:
    automaton, call = tools(FUNCTIONS, name), CALLS[name].encode()
    begin = (*TOOL_FORMATS[name].begin, *TOOL_FORMATS[name].before)[0].lstrip("\0").encode()
    assert all(map(automaton.accepts, (b"", b"Hello, \xc3\xa9!", call)))
    assert not automaton.accepts(call[:-1])
    assert not automaton.accepts(begin)
    if TOOL_FORMATS[name].has_trigger:
        assert automaton.accepts(b"I stop. " + call + b" Done.")
        assert not automaton.accepts(b"I stop. " + begin)
        once = tools(FUNCTIONS, name, parallel=False)
        assert once.accepts(b"I stop. " + call + b" Done.")
        assert not once.accepts(call + b"\n" + call)
        assert automaton.accepts(call + b"\n" + call)


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_one_function_is_called_by_its_name(name) -> None:
    automaton = tools(FUNCTIONS, name, "stop")
    assert automaton.to_dfa().shortest() == CALLS[name].encode()
    assert not automaton.accepts(CALLS[name].replace("stop", "close").encode())


def test_a_format_of_ones_own() -> None:
    own = ToolFormat(before=("call ",), between=(" ",), after=(".",), separator=("\n",))
    automaton = tools(FUNCTIONS, own, "required", whitespace="compact")
    assert automaton.accepts(b'call stop {}.\ncall close {"door":"a","gently":true}.')
    assert tools(FUNCTIONS, own, parallel=False).accepts(b"I will call stop {}. Really.")
    done = ToolFormat(("<c>",), (":",), ("</c>",), end=("<done>",))
    for choice in ("auto", "required"):
        assert tools(FUNCTIONS, done, choice).accepts(b"<c>stop:{}</c><c>stop:{}</c><done>")
    assert tools([{"name": "f", "parameters": None}], own, "f").accepts(b"call f {}.")
    alone = tools(FUNCTIONS, ToolFormat(("data ",), (" ",), (), has_trigger=False))
    assert [alone.accepts(text) for text in (b"dog", b"1", b"", b"data ", b"data stop {}")] == [
        *(True, True, True, False, True),
    ]


ARGUMENTS = {
    "properties": {
        "x": {"type": ["object", "null", "boolean"], "required": ["class"]},
        "class": False,
        "y": {"items": {"type": ["string", "number"]}},
    },
    "required": ["x"],
    "patternProperties": {"^z": {"maxLength": 3}},
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text('a"\\\n\x00é😀', max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["class", "a b", "x", ""]), inner, max_size=2)
    ),
    max_leaves=4,
)


def in_python(value):
    """A literal with the white space of `repr`, and strings as in JSON."""
    if isinstance(value, list):
        return f"[{', '.join(map(in_python, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(k)}: {in_python(v)}' for k, v in value.items())}}}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


@pytest.fixture(scope="module")
def argued():
    functions = [{"name": "f", "parameters": ARGUMENTS}]
    return json_schema(ARGUMENTS), tools(functions, "llama-python", "required")


@examples(100)
@given(st.dictionaries(st.sampled_from(["x", "y", "z", "zz", "class", "match"]), VALUES))
def test_arguments_in_python_are_those_in_json(argued, given):
    as_json, as_call = argued
    text = f"[f({', '.join(f'{name}={in_python(value)}' for name, value in given.items())})]"
    is_valid = as_json.accepts(json.dumps(given, ensure_ascii=False, separators=",:").encode())
    names = [name for name in given if name.startswith("z")]  # each pattern has one name
    assert as_call.accepts(text.encode()) == (is_valid and len(names) < 2)
    if is_valid:
        ((_, arguments),) = of_python(text)
        assert arguments == given


def test_what_python_cannot_name_is_refused() -> None:
    with pytest.raises(ArgumentError, match="no function of Python"):
        tools([{"name": "get-weather"}], "llama-python")
    for name in ("city name", "class", "__debug__", "é"):
        schema = {"type": "object", "properties": {name: True}}
        with pytest.raises(UnsupportedSchemaError, match="rename it"):
            tools([{"name": "f", "parameters": schema}], "llama-python")
    automaton = tools([{"name": "f", "parameters": {"minProperties": 1}}], "llama-python")
    assert automaton.accepts(b"[f(a=1)]")
    for text in (b"[f()]", b"[f(a=1, a=2)]", b"[f(class=1)]", b'[f("a"=1)]', b"[f(None)]"):
        assert not automaton.accepts(text)


@pytest.mark.parametrize("is_special", [False, True])
def test_a_tag_is_its_token_where_the_tokenizer_has_one(is_special) -> None:
    tag = added_token("<tool_call>", special=is_special)
    letters = [byte_spelling(bytes([byte])) for byte in range(256)]
    tokenizer = small_tokenizer(letters, (), byte_level(), [tag])
    matcher = constrain(tokenizer, tools(FUNCTIONS, "hermes"), eos_ids=()).matcher()
    for token in tokenizer.encode("I do. " + CALLS["hermes"] + " Done."):
        matcher.advance(token)
    assert matcher.is_accepting
    assert tokenizer.encode("<tool_call>")[0] == 256


@pytest.mark.parametrize(
    ("name", "tags"),
    [("json", ()), ("hermes", ()), ("hermes", ("<tool_call>", "</tool_call>")), ("llama-3", ())],
)
def test_a_call_is_read_along_its_own_ids(name, tags) -> None:
    """What a model that was trained on the format writes stays allowed. Where a tag is an added
    token, as of Qwen's tokenizers, no state before it needs a search: that took minutes."""
    tokenizer = named("smollm2")
    if tags:
        read = json.loads(tokenizer.to_json())
        entries = enumerate((added_token(tag, special=False) for tag in tags), tokenizer.n_ids)
        read["added_tokens"] += [entry | {"id": number} for number, entry in entries]
        tokenizer = Tokenizer.from_json(read, tokenizer.eos_ids)
    schema = {"properties": {"city": {"type": "string"}}, "required": ["city"]}
    get = {"name": "get", "parameters": {"type": "object", **schema}}
    text = CALLS[name].replace("stop", "get").replace("{}", '{"city": "Paris, France"}')
    matcher = constrain(tokenizer, tools([*FUNCTIONS, get], name)).matcher()
    for token in tokenizer.encode(text):
        matcher.advance(token)
    assert matcher.is_accepting


@pytest.mark.parametrize(
    ("message", "functions", "given"),
    [
        ("no functions", [], {}),
        ("has no name", [3], {}),
        ("give a list of them", close, {}),
        ("tools have no option 'white'", [close], {"white": 1}),
        ("give 'json' or 'python'", [close], {"format": ToolFormat(("c",), (), (), arguments="x")}),
        ("cannot be given by name", [positional], {"format": "llama-python"}),
        ('has no "name"', [{"parameters": {}}], {}),
        ("two functions", [close, close], {}),
        ("which is a choice", [{"name": "auto"}], {}),
        ("give a tuple of texts", FUNCTIONS, {"format": ToolFormat("<c>", (":",), ())}),
        ("no text before a call", FUNCTIONS, {"format": ToolFormat((), (), ())}),
        (r"format is \[\]", FUNCTIONS, {"format": []}),
        ("format is 'xml'", FUNCTIONS, {"format": "xml"}),
        ("choice is 'open'", FUNCTIONS, {"choice": "open"}),
    ],
)
def test_what_is_no_tool_is_refused(message, functions, given) -> None:
    with pytest.raises(ArgumentError, match=message):
        tools(functions, **given)


def test_the_arguments_of_a_function_are_those_of_its_schema() -> None:
    alone = json_schema(close, whitespace="spaced")
    assert alone.accepts(b'{"door": "a"}')
    assert tools([close], "llama-3", "close").accepts(
        b'{"name": "close", "parameters": {"door": "a"}}'
    )
