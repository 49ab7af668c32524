"""In-memory implementations of the agent's ports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from holdfast.agent.model import FileChange, FileInfo, FileKind, FileRemoval, FileWrite
from holdfast.agent.ports import FileTree
from holdfast.nouns import RelativePath
from holdfast.workbench.failures import BatchRefused
from holdfast.world.failures import DiskMissing, PathUnfit

Result = TypeVar("Result")


class MemoryWorkspace:
    """Files in memory, without symlinks; directories exist while they contain files."""

    def __init__(self, files: Mapping[str, bytes] | None = None, *, root: str = "/project") -> None:
        self._root = root
        self._files = {RelativePath.of(path): data for path, data in (files or {}).items()}
        self._modes: dict[RelativePath, int] = {}
        self._done: set[str] = set()

    @property
    def root(self) -> str:
        return self._root

    @property
    def files(self) -> dict[str, bytes]:
        """All files by path."""
        return {str(path): data for path, data in sorted(self._files.items())}

    async def within(self, work: Callable[[FileTree], Result]) -> Result:
        return work(_MemoryFileTree(self._files, self._modes))

    async def write(self, changes: Sequence[FileChange], key: str) -> None:
        """Apply all changes or none; a repeated call with the same key is applied once."""
        key = f"{key} {tuple(changes)}"
        if key in self._done:
            return
        files, modes = dict(self._files), dict(self._modes)
        reasons = [
            f"change {number} ({change.path}): {reason}"
            for number, change in enumerate(changes, start=1)
            if (reason := _made(change, files, modes)) is not None
        ]
        if reasons or not changes:
            raise BatchRefused(reasons=tuple(reasons) or ("it is empty",))
        self._files, self._modes = files, modes
        self._done.add(key)


class MemoryToolContext:
    """Answers questions from a prepared list, and records output."""

    def __init__(self, call: str = "call", answers: Sequence[str] = ()) -> None:
        self._call, self._answers = call, list(answers)
        self.shown: list[str] = []
        self.asked: list[tuple[str, str, tuple[str, ...], bool]] = []

    @property
    def call(self) -> str:
        return self._call

    def show(self, output: str) -> None:
        self.shown.append(output)

    async def ask(
        self,
        title: str,
        detail: str = "",
        choices: tuple[str, ...] = (),
        *,
        is_permission: bool = False,
    ) -> str:
        """Return the next prepared answer; without one, the refusal."""
        self.asked.append((title, detail, choices, is_permission))
        if self._answers:
            return self._answers.pop(0)
        return choices[-1] if choices else ""


class _MemoryFileTree:
    def __init__(
        self, files: Mapping[RelativePath, bytes], modes: Mapping[RelativePath, int]
    ) -> None:
        self._files, self._modes = files, modes

    def look(self, path: RelativePath) -> FileInfo | None:
        if path in self._files:
            return FileInfo(FileKind.FILE, len(self._files[path]), self._modes.get(path, 0o644))
        if any(each.within(path) for each in self._files):
            return FileInfo(FileKind.DIRECTORY, 0, 0o755)
        return None

    def list(self, path: RelativePath | None) -> tuple[tuple[bytes, FileKind], ...]:
        if path is not None:
            found = self.look(path)
            if found is None:
                raise DiskMissing(path=str(path))
            if found.sort is not FileKind.DIRECTORY:
                raise PathUnfit(path=str(path), reason="it is no directory")
        depth = 0 if path is None else len(path.parts)
        below = [each for each in self._files if path is None or each.within(path)]
        return tuple(
            sorted(
                {
                    (
                        each.parts[depth],
                        FileKind.FILE if len(each.parts) == depth + 1 else FileKind.DIRECTORY,
                    )
                    for each in below
                }
            )
        )

    def read(self, path: RelativePath, bytes_max: int) -> bytes:
        found = self.look(path)
        if found is None:
            raise DiskMissing(path=str(path))
        if found.sort is not FileKind.FILE:
            raise PathUnfit(path=str(path), reason="it is not a file")
        return self._files[path][:bytes_max]


def _made(
    change: FileChange, files: dict[RelativePath, bytes], modes: dict[RelativePath, int]
) -> str | None:
    """Apply a change; return the reason if its precondition does not hold."""
    is_there = change.path in files
    match change:
        case FileWrite(path, data, before, mode):
            if before is None and (is_there or any(each.within(path) for each in files)):
                return "something is there already"
            if before is not None and files.get(path) != before:
                return "it is not as expected"
            if before is None:
                modes[path] = mode
            files[path] = data
        case FileRemoval(path):
            if not is_there:
                return "nothing is there"
            del files[path]
        case _:
            if not is_there or change.target in files:
                return "nothing is there, or something is where it should go"
            files[change.target] = files.pop(change.path)
            modes[change.target] = modes.pop(change.path, 0o644)
    return None
