"""The special tokens that rank files leave out, as facts, each with its source."""

from __future__ import annotations

from collections.abc import Iterable

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


def gpt2() -> Specials:
    """Source: tiktoken 0.14.0, tiktoken_ext/openai_public.py."""
    return {"<|endoftext|>": 50256}


def whisper() -> Specials:
    """Those of the multilingual models with 99 languages, which is what `get_encoding` gives unless
    told otherwise. Source: openai-whisper 20250625, whisper/tokenizer.py."""
    tasks = ("translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps")
    names = ["endoftext", "startoftranscript", *_words(_WHISPER_LANGUAGES), *tasks]
    seconds = [f"{step * 0.02:.2f}" for step in range(1501)]
    return _numbered(50257, (f"<|{name}|>" for name in names + seconds))


def llama3() -> Specials:
    """Source: llama-models 0.3.0, llama_models/llama3/tokenizer.py."""
    names = _words(
        "begin_of_text end_of_text reserved_special_token_0 reserved_special_token_1 "
        "finetune_right_pad_id step_id start_header_id end_header_id eom_id eot_id python_tag image"
    )
    names += _reserved("", 2, 256 - len(names))
    return _numbered(128_000, (f"<|{name}|>" for name in names))


def llama4() -> Specials:
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


def qwen() -> Specials:
    """Source: dashscope 2.0.2, dashscope/tokenizers/qwen_tokenizer.py."""
    names = ["endoftext", "im_start", "im_end", *(f"extra_{number}" for number in range(205))]
    return _numbered(151_643, (f"<|{name}|>" for name in names))
