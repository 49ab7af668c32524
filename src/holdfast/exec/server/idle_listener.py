"""Wait at the door in place of a server that nobody needs, and call it when somebody knocks.

This is a program of its own, and as small as Python can be: it takes the place of a server in the
same process, so that an idle one costs next to nothing, and gives it back with all descriptors.
"""

from __future__ import annotations

import os
import select
import signal
import sys

FOR_EVER = "-"
ENDINGS = (signal.SIGTERM, signal.SIGINT)  # blocked until we can hear them

_POLL_LONGEST = 2**31 - 1  # milliseconds, more of which the system cannot count


class _Terminated(Exception):
    """We are to end."""


def main(words: list[str]) -> int:
    """Wait: LISTENER SECONDS SOCKET INODE PRIVATE COMMAND...

    Whoever knocks within so many seconds is left to the command, in this very process. Else, and
    when told to, end, and remove the socket (if it is still that inode) and the private directory.
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
