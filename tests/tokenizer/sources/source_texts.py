"""Texts that tokenizers stumble over, and packages read without their dependencies."""

from __future__ import annotations

import importlib
import importlib.util
import random
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager

from bpe_automata.tokenizer.source import Source

_CHARACTERS = list(
    "  \t\n\r\x00\x0b\x1c\x85\xa0\u2028\u3000aabcstTſK09٣Ⅻ½²'’´.,!?(){}[]<|>_-/éßǅµİıñ日本語한กำ"
    "\u0301\u0338\u093f\u200d\ufeff\uffff😀🇩"
)
_PARTS = ["'s", "'LL", "'ſ", " the", "The", "\r\n", " \n", "12345", "http://", '{"a": [1.5e-3]}']


def texts(source: Source, count: int, seed: int = 0) -> list[str]:
    """`count` texts: of hard characters, of random tokens one after the other, of both mixed. Added
    tokens are among them. U+2581 is left out: sentencepiece takes it for a space."""
    draw = random.Random(seed)
    tokens = [token.decode("utf-8", "replace") for token in source.description.tokens if token]
    added = [token.content for token in source.description.added]
    hard = _CHARACTERS + _PARTS + draw.sample(added, min(5, len(added)))

    def mixed() -> str:
        if draw.random() < 0.5:
            return draw.choice(tokens)
        if draw.random() < 0.2:
            return draw.choice(" \n") * draw.randint(1, 40)
        return draw.choice(hard)

    made = []
    for number in range(count):
        if number % 3 == 0:
            parts = draw.choices(hard, k=draw.randint(0, 14))
        elif number % 3 == 1:
            parts = draw.choices(tokens, k=draw.randint(1, 5))
        else:
            parts = [mixed() for _ in range(draw.randint(1, 6))]
        made.append("".join(parts).replace("\u2581", " "))
    return made


@contextmanager
def alone(module: str) -> Iterator[types.ModuleType]:
    """A module of a package whose `__init__`, which may need anything, is not run. Raises
    ImportError."""
    parents = [module.rsplit(".", depth)[0] for depth in range(module.count("."), 0, -1)]
    before = set(sys.modules)
    try:
        for name in parents:
            if name in before:
                continue
            parent = types.ModuleType(name)
            parent.__path__ = _folders(name)
            sys.modules[name] = parent
        yield importlib.import_module(module)
    finally:
        top = parents[0]
        for name in set(sys.modules) - before:
            if name.partition(".")[0] == top:
                del sys.modules[name]


def _folders(name: str) -> list[str]:
    above, _, last = name.rpartition(".")
    if above:
        return [f"{folder}/{last}" for folder in sys.modules[above].__path__]
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"no package {name}")
    return list(spec.submodule_search_locations)
