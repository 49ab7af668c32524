"""Tests stand where their source stands: `test_scanner.py`, `test_scanner_mmap.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

_PLAIN = {"__init__", "failures", "model", "ports"}  # nothing in them decides or acts
_OF_TESTS = {
    "testing"
}  # in-memory implementations and contract suites: tests run them all the time


def orphans(source: Iterable[PurePosixPath], tests: Iterable[PurePosixPath]) -> Iterator[str]:
    """Tests of a package that mirror no module of it."""
    modules = set(source)
    packages = {path.parts[0] for path in modules if len(path.parts) > 1}
    for path in tests:
        if path.parts[0] in packages and not any(is_for(path, module) for module in modules):
            yield str(path)


def untested(source: Iterable[PurePosixPath], tests: Iterable[PurePosixPath]) -> Iterator[str]:
    """Modules that decide or act, and have no tests of their own."""
    there = set(tests)
    for path in source:
        is_plain = path.stem in _OF_TESTS or not _PLAIN.isdisjoint((*path.parts[1:-1], path.stem))
        if not is_plain and not any(is_for(test, path) for test in there):
            yield str(path)


def is_for(test: PurePosixPath, module: PurePosixPath) -> bool:
    """Whether a test file is about a module, or about an aspect of it."""
    name = f"test_{module.stem}"
    return test.parent == module.parent and (test.stem == name or test.stem.startswith(f"{name}_"))
