"""`tiktoken.Encoding` objects, and the names of those that tiktoken knows.

An object holds all of a tokenizer. tiktoken knows its own by names, and which models have which,
but not their ranks: those it downloads. Its code says what their digests must be, so a digest of
that code and a name stand for the ranks.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import sys
from functools import partial
from typing import Any

from bpe_automata.errors import MissingDependencyError, MissingFileError
from bpe_automata.tokenizer.backend import Source
from bpe_automata.tokenizer.kept import Origin
from bpe_automata.tokenizer.sources.optional import fingerprint, optional

_END_OF_TEXT = "<|endoftext|>"
_OWN = "tiktoken_ext.openai_public"  # where tiktoken's own encodings are made


def is_encoding(source: object) -> bool:
    """Is this a `tiktoken.Encoding`?"""
    package = sys.modules.get("tiktoken")  # who has one has imported it
    return package is not None and isinstance(source, package.Encoding)


def read_encoding(encoding: Any) -> Source:
    """The tokenizer that a `tiktoken.Encoding` is. Its `<|endoftext|>`, if it has one, ends a
    sequence.

    Raises BrokenTokenizerError, UnsupportedTokenizerError."""
    from bpe_automata.tokenizer.sources.tiktoken_ranks import checked_ranks, source_of

    ranks = checked_ranks(dict(encoding._mergeable_ranks), encoding.name)
    lines = (base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items())
    specials: dict[str, int] = encoding._special_tokens
    eos = tuple(text for text in (_END_OF_TEXT,) if text in specials)
    pattern, content = encoding._pat_str, b"".join(lines)
    return source_of(ranks, content, encoding.name, pattern, specials, (), eos, encoding)


def at_encoding(encoding: Any) -> Origin:
    """What `read_encoding` reads, not read yet."""
    ranks: dict[bytes, int] = encoding._mergeable_ranks
    numbers = repr((list(map(len, ranks)), list(ranks.values())))
    specials = repr(sorted(encoding._special_tokens.items()))
    key = fingerprint("encoding", b"".join(ranks), numbers, encoding._pat_str, specials)
    read = partial(read_encoding, encoding)
    return Origin(key, encoding.name, read, read)


def at_named_encoding(name: str) -> Origin | None:
    """What `tiktoken.get_encoding` or `tiktoken.encoding_for_model` gives for a name, not read yet;
    None for a name that is neither, or without tiktoken."""
    try:
        package = optional("tiktoken", "tiktoken", "reading an encoding of tiktoken")
    except MissingDependencyError:
        return None
    encoding = name
    if name not in package.list_encoding_names():
        try:
            encoding = package.encoding_name_for_model(name)
        except KeyError:
            return None
    made_by = package.registry.ENCODING_CONSTRUCTORS[encoding]
    if made_by.__module__ != _OWN or encoding in package.registry.ENCODINGS:
        return at_encoding(_encoding(encoding))
    code = hashlib.sha256(inspect.getsource(sys.modules[_OWN]).encode()).digest()
    key = fingerprint("named encoding", encoding, package.__version__, code)
    read = partial(_read_named, encoding)
    return Origin(key, encoding, read, read)


def _read_named(encoding: str) -> Source:
    return read_encoding(_encoding(encoding))


def _encoding(name: str) -> Any:
    """Raises MissingFileError where its ranks are not at hand and cannot be downloaded."""
    package = optional("tiktoken", "tiktoken", "reading an encoding of tiktoken")
    try:
        return package.get_encoding(name)
    except (OSError, ValueError) as error:  # what requests raises is an OSError
        raise MissingFileError(
            f"the ranks of {name} are not at hand, and tiktoken could not download them "
            f"({type(error).__name__}: {error}). Where there is a network, "
            f"tiktoken.get_encoding({name!r}) with TIKTOKEN_CACHE_DIR set to a folder writes "
            "them there; set it to that folder here. Or give a rank file, with its pattern and "
            "special_tokens"
        ) from error
