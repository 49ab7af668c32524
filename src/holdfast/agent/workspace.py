"""The files of a draft: seen as they are now, and changed only as batches of the workbench.

Whoever runs in the draft changes it, too, and so does the person in the project. So it is opened
anew for every look, in a thread of its own: that takes time, and the event loop has none.
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
from holdfast.world import Opening, Root, WriterThread
from holdfast.world.failures import DiskMissing, PathUnfit

Result = TypeVar("Result")


class DraftWorkspace:
    """A draft of a project as the place of an agent's work."""

    def __init__(
        self,
        workbench: Workbench,
        draft: str,
        root: str,
        thread: WriterThread,
        *,
        session: str = "",
    ) -> None:
        """Work on this draft, which processes see at `root`; what blocks is done by the thread.

        `session` tells our keys apart from those of others who work on the same draft.
        """
        self._workbench, self._draft = workbench, draft
        self._root, self._thread, self._session = root, thread, session

    @property
    def root(self) -> str:
        """Where the project is for the processes of the agent."""
        return self._root

    async def within(self, work: Callable[[FileTree], Result]) -> Result:
        """What comes of looking at the files as they are now, whoever has changed them."""

        def looked() -> Result:
            with enter_draft(self._workbench, self._draft) as entered:
                return work(RootTree(Root(entered.view.root, name=self._root)))

        return await self._apart(looked)

    async def write(self, changes: Sequence[FileChange], key: str) -> None:
        """Make all of the changes or none; the same said again with the same key is done once."""
        steps = [_step(change) for change in changes]
        whole = f"{key} {self._mark(changes)}"
        await self._apart(lambda: apply(self._workbench, self._draft, steps, whole))

    async def revision(self) -> int:
        """The number of the newest revision; whatever has changed since leaves one."""

        def newest() -> int:
            with enter_draft(self._workbench, self._draft) as entered:
                revisions = entered.draft.revisions
            return revisions[-1].number if revisions else 0

        return await self._apart(newest)

    def _mark(self, changes: Sequence[FileChange]) -> str:
        """What tells these changes apart from others of the same key, which models choose."""
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
    """What is below a directory that nothing leads out of."""

    def __init__(self, root: Root) -> None:
        self._root = root

    def look(self, path: RelativePath) -> FileInfo | None:
        """What stands at a path, of a link the link itself; None if nothing does."""
        try:
            found = self._root.stat(path)
        except (DiskMissing, PathUnfit):  # on the way to it there may be a file
            return None
        return FileInfo(_sort(found), found.st_size, stat.S_IMODE(found.st_mode))

    def list(self, path: RelativePath | None) -> tuple[tuple[bytes, FileKind], ...]:
        """The names in a directory and what they are, sorted; None is the project itself."""
        return tuple(
            (entry.name, FileKind(entry.sort.value))
            for entry in self._root.list(path, follow=path is not None)
        )

    def read(self, path: RelativePath, bytes_max: int) -> bytes:
        """The first bytes of a file; a link to one inside the project is followed."""
        data = bytearray()
        with self._root.open(path, Opening.READ, follow=True) as file:
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
