"""Frozen configs: what determines the numbers of an artefact, and how the command line sets it.

A field of a config is an option of the command line by the same name. Fields of the same name in
several artefacts are set together.
"""

from __future__ import annotations

import dataclasses
import os
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from bpe_automata.errors import ArgumentError
from experiments.run.provenance import contents_sha256


@dataclass(frozen=True)
class Config:
    """The base of all. seed: of whatever is drawn at random."""

    seed: int = 0


C = TypeVar("C", bound=Config)


def option(default: Any, help_: str) -> Any:
    """A field of a config with its line of help."""
    return dataclasses.field(default=default, metadata={"help": help_})


def changed(config: C, given: Mapping[str, str]) -> C:
    """The config with these fields read from text. Raises ArgumentError for a value that is none
    of the field's type."""
    hints = typing.get_type_hints(type(config))
    read = {name: _read(name, hints[name], text) for name, text in given.items()}
    return dataclasses.replace(config, **read)


def differences(config: Config, default: Config) -> dict[str, Any]:
    """The fields in which it is not the default."""
    return {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(config)
        if getattr(config, field.name) != getattr(default, field.name)
    }


def plain(config: Config) -> dict[str, Any]:
    """As JSON has it: paths are their names (where a file lies determines no number, see `inputs`
    for what is in it), tuples are lists."""
    return {name: _plain(value) for name, value in vars(config).items()}


def inputs(config: Config) -> dict[str, str | None]:
    """The digest of each file and folder that the config names, by field, place in it and name."""
    return {
        f"{field} {number} {path.name}": contents_sha256(path)
        for field, value in vars(config).items()
        for number, part in enumerate(value if isinstance(value, tuple) else (value,))
        if (path := _path(part)) is not None
    }


def _path(value: Any) -> Path | None:
    """A path, or a text that is the path of something that is there: hub ids have slashes too, and
    names of artefacts and folders of code are alike."""
    if not isinstance(value, str):
        return value if isinstance(value, Path) else None
    path = Path(value)
    is_path = path.is_file() or (path / "config.json").is_file()
    return path if is_path or (os.sep in value and path.exists()) else None


def _plain(value: Any) -> Any:
    if (path := _path(value)) is not None:
        return path.name
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return value


def _read(name: str, kind: Any, text: str) -> Any:
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        if text.lower() == "none":
            return None
        kind = next(part for part in typing.get_args(kind) if part is not type(None))
    if typing.get_origin(kind) is tuple:
        inner = typing.get_args(kind)[0]
        return tuple(_read(name, inner, part) for part in text.split(",") if part)
    if typing.get_origin(kind) is Literal:
        if text not in typing.get_args(kind):
            allowed = ", ".join(typing.get_args(kind))
            raise ArgumentError(f"--{_flag(name)} {text!r} is none of {allowed}")
        return text
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise ArgumentError(f"--{_flag(name)} {text!r} is neither true nor false")
        return text.lower() == "true"
    try:
        return kind(text)
    except ValueError as error:
        raise ArgumentError(f"--{_flag(name)} {text!r} is no {kind.__name__}") from error


def _flag(name: str) -> str:
    return name.replace("_", "-")
