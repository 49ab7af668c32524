"""A project, a draft of it, and ways into its place; what is Published is watched all the time."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.confine.entry import ProcessEntry, enter
from holdfast.confine.model import PlaceSpec
from holdfast.confine.place.creation import create
from holdfast.confine.place.place import Place, end, find, places

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"}
PYTHON = (sys.executable, "-I", "-S")


@dataclass(frozen=True)
class Workshop:
    """A project with a few files, and where its draft is."""

    project: Path
    draft: Path

    @property
    def spec(self) -> PlaceSpec:
        """The plain place of this draft."""
        return PlaceSpec(directory=str(self.draft), project=str(self.project))

    @contextmanager
    def place(self) -> Iterator[Place]:
        """A place of the draft, which ends with the block."""
        with create(self.spec) as place:
            try:
                yield place
            finally:
                end(self.draft)

    def run(self, place: Place, *argv: str, **more: object) -> tuple[int, str]:
        """What a command inside says, and the status that it ends with."""
        return run(place, *argv, cwd=str(more.pop("cwd", self.project)), **more)

    def sh(self, place: Place, script: str) -> str:
        """What a script inside says, which must succeed."""
        status, said = self.run(place, "/bin/sh", "-c", script)
        assert status == 0, said
        return said

    def look(self, place: Place, program: str) -> str:
        """What a Python program inside says, which must succeed."""
        status, said = self.run(place, *PYTHON, "-c", program)
        assert status == 0, said
        return said


def run(
    place: Place,
    *argv: str,
    cwd: str,
    files: Mapping[int, int] | None = None,
    env: Mapping[str, str] = ENV,
) -> tuple[int, str]:
    """Run a command in a place; what it says comes from a file, so that it never has to wait."""
    output = os.memfd_create("output")
    null = os.open(os.devnull, os.O_RDWR)
    try:
        given = {null: 0, output: 1, **(files or {})}
        entry = ProcessEntry(
            argv, env, cwd, argv[0], {**given, os.dup(output): 2}, place.namespaces
        )
        status = os.waitstatus_to_exitcode(os.waitpid(enter(entry), 0)[1])
        return status, os.pread(output, 10_000_000, 0).decode("utf-8", "surrogateescape")
    finally:
        os.close(null)
        os.close(output)


def fingerprint(directory: Path) -> str:
    """What tells any change below a directory: names, kinds, modes, times of files, contents."""
    digest = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        found = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        stamp = (found.st_mode, found.st_uid, found.st_mtime_ns, found.st_nlink, found.st_size)
        digest.update(os.fsencode(path) + repr(stamp).encode() + content)
    return digest.hexdigest()


@contextmanager
def opened(base: Path) -> Iterator[Workshop]:
    """A workshop in which nothing Published may change, and of which nothing may be left."""
    project, draft = base / "project", base / "draft"
    (project / "below" / "deep").mkdir(parents=True)
    (project / "old").write_text("old")
    (project / "below" / "other").write_text("other")
    (project / "below" / "deep" / "deepest").write_text("deepest")
    (project / "link").symlink_to("old")
    before = fingerprint(project)
    try:
        yield Workshop(project, draft)
        assert fingerprint(project) == before, "Published was changed"
        assert find(draft) is None
        mounts = Path("/proc/self/mountinfo").read_bytes()
        assert not [each for each in (project, draft) if b" %b " % os.fsencode(each) in mounts]
        assert not [each for each in places() if each.holder.directory == str(draft)]
    finally:
        end(draft)


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    """A workshop of a test's own."""
    with opened(tmp_path) as workshop:
        yield workshop
