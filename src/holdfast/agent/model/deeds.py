"""What tools do: with files, and for who used them."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from holdfast.agent.model.memos import Spent
from holdfast.nouns import RelativePath


class Progress(StrEnum):
    """How far a task is."""

    OPEN = "open"
    BEGUN = "begun"
    DONE = "done"


class Task(msgspec.Struct, frozen=True):
    """One thing that the model means to do, by its number."""

    number: int
    text: str
    progress: Progress = Progress.OPEN


class Done(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of using a tool: what the model is told, and what the person is shown."""

    text: str
    is_error: bool = False
    shown: str | None = None  # where the person is shown something else
    status: int | None = None
    paths: tuple[str, ...] = ()  # that it changed
    plan: tuple[Task, ...] | None = None  # that it made: all that is to be done from now on
    spent: tuple[Spent, ...] = ()  # on models of its own


class FileSort(StrEnum):
    """What stands at a path."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"


class Sight(msgspec.Struct, frozen=True):
    """What stands at a path, how many bytes it has, and who may do what with it."""

    sort: FileSort
    size: int
    mode: int


class Put(msgspec.Struct, frozen=True):
    """A file with these bytes; `before` is what it must have now, None if it must not be there.

    A file that is there keeps its mode.
    """

    path: RelativePath
    data: bytes
    before: bytes | None
    mode: int = 0o644


class Drop(msgspec.Struct, frozen=True):
    """No file any more."""

    path: RelativePath


class Shift(msgspec.Struct, frozen=True):
    """Another name, where nothing is, for a file."""

    path: RelativePath
    target: RelativePath


FileChange = Put | Drop | Shift
"""One change of files; a later one of several finds what an earlier one made."""
