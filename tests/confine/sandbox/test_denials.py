"""Who is watched does what it would have done, and what it was kept from is named."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.confine.entry import enter
from holdfast.confine.policy import Strength
from holdfast.confine.sandbox.denials import DenialReport, DenialWatcher
from holdfast.confine.sandbox.preflight import preflight
from holdfast.confine.sandbox.sandbox import prepare_sandbox
from holdfast.confine.sandbox.seccomp import PathRefusal
from holdfast.confine.sandbox.start_gate import StartGate
from tests.confine.shutting import PATH, PYTHON, Stage, plain, stage
from tests.parts.family import our_children
from tests.parts.ordinary_user import run_tests_as_ordinary_user

pytestmark = [
    pytest.mark.skipif(
        preflight().strength is not Strength.FULL,
        reason=f"no full sandbox on this machine: {'; '.join(preflight().reasons)}",
    ),
    pytest.mark.timeout(60, method="signal"),  # no thread beside us: we fork
]


@pytest.fixture
def here(tmp_path: Path) -> Stage:
    return stage(tmp_path)


def watched(here: Stage, *command: str) -> tuple[int, DenialReport]:
    """Run a command to its end, watched; its status, and what it was kept from."""
    nothing = os.open(os.devnull, os.O_RDWR)
    said = os.open(here.state / "said", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    entry = replace(
        plain(command, here.workspace, PATH), files={nothing: 0, said: 1, os.dup(said): 2}
    )
    policy = replace(here.policy, readable=PYTHON)
    with (
        DenialWatcher() as watch,
        prepare_sandbox(entry, policy, state=here.state) as shut,
        StartGate(shut.entry) as threshold,
    ):
        pid = enter(watch.watched(threshold.entry))
        threshold.arrive()
        watch.begin()
        threshold.cross()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        told = watch.told()
    for each in entry.files:
        os.close(each)
    return status, told


def kept(told: DenialReport, *around: Path) -> set[tuple[str, str]]:
    """What is told of paths below these; programs look for more by themselves."""
    return {
        (os.path.relpath(each.path, around[0]), each.why)
        for each in told.refusals
        if any(Path(each.path).is_relative_to(path) for path in around)
    }


def test_files_that_are_unseen_read_only_or_protected_are_named(here: Stage) -> None:
    (here.workspace / "below").mkdir()
    script = f"""
        cat {here.outside}/secret; cat {here.outside}/absent; cat file > new; mkdir -p below
        echo x > .codex/x; rm .git/config; cd below; echo x > ../.git/hooks/pre-commit
        ln -s x ../.git/hooks/link; mv ../new {here.outside}/new; echo x > /dev/null
        echo still here
    """
    status, told = watched(here, "sh", "-c", script)

    assert (status, "still here" in (here.state / "said").read_text()) == (0, True)
    assert kept(told, here.workspace, here.outside) == {
        ("../outside", "not seen"),
        ("../outside/secret", "not seen"),
        (".codex/x", "read-only"),
        (".git/config", "read-only"),
        (".git/hooks/link", "read-only"),
        (".git/hooks/pre-commit", "read-only"),
    }
    assert told.untold == 0


PROGRAM = """
import ctypes, os, sys
outside = sys.argv[1]
directory = os.open("/usr", os.O_RDONLY)
for attempt in (
    lambda: os.mkdir("made", dir_fd=directory),
    lambda: os.rename(outside + "/target", "target"),
    lambda: os.chmod(outside + "/secret", 0o666),
    lambda: os.truncate("/usr/bin/env", 0),
    lambda: open(b"\\xff\\xfe"),
    lambda: ctypes.CDLL(None, use_errno=True).syscall(257, -100, 1, 0, 0),
):
    try:
        attempt()
    except OSError:
        pass
how = (ctypes.c_uint64 * 3)(os.O_WRONLY, 0, 0)
ctypes.CDLL(None).syscall(437, -100, b"/usr/bin/env", how, 24)
if os.fork() == 0:
    os._exit(len(os.listdir(".")) > 0)
os.wait()
os.kill(os.getpid(), 9)
"""


def test_every_way_to_name_a_path_and_every_child(here: Stage) -> None:
    status, told = watched(here, sys.executable, "-I", "-c", PROGRAM, str(here.outside))

    assert status == 128 + 9
    assert kept(told, here.outside, Path("/usr/bin/env"), Path("/usr/made")) == {
        ("secret", "not seen"),
        ("target", "not seen"),
        (os.path.relpath("/usr/bin/env", here.outside), "read-only"),
        (os.path.relpath("/usr/made", here.outside), "read-only"),
    }


def test_a_path_that_is_no_text_hides_no_other(here: Stage) -> None:
    odd = os.fsdecode(b"odd \xff")
    (here.outside / odd).touch()
    _, told = watched(here, "cat", f"{here.outside}/secret", f"{here.outside}/{odd}")

    assert kept(told, here.outside) == {("secret", "not seen"), (odd, "not seen")}


def test_it_is_no_way_out(here: Stage) -> None:
    """What is watched is let go on, and then refused as ever."""
    script = f"echo harmed > {here.outside}/target; echo harmed > .git/config; cat /etc/shadow"
    status, _ = watched(here, "sh", "-c", script)

    assert status != 0
    assert (here.outside / "target").read_text() == "target"
    assert "harmed" not in (here.workspace / ".git/config").read_text()


def test_who_watches_nobody_is_ended() -> None:
    before = our_children()
    with DenialWatcher() as watch:
        pass

    assert watch is not None
    assert our_children() <= before


def test_refusals_travel_as_they_are() -> None:
    assert DenialReport((PathRefusal("/a", "not seen", 2),)).refusals[0].count == 2


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="whoever is not root has run them all already")
def test_all_of_this_holds_for_an_ordinary_user_too() -> None:
    assert run_tests_as_ordinary_user(__file__) is None
