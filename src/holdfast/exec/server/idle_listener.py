"""Socket activation: a small listener that replaces an idle server until a client connects.

It is a program of its own, as small as Python can be: it replaces the server in the same process
(exec), so that an idle server costs almost nothing, and executes the server again with all
descriptors.
"""

from __future__ import annotations

import os
import select
import signal
import sys

FOR_EVER = "-"
# Blocked until we can hear them.
ENDINGS = (signal.SIGTERM, signal.SIGINT)

# Milliseconds, more of which the system cannot count.
_POLL_LONGEST = 2**31 - 1


class _Terminated(Exception):
    """SIGTERM or SIGINT arrived."""


def main(words: list[str]) -> int:
    """Arguments: LISTENER SECONDS SOCKET INODE PRIVATE COMMAND...

    Executes the command when a client connects within so many seconds. Otherwise, or on a signal,
    removes the socket (if it still has that inode) and the private directory, and ends.
    """
    listener, seconds, path, inode, private, *command = words
    if _is_wanted(int(listener), None if seconds == FOR_EVER else float(seconds)):
        os.execv(command[0], command)
    if path and os.path.lexists(path) and os.lstat(path).st_ino == int(inode):
        os.unlink(path)
    if private:
        _remove(private)
    return 0


def _is_wanted(listener: int, seconds: float | None) -> bool:
    knocks = select.poll()
    knocks.register(listener, select.POLLIN)
    for number in ENDINGS:
        signal.signal(number, _tell)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
        left = None if seconds is None else seconds * 1000
        while not knocks.poll(left if left is None else min(left, _POLL_LONGEST)):
            if left is None or left <= _POLL_LONGEST:
                return False
            left -= _POLL_LONGEST
        return True
    except _Terminated:
        return False
    finally:
        for number in ENDINGS:
            signal.signal(number, signal.SIG_DFL)


def _tell(_number: int, _frame: object) -> None:
    raise _Terminated


def _remove(directory: str) -> None:
    for place, _, names in os.walk(directory, topdown=False):
        for name in names:
            os.unlink(os.path.join(place, name))
        os.rmdir(place)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
