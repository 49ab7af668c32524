"""Remove placeholders when whatever would have removed them was killed.

A placeholder is an empty directory in the directory of a person, so it must not stay there until
the next sandbox happens to start. Before the first one is made, a shell is started which is a child
of no one, waits for the lock on the sandbox's sign of life, and looks whether the sign was removed
in good order. Only if not, it becomes a Python that cleans up. A shell, because almost always there
is nothing to do, and an interpreter for each sandbox would cost more than the sandbox.

A placeholder in a place is stored in the upper layer of its draft. If the holder dies together with
the process that would have cleaned up, it remains there, and the place is not mounted again until
the next holder. The locations of the layers are therefore recorded, and the sweeper cleans them
without mounting.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from holdfast.confine.sandbox.placeholders import Placeholders

_GRACE: Final = 1.0  # seconds that a sandbox which has ended has to clean up after itself
_TRY_AGAIN, _TRIES_MAX = 1.0, 600  # while another process holds the lock of the place
_SHELL_NAME, _WAIT = "holdfast-sweeper", "flock -s 9"
# $1 sign of life, $2 seconds, $3 Python, $4... what it is to run. Without flock(1) Python waits.
_WATCH: Final = f"""
exec 9<"$1" || exit 0
sign=$1 grace=$2; shift 2
(
  trap '' HUP INT QUIT TERM
  command -v flock >/dev/null && {_WAIT}
  exec 9<&-
  sleep "$grace"
  [ -e "$sign" ] && exec "$@" "$sign"
) </dev/null >/dev/null 2>&1 &
"""
_SWEEP: Final = """
import sys
sys.path.insert(0, sys.argv[1])
from holdfast.confine.sandbox.placeholder_sweeper import sweep
sweep(sys.argv[2], sys.argv[3])
"""


def watch(state: Path, sign: str) -> None:
    """Have placeholders removed that a sandbox leaves when it is killed; returns at once.

    `sign` is the path of its sign of life, which is locked by now. Raises `OSError`.
    """
    ours = str(Path(__file__).resolve().parents[3])
    sweeps = [sys.executable, "-I", "-c", _SWEEP, ours, str(state.resolve())]
    subprocess.run(
        ["/bin/sh", "-c", _WATCH, _SHELL_NAME, sign, str(_GRACE), *sweeps],
        env={"PATH": "/usr/bin:/bin"},
        cwd="/",
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )


def is_sweeper(command: str) -> bool:
    """Whether a command line is that of a waiting sweeper, not of a sandboxed process."""
    return _SHELL_NAME in command or command == _WAIT


def sweep(state: str, sign: str) -> None:
    """Wait for the end of a sandbox, and clean up until nothing unneeded is left."""
    try:
        with open(sign, "rb") as life:
            fcntl.flock(life, fcntl.LOCK_SH)  # as all do who only want to know
    except FileNotFoundError:
        return
    placeholders = Placeholders(Path(state))
    for _ in range(_TRIES_MAX):
        if placeholders.clean():
            return
        time.sleep(_TRY_AGAIN)  # noqa: TID251  # this process has nothing else to do


def clean(state: Path) -> None:
    """Remove what sandboxes of a state directory that were killed have left behind."""
    Placeholders(state).clean()


def clean_all(states: Path) -> None:
    """Do so for each of the state directories in one directory, if that is there."""
    if states.is_dir():
        for state in sorted(states.iterdir()):
            clean(state)
