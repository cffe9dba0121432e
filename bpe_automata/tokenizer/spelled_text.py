"""Are some bytes text at all?"""

from __future__ import annotations


def is_text(data: bytes) -> bool:
    """Whole characters in UTF-8, as pretokens are; a token may be a part of one."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
