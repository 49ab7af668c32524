"""How code behaves towards its reader and towards what goes wrong."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.shape.source import PURE, Function, Source

_BROAD = {"Exception", "BaseException", "builtins.Exception", "builtins.BaseException"}
_LAST_RESORT = "failures/boundary.py"
_DIRECTIVE = re.compile(r"#\s*(?:type:\s*ignore|noqa|pyright:\s*ignore)[^#]*")
_TEXTS = {"message", "user_message"}
_ERROR_NAMES = {"failure", "error", "exc", "exception", "cause"}
_THREADS = {"threading", "multiprocessing", "concurrent"}
_CLOCKS = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today"}


def narrow_excepts(source: Source) -> Iterator[str]:
    """Only the boundary catches everything; everyone else uses it where foreign code runs."""
    if str(source.path) == _LAST_RESORT:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ExceptHandler) and _is_broad(node.type):
            yield f"line {node.lineno}: except {ast.unparse(node.type) if node.type else ''}"
        suppresses = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress")
        if suppresses and any(_is_broad(argument) for argument in node.args):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def reasons_given(source: Source) -> Iterator[str]:
    """`Any`, `cast`, `type: ignore` and `noqa` each say why, on their line."""
    for line, comment in source.comments.items():
        if _DIRECTIVE.match(comment) and not _reason(comment):
            yield f"line {line}: {comment}"
    for node in ast.walk(source.tree):
        name = ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        if name in {"Any", "typing.Any", "cast", "typing.cast"} and not any(
            _reason(source.comments.get(line, "")) for line in source.statement(node)
        ):
            yield f"line {node.lineno}: {name}"


def eager_imports(source: Source) -> Iterator[str]:
    """Imports stand at the top, but for `cli`, the wiring and what every face is made of."""
    if source.room == "cli" or str(source.path) in {"app/wiring.py", "__init__.py"}:
        return
    for node in ast.walk(source.tree):
        is_import = isinstance(node, (ast.Import, ast.ImportFrom)) or (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) in {"__import__", "import_module", "importlib.import_module"}
        )
        around = [outer.name for outer in source.above(node) if isinstance(outer, Function)]
        if is_import and around:
            yield f"line {node.lineno}: {ast.unparse(node)}"


def no_text_decides(source: Source) -> Iterator[str]:
    """Nobody branches on the text of a failure."""
    for node in ast.walk(source.tree):
        looked_at: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            looked_at = [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            looked_at = [node.subject]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called = node.func
            if called.attr in {"startswith", "endswith", "find", "index", "count"}:
                looked_at = [called.value]
            elif called.attr in {"match", "search", "fullmatch", "findall"}:
                looked_at = [called.value, *node.args]
        if any(_is_failure_text(expression) for expression in looked_at):
            yield f"line {node.lineno}: {ast.unparse(node).partition(chr(10))[0]}"


def failures_at_home(source: Source) -> Iterator[str]:
    """A failure is declared in the `failures` of its room: a module, or several in a package."""
    if source.room == "failures" or source.inside[:1] == ["failures"]:
        return
    for node in ast.walk(source.tree):
        header = node.keywords if isinstance(node, ast.ClassDef) else []
        if {"code", "kind"} <= {keyword.arg for keyword in header}:
            yield f"line {node.lineno}: a failure is declared"


def pure_decisions(source: Source) -> Iterator[str]:
    """What decides is told the time and given the bytes; it neither asks nor prints."""
    named = {"model", "failures", "ports", "wire"}.intersection(source.inside[:1])
    is_pure = (
        source.room in {"nouns", "failures"} or ".".join([source.room, *source.inside]) in PURE
    )
    if not is_pure and not named:
        return
    for node in ast.walk(source.tree):
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if called in {"open", "print", "input"} or _ends_like(called, _CLOCKS):
            yield f"line {node.lineno}: {called}"


def threads_in_world(source: Source) -> Iterator[str]:
    """Only the writers of `world` use threads."""
    if source.room == "world":
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


def real_parts(source: Source) -> Iterator[str]:
    """Tests use small real parts and wait for news: no mocks, no sleeping."""
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
