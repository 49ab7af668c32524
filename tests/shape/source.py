"""A module as the shape rules see it: its text, syntax tree, comments and path."""

from __future__ import annotations

import ast
import io
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
SRC, TESTS = ROOT / "src" / "holdfast", ROOT / "tests"

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _pure_modules() -> frozenset[str]:
    """The modules that the import contract lists as pure: `rpc.peer`."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = config["tool"]["importlinter"]["contracts"]
    (listed,) = [each["source_modules"] for each in contracts if each["name"].startswith("Pure")]
    return frozenset(name.removeprefix("holdfast.") for name in listed if "*" not in name)


PURE = _pure_modules()
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True)
class Source:
    """A module below `holdfast`, named by its path there: `rpc/peer.py`."""

    path: PurePosixPath
    text: str

    @property
    def package(self) -> str:
        """The top-level package: `rpc`; empty for `holdfast` itself."""
        return self.path.parts[0] if len(self.path.parts) > 1 else ""

    @property
    def inside(self) -> list[str]:
        """The path below the package: `["transports", "child"]`; empty for `__init__.py`."""
        parts = list(self.path.with_suffix("").parts[1:])
        return parts[:-1] if parts[-1:] == ["__init__"] else parts

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def comments(self) -> dict[int, str]:
        """Comments by line number."""
        return {
            token.start[0]: token.string for token in self._tokens if token.type == tokenize.COMMENT
        }

    @cached_property
    def code_lines(self) -> set[int]:
        """Numbers of the lines with code: without blank lines, comments and docstrings."""
        code = {
            line
            for token in self._tokens
            if token.type not in _LAYOUT
            for line in range(token.start[0], token.end[0] + 1)
        }
        return code - {line for node in self._docstrings() for line in span(node)}

    @cached_property
    def _tokens(self) -> list[tokenize.TokenInfo]:
        return list(tokenize.generate_tokens(io.StringIO(self.text).readline))

    def _docstrings(self) -> Iterator[ast.AST]:
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.Module, ast.ClassDef, *Function.__args__)) and node.body:
                first = node.body[0]
                if ast.get_docstring(node, clean=False) is not None:
                    yield first

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The ancestors of a node, innermost first."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def statement(self, node: ast.AST) -> range:
        """The lines of the statement around a node; of a compound statement, only its header."""
        found = node if isinstance(node, ast.stmt) else None
        for outer in self.above(node):
            if found is None and isinstance(outer, ast.stmt):
                found = outer
        assert found is not None
        body = getattr(found, "body", None)
        return range(found.lineno, body[0].lineno) if body else span(found)


def span(node: ast.AST) -> range:
    """The lines of a node, first to last."""
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)  # type: ignore[attr-defined]  # statements and expressions have lines


def sources(root: Path, pattern: str = "*.py") -> list[Source]:
    """Every module below a directory."""
    return [
        Source(PurePosixPath(path.relative_to(root).as_posix()), path.read_text(encoding="utf-8"))
        for path in sorted(root.rglob(pattern))
    ]
