"""What can be done with the files of a place, whatever stands before them."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Protocol


class PlaceFiles(Protocol):
    """Files that are reached by absolute paths; each method raises `OSError` as the system does."""

    def open(self, path: bytes, flags: int, *, mode: int = 0o666) -> int:
        """Open an absolute path; links lead where they lead in this place."""
        ...

    def open_without_links(self, path: bytes, flags: int) -> int:
        """Open an absolute path if no part of it is a link; else raise ELOOP."""
        ...

    def look(self, path: bytes, *, follow: bool = True) -> os.stat_result:
        """Say what is there: on request the link itself."""
        ...

    def names(self, path: bytes) -> list[bytes]:
        """The names in a directory, sorted."""
        ...

    def resolve(self, path: bytes) -> bytes:
        """The path without links, of something that exists."""
        ...

    def make_directory(self, path: bytes) -> None:
        """Make one new directory."""
        ...

    def remove(self, path: bytes, *, is_directory: bool) -> None:
        """Remove a file or link, or an empty directory."""
        ...

    def remove_tree(self, path: bytes) -> None:
        """Remove a directory with all below it; what becomes a link meanwhile is not followed."""
        ...

    def read_link(self, path: bytes) -> bytes:
        """The target of a link, as it is written."""
        ...

    def parent(self, path: bytes) -> AbstractContextManager[tuple[int, bytes]]:
        """The directory that something is in, to be changed there, and its name."""
        ...

    def let_change(self, parent: int, name: bytes) -> None:
        """Raise if something of this name in a directory may not be made or changed."""
        ...

    def make_link(self, path: bytes, *, target: bytes) -> None:
        """Make a link."""
        ...
