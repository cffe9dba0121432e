"""JSON pointers in URI fragments (RFC 6901): `#/properties/a~1b` leads to a part of a schema."""

from __future__ import annotations

from urllib.parse import unquote


def below(pointer: str, *tokens: str | int) -> str:
    """The pointer to a part of what `pointer` leads to. Not percent-encoded, so that people can
    read it."""
    return "/".join((pointer, *(str(t).replace("~", "~0").replace("/", "~1") for t in tokens)))


def tokens_of(fragment: str) -> list[str]:
    """The steps of a pointer such as "/properties/a~1b" or "#/properties/a%20b"."""
    path = unquote(fragment.removeprefix("#"))
    return [token.replace("~1", "/").replace("~0", "~") for token in path.split("/")[1:]]
