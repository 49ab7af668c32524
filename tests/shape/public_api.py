"""Import rules: packages use each other's public API; pure modules do not import effects.

Modules of a package have ranks: failures (0), wire (1), model (2), pure modules and ports (3),
effects (4). A module below the rank of effects imports only its own rank or below.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tests.shape.source import PURE, SRC, Source

_COMPOSITION = {"app", "cli"}  # they assemble the parts, so they may import any module
_PUBLIC: tuple[list[str], ...] = (
    [],
    ["model"],
    ["failures"],
    ["contract"],
    ["client"],
    ["testing"],
)
_RANKS = {"failures": 0, "wire": 1, "model": 2, "ports": 3}  # wire: a foreign protocol
_PURE_RANK, _EFFECT_RANK = 3, 4
_BOTTOM_LAYERS = {"failures", "nouns"}


@dataclass(frozen=True)
class Import:
    """One import of a holdfast module: its top-level package and the path below it."""

    package: str
    inside: list[str]
    line: int

    def __str__(self) -> str:
        return f"line {self.line}: {'.'.join(['holdfast', self.package, *self.inside])}"


def public_api_only(source: Source) -> Iterator[str]:
    """Import another package by its public API or a public module, never a module inside it."""
    for found in _imports(source):
        if found.package == source.package:
            if not found.inside:
                yield f"{found} is the public API of its own package"
        elif source.package not in _COMPOSITION and found.inside not in _PUBLIC:
            yield f"{found} is inside another package"


def pure_below_effects(source: Source) -> Iterator[str]:
    """Failures, wire types, models, pure modules and ports do not import effects."""
    rank = _rank(source.package, source.inside)
    if rank == _EFFECT_RANK or source.package in _BOTTOM_LAYERS:
        return
    for found in _imports(source):
        if found.package == source.package:
            if found.inside and _rank(found.package, found.inside) > rank:
                yield f"{found} has a higher rank"
        elif found.package not in _BOTTOM_LAYERS and found.inside[-1:] not in (
            ["model"],
            ["failures"],
        ):
            yield f"{found} is neither a model nor failures"


def absolute_imports(source: Source) -> Iterator[str]:
    """No relative imports."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield f"line {node.lineno}"


def _loaded(module: str, name: str) -> str:
    """The module that `from module import name` loads: `module.name` if that is a file."""
    inside = f"{module}.{name}"
    return inside if (SRC.parent / f"{inside.replace('.', '/')}.py").exists() else module


def _rank(package: str, inside: list[str]) -> int:
    if inside and inside[0] in _RANKS:
        return _RANKS[inside[0]]
    return _PURE_RANK if ".".join([package, *inside]) in PURE else _EFFECT_RANK


def _imports(source: Source) -> Iterator[Import]:
    for node in ast.walk(source.tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "holdfast":
            names = [f"holdfast.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
            if names[0].startswith(f"holdfast.{source.package}"):
                names = sorted({_loaded(names[0], alias.name) for alias in node.names})
        for name in names:
            root, _, path = name.partition(".")
            if root == "holdfast" and path and not path.startswith("__"):
                package, *inside = path.split(".")
                yield Import(package, inside, node.lineno)
