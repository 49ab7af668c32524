"""A project and its drafts, for tests; nothing of them is left afterwards."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from holdfast.confine import Place, ProcessEntry, end, enter, places
from holdfast.workbench.draft.drafts import Drafts
from holdfast.world import IdMaker, SystemClock, SystemDisk, SystemRandomSource

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "HOME": "/nonexistent"}


def opened(base: Path, project: Path) -> Drafts:
    """The drafts of a project, as they are opened each time."""
    clock = SystemClock()
    return Drafts(
        base / "state" / "drafts",
        project,
        SystemDisk(),
        clock,
        IdMaker(clock, SystemRandomSource()),
        hidden=(str(base / "state"),),
    )


@contextmanager
def drafting(base: Path) -> Generator[Drafts]:
    """The drafts of a project with a few files; whatever still runs in them ends with this."""
    project = base / "project"
    (project / "d" / "deep").mkdir(parents=True)
    (project / "f").write_text("f")
    (project / "d" / "g").write_text("g")
    (project / "d" / "deep" / "h").write_text("h")
    (project / "link").symlink_to("f")
    try:
        yield opened(base, project)
    finally:
        for each in list(places()):
            if Path(each.holder.directory).is_relative_to(base):
                end(each.holder.directory)


def mounts_below(base: Path) -> list[bytes]:
    """What is mounted for us below a directory."""
    lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    return [line for line in lines if b" " + os.fsencode(base) in line]


def run(place: Place, script: str, *, cwd: Path) -> str:
    """What a script says in a place, which must succeed."""
    output = os.memfd_create("output")
    null = os.open(os.devnull, os.O_RDWR)
    try:
        files = {null: 0, output: 1, os.dup(output): 2}
        argv = ("/bin/sh", "-c", script)
        entry = ProcessEntry(argv, ENV, str(cwd), argv[0], files, place.namespaces)
        status = os.waitstatus_to_exitcode(os.waitpid(enter(entry), 0)[1])
        said = os.pread(output, 1_000_000, 0).decode("utf-8", "surrogateescape")
    finally:
        os.close(null)
        os.close(output)
    assert status == 0, said
    return said
