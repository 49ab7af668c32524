"""Coding conventions: error handling, suppressions, imports, purity, threads, mocks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.shape.source import PURE, Function, Source

_BROAD = {"Exception", "BaseException", "builtins.Exception", "builtins.BaseException"}
_BOUNDARY = "failures/boundary.py"
_DIRECTIVE = re.compile(r"#\s*(?:type:\s*ignore|noqa|pyright:\s*ignore)[^#]*")
_TEXTS = {"message", "user_message"}
_ERROR_NAMES = {"failure", "error", "exc", "exception", "cause"}
_THREADS = {"threading", "multiprocessing", "concurrent"}
_CLOCKS = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today"}


def narrow_excepts(source: Source) -> Iterator[str]:
    """Only `failures.boundary` catches Exception; other modules call it around foreign code."""
    if str(source.path) == _BOUNDARY:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ExceptHandler) and _is_broad(node.type):
            yield f"line {node.lineno}: except {ast.unparse(node.type) if node.type else ''}"
        suppresses = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress")
        if suppresses and any(_is_broad(argument) for argument in node.args):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def suppressions_have_reasons(source: Source) -> Iterator[str]:
    """`Any`, `cast`, `type: ignore` and `noqa` carry a reason on their line."""
    for line, comment in source.comments.items():
        if _DIRECTIVE.match(comment) and not _reason(comment):
            yield f"line {line}: {comment}"
    for node in ast.walk(source.tree):
        name = ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        if name in {"Any", "typing.Any", "cast", "typing.cast"} and not any(
            _reason(source.comments.get(line, "")) for line in source.statement(node)
        ):
            yield f"line {node.lineno}: {name}"


def imports_at_top(source: Source) -> Iterator[str]:
    """No import inside a function, except in `cli`, the wiring and `lazy_exports`."""
    is_wiring = source.package == "app" and source.inside[:1] == ["wiring"]
    if source.package == "cli" or is_wiring or str(source.path) == "__init__.py":
        return
    for node in ast.walk(source.tree):
        is_import = isinstance(node, (ast.Import, ast.ImportFrom)) or (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) in {"__import__", "import_module", "importlib.import_module"}
        )
        around = [outer.name for outer in source.above(node) if isinstance(outer, Function)]
        if is_import and around:
            yield f"line {node.lineno}: {ast.unparse(node)}"


def no_branch_on_failure_text(source: Source) -> Iterator[str]:
    """Code branches on the kind or code of a failure, never on its text."""
    for node in ast.walk(source.tree):
        inspected: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            inspected = [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            inspected = [node.subject]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called = node.func
            if called.attr in {"startswith", "endswith", "find", "index", "count"}:
                inspected = [called.value]
            elif called.attr in {"match", "search", "fullmatch", "findall"}:
                inspected = [called.value, *node.args]
        if any(_is_failure_text(expression) for expression in inspected):
            yield f"line {node.lineno}: {ast.unparse(node).partition(chr(10))[0]}"


def failures_in_failures_module(source: Source) -> Iterator[str]:
    """A failure is declared in `failures.py`, or in the `failures` subpackage, of its package."""
    if source.package == "failures" or source.inside[:1] == ["failures"]:
        return
    for node in ast.walk(source.tree):
        header = node.keywords if isinstance(node, ast.ClassDef) else []
        if {"code", "kind"} <= {keyword.arg for keyword in header}:
            yield f"line {node.lineno}: a failure is declared"


def no_io_in_pure_modules(source: Source) -> Iterator[str]:
    """Pure modules take time and bytes as arguments: no clock, file, print or input."""
    named = {"model", "failures", "ports", "wire"}.intersection(source.inside[:1])
    is_pure = (
        source.package in {"nouns", "failures"}
        or ".".join([source.package, *source.inside]) in PURE
    )
    if not is_pure and not named:
        return
    for node in ast.walk(source.tree):
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if called in {"open", "print", "input"} or _ends_like(called, _CLOCKS):
            yield f"line {node.lineno}: {called}"


def threads_in_world(source: Source) -> Iterator[str]:
    """Only `world` starts threads."""
    if source.package == "world":
        return
    for node in ast.walk(source.tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.partition(".")[0] in _THREADS or name.startswith("anyio.to_thread"):
                yield f"line {node.lineno}: {name}"


def no_mocks_or_sleeps(source: Source) -> Iterator[str]:
    """Tests use real implementations and wait for conditions: no mocks, no sleeps."""
    for node in ast.walk(source.tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call):
            names = [ast.unparse(node.func)]
        for name in names:
            if name == "time.sleep" or name.startswith(("unittest.mock", "mock.")):
                yield f"line {node.lineno}: {name}"


def _is_broad(caught: ast.expr | None) -> bool:
    if isinstance(caught, ast.Tuple):
        return any(_is_broad(one) for one in caught.elts)
    return caught is None or ast.unparse(caught) in _BROAD


def _reason(comment: str) -> bool:
    return len(_DIRECTIVE.sub("", comment).strip("# ").split()) >= 2


def _is_failure_text(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _TEXTS
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _is_failure_text(node.func.value)  # failure.message.lower() and the like
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"str", "repr"}
        and len(node.args) == 1
        and ast.unparse(node.args[0]) in _ERROR_NAMES
    )


def _ends_like(name: str, endings: set[str]) -> bool:
    return any(name == ending or name.endswith(f".{ending}") for ending in endings)
