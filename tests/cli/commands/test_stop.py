"""`holdfast stop --all`: everything of ours here ends, nothing else, and only after a yes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.cli.commands.running_parts import belongings
from holdfast.exec.keeper.discovery import orphans
from holdfast.world import environment_of, system_process
from tests.cli.commands.test_running_parts import place_of
from tests.cli.planes import eventually, plane_home, ran, running
from tests.cli.pretending import on_terminal
from tests.cli.running import COMMAND, environment
from tests.cli.sandboxes import needs_sandbox, starting
from tests.world.test_processes_process_marks import is_alive


@pytest.fixture
def home() -> Generator[Path]:
    with plane_home() as path:
        yield path


@pytest.fixture
def process(home: Path) -> Generator[subprocess.Popen[bytes]]:
    """A command on the local server."""
    with running("exec", "--", "sleep", "100", home=home) as process:
        eventually(lambda: any(each.processes for each in belongings(home / "state")))
        yield process


def test_without_a_yes_nothing_ends(home: Path, process: subprocess.Popen[bytes]) -> None:
    done = ran("stop", "--all", "--state", f"{home}/state", home=home)

    assert done.returncode == 3
    assert "CLI_STOP_UNCONFIRMED" in done.stderr.decode()
    assert [line.split()[0] for line in done.stderr.splitlines()[:2]] == [b"exec-server", b"keeper"]
    assert process.poll() is None
    assert len(belongings(home / "state")) == 2
    assert ran("stop", "--all", "--state", f"{home}/state", "--yes", home=home).returncode == 0


def test_a_program_is_told_what_would_end(home: Path, process: subprocess.Popen[bytes]) -> None:
    shown = ran("stop", "--all", "--state", f"{home}/state", "--json", home=home)
    ended = ran("stop", "--all", "--state", f"{home}/state", "--json", "--yes", home=home)

    assert (shown.returncode, ended.returncode, ended.stderr) == (3, 0, b"")
    told, done = json.loads(shown.stdout), json.loads(ended.stdout)
    assert [each["kind"] for each in told["found"]] == ["exec-server", "keeper"]
    assert (told["ended"], done["ended"]) == (False, True)
    assert told["found"] == done["found"]
    assert process.wait(timeout=60) == 128 + signal.SIGTERM


def test_a_person_is_asked(home: Path, process: subprocess.Popen[bytes]) -> None:
    with on_terminal("stop", "--all", "--state", f"{home}/state", home=home) as screen:
        screen.expect("End all of this? [y/N]")
        screen.type("\n")
        assert screen.end()[0] == 3
    with on_terminal("stop", "--all", "--state", f"{home}/state", home=home) as screen:
        screen.expect("End all of this? [y/N]")
        screen.type("y\n")
        status, text = screen.end()

    assert (status, text.splitlines()[-1]) == (0, "Ended everything (2).")
    assert process.wait(timeout=60) == 128 + signal.SIGTERM
    assert belongings(home / "state") == []


def test_places_and_sandboxes_end_and_others_live(home: Path, tmp_path: Path) -> None:
    needs_sandbox()
    words = ("--", "sh", "-c", "echo ready; exec sleep 1000")
    with (
        place_of(home, tmp_path / "mine") as holder,
        place_of(tmp_path / "other", tmp_path / "theirs") as stranger,
        starting(*words, home=home, cwd=tmp_path / "mine") as sandbox,
        starting(*words, home=tmp_path / "other", cwd=tmp_path / "theirs") as untouched,
    ):
        try:
            for each in (sandbox, untouched):
                assert each.stdout is not None
                assert each.stdout.readline() == b"ready\n"
            mine = {each.pid for each in belongings(home / "state")}
            theirs = belongings(tmp_path / "other" / "state")
            assert (
                ran("stop", "--all", "--state", f"{home}/state", "--yes", home=home).returncode == 0
            )

            assert mine == {holder, sandbox.pid}
            assert {each.pid for each in theirs} == {stranger, untouched.pid}
            assert sandbox.wait(timeout=60) == 128 + signal.SIGTERM
            assert belongings(home / "state") == []
            assert belongings(tmp_path / "other" / "state") == theirs
        finally:
            untouched.kill()
            sandbox.kill()


def test_a_keeper_without_a_server_and_who_is_deaf_end_too(home: Path) -> None:
    deaf = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
    with running("exec", "--", "sh", "-c", deaf, home=home) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.kill()
        process.wait()
        server = next(each for each in belongings(home / "state") if each.sort == "exec-server")
        os.kill(server.pid, signal.SIGKILL)
        eventually(lambda: len(belongings(home / "state")) == 1)
        done = ran("stop", "--all", "--state", f"{home}/state", "--yes", home=home)

    assert done.returncode == 0
    assert belongings(home / "state") == []


@pytest.mark.parametrize("is_told", [True, False])
def test_who_waited_does_not_start_it_again(
    home: Path, process: subprocess.Popen[bytes], is_told: bool
) -> None:
    """A client that sleeps through the end, with or without word of it in its socket."""
    os.kill(process.pid, signal.SIGSTOP)
    try:
        if not is_told:
            server = next(each for each in belongings(home / "state") if each.sort == "exec-server")
            os.kill(server.pid, signal.SIGKILL)
            eventually(lambda: len(belongings(home / "state")) == 1)
        done = ran("stop", "--all", "--state", f"{home}/state", "--yes", home=home)
    finally:
        os.kill(process.pid, signal.SIGCONT)
    status, said = process.wait(timeout=60), process.communicate()[1].decode()

    assert done.returncode == 0
    assert (status, "CLI_LOCAL_SERVER_STOPPED" in said) == (
        (143, False) if is_told else (130, True)
    )
    assert "It is still running" not in said
    assert belongings(home / "state") == []
    assert ran("exec", "--", "sh", "-c", "exit 7", home=home).returncode == 7
    assert ran("stop", "--all", "--state", f"{home}/state", "--yes", home=home).returncode == 0


@pytest.mark.promise("X14")
def test_all_means_this_home(home: Path, process: subprocess.Popen[bytes], tmp_path: Path) -> None:
    elsewhere = ran("stop", "--all", "--yes", home=tmp_path / "other")
    assert (elsewhere.returncode, elsewhere.stderr) == (0, b"Nothing is running.\n")
    assert process.poll() is None
    assert len(belongings(home / "state")) == 2

    assert ran("stop", "--all", "--yes", home=home).returncode == 0
    assert process.wait(timeout=60) == 128 + signal.SIGTERM
    assert belongings(home / "state") == []


@pytest.mark.promise("X14")
def test_what_finished_processes_left_running_is_listed_and_ends(
    home: Path, tmp_path: Path
) -> None:
    """Although it has called setsid, and has neither a parent nor a mark in its environment."""
    file = tmp_path / "pid"
    escape = f"(env -i setsid sh -c 'echo $$ > {file}; exec sleep 1008' >/dev/null 2>&1 &)"
    done = ran("exec", "--detach", "--name", "one", "--", "sh", "-c", escape, home=home)
    assert done.returncode == 0, done.stderr
    eventually(lambda: file.exists() and file.read_text().endswith("\n"))
    eventually(lambda: b"ended (0)" in ran("ps", home=home).stdout)
    pid = int(file.read_text())
    try:
        assert f"{pid}" in ran("ps", home=home).stderr.decode()
        assert ran("stop", "--all", "--yes", home=home).returncode == 0
        assert not is_alive(pid)
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "words",
    [
        ("stop", "--orphans", "--everywhere"),
        ("stop", "p-1", "--everywhere"),
        ("stop", "--all", "--everywhere", "--state", "/tmp"),
        ("stop", "--all", "--everywhere", "--server", "ws://127.0.0.1:1"),
    ],
)
def test_everywhere_goes_with_all_alone(words: tuple[str, ...], home: Path) -> None:
    done = subprocess.run(
        [*COMMAND, *words], env=environment(home), capture_output=True, check=False, timeout=100
    )
    assert done.returncode == 2
    assert b"--everywhere" in done.stderr


# Run where no other process is seen, or everything of ours on this machine would end.
EVERYWHERE = """
cd "$1"; shift
wait_long() { "$@" exec -- sh -c 'echo ready; exec sleep 100'; echo $?; }
for home in one two; do
    mkdir $home
    HOLDFAST_HOME=$PWD/$home wait_long "$@" >$home/said &
    until grep -q ready $home/said; do sleep 0.05; done
done
HOLDFAST_HOME=$PWD/three "$@" stop --all --everywhere --json
HOLDFAST_HOME=$PWD/three "$@" stop --all --everywhere --yes --json
wait
HOLDFAST_HOME=$PWD/three "$@" stop --all --everywhere
tail -qn 1 one/said two/said
"""


def test_everywhere_means_all_homes_of_this_user(home: Path) -> None:
    alone = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("unshare cannot hide other processes here")
    done = subprocess.run(
        [*alone, "sh", "-c", EVERYWHERE, "sh", str(home), *COMMAND],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=100,
        check=False,
    )

    *told, one, two = done.stdout.splitlines()
    shown, ended = map(json.loads, told)
    assert (one, two) == (b"143", b"143")
    assert [(each["kind"], each["kept"], each["processes"]) for each in shown["found"]] == [
        ("exec-server", f"{home}/one/state/exec", 0),
        ("exec-server", f"{home}/two/state/exec", 0),
        ("keeper", f"{home}/one/state/exec", 1),
        ("keeper", f"{home}/two/state/exec", 1),
    ]
    assert (ended["ended"], ended["found"]) == (True, shown["found"])
    assert done.stderr.endswith(b"Nothing is running.\n")
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("x", "--state", "."), b"--state and --everywhere go with --all"),
        (("--all", "--state", "nowhere"), b"--state: nowhere is not a directory"),
    ],
)
def test_a_state_that_makes_no_sense_is_refused(
    tmp_path: Path, words: tuple[str, ...], said: bytes
) -> None:
    done = ran("stop", *words, home=tmp_path)

    assert (done.returncode, said in done.stderr) == (2, True)


@pytest.fixture
def orphan(home: Path) -> Generator[int]:
    """A process whose server and keeper were killed, so that nobody has seen to it."""
    with running("exec", "--", "sleep", "1007", home=home) as process:
        eventually(lambda: any(each.processes for each in belongings(home / "state")))
        process.kill()
        process.wait()
    for each in belongings(home / "state"):
        os.kill(each.pid, signal.SIGKILL)
    found: list[int] = []

    def is_lost() -> bool:
        mine = os.fsencode(home)
        found[:] = [
            each.process.pid
            for each in orphans()
            if any(mine in item for item in environment_of(each.process.pid))
        ]
        return bool(found)

    eventually(is_lost)
    yield found[0]
    with suppress(ProcessLookupError):
        os.kill(found[0], signal.SIGKILL)


def test_orphans_end_after_a_yes(home: Path, orphan: int) -> None:
    shown = ran("stop", "--orphans", home=home)
    told = json.loads(ran("stop", "--orphans", "--json", home=home).stdout)
    assert (shown.returncode, f"{orphan}  sleep 1007" in shown.stderr.decode()) == (3, True)
    assert (told["ended"], orphan in [each["pid"] for each in told["found"]]) == (False, True)

    with on_terminal("stop", "--orphans", home=home) as screen:
        screen.expect("End all of this? [y/N]")
        screen.type("n\n")
        assert screen.end()[0] == 3
    assert system_process(orphan) is not None


def test_where_nothing_runs_there_is_no_question(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    done = ran("stop", "--all", "--state", f"{tmp_path}/state", home=tmp_path)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"Nothing is running.\n")
