"""Small tokenizers that are written down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bpe_automata.tokenizer import Tokenizer
from bpe_automata.tokenizer.byte_level import byte_to_char

Json = dict[str, Any]


def byte_spelling(data: bytes) -> str:
    """How a ByteLevel tokenizer writes a token."""
    return "".join(byte_to_char()[byte] for byte in data)


def byte_level(use_regex: bool = False) -> Json:
    """The ByteLevel pretokenizer, with or without the pattern of GPT-2."""
    options = {"add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}
    return {"type": "ByteLevel", **options}


def split(pattern: Json, behavior: str = "Isolated", invert: bool = False) -> Json:
    """A Split pretokenizer; `pattern`: {"Regex": ...} or {"String": ...}."""
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def sequence(*steps: Json) -> Json | None:
    """Several pretokenizers in order; None for no step at all."""
    return {"type": "Sequence", "pretokenizers": list(steps)} if steps else None


def matching_decoder(
    normalizer: Json | None, pretokenizer: Json | None, byte_fallback: bool = False
) -> Json:
    """The decoder that undoes what these do to text."""
    steps = [*_steps(normalizer, "normalizers"), *_steps(pretokenizer, "pretokenizers")]
    kinds = {step["type"]: step for step in steps}
    if "ByteLevel" in kinds:
        return byte_level()
    decoders: list[Json] = []
    prepends, meta = "Prepend" in kinds, kinds.get("Metaspace")
    if meta is not None and meta.get("split", True):
        decoders.append(meta)
    elif meta is not None:
        space = {"String": meta["replacement"]}
        decoders.append({"type": "Replace", "pattern": space, "content": " "})
        prepends |= meta["prepend_scheme"] != "never"
    for step in steps:
        pattern = step.get("pattern") or {}
        if step["type"] == "Replace" and pattern.get("String") == " ":
            decoders.append({**step, "pattern": {"String": step["content"]}, "content": " "})
    if byte_fallback:
        decoders.append({"type": "ByteFallback"})
    decoders.append({"type": "Fuse"})
    if prepends:
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return {"type": "Sequence", "decoders": decoders}


def _steps(component: Json | None, field: str) -> list[Json]:
    if component is None:
        return []
    parts = component.get(field) if component.get("type") == "Sequence" else None
    return [component] if parts is None else [s for part in parts for s in _steps(part, field)]


def added_token(content: str, **flags: bool) -> Json:
    """An added token without its id; `flags`: those that are set."""
    unset = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return {"content": content, **unset, **flags}


def small_tokenizer(
    vocabulary: Sequence[str],
    merges: Sequence[tuple[str, str]] = (),
    pretokenizer: Json | None = None,
    added: Sequence[str | Json] = (),
    normalizer: Json | None = None,
    decoder: Json | None = None,
    **model: Any,
) -> Tokenizer:
    """`vocabulary`: tokens in order of their ids, `merges` by rank, both as the file spells them;
    `added`: added tokens, or only their contents; `decoder`: if not given, `matching_decoder`;
    `model`: fields such as `ignore_merges`."""
    fallback = bool(model.get("byte_fallback"))
    decoder = decoder or matching_decoder(normalizer, pretokenizer, fallback)
    entries = [added_token(entry) if isinstance(entry, str) else entry for entry in added]
    contents = [entry["content"] for entry in entries]
    ids = {token: number for number, token in enumerate(dict.fromkeys([*vocabulary, *contents]))}
    numbered = [{"id": ids[entry["content"]], **entry} for entry in entries]
    return Tokenizer.from_json(
        {
            "version": "1.0",
            "added_tokens": sorted(numbered, key=lambda entry: int(entry["id"])),
            "normalizer": normalizer,
            "pre_tokenizer": pretokenizer,
            "post_processor": None,
            "decoder": decoder,
            "model": {
                "type": "BPE",
                "vocab": {token: ids[token] for token in vocabulary},
                "merges": [list(pair) for pair in merges],
                **model,
            },
        }
    )
