"""`tokenizer.json` (a dict) to a `Description`; everything that is not modelled is refused."""

from __future__ import annotations

from itertools import islice
from typing import Any, NoReturn

import numpy as np

from bpe_automata.errors import BrokenTokenizerError, UnsupportedTokenizerError
from bpe_automata.tokenizer.byte_level import byte_to_char, char_to_byte
from bpe_automata.tokenizer.description import AddedToken, Description
from bpe_automata.tokenizer.read_pretokenizer import read_pretokenizer

Json = dict[str, Any]


def describe(data: Json) -> Description:
    """The description of a tokenizer given as the content of its `tokenizer.json`.

    Raises BrokenTokenizerError where the file contradicts itself, UnsupportedTokenizerError where
    a component changes `encode` in a way that is not modelled.
    """
    model = _model(data)
    _refuse_normalizer(data.get("normalizer"))
    splitters, byte_level = read_pretokenizer(data.get("pre_tokenizer"))
    _check_decoder(data.get("decoder"), byte_level)
    vocabulary: dict[str, int] = model["vocab"]
    added = _added(data.get("added_tokens") or [])
    _refuse_fused_unknown(model, added)
    n_ids = _check_ids(vocabulary, added)
    return Description(
        tokens=_tokens(vocabulary, n_ids, byte_level),
        merges=_merges(model.get("merges") or [], vocabulary),
        base=_base(vocabulary, byte_level),
        byte_level=byte_level,
        splitters=splitters,
        added=added,
        ignore_merges=bool(model.get("ignore_merges")),
    )


_NEUTRAL = {
    "dropout": (None, 0, 0.0),
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
    "byte_fallback": (None, False),
}
_WHY = {
    "dropout": "encoding is random, so no sequence is canonical",
    "continuing_subword_prefix": "not modelled yet",
    "end_of_word_suffix": "not modelled yet",
    "byte_fallback": "not modelled yet",
}


def _model(data: Json) -> Json:
    model = data.get("model")
    if not isinstance(model, dict) or not isinstance(model.get("vocab"), dict | list):
        raise BrokenTokenizerError("the tokenizer has no model with a vocabulary")
    kind = model.get("type") or "BPE"
    if kind != "BPE" or not isinstance(model["vocab"], dict):
        raise UnsupportedTokenizerError("model", kind, "only BPE models have canonical automata")
    for field, neutral in _NEUTRAL.items():
        if model.get(field) not in neutral:
            raise UnsupportedTokenizerError(f"model.{field}", model[field], _WHY[field])
    return model


def _refuse_fused_unknown(model: Json, added: tuple[AddedToken, ...]) -> None:
    """With `fuse_unk` a run of unknown characters becomes one unknown token. If all characters of
    that token's own text are unknown, the token is canonical without being BPE's."""
    unknown = model.get("unk_token")
    if not unknown or not model.get("fuse_unk") or unknown in {token.content for token in added}:
        return
    if not any(c in model["vocab"] for c in unknown):
        raise UnsupportedTokenizerError(
            "model.fuse_unk", unknown, "no token spells any character of this unknown token"
        )


def _refuse_normalizer(normalizer: Json | None) -> None:
    if normalizer is None:
        return
    if normalizer.get("type") == "Sequence" and not normalizer.get("normalizers"):
        return
    raise UnsupportedTokenizerError("normalizer", normalizer, "normalizers are not modelled yet")


def _check_decoder(decoder: Json | None, byte_level: bool) -> None:
    """`decode` must join the tokens' bytes, or ids and text would not correspond."""
    if decoder is None:
        return
    if decoder.get("type") == "Sequence":
        for part in decoder.get("decoders") or []:
            _check_decoder(part, byte_level)
    elif decoder.get("type") == "ByteLevel":
        if not byte_level:
            raise UnsupportedTokenizerError(
                "decoder", decoder, "ByteLevel decoding without a ByteLevel pretokenizer"
            )
    elif decoder.get("type") != "Fuse":
        raise UnsupportedTokenizerError("decoder", decoder, "it changes the tokens' text")


def _added(entries: list[Json]) -> tuple[AddedToken, ...]:
    for entry in entries:
        for field in ("lstrip", "rstrip", "single_word"):
            if entry.get(field):
                raise UnsupportedTokenizerError(
                    f"added token {entry['content']!r}", f"{field}=True", "not modelled yet"
                )
    tokens = [AddedToken(e["id"], e["content"], bool(e.get("special"))) for e in entries]
    _check_passes(entries)
    return tuple(t for t in tokens if t.content)


def _check_passes(entries: list[Json]) -> None:
    """`tokenizers` cuts out the tokens with normalized=False first. That order is not modelled,
    so it must not matter: tokens of the two passes may not overlap in any text."""
    first = {e["content"] for e in entries if not e.get("normalized")}
    second = {e["content"] for e in entries if e.get("normalized")}
    clash = _overlap(first, second) or _overlap(second, first)
    if clash:
        raise UnsupportedTokenizerError(
            "added tokens",
            clash,
            "they overlap and differ in `normalized`, so they are cut in two passes",
        )


def _overlap(ones: set[str], others: set[str]) -> tuple[str, str] | None:
    """A pair such that an occurrence of the other can begin inside an occurrence of the one."""
    begins = {other[:k]: other for other in others for k in range(1, len(other) + 1)}
    for one in ones:
        for i in range(len(one)):
            if one[i:] in begins:
                return one, begins[one[i:]]
            for j in range(i + 1, len(one)):
                if one[i:j] in others:
                    return one, one[i:j]
    return None


def _check_ids(vocabulary: dict[str, int], added: tuple[AddedToken, ...]) -> int:
    ids = set(vocabulary.values())
    if len(ids) < len(vocabulary):
        seen: dict[int, str] = {}
        for token, number in vocabulary.items():
            if number in seen:
                raise BrokenTokenizerError(
                    f"id {number} stands for two tokens, {seen[number]!r} and {token!r}"
                )
            seen[number] = token
    ids.update(token.id for token in added)
    if not ids or min(ids) < 0:
        raise BrokenTokenizerError("the vocabulary is empty, or has negative ids")
    holes = max(ids) + 1 - len(ids)
    if holes:
        first = islice((i for i in range(max(ids)) if i not in ids), 5)
        raise BrokenTokenizerError(
            f"the vocabulary has {holes} hole(s): no token has id {', '.join(map(str, first))}"
            f"{', ...' if holes > 5 else ''}; give each unused id a placeholder token"
        )
    return len(ids)


def _tokens(vocabulary: dict[str, int], n_ids: int, byte_level: bool) -> tuple[bytes | None, ...]:
    tokens: list[bytes | None] = [None] * n_ids
    table = char_to_byte()
    for token, number in vocabulary.items():
        if not byte_level:
            tokens[number] = token.encode("utf-8", "surrogatepass")
        else:
            try:
                tokens[number] = token.translate(table).encode("latin-1")
            except UnicodeEncodeError:
                continue  # not spelled in the byte alphabet, so BPE never makes it
    return tuple(tokens)


def _base(vocabulary: dict[str, int], byte_level: bool) -> dict[bytes, int]:
    """The base symbols that BPE starts from: tokens of one character."""
    single = {token: number for token, number in vocabulary.items() if len(token) == 1}
    if not byte_level:
        return {token.encode("utf-8", "surrogatepass"): n for token, n in single.items()}
    written = byte_to_char()
    return {bytes([b]): single[c] for b, c in enumerate(written) if c in single}


def _merges(entries: list[Any], vocabulary: dict[str, int]) -> np.ndarray:
    pairs = [entry.split(" ") if isinstance(entry, str) else entry for entry in entries]
    try:
        rows = [(vocabulary[a], vocabulary[b], vocabulary[a + b]) for a, b in pairs]
    except (KeyError, ValueError):
        _refuse_merge(pairs, vocabulary)
    merges = np.array(rows, dtype=np.int32).reshape(-1, 3)
    _check_listed_once(merges, pairs)
    return merges


def _refuse_merge(pairs: list[Any], vocabulary: dict[str, int]) -> NoReturn:
    """Name the first merge that is no pair of tokens that makes a token."""
    for rank, parts in enumerate(pairs):
        if len(parts) != 2:
            raise BrokenTokenizerError(f"merge {rank} is {parts!r}, not a pair of tokens")
        left, right = parts
        for part in (left, right, left + right):
            if part not in vocabulary:
                raise BrokenTokenizerError(
                    f"merge {rank} ({left!r} + {right!r}) names {part!r}, which is not a token"
                )
    raise BrokenTokenizerError("the merge table is not a list of pairs of tokens")


def _check_listed_once(merges: np.ndarray, pairs: list[Any]) -> None:
    keys = merges[:, 0].astype(np.int64) << 32 | merges[:, 1]
    first, counts = np.unique(keys, return_index=True, return_counts=True)[1:]
    if not (counts > 1).any():
        return
    earlier = int(first[counts > 1].min())
    again = int(np.flatnonzero(keys == keys[earlier])[1])
    left, right = pairs[again]
    raise BrokenTokenizerError(
        f"merge {again} ({left!r} + {right!r}) is listed before, as merge {earlier}; its rank is "
        "ambiguous, so remove one of them"
    )
