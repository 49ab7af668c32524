"""A workbench over a small project, for tests of what a person does with it."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.confine import end, places
from holdfast.nouns import RelativePath
from holdfast.workbench import DraftMode, Ports, Workbench, enter_draft, open_draft, revise
from holdfast.world import SystemDisk
from tests.workbench.drafting_table import ENV, run

LINES = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"
PREPARED, COMMITTED = 1, 2  # which marker is the one
MARKERS = {"marker.json", "marker.committed.json"}
_KILLED = 77
DraftState = tuple[str, int, bytes, tuple[tuple[str, bytes], ...]]
"""What stands at a path: its sort, its mode, its content or target, its attributes."""


def at(spelling: str | bytes) -> RelativePath:
    """A path below the project."""
    return RelativePath.of(spelling)


@dataclass(frozen=True, slots=True)
class Bench:
    """A project, its workbench, and how its drafts are kept apart."""

    base: Path
    mode: DraftMode

    @property
    def project(self) -> Path:
        """The directory of the person."""
        return self.base / "project"

    @property
    def workbench(self) -> Workbench:
        """The workbench, as every command opens it anew."""
        return Workbench.at(self.project, self.base / "state")

    def draft(self) -> str:
        """Make a draft."""
        return open_draft(self.workbench, self.mode).id

    def run(self, script: str, draft: str | None = None) -> str:
        """What a command says in a draft; it leaves a revision."""
        with enter_draft(self.workbench, draft) as inside:
            if inside.view.place is not None:
                said = run(inside.view.place, script, cwd=inside.directory)
            else:
                said = subprocess.run(
                    ["/bin/sh", "-c", script],
                    cwd=inside.directory,
                    env=ENV,
                    check=True,
                    capture_output=True,
                    text=True,
                    timeout=60,
                ).stdout
        revise(self.workbench, inside.draft.id, script)
        return said

    def sight(self) -> dict[bytes, DraftState]:
        """All that is in the project."""
        return sight(self.project)


@contextmanager
def bench_at(base: Path, mode: DraftMode) -> Generator[Bench]:
    """A workbench; whatever runs in its drafts ends with this."""
    made = Bench(base, mode)
    made.project.mkdir(parents=True)
    (made.project / "a").write_bytes(LINES)
    (made.project / "d").mkdir()
    (made.project / "d" / "b").write_bytes(b"b\n")
    (made.project / ".git").mkdir()
    (made.project / ".git" / "HEAD").write_bytes(b"ref: refs/heads/main\n")
    try:
        yield made
    finally:
        for each in list(places()):
            if Path(each.holder.directory).is_relative_to(base):
                end(each.holder.directory)


def sight(root: Path) -> dict[bytes, DraftState]:
    """All that is below a directory, as a person could tell it apart."""
    found: dict[bytes, DraftState] = {}
    for directory, names, files in os.walk(os.fsencode(root)):
        for name in [*names, *files]:
            path = os.path.join(directory, name)
            found[os.path.relpath(path, os.fsencode(root))] = _standing(path)
    return found


def _standing(path: bytes) -> DraftState:
    status = os.lstat(path)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return "link", 0, os.readlink(path), ()
    xattrs = tuple(
        (name, os.getxattr(path, name))
        for name in sorted(os.listxattr(path))
        if name.startswith("user.") and not name.startswith("user.overlay")
    )
    if stat.S_ISREG(status.st_mode):
        return "file", mode, Path(os.fsdecode(path)).read_bytes(), xattrs
    return ("directory" if stat.S_ISDIR(status.st_mode) else "special"), mode, b"", xattrs


class DisturbedDisk(SystemDisk):
    """A disk on which something happens right before or right after a marker gets its name."""

    def __init__(self, markers: int, happens: Callable[[], object], *, is_before: bool) -> None:
        super().__init__()
        self._left = markers
        self._happens = happens
        self._is_before = is_before

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name."""
        is_it = new.name in MARKERS and self._counted() == 0
        if is_it and self._is_before:
            self._happens()
        super().rename(old, new)
        if is_it and not self._is_before:
            self._happens()

    def _counted(self) -> int:
        self._left -= 1
        return self._left


def killed(
    bench: Bench, markers: int, deed: Callable[[Workbench], object], *, is_before: bool
) -> bool:
    """Do something in another process that dies at a marker; say whether it did."""
    child = os.fork()
    if not child:
        status = 1
        try:
            deed(disturbed(bench, markers, lambda: os._exit(_KILLED), is_before=is_before))
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in {0, _KILLED}
    return status == _KILLED


def disturbed(
    bench: Bench, markers: int, happens: Callable[[], object], *, is_before: bool
) -> Workbench:
    """The workbench, with something that happens when a marker is written."""
    ports = Ports(disk=DisturbedDisk(markers, happens, is_before=is_before))
    return Workbench.at(bench.project, bench.base / "state", ports=ports)
