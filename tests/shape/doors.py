"""Packages meet at their public API, and pure modules import no shell."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tests.shape.source import PURE, SRC, Source

_WIRING = {"app", "cli"}  # they put the parts together, so they may see them
_DOORS: tuple[list[str], ...] = ([], ["model"], ["failures"], ["contract"], ["client"], ["testing"])
_RANKS = {"failures": 0, "wire": 1, "model": 2, "ports": 3}  # wire: a foreign protocol
_DECISION, _SHELL = 3, 4
_GROUND = {"failures", "nouns"}


@dataclass(frozen=True)
class Import:
    """What one import of ours reaches: a room, and the way inside it."""

    room: str
    inside: list[str]
    line: int

    def __str__(self) -> str:
        return f"line {self.line}: {'.'.join(['holdfast', self.room, *self.inside])}"


def doors_only(source: Source) -> Iterator[str]:
    """Across rooms, import the face of a room or one of its doors, never its insides."""
    for found in _imports(source):
        if found.room == source.room:
            if not found.inside:
                yield f"{found} is its own face"
        elif source.room not in _WIRING and found.inside not in _DOORS:
            yield f"{found} is inside another room"


def decisions_first(source: Source) -> Iterator[str]:
    """Failures, then nouns, then decisions and needs: none of them imports a shell."""
    rank = _rank(source.room, source.inside)
    if rank == _SHELL or source.room in _GROUND:
        return
    for found in _imports(source):
        if found.room == source.room:
            if found.inside and _rank(found.room, found.inside) > rank:
                yield f"{found} stands above it"
        elif found.room not in _GROUND and found.inside[-1:] not in (["model"], ["failures"]):
            yield f"{found} is more than nouns and failures"


def absolute_imports(source: Source) -> Iterator[str]:
    """No relative imports."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield f"line {node.lineno}"


def _reached(module: str, name: str) -> str:
    """The module that `from module import name` reaches: itself, or a module inside it."""
    inside = f"{module}.{name}"
    return inside if (SRC.parent / f"{inside.replace('.', '/')}.py").exists() else module


def _rank(room: str, inside: list[str]) -> int:
    if inside and inside[0] in _RANKS:
        return _RANKS[inside[0]]
    return _DECISION if ".".join([room, *inside]) in PURE else _SHELL


def _imports(source: Source) -> Iterator[Import]:
    for node in ast.walk(source.tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "holdfast":
            names = [f"holdfast.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
            if names[0].startswith(f"holdfast.{source.room}"):
                names = sorted({_reached(names[0], alias.name) for alias in node.names})
        for name in names:
            package, _, way = name.partition(".")
            if package == "holdfast" and way and not way.startswith("__"):
                room, *inside = way.split(".")
                yield Import(room, inside, node.lineno)
