"""The byte alphabet of ByteLevel tokenizers: every byte written as one visible character.

Source: the GPT-2 tokenizer. Bytes that are visible Latin-1 characters stand for themselves, the
others take the code points from 256 on, in order.
"""

from __future__ import annotations

from functools import cache


@cache
def byte_to_char() -> tuple[str, ...]:
    """The character for each of the 256 bytes."""
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = (byte for byte in range(256) if byte not in visible)
    written = {byte: 256 + index for index, byte in enumerate(hidden)}
    return tuple(chr(written.get(byte, byte)) for byte in range(256))


@cache
def char_to_byte() -> dict[int, int]:
    """For `str.translate`: a character of the alphabet -> its byte; other Latin-1 characters go to
    U+FFFF, so that encoding the result as Latin-1 fails for a token outside the alphabet."""
    table = dict.fromkeys(range(256), 0xFFFF)
    table.update((ord(character), byte) for byte, character in enumerate(byte_to_char()))
    return table
