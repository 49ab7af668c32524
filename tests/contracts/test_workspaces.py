"""All workspaces do what every workspace must do."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.agent.memory import MemoryWorkspace
from holdfast.agent.model import FileChange, FileInfo, FileKind, FileRemoval, FileRename, FileWrite
from holdfast.agent.ports import FileTree, Workspace
from holdfast.agent.workspace import DraftWorkspace
from holdfast.nouns import RelativePath
from holdfast.workbench.failures import BatchRefused
from holdfast.workbench.model import DraftMode
from holdfast.world import WriterThread
from holdfast.world.failures import DiskMissing, PathUnfit
from tests.workbench.benches import Bench, bench_at

pytestmark = pytest.mark.anyio

FILES = {"a": b"1\n2\n", "d/b": b"b\n", "d/e/c": b""}
"""What is in the workspace when a test begins."""


def at(spelling: str) -> RelativePath:
    """A path below the project."""
    return RelativePath.of(spelling)


@contextmanager
def filled(base: Path, mode: DraftMode) -> Generator[Bench]:
    """A workbench over a project that has the files of the contract."""
    with bench_at(base / "bench", mode) as made:
        for path, data in FILES.items():
            (made.project / path).parent.mkdir(parents=True, exist_ok=True)
            (made.project / path).write_bytes(data)
        yield made


class WorkspaceContract:
    """Files are seen as they are, and changed all at once or not at all."""

    @pytest.fixture
    def workspace(self) -> Workspace:
        """A workspace with `FILES` in it."""
        raise NotImplementedError

    async def test_files_are_seen(self, workspace: Workspace) -> None:
        seen = await workspace.within(
            lambda tree: (
                tree.read(at("a"), 100),
                tree.read(at("a"), 3),
                tree.list(at("d")),
                tree.look(at("a")),
                tree.look(at("x")),
                tree.look(at("a/x")),
            )
        )

        entries = ((b"b", FileKind.FILE), (b"e", FileKind.DIRECTORY))
        file = FileInfo(FileKind.FILE, 4, 0o644)
        assert seen == (b"1\n2\n", b"1\n2", entries, file, None, None)
        top = await workspace.within(lambda tree: tree.list(None))
        assert {(b"a", FileKind.FILE), (b"d", FileKind.DIRECTORY)} <= set(top)

    async def test_what_is_not_there_is_missed(self, workspace: Workspace) -> None:
        with pytest.raises(DiskMissing):
            await workspace.within(lambda tree: tree.read(at("x"), 1))
        with pytest.raises(DiskMissing):
            await workspace.within(lambda tree: tree.list(at("x")))

    async def test_what_is_something_else_is_refused(self, workspace: Workspace) -> None:
        with pytest.raises(PathUnfit):
            await workspace.within(lambda tree: tree.read(at("d"), 1))
        with pytest.raises(PathUnfit):
            await workspace.within(lambda tree: tree.list(at("a")))

    async def test_changes_are_made_together(self, workspace: Workspace) -> None:
        changes: list[FileChange] = [
            FileWrite(at("a"), b"new\n", b"1\n2\n"),
            FileWrite(at("n/f"), b"f", None, 0o755),
            FileRename(at("d/b"), at("n/b")),
            FileRemoval(at("d/e/c")),
        ]
        await workspace.write(changes, "one")

        def seen(path: str) -> Callable[[FileTree], FileInfo | None]:
            return lambda tree: tree.look(at(path))

        assert await workspace.within(lambda tree: tree.read(at("a"), 9)) == b"new\n"
        assert await workspace.within(lambda tree: tree.read(at("n/b"), 9)) == b"b\n"
        assert await workspace.within(seen("n/f")) == FileInfo(FileKind.FILE, 1, 0o755)
        assert [await workspace.within(seen(path)) for path in ("d/b", "d/e/c")] == [None, None]

    @pytest.mark.promise("W2")
    async def test_one_that_does_not_fit_stops_all(self, workspace: Workspace) -> None:
        wrong: list[FileChange] = [
            FileWrite(at("a"), b"x", b"other"),
            FileWrite(at("a"), b"x", None),
            FileRemoval(at("x")),
            FileRename(at("x"), at("y")),
            FileRename(at("d/b"), at("a")),
        ]
        for each in wrong:
            with pytest.raises(BatchRefused):
                await workspace.write([FileWrite(at("n"), b"n", None), each], repr(each))

        assert await workspace.within(lambda tree: tree.look(at("n"))) is None

    @pytest.mark.promise("W2")
    async def test_the_same_is_done_once(self, workspace: Workspace) -> None:
        await workspace.write([FileWrite(at("n"), b"1", None)], "one")
        await workspace.write([FileWrite(at("n"), b"2", b"1")], "two")
        await workspace.write([FileWrite(at("n"), b"1", None)], "one")
        assert await workspace.within(lambda tree: tree.read(at("n"), 9)) == b"2"

        await workspace.write([FileWrite(at("n"), b"3", b"2")], "one")
        assert await workspace.within(lambda tree: tree.read(at("n"), 9)) == b"3"


class TestDraft(WorkspaceContract):
    """The draft of a project."""

    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Iterator[DraftWorkspace]:
        with filled(tmp_path, DraftMode.OVERLAY) as bench, WriterThread() as thread:
            yield DraftWorkspace(bench.workbench, bench.draft(), str(bench.project), thread)


class TestMemory(WorkspaceContract):
    """Files that are only in memory."""

    @pytest.fixture
    def workspace(self) -> MemoryWorkspace:
        return MemoryWorkspace(FILES)
