"""Mutations of a module: delete a statement, or invert a condition.

Only changes that a test can notice are made. Left out: docstrings, assertions, declarations,
`if TYPE_CHECKING`, assignments to local names (without one the next line raises
`UnboundLocalError`, which any test that runs the line notices), and a `return`, `return None` or
`continue` after which nothing comes anyway.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, order=True)
class Mutation:
    """One change of one module."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    kind: str  # "delete" or "invert"
    code: str  # what stands there, on one line

    @property
    def what(self) -> tuple[str, str, str]:
        """What is changed, wherever in the module it stands."""
        return (self.path, self.kind, self.code)

    def applied(self, source: str) -> str:
        """The module's text with this change made. Columns count bytes of UTF-8, as in `ast`."""
        lines = source.encode().splitlines(keepends=True)
        before = b"".join(lines[: self.line - 1]) + lines[self.line - 1][: self.column]
        after = lines[self.end_line - 1][self.end_column :] + b"".join(lines[self.end_line :])
        middle = b"".join(lines)[len(before) : len(b"".join(lines)) - len(after)]
        changed = b"pass" if self.kind == "delete" else b"(not (" + middle + b"))"
        return (before + changed + after).decode()


def mutations(path: str, source: str) -> Iterator[Mutation]:
    """Every mutation of a module, in the order of its lines."""
    tree = ast.parse(source)
    found = {
        Mutation(
            path,
            node.lineno,
            node.col_offset,
            node.end_lineno or node.lineno,
            node.end_col_offset or node.col_offset,
            kind,
            " ".join(ast.unparse(node).split())[:100],
        )
        for kind, node in (*_deletions(tree), *_conditions(tree))
    }
    yield from sorted(found)


def _deletions(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    for function in ast.walk(tree):
        if not isinstance(function, _FUNCTIONS):
            continue
        needless = {id(each) for each in _needless(function)}
        statements = (node for node in ast.walk(function) if isinstance(node, ast.stmt))
        for statement in statements:
            if id(statement) not in needless and _is_noticeable(statement):
                yield "delete", statement


def _needless(function: ast.AST) -> Iterator[ast.stmt]:
    """Statements that only go where the code goes without them."""
    for node in ast.walk(function):
        if isinstance(node, _FUNCTIONS):
            for last in _last(node.body):
                if isinstance(last, ast.Return) and _is_none(last.value):
                    yield last
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            yield from (last for last in _last(node.body) if isinstance(last, ast.Continue))


def _last(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """What may run last of some statements."""
    match body[-1] if body else None:
        case ast.If(body=then, orelse=otherwise):
            yield from (*_last(then), *_last(otherwise))
        case ast.With(body=inner) | ast.AsyncWith(body=inner):
            yield from _last(inner)
        case ast.Match(cases=cases):
            for case in cases:
                yield from _last(case.body)
        case None:
            pass
        case statement:
            yield statement


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _is_noticeable(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Constant()):  # a docstring, or `...`
            return False
        case ast.Assign(targets=targets):
            return all(isinstance(target, ast.Attribute | ast.Subscript) for target in targets)
        case ast.AnnAssign(target=target, value=value):
            return value is not None and not isinstance(target, ast.Name)
        case ast.Expr() | ast.AugAssign() | ast.Return() | ast.Raise() | ast.Delete():
            return True
        case ast.Continue() | ast.Break():
            return True
        case _:
            return False


def _conditions(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        tests: list[ast.expr] = []
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            tests = [node.test]
        elif isinstance(node, ast.comprehension):
            tests = node.ifs
        for test in tests:
            if not _is_constant(test):
                yield "invert", test


def _is_constant(test: ast.expr) -> bool:
    """`while True`, and `if TYPE_CHECKING`, which never runs."""
    return isinstance(test, ast.Constant) or ast.unparse(test) == "TYPE_CHECKING"
