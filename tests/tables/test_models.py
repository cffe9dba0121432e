"""The packaged models have the logits that transformers makes of the same files."""

from __future__ import annotations

from itertools import pairwise

import pytest

from bpe_automata import Tokenizer
from bpe_automata._tokenizer.sources.sentencepiece import SPACE, PieceType
from bpe_automata.errors import MissingDependencyError
from experiments import models

PIECES = [
    ("<pad>", PieceType.CONTROL),
    ("<eos>", PieceType.CONTROL),
    ("<bos>", PieceType.CONTROL),
    ("<unk>", PieceType.UNKNOWN),
    ("\n", PieceType.USER_DEFINED),
    ("\n\n", PieceType.USER_DEFINED),
    ("  ", PieceType.USER_DEFINED),
    ("<b>", PieceType.USER_DEFINED),
    *((f"<0x{byte:02X}>", PieceType.BYTE) for byte in range(256)),
    *((text, PieceType.NORMAL) for text in ("▁a", "ab", "ba", "aba", "▁ab", "é", "▁b", "bb", "<a")),
    *((text, PieceType.NORMAL) for text in "▁ab<>日"),
]
LAYERS, SIZE, HEADS, HEAD, INNER = 7, 16, 2, 256, 24


def scores():
    """The earlier a piece the higher; others as the converters write them."""
    first = next(k for k, (_, kind) in enumerate(PIECES) if kind is PieceType.NORMAL)
    return [
        float(first - k) if kind is PieceType.NORMAL else -1000.0
        for k, (_, kind) in enumerate(PIECES)
    ]


def equal_logits(ours, source, n_ids):
    """Of our folder, and of transformers' own reading of the GGUF."""
    torch = pytest.importorskip("torch")
    theirs = models.load_causal_lm(str(source.parent), torch.float32, gguf_file=source.name)
    ids = torch.arange(40).reshape(2, 20) * 997 % n_ids
    with torch.inference_mode():
        return torch.equal(ours.eval()(ids).logits, theirs.eval()(ids).logits)


def merged_by_score(text, pieces, scores):
    """The ids of a text by the rule that llama.cpp and sentencepiece share: user-defined pieces are
    cut out, the longest of the leftmost; then the two neighbours whose joined text has the highest
    score are merged, again and again, leftmost first; what has no piece becomes bytes."""
    own = [piece.replace(" ", SPACE) for piece, kind in pieces if kind is PieceType.USER_DEFINED]
    number = {
        (piece.replace(" ", SPACE) if kind is PieceType.USER_DEFINED else piece): k
        for k, (piece, kind) in enumerate(pieces)
        if kind in (PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.BYTE)
    }
    ordinary = {piece for piece, kind in pieces if kind is PieceType.NORMAL}
    text, found = text.replace(" ", SPACE), []
    own.sort(key=len, reverse=True)
    while text:
        cut = min((at for piece in own if (at := text.find(piece)) >= 0), default=len(text))
        symbols = list(text[:cut])
        while True:
            pairs = [(a + b, -k) for k, (a, b) in enumerate(pairwise(symbols))]
            best = max(
                ((scores[number[both]], at) for both, at in pairs if both in ordinary), default=None
            )
            if best is None:
                break
            k = -best[1]
            symbols[k : k + 2] = [symbols[k] + symbols[k + 1]]
        for symbol in symbols:
            spelled = [symbol] if symbol in ordinary else _bytes(symbol)
            found += [number[part] for part in spelled]
        user = next((piece for piece in own if text.startswith(piece, cut)), "")
        found += [number[user]] if user else []
        text = text[cut + len(user) :]
    return found


def _bytes(symbol):
    return [f"<0x{byte:02X}>" for byte in symbol.encode()]


@pytest.mark.long
def test_logits_equal_those_of_transformers_own_reading(smollm2_gguf, tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(tmp_path))
    ours = models.load_causal_lm(str(models.default_folder(smollm2_gguf)), torch.float32)
    assert equal_logits(ours, smollm2_gguf, 49152)


@pytest.mark.long
def test_the_packaged_gemma(tmp_path):
    """Its logits, and its tokenizer by the rule of its pieces."""
    torch = pytest.importorskip("torch")
    try:
        folder = models.gemma_folder()
    except MissingDependencyError as error:
        pytest.skip(str(error))
    source = tmp_path / models.GEMMA_FILE
    models.join_gemma(source)
    assert equal_logits(models.load_causal_lm(str(folder), torch.float32), source, 262144)
    fields = models.read_fields(source)
    kinds = map(PieceType, fields("tokenizer.ggml.token_type"))
    pieces = list(zip(fields("tokenizer.ggml.tokens"), kinds, strict=True))
    tokenizer, of_scores = Tokenizer.load(folder), fields("tokenizer.ggml.scores")
    for text in (
        "Hello  world,\n\n\tthe year 1984.",
        "Поезд медленно отошёл от станции",
        "人工智能的发展历史 𓀀 <h1>x</h1>",
        "for k, v in d.items():\n        print(f'{k}={v:.3f}')",
    ):
        assert tokenizer.encode(text) == merged_by_score(text, pieces, of_scores)
