"""Mutations change what a test can notice, and leave a module that compiles."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from tests.mutants.mutations import mutations
from tests.mutants.sample import MODULES, least
from tests.shape.source import SRC

EXAMPLE = dedent('''\
    """A module."""
    from typing import TYPE_CHECKING

    if TYPE_CHECKING:
        import os


    def f(words: list[str]) -> int:
        """Count them."""
        total = 0
        for word in words:
            if not word: continue
            total += len(word) if "é" in word else 1
        assert total >= 0
        return total
    ''')


def test_each_noticeable_statement_and_condition_is_mutated_once() -> None:
    found = [(m.line, m.kind, m.code) for m in mutations("a.py", EXAMPLE)]

    assert found == [
        (12, "invert", "not word"),
        (12, "delete", "continue"),
        (13, "delete", "total += len(word) if 'é' in word else 1"),
        (13, "invert", "'é' in word"),
        (15, "delete", "return total"),
    ]


def test_a_mutation_replaces_exactly_what_it_names() -> None:
    lines = [m.applied(EXAMPLE).splitlines()[m.line - 1] for m in mutations("a.py", EXAMPLE)]

    assert lines == [
        "        if (not (not word)): continue",
        "        if not word: pass",
        "        pass",
        '        total += len(word) if (not ("é" in word)) else 1',
        "    pass",
    ]


def test_what_goes_where_the_code_goes_anyway_is_not_deleted() -> None:
    code = dedent("""\
        def f(words):
            for word in words:
                if not word:
                    continue
            if words:
                return
            match words:
                case []:
                    return 1
                case _:
                    with words:
                        return None
        """)

    assert [(m.line, m.code) for m in mutations("a.py", code) if m.kind == "delete"] == [
        (6, "return"),
        (9, "return 1"),
    ]


@pytest.mark.parametrize("path", MODULES)
def test_every_mutation_of_the_product_compiles_and_differs(path: str) -> None:
    source = (SRC / path).read_text(encoding="utf-8")

    for mutation in mutations(path, source):
        changed = mutation.applied(source)
        assert changed != source
        ast.parse(changed)


def test_a_change_of_the_code_leaves_the_other_chosen_mutations_as_they_were() -> None:
    before = least(mutations("a.py", EXAMPLE), seed=1, count=3)
    after = least(mutations("a.py", EXAMPLE.replace("total = 0", "total = 0\n\n")), seed=1, count=3)

    assert [m.what for m in before] == [m.what for m in after]
    assert before != after
    assert before != least(mutations("a.py", EXAMPLE), seed=2, count=3)
