"""Counts of lines, comments and class names."""

from __future__ import annotations

from pathlib import PurePosixPath
from textwrap import dedent

from tests.shape.figures import Figures, figures_of, shared_class_names
from tests.shape.source import SRC, Source, sources

# Only ever lower this number: a new class gets a name that no other module uses.
SHARED_CLASS_NAMES_MAX = 20


def module(path: str, text: str) -> Source:
    return Source(PurePosixPath(path), dedent(text))


def test_lines_and_comments_are_counted() -> None:
    source = module(
        "rpc/peer.py",
        '''\
        """Docstring."""

        # Why, in
        # two lines.
        x = 1  # seconds
        # noqa: E501
        y = """
        # text, not a comment
        """
        ''',
    )

    assert figures_of(source) == Figures(modules=1, lines=9, code=4, comments=2)
    assert figures_of(source).comments_per_1000 == 500


def test_class_names_of_several_modules_are_found() -> None:
    modules = [
        module("rpc/a.py", "class Twice: ...\nclass Once: ...\nclass _Private: ..."),
        module("rpc/b.py", "class Twice: ...\nclass _Private: ..."),
        module("rpc/c.py", "class Outer:\n    class Once: ..."),
    ]

    assert shared_class_names(modules) == {"Twice": ["rpc/a.py", "rpc/b.py"]}


def test_no_further_class_name_is_shared() -> None:
    shared = shared_class_names(sources(SRC))

    assert len(shared) <= SHARED_CLASS_NAMES_MAX, shared
