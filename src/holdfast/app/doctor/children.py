"""Run a small program to its end, within a deadline, and leave nothing of it behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TypeVar

import anyio
import msgspec
from anyio.abc import Process

from holdfast.app.doctor.confinement import Ran
from holdfast.app.doctor.model import Refused

WAIT_LONGEST = 2.5  # seconds, for one program
_GRACE = 0.25
_OUTPUT_MAX = 64 * 1024

Facts = TypeVar("Facts")


async def ask(probe: str, directory: str, facts: type[Facts]) -> Facts | Refused:
    """Run one of our probes, `storage.home`, and return its facts or why there are none."""
    module, _, name = probe.partition(".")
    command = [sys.executable, "-m", f"holdfast.app.probes.{module}", name, directory]
    ended = await _run(command)
    if isinstance(ended, Refused):
        return ended
    status, output = ended
    try:
        answer = msgspec.json.decode(output, type=dict[str, msgspec.Raw])
        if "refused" in answer:
            return msgspec.json.decode(answer["refused"], type=Refused)
        return msgspec.json.decode(answer["facts"], type=facts)
    except (ValueError, KeyError):  # it may not even be text
        return Refused(f"the probe ended with status {status}: {_last_line(output)}")


async def try_program(name: str, *arguments: str) -> Ran | Refused:
    """Run a program of the system and return how it ended and the first line that it wrote."""
    path = shutil.which(name)
    if path is None:
        return Refused("not found", "ENOENT")
    ended = await _run([path, *arguments])
    if isinstance(ended, Refused):
        return ended
    status, output = ended
    return Ran(status, output.decode(errors="replace").strip().partition("\n")[0])


async def _run(command: Sequence[str]) -> tuple[int, bytes] | Refused:
    """Run a command in a session of its own, so that all that it started ends with it."""
    try:
        process = await anyio.open_process(
            command,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        return Refused(error.strerror or str(error))
    async with process:
        try:
            with anyio.fail_after(WAIT_LONGEST):
                output = await _read(process)
                return await process.wait(), output
        except TimeoutError:
            return Refused(f"no answer within {WAIT_LONGEST:g} s")
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)


async def _read(process: Process) -> bytes:
    assert process.stdout is not None
    output = b""
    async for chunk in process.stdout:
        output = (output + chunk)[:_OUTPUT_MAX]
    return output


async def _end(process: Process) -> None:
    """Ask it to clean up after itself, then kill its whole session."""
    if process.returncode is None:
        _signal(process.pid, signal.SIGTERM)
        with anyio.move_on_after(_GRACE):
            await process.wait()
    _signal(process.pid, signal.SIGKILL)


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # gone already; macOS says EPERM of zombies
        os.killpg(group, number)


def _last_line(output: bytes) -> str:
    return output.decode(errors="replace").strip().rpartition("\n")[2][:200]
