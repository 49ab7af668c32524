"""Holdfast runs coding agents so that nothing is lost."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__version__ = "0.1.0"


def lazy_exports(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """A module-level `__getattr__` (PEP 562) that imports a package's exports on first use.

    `modules` maps each exported name to the submodule that defines it.
    """

    def __getattr__(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return __getattr__
