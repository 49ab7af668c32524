"""Port for the file operations of a place, with or without a sandbox in front."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Protocol


class PlaceFiles(Protocol):
    """File operations by absolute path within a place; methods raise `OSError`."""

    def open(self, path: bytes, flags: int, *, mode: int = 0o666) -> int:
        """Open a path; symlinks resolve within the place."""
        ...

    def open_without_links(self, path: bytes, flags: int) -> int:
        """Open a path that contains no symlink; raises ELOOP otherwise."""
        ...

    def look(self, path: bytes, *, follow: bool = True) -> os.stat_result:
        """Return the stat result, of a symlink itself if not `follow`."""
        ...

    def names(self, path: bytes) -> list[bytes]:
        """Return the sorted names in a directory."""
        ...

    def resolve(self, path: bytes) -> bytes:
        """Return the path with all symlinks resolved; the file must exist."""
        ...

    def make_directory(self, path: bytes) -> None:
        """Create one directory."""
        ...

    def remove(self, path: bytes, *, is_directory: bool) -> None:
        """Remove a file or link, or an empty directory."""
        ...

    def remove_tree(self, path: bytes) -> None:
        """Remove a directory tree; a directory that becomes a symlink meanwhile is not followed."""
        ...

    def read_link(self, path: bytes) -> bytes:
        """Return the target of a symlink."""
        ...

    def parent(self, path: bytes) -> AbstractContextManager[tuple[int, bytes]]:
        """Open the parent directory for a change; yields its descriptor and the name."""
        ...

    def let_change(self, parent: int, name: bytes) -> None:
        """Raise if the name in this directory may not be created or changed."""
        ...

    def make_link(self, path: bytes, *, target: bytes) -> None:
        """Create a symlink."""
        ...
