"""What does not fit into the arrays of the kernels is refused, and what just fits is right."""

from __future__ import annotations

import base64
import json
import subprocess
import sys

import pytest

# Kernels do not check their indices: what goes wrong may end the process.
LONG_TOKEN = """
import sys
from bpe_automata import Tokenizer, constrain
t = Tokenizer.load(sys.argv[1], pattern=r"\\S+|\\s+", special_tokens={})
for method in ("lift", "canonical"):
    print(constrain(t, "hello|world", method).matcher().allowed_ids().tolist())
    matcher = constrain(t, "(a*|b)", method).matcher()
    allowed = matcher.allowed_ids().tolist()
    matcher.advance(256)
    print(allowed, matcher.is_accepting)
"""
DOUBLED_TOKEN = """
import sys
from bpe_automata import Tokenizer, constrain
t = Tokenizer.load(sys.argv[1])
for method in ("lift", "canonical"):
    allowed = constrain(t, "a*b", method).matcher().allowed_ids().tolist()
    print(allowed == [*range(2), *range(26, 26 + int(sys.argv[2]))])
"""


def output(code: str, *arguments: object) -> list[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("n", [32_767, 32_768, 65_536, 200_000])
def test_a_token_of_any_length(n, tmp_path):
    ranks = [(bytes([byte]), byte) for byte in range(256)]
    ranks += [(b"a" * n, 256)]
    lines = [base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks]
    path = tmp_path / "long.tiktoken"
    path.write_bytes(b"".join(lines))
    lines = ["[104, 119]", "[97, 98, 256] True"]
    assert output(LONG_TOKEN, path, n) == lines + lines


@pytest.mark.parametrize("doublings", [14, 15, 16, 18])
def test_a_token_that_is_made_by_doubling(doublings, tmp_path):
    """Derivation takes n log n steps: with n * n of them the longest of these would take hours."""
    vocabulary = {chr(97 + k): k for k in range(26)}
    merges = []
    for k in range(doublings):
        half = "a" * 2**k
        vocabulary[2 * half] = len(vocabulary)
        merges.append([half, half])
    model = {"type": "BPE", "vocab": vocabulary, "merges": merges, "byte_fallback": False}
    description = {"added_tokens": [], "model": model, "decoder": {"type": "Fuse"}}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(description))
    assert output(DOUBLED_TOKEN, path, doublings) == ["True", "True"]
