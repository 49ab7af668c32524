"""Restore the terminal modes however the program ends, SIGKILL included.

The program runs in a child of a small process that only waits for it: after SIGKILL only another
process can restore the modes.
"""

from __future__ import annotations

import os
import signal
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_IN: Final = 0
_OUT: Final = 1
_PASSED_ON: Final = (signal.SIGTERM, signal.SIGHUP)
# Bracketed paste and mouse reporting off, cursor on, colours reset, previous key mode and title.
RESET: Final = b"\x1b[?2004l\x1b[?1000l\x1b[?1006l\x1b[?1l\x1b>\x1b[?25h\x1b[0m\x1b[23;0t"


def guarded(work: Callable[[], int]) -> int:
    """Run work in a child process, wait for it, and return its exit status (128 + signal)."""
    before = termios.tcgetattr(_IN)
    sys.stdout.flush()
    sys.stderr.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)  # until the child exists
    child = os.fork()
    if not child:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
        _work(work)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # that one is for who draws the screen
    for number in _PASSED_ON:
        signal.signal(number, lambda n, _: _pass_on(child, n))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        with suppress(OSError, termios.error):  # no terminal is left to be put back
            termios.tcsetattr(_IN, termios.TCSADRAIN, before)
            os.write(_OUT, RESET + b"\r\n")
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _pass_on(child: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(child, number)


def _work(work: Callable[[], int]) -> None:
    status = 1
    try:
        status = work()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)
