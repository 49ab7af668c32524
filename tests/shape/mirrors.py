"""Test files mirror source files: `test_scanner.py`, or `test_scanner_mmap.py` for an aspect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

_DECLARATIONS = {"__init__", "failures", "model", "ports"}  # no behaviour to test
_TEST_SUPPORT = {"testing"}  # in-memory implementations and contract suites, run by other tests


def orphans(source: Iterable[PurePosixPath], tests: Iterable[PurePosixPath]) -> Iterator[str]:
    """Test files in a package's test directory that do not belong to one of its modules."""
    modules = set(source)
    packages = {path.parts[0] for path in modules if len(path.parts) > 1}
    for path in tests:
        if path.parts[0] in packages and not any(is_for(path, module) for module in modules):
            yield str(path)


def untested(source: Iterable[PurePosixPath], tests: Iterable[PurePosixPath]) -> Iterator[str]:
    """Modules with behaviour that have no test file."""
    test_files = set(tests)
    for path in source:
        is_exempt = path.stem in _TEST_SUPPORT or not _DECLARATIONS.isdisjoint(
            (*path.parts[1:-1], path.stem)
        )
        if not is_exempt and not any(is_for(test, path) for test in test_files):
            yield str(path)


def is_for(test: PurePosixPath, module: PurePosixPath) -> bool:
    """Whether a test file tests a module or an aspect of it."""
    name = f"test_{module.stem}"
    return test.parent == module.parent and (test.stem == name or test.stem.startswith(f"{name}_"))
