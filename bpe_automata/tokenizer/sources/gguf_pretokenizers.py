"""What the word `tokenizer.ggml.pre` of a GGUF file stands for, as in a `tokenizer.json`.

Source: llama.cpp, src/llama-vocab.cpp (the words, and which of them ignore merges). Where it
rewrites the model's own pretokenizer for its own engine, the model's own is taken: that is what the
model was trained with, and what llama.cpp's tests compare with. In three of these they differ:

    falcon    llama.cpp leaves out `Digits`, which parts a number from the space before it
    kimi-k2   llama.cpp does not part words where small letters are followed by capitals
    tekken    llama.cpp takes `[^a-z]` and `[^A-Z]` for the upper and lower case of its pattern

Some models were also normalized (NFC: Qwen's, MPT, Command-R). GGUF does not say so, and llama.cpp
does not do it, so neither is it done here.
"""

from __future__ import annotations

from typing import Any

from bpe_automata.errors import MASK_OTHERWISE, UnsupportedTokenizerError
from bpe_automata.tokenizer.sources.patterns import (
    BAILING,
    BLOOM,
    DEEPSEEK_CODER,
    DEEPSEEK_LLM,
    DEEPSEEK_V3,
    EXAONE_MOE,
    GROUPED_DIGITS,
    KIMI,
    LLAMA3,
    MINICPM5,
    O200K,
    QWEN,
    QWEN35,
    SEED_CODER,
    TEKKEN,
    UFAKZEKA,
)

Json = dict[str, Any]

BYTE_LEVEL: Json = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}
_MAPPED: Json = {**BYTE_LEVEL, "use_regex": False}
_DIGITS: Json = {"type": "Digits", "individual_digits": True}
_NUMBERS: Json = {"type": "Digits", "individual_digits": False}
_PUNCTUATION: Json = {"type": "Punctuation", "behavior": "Contiguous"}


def _split(pattern: str) -> Json:
    regex = {"Regex": pattern}
    return {"type": "Split", "pattern": regex, "behavior": "Isolated", "invert": False}


def _sequence(*steps: Json) -> Json:
    return {"type": "Sequence", "pretokenizers": list(steps)}


def _splits(*patterns: str) -> Json:
    return _sequence(*map(_split, patterns), _MAPPED)


_FALCON = _sequence(_PUNCTUATION, BYTE_LEVEL, _NUMBERS, _split("[0-9][0-9][0-9]"))
_DEEPSEEK_LLM = _sequence(*map(_split, DEEPSEEK_LLM), _DIGITS, _MAPPED)
_DEEPSEEK_CODER = _sequence(*map(_split, DEEPSEEK_CODER), _DIGITS, _MAPPED)
_VIKING = _sequence(_split(BLOOM), _DIGITS, _MAPPED)

_GROUPS: tuple[tuple[str, Json, bool], ...] = (
    ("gpt-2 phi-2 mpt gpt-neox aquila olmo jais gigachat a.x-4.0 mellum modern-bert exaone4 "
     "granite-docling trillion", BYTE_LEVEL, False),
    ("smollm starcoder refact command-r codeshell exaone minerva-7b mellum2",
     _sequence(_DIGITS, BYTE_LEVEL), False),
    ("falcon", _FALCON, False),
    ("llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral lfm2 midm-2.0 jina-v5-nano glm4 glm5",
     _splits(LLAMA3), True),
    ("dbrx smaug-bpe chatglm-bpe", _splits(LLAMA3), False),
    ("qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2",
     _splits(QWEN), False),
    ("qwen35", _splits(QWEN35), False),
    ("deepseek-llm", _DEEPSEEK_LLM, False),
    ("deepseek-coder", _DEEPSEEK_CODER, False),
    ("deepseek-v3 hunyuan-dense joyai-llm hy_v4", _splits(*DEEPSEEK_V3), False),
    ("tekken", _splits(TEKKEN), True),
    ("gpt-4o llama4 kanana2 talkie minimax-m2", _splits(O200K), False),
    ("kimi-k2", _splits(KIMI), False),
    ("exaone-moe", _splits(EXAONE_MOE), False),
    ("minicpm5", _splits(*MINICPM5), True),
    ("ufakzeka", _splits(UFAKZEKA), False),
    ("tiny_aya cohere2moe", _splits(GROUPED_DIGITS, O200K), False),
    ("bailingmoe bailingmoe2 llada-moe", _splits(BAILING), False),
    ("seed-coder", _splits(SEED_CODER), False),
    ("bloom poro-chat gpt3-finnish", _splits(BLOOM), False),
    ("viking", _VIKING, False),
)  # fmt: skip
"""(words, the pretokenizer, does the model ignore merges). gpt-neox and aquila are no words of
llama.cpp, but of models whose files have none."""

WORDS = {word: (step, ignores) for words, step, ignores in _GROUPS for word in words.split()}


def pretokenizer_of(word: str | None) -> tuple[Json, bool]:
    """(the pretokenizer, does the model ignore merges). Raises UnsupportedTokenizerError."""
    if word is None or word == "default":
        raise UnsupportedTokenizerError(
            "GGUF pretokenizer",
            word,
            "the file does not say how its model splits text; if you know which it is like, say "
            "so: Tokenizer.load(path, pretokenizer='gpt-2')",
        )
    if word == "jais-2":
        raise UnsupportedTokenizerError(
            "GGUF pretokenizer",
            word,
            rf"it counts white space up to \s{{512}}, and each count is a state: {MASK_OTHERWISE}",
        )
    if word not in WORDS:
        raise UnsupportedTokenizerError(
            "GGUF pretokenizer",
            word,
            f"known are {', '.join(WORDS)}; the model's tokenizer.json says how it splits text, "
            "load that instead",
        )
    return WORDS[word]
