"""What tests of several folders share: how many examples a law is tried on, equality of automata,
small tokenizer files, and the cases of the support matrix.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from bpe_automata import Tokenizer, constrain
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.linked import ByteAutomaton
from bpe_automata.errors import MissingDependencyError, MissingFileError


def examples(count: int) -> settings:
    """`count` examples by default, ten times as many with --long. Random tokenizers are large data
    and some are refused, which is no reason to fail."""
    scale = settings.default.max_examples // 100
    checks = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
    return settings(max_examples=count * scale, suppress_health_check=checks)


@contextmanager
def called_after(seconds: float, handler: Callable[..., Any]) -> Iterator[None]:
    """Inside, SIGALRM comes once, after so many wall seconds; of the main thread."""
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def same_arrays(one: ByteDFA, other: ByteDFA) -> bool:
    """Equal languages have equal arrays, if both are minimal and numbered alike."""
    pairs = [(getattr(one, n), getattr(other, n)) for n in ("trans", "byte_class", "accepting")]
    return one.start == other.start and all(
        a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs
    )


def same_masks(
    tokenizer: Tokenizer,
    method: str,
    one: ByteAutomaton,
    other: ByteAutomaton,
    most: int = 12,
    prompt: Sequence[int] = (),
    seed: int = 0,
) -> int:
    """The masks of two automata are equal along a random text of so many ids, or fewer where none
    goes on. Returns how many masks were compared."""
    first, second = (constrain(tokenizer, dfa, method).matcher(prompt) for dfa in (one, other))
    rng = random.Random(seed)
    for done in range(most):
        assert np.array_equal(first.allowed_ids(), second.allowed_ids())
        ids = np.setdiff1d(first.allowed_ids(), tokenizer.eos_ids)
        if not len(ids):
            return done + 1
        token = int(rng.choice(ids))
        first.advance(token)
        second.advance(token)
    return most


def named(name: str) -> Tokenizer:
    """A tokenizer; the test is skipped where its file or its library is missing."""
    try:
        return Tokenizer.load(name)
    except (MissingDependencyError, MissingFileError) as error:
        pytest.skip(str(error))


def process(
    code: str, *arguments: object, timeout: float = 3600, check: bool = True, **environment: object
) -> subprocess.CompletedProcess[str]:
    """What a Python of its own says that runs the code. `check`: it must end well."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    given = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    options = {"capture_output": True, "text": True, "timeout": timeout}
    return subprocess.run(command, env=given, check=check, **options)


def tiny_llama(seed: int, n_ids: int, size: int = 16, layers: int = 1, **options: Any) -> Any:
    """A random model of transformers; the test is skipped where that is missing."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(seed)
    sizes = {"hidden_size": size, "intermediate_size": size, "num_hidden_layers": layers}
    options = {"num_attention_heads": 2, "num_key_value_heads": 2, **options}
    config = transformers.LlamaConfig(vocab_size=n_ids, **sizes, **options)
    return transformers.LlamaForCausalLM(config).eval()
