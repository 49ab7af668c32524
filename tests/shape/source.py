"""One module as the rules of the shape see it: its text, its tree and its place."""

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
    def room(self) -> str:
        """The room it stands in; nothing for the package itself."""
        return self.path.parts[0] if len(self.path.parts) > 1 else ""

    @property
    def inside(self) -> list[str]:
        """The way from the room to the module: `["core", "peer"]`; nothing for the face."""
        way = list(self.path.with_suffix("").parts[1:])
        return way[:-1] if way[-1:] == ["__init__"] else way

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def comments(self) -> dict[int, str]:
        """The comment of each line that has one."""
        return {
            token.start[0]: token.string for token in self._tokens if token.type == tokenize.COMMENT
        }

    @cached_property
    def code_lines(self) -> set[int]:
        """The lines that hold code: no blank ones, no comments, no docstrings."""
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
        """What a node stands in, from the inside out."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def statement(self, node: ast.AST) -> range:
        """The lines of the statement around a node; of a block, only its head."""
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
