"""What is started is given what was ordered, is what it should be, and inherits nothing else."""

from __future__ import annotations

import errno
import os
import resource
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.confine.entry import ProcessEntry, enter
from tests.confine.workshop import ENV, PYTHON, Workshop
from tests.parts.family import our_children

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces"),
    pytest.mark.timeout(method="signal"),  # no thread beside us: we fork
]


def said(entry: ProcessEntry) -> tuple[int, str]:
    """What it says, and how it ends."""
    output, null = os.memfd_create("output"), os.open(os.devnull, os.O_RDWR)
    try:
        files = {null: 0, output: 1, os.dup(output): 2, **entry.files}
        pid = enter(replace(entry, files=files))
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), os.pread(output, 10**6, 0).decode()
    finally:
        os.close(output)
        os.close(null)


def order(*argv: str, cwd: str = "/", namespaces: Sequence[int] = ()) -> ProcessEntry:
    return ProcessEntry(argv, ENV, cwd, argv[0], namespaces=namespaces)


@pytest.fixture(params=["host", "place"])
def namespaces(request: pytest.FixtureRequest) -> object:
    """On the machine itself, and in a place."""
    if request.param == "host":
        yield ()
        return
    workshop: Workshop = request.getfixturevalue("workshop")
    with workshop.place() as place:
        yield place.namespaces


def test_words_directory_and_environment_are_as_ordered(
    namespaces: Sequence[int], tmp_path: Path
) -> None:
    entry = order("/bin/sh", "-c", 'pwd; echo "$0 $1"; env | sort', "a b", "c", cwd=str(tmp_path))

    status, text = said(replace(entry, namespaces=namespaces, env={"ONE": "1", **ENV}))

    assert status == 0
    lines = [line for line in text.splitlines() if not line.startswith(("_=", "PWD="))]
    assert lines == [str(tmp_path), "a b c", "LC_ALL=C", "ONE=1", f"PATH={ENV['PATH']}"]


def test_it_leads_a_session_and_no_signal_is_ignored_or_held_back(
    namespaces: Sequence[int],
) -> None:
    look = """
import os
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status"))
print(os.getsid(0) == os.getpid(), int(status["SigBlk"], 16), int(status["SigIgn"], 16))
print(int(status["NoNewPrivs"]), int(status["CapBnd"], 16))
"""
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    try:
        entry = order(*PYTHON, "-c", look)
        status, text = said(replace(entry, namespaces=namespaces))
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR2})
        signal.signal(signal.SIGUSR1, before)

    ignored = 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)  # by Python itself
    bounding = 0 if namespaces or os.geteuid() == 0 else int(_own("CapBnd"), 16)
    assert (status, text) == (0, f"True 0 {ignored}\n1 {bounding}\n")


def _own(name: str) -> str:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(name))


def test_descriptors_may_change_places_and_all_others_are_closed(
    namespaces: Sequence[int],
) -> None:
    files = [os.memfd_create(name) for name in "abc"]
    for descriptor, word in zip(files, "abc", strict=True):
        os.write(descriptor, word.encode())
        os.set_inheritable(descriptor, True)
    high = os.dup2(files[2], 500)  # inheritable, and above everything that is used on the way
    look = f"""
import os
print(*sorted(int(name) for name in os.listdir("/proc/self/fd")))
print(*(os.pread(number, 1, 0).decode() for number in {files[:2]}))
"""
    # The first two under each other's number, the third not at all.
    swapped = {files[0]: files[1], files[1]: files[0]}
    entry = order(*PYTHON, "-c", look)
    status, text = said(replace(entry, namespaces=namespaces, files=swapped))
    for descriptor in (*files, high):
        os.close(descriptor)

    listing = 3  # what reads the directory
    assert (status, text) == (0, f"0 1 2 {listing} {files[0]} {files[1]}\nb a\n")


def test_limits_are_taken_and_never_raised(namespaces: Sequence[int]) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    entry = order("/bin/sh", "-c", "ulimit -f; ulimit -n")
    limits = ((resource.RLIMIT_FSIZE, 512 * 7), (resource.RLIMIT_NOFILE, 2**40))

    status, text = said(replace(entry, namespaces=namespaces, limits=limits))

    assert (status, text) == (0, f"7\n{hard}\n")


@pytest.mark.parametrize(
    ("change", "number", "name"),
    [
        ({"program": "/bin/nothing"}, errno.ENOENT, "/bin/nothing"),
        ({"program": "/etc/passwd"}, errno.EACCES, "/etc/passwd"),
        ({"cwd": "/nowhere"}, errno.ENOENT, "/nowhere"),
        ({"cwd": "/etc/passwd"}, errno.ENOTDIR, "/etc/passwd"),
        ({"groups": (10_000,)}, errno.EBADF, None),
    ],
)
def test_what_cannot_be_started_is_named_and_leaves_no_child_and_no_descriptor(
    namespaces: Sequence[int], change: dict[str, object], number: int, name: str | None
) -> None:
    descriptors, children = set(os.listdir("/proc/self/fd")), our_children()
    with pytest.raises(OSError) as raised:
        enter(replace(order("/bin/true", namespaces=namespaces), **change))

    assert (raised.value.errno, raised.value.filename) == (number, name)
    assert set(os.listdir("/proc/self/fd")) <= descriptors
    assert our_children() <= children


def test_it_dies_with_the_one_who_started_it(namespaces: Sequence[int]) -> None:
    hears, tells = os.pipe()
    parent = os.fork()
    if parent == 0:
        try:
            enter(replace(order("/bin/sleep", "100", namespaces=namespaces), files={tells: 1}))
        finally:
            os._exit(0)
    os.close(tells)
    os.waitpid(parent, 0)
    with open(hears, "rb") as life:
        assert life.read() == b""  # the other end is closed: nobody is left


def test_a_terminal_is_its_own(namespaces: Sequence[int]) -> None:
    ours, theirs = os.openpty()
    try:
        entry = order("/bin/sh", "-c", "echo said > /dev/tty", namespaces=namespaces)
        pid = enter(replace(entry, is_terminal=True, files={theirs: 0, os.dup(theirs): 1}))
        assert os.waitpid(pid, 0)[1] == 0
        assert os.read(ours, 100) == b"said\r\n"
    finally:
        os.close(ours)
        os.close(theirs)
