"""The files of a draft: read as they are now, changed by workbench batches.

Processes in the draft change files, too, and the person changes the project. So every access opens
the draft again. It runs in a writer thread, because opening blocks the event loop for too long.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TypeVar

from holdfast.agent.model import FileChange, FileInfo, FileKind, FileRemoval, FileWrite
from holdfast.agent.ports import FileTree
from holdfast.nouns import RelativePath
from holdfast.workbench import (
    DeletePath,
    FileStep,
    NewContent,
    NewFile,
    Rename,
    Workbench,
    apply,
    enter_draft,
)
from holdfast.world import OpenMode, Root, WriterThread
from holdfast.world.failures import DiskMissing, PathUnfit

Result = TypeVar("Result")


class DraftWorkspace:
    """The agent's workspace in a draft of a project."""

    def __init__(
        self,
        workbench: Workbench,
        draft: str,
        root: str,
        thread: WriterThread,
        *,
        session: str = "",
    ) -> None:
        """Use a draft that processes see at `root`; blocking work runs in `thread`.

        `session` keeps our batch keys apart from those of other sessions in the same draft.
        """
        self._workbench, self._draft = workbench, draft
        self._root, self._thread, self._session = root, thread, session

    @property
    def root(self) -> str:
        return self._root

    async def within(self, work: Callable[[FileTree], Result]) -> Result:
        """Run a function on the current files in the writer thread."""

        def looked() -> Result:
            with enter_draft(self._workbench, self._draft) as entered:
                return work(RootTree(Root(entered.view.root, name=self._root)))

        return await self._apart(looked)

    async def write(self, changes: Sequence[FileChange], key: str) -> None:
        """Apply all changes or none; a repeated call with the same key is applied once."""
        steps = [_step(change) for change in changes]
        whole = f"{key} {self._mark(changes)}"
        await self._apart(lambda: apply(self._workbench, self._draft, steps, whole))

    async def revision(self) -> int:
        """Return the number of the newest revision; opening the draft records pending changes."""

        def newest() -> int:
            with enter_draft(self._workbench, self._draft) as entered:
                revisions = entered.draft.revisions
            return revisions[-1].number if revisions else 0

        return await self._apart(newest)

    def _mark(self, changes: Sequence[FileChange]) -> str:
        """Return a hash of the changes, since call ids come from models and are not unique."""
        made = sha256(f"{self._session} {self._draft}".encode())
        for change in changes:
            made.update(repr(change).encode())
        return made.hexdigest()[:12]

    async def _apart(self, work: Callable[[], Result]) -> Result:
        results: list[Result] = []

        def done() -> int:
            results.append(work())
            return 0

        await self._thread.run(done)
        return results[0]


class RootTree:
    """Read access beneath a directory descriptor; symlinks cannot leave it."""

    def __init__(self, root: Root) -> None:
        self._root = root

    def look(self, path: RelativePath) -> FileInfo | None:
        try:
            found = self._root.stat(path)
        except (DiskMissing, PathUnfit):  # PathUnfit: a parent is a file
            return None
        return FileInfo(_sort(found), found.st_size, stat.S_IMODE(found.st_mode))

    def list(self, path: RelativePath | None) -> tuple[tuple[bytes, FileKind], ...]:
        return tuple(
            (entry.name, FileKind(entry.sort.value))
            for entry in self._root.list(path, follow=path is not None)
        )

    def read(self, path: RelativePath, bytes_max: int) -> bytes:
        data = bytearray()
        with self._root.open(path, OpenMode.READ, follow=True) as file:
            while len(data) < bytes_max and (piece := file.read(bytes_max - len(data))):
                data += piece
        return bytes(data)


def _step(change: FileChange) -> FileStep:
    match change:
        case FileWrite(path, data, None, mode):
            return NewFile(path, data, mode)
        case FileWrite(path, data, before, _):
            return NewContent(path, data, expected=before)
        case FileRemoval(path):
            return DeletePath(path)
        case _:
            return Rename(change.path, change.target)


def _sort(found: os.stat_result) -> FileKind:
    if stat.S_ISREG(found.st_mode):
        return FileKind.FILE
    if stat.S_ISDIR(found.st_mode):
        return FileKind.DIRECTORY
    return FileKind.LINK if stat.S_ISLNK(found.st_mode) else FileKind.OTHER
