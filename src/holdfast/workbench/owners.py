"""Say whose something new becomes: as what it replaces, else as the directory it comes into."""

from __future__ import annotations

import os
import stat
from typing import Final

from holdfast.nouns import RelativePath
from holdfast.workbench.looking import ABSENT, opened

Owner = tuple[int, int]
"""A user and a group; -1 is whoever makes it."""

_WHOEVER: Final = (-1, -1)


class Owners:
    """Who owns what below a directory, as far as somebody has looked."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._seen: dict[RelativePath, os.stat_result] = {}
        self._around: dict[RelativePath | None, os.stat_result | None] = {}

    def note(self, path: RelativePath, status: os.stat_result) -> None:
        """Take note of what stands at a path."""
        self._seen[path] = status

    def of(self, path: RelativePath) -> Owner:
        """Whose something new at a path becomes; raise OSError if nobody can tell."""
        replaced = self._seen.get(path)
        if replaced is not None:
            return replaced.st_uid, replaced.st_gid
        parent = path.parent
        if parent not in self._around:
            self._around[parent] = self._status(parent)
        around = self._around[parent]
        if around is None:  # it is new, too
            return self.of(parent) if parent is not None else _WHOEVER
        if os.geteuid() == 0:
            return around.st_uid, around.st_gid
        return -1, around.st_gid if around.st_mode & stat.S_ISGID else -1

    def _status(self, path: RelativePath | None) -> os.stat_result | None:
        try:
            with opened(self._root, path) as directory:
                return os.fstat(directory)
        except OSError as error:
            if error.errno in ABSENT:
                return None
            raise
