"""Tests stand where their source stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

_PLAIN = {"__init__", "failures", "model", "ports"}  # nothing in them decides or acts
_OF_TESTS = {"testing"}  # twins and contract suites: tests run them all the time


def orphans(source: Iterable[PurePosixPath], tests: Iterable[PurePosixPath]) -> Iterator[str]:
    """Tests of a room that mirror no module of it."""
    modules = set(source)
    rooms = {path.parts[0] for path in modules if len(path.parts) > 1}
    for path in tests:
        mirrored = path.with_name(path.name.removeprefix("test_"))
        if path.parts[0] in rooms and mirrored not in modules:
            yield str(path)


def untested(source: Iterable[PurePosixPath], tests: Iterable[PurePosixPath]) -> Iterator[str]:
    """Modules that decide or act, and have no tests of their own."""
    there = set(tests)
    for path in source:
        is_plain = path.stem in _OF_TESTS or not _PLAIN.isdisjoint((*path.parts[1:-1], path.stem))
        if not is_plain and path.with_name(f"test_{path.name}") not in there:
            yield str(path)
