"""Names of modules say something, and each module opens with what it is for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.shape.source import Source

FIRST_LINE_MAX = 90
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


def telling_name(source: Source) -> Iterator[str]:
    """No module is named after nothing in particular; only `runs` has a manager."""
    allowed = {"manager"} if source.room == "runs" else set[str]()
    yield from sorted((_VAGUE - allowed).intersection(source.path.with_suffix("").parts))


def module_purpose(source: Source) -> Iterator[str]:
    """A module opens with one short sentence that says what it is for."""
    first = _first_line(source.tree)
    if not first.endswith(".") or len(first) > FIRST_LINE_MAX:
        yield f"its docstring opens with {first!r}"


def _first_line(node: ast.Module) -> str:
    return (ast.get_docstring(node) or "").partition("\n")[0]
