"""Where tokenizers come from: files of every kind, objects, names."""

from __future__ import annotations

import json
import unicodedata
from functools import partial
from unittest import mock

import pytest

import support
from bpe_automata import Tokenizer
from bpe_automata.errors import TokenizerError
from bpe_automata.tokenizer.sources.gguf import WORDS, gemma4_json, pretokenizer_of
from bpe_automata.tokenizer.sources.named import names
from bpe_automata.tokenizer.sources.published import GPT2
from support import files
from support.files import NORMAL, PIECES, TEXT, UNUSED, USER
from support.making import Case, library, obey, refused, texts_of

GGUF = "GGUF `gpt2`: `tokenizer.ggml.pre`"
GGML = "tokenizer.ggml."
SENTENCEPIECE, TIKTOKEN = "SentencePiece `.model`", "tiktoken `pattern`, `normalize`"
SPECIAL = {"<|end|>": 300}
ALSO = {"kimi-k2": ("日", "A"), "exaone-moe": ("\u0301", "\r")}
"""What the patterns of these words tell apart besides."""


def reads(name, load, truth, pieces=TEXT, variant="", long=False, section="source", unlike=None):
    """`load(folder)` gives a tokenizer that obeys the laws and encodes as `truth()` does: the
    library that is the reference, given the same without going through this package. `unlike()`,
    the library without what the case is about, encodes otherwise."""

    def check(folder):
        tokenizer, encode, texts = load(folder), truth(), texts_of(pieces)
        obey(tokenizer, pieces)
        found = [tokenizer.encode(text) for text in texts]
        assert found == [encode(text) for text in texts]
        assert unlike is None or found != [unlike()(text) for text in texts]

    return Case(section, name, False, check, variant, long)


# ---------------------------------------------------------------- tokenizer.json


def loaded(kind):
    """The small file of that kind."""

    def load(folder):
        path, options = files.KINDS[kind](folder)
        return Tokenizer.load(path, **options)

    return load


def a_folder(folder):
    files.json_file(folder)
    return Tokenizer.load(folder)


def transformers_object(folder):
    transformers = pytest.importorskip("transformers")
    backend = library(files.tokenizer_json())
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend)


def of_json():
    backend = library(files.tokenizer_json())
    return lambda text: backend.encode(text).ids


def literal_specials(folder):
    backend = library(files.tokenizer_json())
    backend.encode_special_tokens = True
    return Tokenizer.load(backend)


# ---------------------------------------------------------------- tiktoken, tekken, GGUF


def of_ranks(special=None, shift=0, pattern=GPT2, normalize=str):
    def truth():
        tiktoken = pytest.importorskip("tiktoken")
        options = {"mergeable_ranks": files.ranks(), "special_tokens": special or {}}
        encoding = tiktoken.Encoding("x", pat_str=pattern, **options)
        if special:
            return lambda text: encoding.encode(normalize(text), allowed_special="all")
        return lambda text: [i + shift for i in encoding.encode(text, disallowed_special=())]

    return truth


def rank_file(folder, special, pattern=GPT2, **options):
    path, given = files.rank_file(folder, special, **options)
    return Tokenizer.load(path, **{**given, "pattern": pattern})


def tiktoken_encoding(folder):
    tiktoken = pytest.importorskip("tiktoken")
    return tiktoken.Encoding(
        "tiny", pat_str=CL100K, mergeable_ranks=files.ranks(), special_tokens={"<|x|>": 270}
    )


def encoding_by_name(folder):
    """tiktoken's own ranks are a download; which name asks for which encoding is not."""
    tiktoken = pytest.importorskip("tiktoken")
    encoding = tiktoken_encoding(folder)
    with mock.patch.object(tiktoken, "get_encoding", {"o200k_base": encoding}.__getitem__):
        assert Tokenizer.load("o200k_base").n_ids == encoding.n_vocab
        return Tokenizer.load("gpt-4o")


def in_tiktoken(name, pattern):
    """A pattern in the dialect of tiktoken, fancy-regex."""
    load = partial(rank_file, special=SPECIAL, pattern=pattern)
    return reads(name, load, of_ranks(SPECIAL, pattern=pattern), section=TIKTOKEN)


def of_gguf(word):
    def truth():
        fields, (step, ignore) = files.gpt2_fields(word), pretokenizer_of(word)
        ids = {token: number for number, token in enumerate(fields["tokens"])}
        model = {"type": "BPE", "vocab": ids, "merges": fields["merges"], "ignore_merges": ignore}
        backend = library({"version": "1.0", "pre_tokenizer": step, "model": model})
        return lambda text: backend.encode(text).ids

    return truth


def gguf_path(folder, **changes):
    fields = {**files.gpt2_fields(), **changes}
    known = {name: value for name, value in fields.items() if value is not None}
    return files.gguf_file(folder, known)


def gguf(**changes):
    return lambda folder: Tokenizer.load(gguf_path(folder, **changes))


def of_llama():
    """The same pieces as a SentencePiece model, where ids are others by one control piece; with
    the prefix, which `llama` has unless it says otherwise."""
    encode = processor(normalizer_spec__add_dummy_prefix=True)
    return lambda text: [token - 1 for token in encode(text)]


def words():
    """The words for one pretokenizer: the first is tried, the others are the same."""
    first: dict[str, str] = {}
    for word, told in WORDS.items():
        same = first.setdefault(json.dumps(told), word)
        if same != word:
            yield Case(GGUF, f"`{word}`", False, partial(is_the_same, word, same))
            continue
        pieces = (*TEXT, *ALSO.get(word, ()))
        yield reads(f"`{word}`", gguf(pre=word), of_gguf(word), pieces, section=GGUF)


def is_the_same(word, other, folder):
    ours, theirs = (gguf(pre=each)(folder).to_json() for each in (word, other))
    assert ours == theirs


def of_gemma4():
    fields = files.gemma4_fields()
    data = gemma4_json(lambda name, *absent: fields.get(name.removeprefix(GGML), *absent), "x")
    backend = library(data)
    return lambda text: backend.encode(text).ids


# ---------------------------------------------------------------- SentencePiece


def sentencepiece(folder, pieces=PIECES, **changes):
    return Tokenizer.load(files.sentencepiece_file(folder, pieces, **changes)[0])


def processor(pieces=PIECES, **changes):
    content = files.sentencepiece_proto(pieces, **changes).SerializeToString()
    return pytest.importorskip("sentencepiece").SentencePieceProcessor(model_proto=content).encode


def option(name, given, without=None, pieces=TEXT, variant=""):
    """sentencepiece with an option, beside sentencepiece without it."""
    load, truth = lambda folder: sentencepiece(folder, **given), partial(processor, **given)
    unlike = partial(processor, **(without or {}))
    return reads(name, load, truth, pieces, variant, section=SENTENCEPIECE, unlike=unlike)


def no_option(name, component, says="", variant="", **changes):
    load = partial(sentencepiece, **changes)
    return refused(SENTENCEPIECE, name, load, component, says, variant, sentencepiece)


def with_piece(*pieces):
    return {"pieces": [*PIECES, *pieces]}


OPTIONS = [
    option("`add_dummy_prefix`", {"normalizer_spec__add_dummy_prefix": True}),
    option("`byte_fallback`", {}, {"fallback": False}, variant="with"),
    option("`byte_fallback`", {"fallback": False}, {}, variant="without"),
    option("`user_defined_symbols`", with_piece(("[X]", 0.0, USER)), None, (*TEXT, "[X]", "[")),
    option("runs of equal score", with_piece(("aa", -5.0, NORMAL), ("aaaa", -5.0, NORMAL)),
           None, (*TEXT, "aaa", "aaaaa")),
    option("equal scores where their order shows",
           with_piece(("ac", -9.0, NORMAL), ("cb", -9.0, NORMAL)), None, (*TEXT, "acb", "cbac")),
    *(
        no_option("other `model_type`", "SentencePiece model_type", kind, kind,
                  trainer_spec__model_type=number)
        for number, kind in ((1, "UNIGRAM"), (3, "WORD"), (4, "CHAR"))
    ),
    no_option("`precompiled_charsmap`", "SentencePiece normalizer", variant="normalizer",
              normalizer_spec__precompiled_charsmap=b"x"),
    no_option("`precompiled_charsmap`", "SentencePiece denormalizer", variant="denormalizer",
              denormalizer_spec__precompiled_charsmap=b"x"),
    no_option("`remove_extra_whitespaces`", "SentencePiece remove_extra_whitespaces",
              normalizer_spec__remove_extra_whitespaces=True),
    no_option("`escape_whitespaces: false`", "SentencePiece escape_whitespaces",
              normalizer_spec__escape_whitespaces=False),
    no_option("`treat_whitespace_as_suffix`", "SentencePiece treat_whitespace_as_suffix",
              trainer_spec__treat_whitespace_as_suffix=True),
    no_option("unused pieces that merges make", "SentencePiece unused piece",
              **with_piece(("ba", -5.0, UNUSED))),
    no_option("user-defined symbols with spaces", "SentencePiece user-defined piece",
              **with_piece(("a b", 0.0, USER))),
]  # fmt: skip

CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|"
    r"\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
"""Source: tiktoken, tiktoken_ext/openai_public.py."""

# ---------------------------------------------------------------- names

SHORT = ("gpt2", "smollm2", "mistral-v1")  # the others take seconds each


def by_name(name):
    """A real tokenizer by its name; skipped where its package is missing."""

    def check(folder):
        pieces = (*TEXT, " the", "The", "'LL", "日本", "12345", "e\u0301", "🎉", "\r\n")
        obey(support.named(name), pieces)

    return Case("`Tokenizer.load(name)`", f"`{name}`", False, check, long=name not in SHORT)


CASES = [
    reads("`tokenizer.json`", loaded("json"), of_json),
    reads("a folder", a_folder, of_json),
    reads("`tokenizers.Tokenizer`",
          lambda folder: Tokenizer.load(library(files.tokenizer_json())), of_json),
    reads("fast tokenizers of transformers",
          lambda folder: Tokenizer.load(transformers_object(folder)), of_json, long=True),
    reads("tiktoken ranks", lambda folder: rank_file(folder, SPECIAL), of_ranks(SPECIAL),
          (*TEXT, "<|end|>", "<|")),
    reads("`tiktoken.Encoding`", lambda folder: Tokenizer.load(tiktoken_encoding(folder)),
          of_ranks({"<|x|>": 270}, pattern=CL100K), (*TEXT, "<|x|>", "<|", "12", "\r\n")),
    reads("names of tiktoken's encodings and of their models", encoding_by_name,
          of_ranks({"<|x|>": 270}, pattern=CL100K), (*TEXT, "<|x|>", "<|")),
    reads("`tekken.json`", loaded("tekken"), of_ranks(shift=2)),
    reads("SentencePiece `.model`", sentencepiece, processor),
    reads("GGUF `llama`", loaded("gguf of llama"), of_llama),
    reads("GGUF `gemma4`", loaded("gguf of gemma4"), of_gemma4),
    *words(),
    reads("`pretokenizer=` given, where the file has none",
          lambda folder: Tokenizer.load(gguf_path(folder, pre=None), pretokenizer="gpt-neox"),
          of_gguf("gpt-2"), section=GGUF),
    refused("source", "GGUF of other models", gguf(model="bert"), "GGUF tokenizer model", "bert"),
    refused(GGUF, "`jais-2`", gguf(pre="jais-2"), "GGUF pretokenizer", "known are"),
    refused(GGUF, "others", gguf(pre="superbpe"), "GGUF pretokenizer", "superbpe"),
    refused(GGUF, "`default`", gguf(pre="default"), "GGUF pretokenizer", "default"),
    refused(GGUF, "none", gguf(pre=None), "GGUF pretokenizer", "None"),
    refused("source", "`encode_special_tokens`", literal_specials, "encode_special_tokens",
            error=TokenizerError),
    refused("source", "tiktoken special tokens of which one begins another",
            lambda folder: rank_file(folder, {"<|x": 300, "<|x|>": 301}), "special tokens"),
    *(by_name(name) for name in names() if name != "tekken"),
    *OPTIONS,
    in_tiktoken("cl100k's", CL100K),
    in_tiktoken("`^`", r"^a+|[ab]| +"),
    in_tiktoken(r"`\pL`", r"\pL+|\PL"),
    in_tiktoken("lost gaps", "[a-z]+"),
    reads("`NFC`", lambda folder: rank_file(folder, SPECIAL, normalize="NFC"),
          of_ranks(SPECIAL, normalize=partial(unicodedata.normalize, "NFC")),
          (*TEXT, "e", "e\u0301", "<|end|>", "\u0338"), section=TIKTOKEN),
]  # fmt: skip
