"""One value as block YAML, in the style of `yaml_style`: what its automata accept, in the given
order of keys."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from bpe_automata.errors import ArgumentError
from bpe_automata.schemas.yaml_scalars import spelled
from bpe_automata.schemas.yaml_style import INDENT


def yaml_text(value: Any) -> str:
    """yaml.safe_load(yaml_text(value)) == value, for any JSON value; integers have no fraction, and
    only floats of 1e16 and more an exponent, as `yaml.safe_dump` writes them. Raises ArgumentError
    for what JSON has not: other types, keys that are no strings, NaN and infinities."""
    return "".join(_lines(value, 0, after_key=False))


def _lines(value: Any, level: int, after_key: bool) -> list[str]:
    """Pieces of the text of a value, the margin before its first line left out."""
    if not isinstance(value, dict | list) or not value:
        return [" " * after_key, _scalar(value), "\n"]
    margin = " " * (INDENT * level)
    found = ["\n", margin] if after_key else []
    for number, member in enumerate(value.items() if isinstance(value, dict) else value):
        found += [margin] if number else []
        if isinstance(value, dict):
            found += [f"{_key(member[0])}:", *_lines(member[1], level + 1, after_key=True)]
        else:
            found += ["- ", *_lines(member, level + 1, after_key=False)]
    return found


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise ArgumentError(f"{key!r} is a key of JSON only if it is a string")
    return spelled(key)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return spelled(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and value - value == 0:
        mantissa, _, exponent = repr(value).partition("e+")
        if exponent:
            return f"{mantissa if '.' in mantissa else f'{mantissa}.0'}e+{exponent}"
        text = f"{Decimal(repr(value)):f}"
        return text if "." in text else f"{text}.0"
    raise ArgumentError(f"{value!r} is no value of JSON")
