"""Holdfast runs coding agents so that nothing is lost."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__version__ = "0.1.0"


def face(room: str, home: Mapping[str, str]) -> Callable[[str], object]:
    """A `__getattr__` for a room: what it offers is loaded from its home when first asked for."""

    def __getattr__(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        return getattr(import_module(f"{room}.{home[name]}"), name)

    return __getattr__
