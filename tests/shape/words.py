"""Names say something, and everything public says in one sentence what it is for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.shape.source import Function, Source

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
_SHORT_MAX = 5  # lines of an override that its base class already explains


def telling_name(source: Source) -> Iterator[str]:
    """No module is named after nothing in particular; only `runs` has a manager."""
    allowed = {"manager"} if source.room == "runs" else set[str]()
    yield from sorted((_VAGUE - allowed).intersection(source.path.with_suffix("").parts))


def module_purpose(source: Source) -> Iterator[str]:
    """A module opens with one short sentence that says what it is for."""
    first = _first_line(source.tree)
    if not first.endswith(".") or len(first) > FIRST_LINE_MAX:
        yield f"its docstring opens with {first!r}"


def public_promise(source: Source) -> Iterator[str]:
    """A public class, function, method or property says in one sentence what it promises."""
    yield from _silent(source.tree, within="", overriding=False)


def _silent(scope: ast.Module | ast.ClassDef, *, within: str, overriding: bool) -> Iterator[str]:
    for node in scope.body:
        if not isinstance(node, (ast.ClassDef, *Function.__args__)) or node.name.startswith("_"):
            continue
        name = f"{within}{node.name}"
        if not _is_explained(node, overriding=overriding):
            yield f"{name} does not say in one sentence what it promises"
        if isinstance(node, ast.ClassDef):
            yield from _silent(node, within=f"{name}.", overriding=_overrides(node))


def _is_explained(node: ast.ClassDef | Function, *, overriding: bool) -> bool:
    if _first_line(node).endswith("."):
        return True
    if isinstance(node, ast.ClassDef) or ast.get_docstring(node):
        return False
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    restated = "overload" in decorators or any(name.endswith(".setter") for name in decorators)
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    return restated or (overriding and lines <= _SHORT_MAX)


def _overrides(node: ast.ClassDef) -> bool:
    bases = {ast.unparse(base).partition("[")[0] for base in node.bases}
    return bool(bases - {"Protocol", "Failure", "Generic", "StrEnum", "Enum", "IntEnum"})


def _first_line(node: ast.Module | ast.ClassDef | Function) -> str:
    return (ast.get_docstring(node) or "").partition("\n")[0]
