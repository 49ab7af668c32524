"""Find out how well a process can be shut in here, by shutting one in.

Who is shut in is forked, and what is forked runs code of ours. That is safe only where there is
one thread, so where there are more, all this is done by an interpreter of its own.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from holdfast.confine.entry import ProcessEntry, enter
from holdfast.confine.failures import SandboxUnavailable
from holdfast.confine.policy import SandboxPolicy, Strength
from holdfast.confine.sandbox.bubblewrap import Bubblewrap, Wrapping, find_bubblewrap, wrapped
from holdfast.confine.sandbox.landlock import fenced

_PATH: Final = {"PATH": "/usr/bin:/bin"}
_TRYING_LONGEST: Final = 15.0
_SAID_MOST: Final = 4096
_BOOT: Final = """
import sys
sys.path.insert(0, sys.argv[1])
from holdfast.confine.sandbox.preflight import main
main(sys.argv[2], [int(each) for each in sys.argv[3:]])
"""


@dataclass(frozen=True, slots=True)
class Preflight:
    """How well a process can be shut in, by what, and why not better."""

    strength: Strength | None
    bubblewrap: Bubblewrap | None
    reasons: tuple[str, ...]


def preflight(namespaces: Sequence[int] = ()) -> Preflight:
    """Shut a small program in, as well as it works here or inside these namespaces.

    Only the best outcome is remembered: whatever stood in the way may be gone the next time.
    """
    try:
        return Preflight(Strength.FULL, _best(_identity(namespaces), tuple(namespaces)), ())
    except SandboxUnavailable as unavailable:
        reasons = (unavailable.reason,)
    try:
        _attempt(_LESSER, namespaces)
    except SandboxUnavailable as unavailable:
        return Preflight(None, None, (*reasons, unavailable.reason))
    return Preflight(Strength.REDUCED, None, reasons)


def strength_within(namespaces: Sequence[int]) -> Strength | None:
    """How well a process can be shut in inside these namespaces, if at all."""
    return preflight(namespaces).strength


def _identity(namespaces: Sequence[int]) -> tuple[int, ...]:
    """What the namespaces are, not under which numbers we have them open."""
    return tuple(os.fstat(namespace).st_ino for namespace in namespaces)


@cache
def _best(_: tuple[int, ...], namespaces: tuple[int, ...]) -> Bubblewrap:
    _attempt(_BEST, namespaces)
    return find_bubblewrap()


def main(attempt: str, namespaces: Sequence[int]) -> None:
    """Try to make a sandbox once, and print the reason on standard output if it fails."""
    try:
        _attempt(attempt, namespaces)
    except SandboxUnavailable as unavailable:
        sys.stdout.write(unavailable.reason)


def _attempt(attempt: str, namespaces: Sequence[int]) -> None:
    """Raise SandboxUnavailable if it does not succeed."""
    if len(os.listdir("/proc/self/task")) == 1:
        _ATTEMPTS[attempt](namespaces)
        return
    ours = str(Path(__file__).resolve().parents[3])
    command = [sys.executable, "-I", "-c", _BOOT, ours, attempt, *map(str, namespaces)]
    try:
        asked = subprocess.run(
            command, pass_fds=namespaces, env={}, capture_output=True, timeout=2 * _TRYING_LONGEST
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailable(reason=f"the trial cannot be started ({error})") from error
    reason = (asked.stdout or asked.stderr).decode(errors="replace").strip()
    if reason:
        raise SandboxUnavailable(reason=reason)


def _try_best(namespaces: Sequence[int]) -> None:
    with ExitStack() as undo:
        alive = os.memfd_create("alive", os.MFD_CLOEXEC)
        undo.callback(os.close, alive)
        found = find_bubblewrap()
        with_it = Wrapping(found, _PATH, kept=(), alive=alive, is_counted=False, root=None)
        _try("bubblewrap", lambda plain: wrapped(plain, SandboxPolicy(), with_it, undo), namespaces)


def _try_lesser(namespaces: Sequence[int]) -> None:
    with TemporaryDirectory() as state, ExitStack() as undo:

        def fence(plain: ProcessEntry) -> ProcessEntry:
            entry, undoing = fenced(plain, SandboxPolicy(), _PATH, (), Path(state))
            undo.push(undoing)
            return entry

        _try("Landlock", fence, namespaces)


_BEST, _LESSER = "best", "lesser"
_ATTEMPTS: Final[dict[str, Callable[[Sequence[int]], None]]] = {
    _BEST: _try_best,
    _LESSER: _try_lesser,
}


def _try(
    what: str, shut: Callable[[ProcessEntry], ProcessEntry], namespaces: Sequence[int]
) -> None:
    """Run `true`, shut in; SandboxUnavailable says what came instead of success."""
    plain = ProcessEntry(["true"], {}, "/", "true", namespaces=namespaces)
    hears, tells = os.pipe2(os.O_CLOEXEC)
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        entry = shut(replace(plain, files={nothing: 0, tells: 2}))
        pid = enter(entry)
    except OSError as error:
        os.close(hears)
        raise SandboxUnavailable(reason=f"{what} does not start: {error.strerror}") from error
    finally:
        os.close(tells)
        os.close(nothing)
    said = _last_words(hears, pid)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status != 0:
        raise SandboxUnavailable(reason=f"{what} does not work: {said or f'status {status}'}")


def _last_words(hears: int, pid: int) -> str:
    """What the process said until it ended, or was ended for being late."""
    with open(hears, "rb", buffering=0) as words:
        said = b""
        while select.select([words], [], [], _TRYING_LONGEST)[0]:
            more = words.read(_SAID_MOST)
            if not more:
                break
            said += more[:_SAID_MOST]
        else:
            os.kill(pid, signal.SIGKILL)
            said = b"it does not end"
    return said.decode(errors="replace").strip()[:_SAID_MOST]
