"""Processes that take all they can get: they get what they may, and nobody else notices."""

from __future__ import annotations

import os
import resource
import select
import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest

from holdfast.confine.entry import ProcessEntry, enter
from holdfast.confine.policy import Strength
from holdfast.confine.sandbox.placeholder_sweeper import clean
from holdfast.confine.sandbox.preflight import preflight
from holdfast.confine.sandbox.sandbox import SandboxedEntry, make_group, prepare_sandbox
from tests.confine.shutting import PATH, PYTHON, SMALL, Stage, plain, stage
from tests.parts.ordinary_user import run_tests_as_ordinary_user

pytestmark = [
    pytest.mark.promise("C21"),
    pytest.mark.skipif(
        preflight().strength is not Strength.FULL,
        reason=f"no full sandbox on this machine: {'; '.join(preflight().reasons)}",
    ),
]
BOMB = "x() { x | x & sleep 1; }; x; wait; echo survived"
FORKS = "n=0; while [ $n -lt 200 ]; do sleep 3 & n=$((n + 1)); done; echo all"


@pytest.fixture
def here(tmp_path: Path) -> Stage:
    return stage(tmp_path)


def _is_counted() -> bool:
    group = make_group(SMALL)
    group.close()
    return "pids" in group.limited or os.geteuid() != 0


def test_a_fork_bomb_ends_at_its_limit(here: Stage) -> None:
    if not _is_counted():
        pytest.skip("root without control groups: nothing counts processes here")
    done = here.shell(FORKS)
    assert "all" not in done.said
    assert "fork" in done.complained.lower()
    pid = os.fork()  # we can still do what it cannot
    if pid == 0:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_fork_bomb_dies_with_its_sandbox(here: Stage) -> None:
    if not _is_counted():
        pytest.skip("root without control groups: nothing counts processes here")
    with prepare_sandbox(
        plain(["sh", "-c", BOMB], here.workspace, PATH), here.policy, state=here.state
    ) as s:
        pid = enter(_quiet(s))
        _wait_for(lambda: _count_inside(pid) >= 8)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        _wait_for(lambda: not _marked(here))


HOG = """
(x() { x | x & sleep 1; }; x) 2>/dev/null &
(while :; do head -c 400000000 /dev/zero | tail >/dev/null; done) 2>/dev/null &
(while :; do for f in big /tmp/big; do head -c 100000000 /dev/zero >$f; done; done) 2>/dev/null &
echo at it; sleep 1000
"""


def test_beside_one_who_takes_everything_others_work(tmp_path: Path) -> None:
    if not _is_counted():
        pytest.skip("root without control groups: nothing counts processes here")
    hog, other = stage(tmp_path / "hog"), stage(tmp_path / "other")
    with prepare_sandbox(
        plain(["sh", "-c", HOG], hog.workspace, PATH), hog.policy, state=hog.state
    ) as s:
        pid = enter(_quiet(s))
        _wait_for(lambda: _count_inside(pid) >= 8)
        # Only its own files: placeholders of protected names (`HEAD`, for one) may be beside them.
        work = "for n in 1 2 3 4 5 6 7 8; do head -c 20000000 /dev/zero >$n & done; wait; wc -c ?"
        done = other.shell(work)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        _wait_for(lambda: not _marked(hog))

    sizes = [f"{20_000_000:>9} {n}" for n in range(1, 9)] + ["160000000 total"]
    assert (done.status, done.said.splitlines(), done.complained) == (0, sizes, "")


def test_memory_ends_at_its_limit(here: Stage) -> None:
    script = (
        "import sys; x = bytearray(int(sys.argv[1])); x[::4096] = b'x' * len(x[::4096]); print(1)"
    )
    policy = replace(here.policy, readable=PYTHON)
    command = ("/usr/bin/env", "python3", "-c", script)
    sizes = (64 << 20, 512 << 20)
    outcomes = [here.run(*command, str(size), policy=policy).said for size in sizes]
    assert outcomes == ["1\n", ""]


def test_memory_of_many_ends_at_one_limit(here: Stage) -> None:
    group = make_group(SMALL)
    group.close()
    if "memory" not in group.limited:
        pytest.skip("no control group can be made here: memory is limited for each process alone")
    one = "head -c 100000000 /dev/zero | tail"  # tail keeps a line that never ends
    done = here.shell(f"for n in 1 2 3 4 5 6; do ({one} | wc -c) & done; wait")
    assert done.said.splitlines().count("100000000") < 6


def test_files_end_at_their_limit(here: Stage) -> None:
    done = here.shell("head -c 100000000 /dev/zero > big; ls -l big | cut -d' ' -f5")
    assert int(done.said) <= SMALL.file_bytes
    done = here.shell("for n in 1 2 3; do head -c 30000000 /dev/zero > /tmp/$n; done; du -smx /tmp")
    assert int(done.said.split()[0]) <= SMALL.temporary_bytes >> 20
    done = here.shell(
        "head -c 60000000 /dev/zero > /dev/shm/x; echo > /x; echo > /dev/x; echo ended"
    )
    assert done.said == "ended\n"


def test_descriptors_end_at_their_limit(here: Stage) -> None:
    opened = "import os; x = [os.dup(1) for _ in range(1000)]; print(len(x))"
    done = here.run("python3", "-c", opened)
    assert "Too many open files" in done.complained


def test_a_hundred_gigabytes_of_output_wait_for_their_reader(here: Stage) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    entry = plain(["sh", "-c", "yes | head -c 100G"], here.workspace, PATH)
    with prepare_sandbox(entry, here.policy, state=here.state) as shut:
        hears, tells = os.pipe()
        pid = enter(replace(shut.entry, files={tells: 1, **shut.entry.files}))
        os.close(tells)
        taken = sum(len(os.read(hears, 65536)) for _ in range(64))
        os.kill(pid, signal.SIGKILL)
        os.close(hears)
        os.waitpid(pid, 0)
    assert taken > 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


@pytest.mark.parametrize("whom", ["outermost", "all"])
def test_a_kill_leaves_nothing_after_the_next_cleaning(here: Stage, whom: str) -> None:
    entry = plain(["sh", "-c", "setsid sleep 1000 & sleep 1000"], here.workspace, PATH)
    shut = prepare_sandbox(entry, here.policy, state=here.state)
    pid = enter(_quiet(shut))
    _wait_for(lambda: _count_inside(pid) >= 4)
    assert (here.workspace / ".codex").is_dir()
    for each in [pid] if whom == "outermost" else [*_inside(pid), pid]:
        with suppress(ProcessLookupError):  # it has ended with one that was killed before it
            os.kill(each, signal.SIGKILL)
    os.waitpid(pid, 0)
    _wait_for(lambda: not _marked(here))
    shut.close()
    clean(here.state)
    assert sorted(path.name for path in here.workspace.iterdir()) == [".git", "file"]
    assert str(here.workspace) not in Path("/proc/self/mounts").read_text()
    assert list((here.state / "placeholders").glob("*.needed")) == []


def test_a_starter_that_is_killed_takes_its_sandbox_with_it(here: Stage) -> None:
    starter = os.fork()
    if starter == 0:
        signal.alarm(60)  # whatever becomes of the test
        entry = plain(["sleep", "1000"], here.workspace, PATH)
        enter(_quiet(prepare_sandbox(entry, here.policy, state=here.state)))
        signal.pause()
    try:
        _wait_for(lambda: len(_marked(here)) >= 2)
    finally:
        os.kill(starter, signal.SIGKILL)
        os.waitpid(starter, 0)
    _wait_for(lambda: not _marked(here))
    clean(here.state)
    assert sorted(path.name for path in here.workspace.iterdir()) == [".git", "file"]


@pytest.mark.skipif(os.geteuid() != 0, reason="whoever is not root has run them all already")
def test_all_of_this_holds_for_an_ordinary_user_too() -> None:
    assert run_tests_as_ordinary_user(__file__) is None


def _quiet(shut: SandboxedEntry) -> ProcessEntry:
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    return replace(shut.entry, files={nothing: 1, **shut.entry.files})


def _marked(here: Stage) -> list[int]:
    """The processes that see our workspace and are not us: those in the sandbox."""
    found: list[int] = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            mounts = (each / "mounts").read_text(errors="replace")
        except OSError:
            continue
        if f" {here.workspace}/.git " in mounts:
            found.append(int(each.name))
    return found


def _inside(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        direct = [int(child) for child in children.read_text().split()]
    except OSError:
        return []
    return [*direct, *(below for child in direct for below in _inside(child))]


def _count_inside(pid: int) -> int:
    return len(_inside(pid))


def _wait_for(is_so: object) -> None:
    assert callable(is_so)
    deadline = monotonic() + 60
    while not is_so():
        assert monotonic() < deadline, "it never came to that"
        select.select([], [], [], 0.01)
