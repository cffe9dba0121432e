"""SentencePiece models of type BPE (Llama-2, Mistral, Gemma), run by sentencepiece itself.

The proto is read with the classes that the package `sentencepiece` brings. A text that holds `▁`
itself is encoded as if a space stood there, so it is not decoded to itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bpe_automata.errors import ONLY_BPE, BrokenTokenizerError, UnsupportedTokenizerError
from bpe_automata.tokenizer.backend import Source
from bpe_automata.tokenizer.sources.optional import fingerprint, optional
from bpe_automata.tokenizer.sources.sentencepiece_pieces import Kind, Piece, describe

_PURPOSE = "reading a SentencePiece model"


class NoClasses:
    """The character engine of a library that has no character classes."""

    dialect = "none"

    def __init__(self, name: str) -> None:
        self.name = name

    def members(self, kind: str, pattern: str, text: str) -> Iterator[tuple[int, int]]:
        raise BrokenTokenizerError(f"{self.name} has no character class {pattern or kind!r}")


class SentencePiece:
    """A model run by sentencepiece; a `Backend`."""

    def __init__(self, content: bytes, where: str) -> None:
        """`content`: a serialized model. Raises BrokenTokenizerError, MissingDependencyError."""
        package = optional("sentencepiece", "sentencepiece", _PURPOSE)
        self.name = f"sentencepiece {package.__version__}"
        self.engine = NoClasses(self.name)
        self._content = content
        try:
            self._processor = package.SentencePieceProcessor(model_proto=content)
        except (RuntimeError, OSError) as error:
            raise BrokenTokenizerError(f"{where}: sentencepiece cannot load it: {error}") from error

    def made_from(self) -> tuple[dict[str, Any], bytes]:
        """What `tokenizer.kept` keeps of it."""
        return {}, self._content

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """The id of the end-of-sequence piece, if there is one."""
        number = int(self._processor.eos_id())
        return (number,) if number >= 0 else ()

    def encode(self, text: str) -> list[int]:
        return list(self._processor.encode(text))

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return list(self._processor.encode(texts)) if texts else []

    def decode(self, ids: list[int]) -> str:
        return str(self._processor.decode(ids))


def model_proto() -> Any:
    """An empty ModelProto. Raises MissingDependencyError."""
    module = "sentencepiece.sentencepiece_model_pb2"
    optional("google.protobuf", "sentencepiece", _PURPOSE)
    return optional(module, "sentencepiece", _PURPOSE).ModelProto()


def read_sentencepiece(content: bytes, where: str) -> Source:
    """The tokenizer of a serialized SentencePiece model. `where`: its name in errors.

    Raises MissingDependencyError, BrokenTokenizerError, UnsupportedTokenizerError."""
    proto = model_proto()
    try:
        proto.ParseFromString(content)
    except Exception as error:  # protobuf has several implementations, each with its own error
        raise BrokenTokenizerError(f"{where} is not a SentencePiece model: {error}") from error
    return source_of(proto, content, where)


def source_of(
    proto: Any, content: bytes, where: str, eos_ids: tuple[int, ...] | None = None
) -> Source:
    """The tokenizer of a ModelProto; `content`: the same, serialized; `eos_ids`: instead of what
    the model says. Raises as `read_sentencepiece` does."""
    _refuse_options(proto)
    kinds = {kind.value: kind for kind in Kind}
    description = describe(
        [Piece(p.piece, p.score, kinds[p.type]) for p in proto.pieces],
        byte_fallback=proto.trainer_spec.byte_fallback,
        dummy_prefix=proto.normalizer_spec.add_dummy_prefix,
        unknown_text=proto.trainer_spec.unk_surface,
    )
    backend = SentencePiece(content, where)
    key = fingerprint(backend.name, content)
    return Source(description, backend, where, key, backend.eos_ids if eos_ids is None else eos_ids)


def _refuse_options(proto: Any) -> None:
    """Raises UnsupportedTokenizerError for what changes `encode` and is not modelled."""
    trainer, normalizer = proto.trainer_spec, proto.normalizer_spec
    kind = type(trainer).ModelType.Name(trainer.model_type)
    if kind != "BPE":
        raise UnsupportedTokenizerError("SentencePiece model_type", kind, ONLY_BPE)
    if normalizer.precompiled_charsmap:
        raise UnsupportedTokenizerError(
            "SentencePiece normalizer",
            normalizer.name,
            "it replaces characters by rules; only identity is modelled",
        )
    if proto.denormalizer_spec.precompiled_charsmap:
        raise UnsupportedTokenizerError(
            "SentencePiece denormalizer", proto.denormalizer_spec.name, "it changes decoded text"
        )
    if normalizer.remove_extra_whitespaces:
        raise UnsupportedTokenizerError(
            "SentencePiece remove_extra_whitespaces", True, "it removes spaces; not modelled"
        )
    if not normalizer.escape_whitespaces:
        raise UnsupportedTokenizerError(
            "SentencePiece escape_whitespaces", False, "spaces stay spaces; not modelled"
        )
    if trainer.treat_whitespace_as_suffix:
        raise UnsupportedTokenizerError(
            "SentencePiece treat_whitespace_as_suffix", True, "not modelled"
        )
