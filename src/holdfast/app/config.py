"""Read what a person has settled, in files and in the environment.

A project's file is read as bytes and nothing more before it is trusted; nothing is ever run.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.app.config_rules import VARIABLES, Layer, Settled, Value, checked, settle, value_of
from holdfast.app.failures import ConfigUnreadable
from holdfast.app.settings import Settings, environment
from holdfast.app.trust import Trust

PROJECT_FILE: Final = ".holdfast.toml"
_BYTES_MOST: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Config:
    """Settings by key; and the project file that is ignored because it is not trusted."""

    settled: Mapping[str, Settled]
    untrusted: Path | None = None
    beneath: frozenset[str] = frozenset()  # keys that something else than a flag settles


def read_config(settings: Settings, here: Path, flags: Mapping[str, Value]) -> Config:
    """All that is settled for who is here; flags count most, a project's file only narrows."""
    layers = [Layer("flag", flags), *_variables(), _user(settings)]
    beneath = frozenset(key for layer in layers[1:] for key in layer.values)
    file = project_file(here)
    if file is None:
        return Config(settle(layers), beneath=beneath)
    content = content_of(file)
    if not Trust(settings.state).holds(file, content):
        return Config(settle(layers), untrusted=file, beneath=beneath)
    narrowing = Layer(str(file), project_values(file, content), narrows=True)
    return Config(settle([*layers, narrowing]), beneath=beneath)


def publishes_ignored(settings: Settings) -> bool:
    """Whether the person has settled that files which git ignores are published like others."""
    return settle([*_variables(), _user(settings)])["publish_ignored"].value is True


def project_file(here: Path) -> Path | None:
    """The settings of the project that one is in: the nearest file, from here up."""
    there = here.resolve()
    for each in (there, *there.parents):
        if os.path.lexists(each / PROJECT_FILE):
            return each / PROJECT_FILE
    return None


def project_values(file: Path, content: bytes) -> dict[str, Value]:
    """What a project's file settles; raise what is wrong with it."""
    return checked(_table(file, content), file=str(file), narrows=True)


def content_of(file: Path) -> bytes:
    """All of a file, if it is a regular one of a sensible length."""
    try:
        number = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(number, "rb") as opened:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise ConfigUnreadable(file=str(file), problem="it is not a regular file")
            content = opened.read(_BYTES_MOST + 1)
    except OSError as error:
        raise ConfigUnreadable(file=str(file), problem=error.strerror or str(error)) from error
    if len(content) > _BYTES_MOST:
        raise ConfigUnreadable(file=str(file), problem=f"it is longer than {_BYTES_MOST} bytes")
    return content


def _user(settings: Settings) -> Layer:
    file = settings.config / "config.toml"
    if not os.path.lexists(file):
        return Layer(str(file), {})
    real = Path(os.path.realpath(file))  # a link to one's own dotfiles is usual
    return Layer(str(file), checked(_table(file, content_of(real)), file=str(file)))


def _variables() -> list[Layer]:
    """A layer for each variable, so that its name is the origin."""
    said = environment()
    return [
        Layer(f"${name}", {key: value_of(key, said[name], where=name)})
        for name, key in VARIABLES.items()
        if said.get(name)
    ]


def _table(file: Path, content: bytes) -> dict[str, object]:
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise ConfigUnreadable(file=str(file), problem=str(error)) from error
