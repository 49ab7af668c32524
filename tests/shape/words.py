"""Names and opening sentences of modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.shape.source import Source

FIRST_LINE_MAX = 96  # one line of 100 columns, with its quotes
_VAGUE = {
    "utils",
    "util",
    "helpers",
    "helper",
    "common",
    "misc",
    "shared",
    "base_utils",
    "types",
    "manager",
    "stuff",
}


def specific_name(source: Source) -> Iterator[str]:
    """No vague module names; only `runs` has a manager."""
    allowed = {"manager"} if source.package == "runs" else set[str]()
    yield from sorted((_VAGUE - allowed).intersection(source.path.with_suffix("").parts))


def module_docstring(source: Source) -> Iterator[str]:
    """The docstring of a module opens with one sentence of at most 90 characters."""
    first = _first_line(source.tree)
    if not first.endswith(".") or len(first) > FIRST_LINE_MAX:
        yield f"its docstring opens with {first!r}"


def _first_line(node: ast.Module) -> str:
    return (ast.get_docstring(node) or "").partition("\n")[0]
