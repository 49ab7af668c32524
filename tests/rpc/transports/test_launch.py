"""A command is started with exactly what it was given, or it is said why not."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.rpc.failures import CommandNotFound, SystemExhausted
from holdfast.rpc.transports.launch import MARK, ChildCommand, Pipes, started_process


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


@contextmanager
def running(command: ChildCommand) -> Generator[tuple[subprocess.Popen[bytes], Pipes]]:
    with started_process(command, "mark") as (process, pipes):
        pass
    try:
        yield process, pipes
    finally:
        process.kill()
        process.wait()
        for fd in (pipes.stdin, pipes.stdout, pipes.stderr):
            os.close(fd)


def output(*argv: str, cwd: str = "/", env: dict[str, str]) -> str:
    with running(ChildCommand(argv=argv, cwd=cwd, env=env)) as (process, pipes):
        assert process.wait() == 0
        return os.read(pipes.stdout, 2**16).decode()


def test_a_command_gets_its_environment_and_directory_and_nothing_of_ours(tmp_path: Path) -> None:
    script = "import os; print(dict(os.environ), os.getcwd(), os.listdir('/proc/self/fd'))"
    ours = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(ours, True)
    try:
        said = output(sys.executable, "-I", "-c", script, cwd=str(tmp_path), env={"A": "ö"})
    finally:
        os.close(ours)

    # The interpreter adds a locale of its own, and lists the descriptor it lists with.
    environment = {"A": "ö", MARK: "mark", "LC_CTYPE": "C.UTF-8"}
    assert said == f"{environment} {tmp_path} {['0', '1', '2', '3']}\n"


def test_a_command_leads_a_session_of_its_own() -> None:
    with running(ChildCommand(argv=("sleep", "60"), cwd="/", env={})) as (process, _):
        assert os.getsid(process.pid) == os.getpgid(process.pid) == process.pid


def test_a_name_is_looked_up_in_the_path_that_was_given(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)

    assert output("program", env={"PATH": f"/nowhere:{tmp_path}"}) == "found\n"
    assert output("./program", cwd=str(tmp_path), env={}) == "found\n"


@pytest.mark.parametrize(
    ("argv", "cwd", "reason"),
    [
        ("/nowhere/program", "/", "it does not exist"),
        ("no-such-program", "/", "it does not exist"),
        ("/etc/passwd", "/", "it is not executable"),
        ("/etc", "/", "it does not exist"),
        ("true", "/nowhere", "/nowhere is no directory"),
        ("true\0", "/", "it contains a NUL character"),
    ],
)
def test_what_cannot_be_started_is_named_with_the_reason(argv: str, cwd: str, reason: str) -> None:
    before = descriptors()
    with (
        pytest.raises(CommandNotFound) as raised,
        started_process(ChildCommand(argv=(argv,), cwd=cwd, env={}), "mark"),
    ):
        pass

    assert raised.value == CommandNotFound(command=argv, reason=reason)
    assert descriptors() == before


def test_too_many_arguments_are_named_with_the_reason() -> None:
    with (
        pytest.raises(CommandNotFound, match="argument list too long"),
        started_process(ChildCommand(argv=("true", "x" * 2**22), cwd="/", env={}), "mark"),
    ):
        pass


@pytest.mark.parametrize("free", range(8))
def test_a_lack_of_descriptors_is_named_and_leaks_none(free: int) -> None:
    before = descriptors()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/dev/fd"))
    fillers = [os.open("/dev/null", os.O_RDONLY) for _ in range(highest - before + 2)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(fillers) + 1 + free, hard))
    try:
        with (
            pytest.raises(SystemExhausted),
            started_process(ChildCommand(argv=("true",), cwd="/", env={}), "mark"),
        ):
            raise OSError(errno.EMFILE, "Too many open files")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in fillers:
            os.close(fd)

    assert descriptors() == before


def test_a_process_is_ended_when_it_cannot_be_taken_over() -> None:
    started: list[subprocess.Popen[bytes]] = []
    with (
        pytest.raises(SystemExhausted),
        started_process(ChildCommand(argv=("sleep", "60"), cwd="/", env={}), "mark") as (
            process,
            _,
        ),
    ):
        started.append(process)
        raise OSError(errno.EMFILE, "Too many open files")

    assert started[0].returncode == -9
