"""Children get exactly what was ordered, and nothing else of the keeper's."""

from __future__ import annotations

import os
import resource
import secrets
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.confine import ProcessEntry
from holdfast.exec.failures import StartFailed
from holdfast.exec.keeper.client_loop import KeeperClient, ProcessSpec, TerminalSize
from tests.exec.planes import (
    PATH,
    closed,
    keeping_in,
    open_files_max,
    output,
    retained,
    said,
    shell,
    status_of,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc here"),
]


AT_REST = "echo ready; kill -STOP $$"


def descriptors(pid: int) -> dict[str, str]:
    place = Path(f"/proc/{pid}/fd")
    return {entry.name: os.readlink(entry) for entry in place.iterdir()}


async def told_by(keeper: KeeperClient, state: Path, order: ProcessSpec) -> bytes:
    kept = await keeper.start(order)
    retention = await closed(retained(state, kept))
    said_by_it = output(retention)
    retention.close()
    await kept.forget()
    return said_by_it


async def test_a_child_has_three_descriptors_and_no_other(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as keeper:
        orders = [shell(f"o{number}", AT_REST) for number in range(5)]
        orders.append(shell("tty", AT_REST, terminal=TerminalSize()))
        orders.append(shell("in", AT_REST, pipe_stdin=True))
        kepts = [await keeper.start(order) for order in orders]
        for kept in kepts:
            await said(retained(tmp_path, kept), b"ready")
        found = {kept.key: descriptors(kept.pid) for kept in kepts}

        assert {key: sorted(each) for key, each in found.items()} == {
            order.key: ["0", "1", "2"] for order in orders
        }
        assert len(set(found["tty"].values())) == 1
        assert found["tty"]["0"].startswith("/dev/pts/")
        assert found["o1"]["0"] == "/dev/null"
        assert found["in"]["0"].startswith("pipe:")


async def test_more_can_be_held_than_one_process_may_have_open(tmp_path: Path) -> None:
    most = 32 + max(int(name) for name in os.listdir("/proc/self/fd"))
    with open_files_max(most):
        opening = keeping_in(tmp_path)
        keeper = await opening.__aenter__()
    try:
        while len(descriptors(keeper.pid)) <= most:
            await keeper.start(shell(secrets.token_hex(4), "exec sleep 60"))

        way = ProcessEntry(("sh", "-c", "ulimit -n"), {}, "/", "/bin/sh")
        orders = [shell("plain", "ulimit -n"), shell("tty", "ulimit -n", terminal=TerminalSize())]
        orders.append(replace(shell("entered", "ulimit -n"), way=way))
        told = [await told_by(keeper, tmp_path, order) for order in orders]
        assert [each.strip() for each in told] == [str(most).encode()] * 3
    finally:
        await opening.__aexit__(None, None, None)


async def test_directory_environment_and_name_are_as_ordered(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as keeper:
        env = {"PATH": PATH, "ODD": "é\n=x", "EMPTY": ""}
        order = ProcessSpec(key="k", argv=("env", "-0"), cwd=str(tmp_path), env=env)
        lines = (await told_by(keeper, tmp_path, order)).decode().split("\0")
        found = dict(line.partition("=")[::2] for line in lines if line)
        mark = found.pop("HOLDFAST_PROCESS")
        assert found == env
        assert mark.startswith(f"k@{keeper.pid}.")

        order = ProcessSpec(key="d", argv=("pwd", "-P"), cwd=str(tmp_path), env=env)
        assert await told_by(keeper, tmp_path, order) == f"{tmp_path}\n".encode()

        argv = ("sh", "-c", "tr '\\0' ' ' </proc/$$/cmdline; ulimit -n; exec true", "x")
        order = ProcessSpec(key="n", argv=argv, cwd="/", env=env, arg0="another")
        said_by_it = await told_by(keeper, tmp_path, order)
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        assert said_by_it.startswith(b"another -c ")
        assert said_by_it.endswith(b" x %d\n" % limit)


async def test_a_child_leads_a_session_and_has_the_signals_of_a_new_program(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("s", "exec sleep 60"))
        assert (os.getpgid(kept.pid), os.getsid(kept.pid)) == (kept.pid, kept.pid)
        words = status_of(kept.pid)
        ours = sum(1 << (number - 1) for number in signal.valid_signals())  # the others are libc's
        assert int(words["SigIgn"], 16) & ours == int(words["SigBlk"], 16) & ours == 0
        assert os.readlink(f"/proc/{keeper.pid}/cwd") == "/"


async def test_a_terminal_controls_its_jobs(tmp_path: Path) -> None:
    cut = "trap 'echo cut; stty size; exit 4' INT"
    script = f"{cut}; stty size; : </dev/tty && tty; while :; do sleep 0.05; done"
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("t", script, terminal=TerminalSize(rows=7, cols=50)))
        retention = retained(tmp_path, kept)
        await said(retention, b"/dev/pts/")
        kept.resize(9, 60)
        master = kept.copy("pty")
        assert master is not None
        os.write(master, b"\x03")  # the terminal sends SIGINT to whoever is in the foreground
        os.close(master)
        await closed(retention)

        lines = output(retention).decode().split("\r\n")
        assert lines[0] == "7 50"
        assert lines[-3:] == ["^Ccut", "9 60", ""]  # and a shell whose job it was goes on
        assert retention.exit_status == 4


@pytest.mark.parametrize(
    ("argv", "cwd", "reason"),
    [
        (("no-such-command",), "/", "no such file or directory"),
        (("/etc/passwd",), "/", "permission denied"),
        (("true",), "/no/such/place", "/no/such/place: no such file or directory"),
        (("true", "a\0b"), "/", "invalid argument"),
    ],
    ids=["missing", "not executable", "no directory", "NUL"],
)
async def test_what_cannot_start_says_why(
    tmp_path: Path, argv: tuple[str, ...], cwd: str, reason: str
) -> None:
    async with keeping_in(tmp_path) as keeper:
        with pytest.raises(StartFailed) as raised:
            await keeper.start(ProcessSpec(key="k", argv=argv, cwd=cwd, env={"PATH": PATH}))

        assert raised.value == StartFailed(command=argv[0], reason=reason)
        assert await keeper.adopt() == []


async def test_a_script_without_an_interpreter_is_run_by_the_shell(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("echo $0 $1\n")
    script.chmod(0o700)
    async with keeping_in(tmp_path / "state") as keeper:
        order = ProcessSpec(key="k", argv=("./script", "x"), cwd=str(tmp_path), env={})
        assert await told_by(keeper, tmp_path, order) == b"./script x\n"


@pytest.mark.parametrize(
    ("script", "status"),
    [("exit 3", 3), (f"kill -{signal.SIGTERM:d} $$", 143), (f"kill -{signal.SIGKILL:d} $$", 137)],
)
@pytest.mark.parametrize("terminal", [None, TerminalSize()], ids=["pipes", "terminal"])
async def test_the_end_is_told_truly(
    tmp_path: Path, script: str, status: int, terminal: TerminalSize | None
) -> None:
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("k", script, terminal=terminal))
        assert (await closed(retained(tmp_path, kept))).exit_status == status
