"""Hand the listening socket of an idle server to the idle listener, and take it back."""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Self

from holdfast.exec.server import idle_listener

_VARIABLE = "HOLDFAST_RESTED"


@dataclass(frozen=True, slots=True)
class IdleHandover:
    """What survives an idle server: its listening socket, the lock, and the state directory.

    A private state directory is removed when the idle listener ends after `seconds`.
    """

    listener: socket.socket
    lock: int
    state: Path
    is_private: bool
    seconds: float | None = None
    open_files: int | None = None  # the limit that we were given, and have raised since

    @classmethod
    def over(cls, environment: Mapping[str, str]) -> Self | None:
        """Return the handover from the idle listener, if it started us; its descriptors are the
        caller's.
        """
        number, _, left = environment.get(_VARIABLE, "").partition(":")
        if number != str(os.getpid()):
            return None
        listener, lock, is_private, state = left.split(":", 3)
        os.set_inheritable(int(lock), False)
        listening = socket.socket(fileno=int(listener))
        listening.set_inheritable(False)
        return cls(listening, int(lock), Path(state), is_private == "1")

    def begin(self, environment: Mapping[str, str]) -> NoReturn:
        """Execute the idle listener, which executes this server again when a client connects."""
        fd = self.listener.fileno()
        os.set_inheritable(fd, True)
        os.set_inheritable(self.lock, True)
        left = f"{os.getpid()}:{fd}:{self.lock}:{self.is_private:d}:{self.state}"
        path = self.listener.getsockname() if self.listener.family == socket.AF_UNIX else ""
        words = [
            str(fd),
            idle_listener.FOR_EVER if self.seconds is None else str(self.seconds),
            path,
            str(os.lstat(path).st_ino if path else 0),
            str(self.state) if self.is_private else "",
        ]
        again = [sys.executable, *sys.orig_argv[1:]]
        if self.open_files is not None:
            allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.open_files, allowed))
        signal.pthread_sigmask(signal.SIG_BLOCK, idle_listener.ENDINGS)
        os.execve(
            sys.executable,
            [sys.executable, "-I", "-S", idle_listener.__file__, *words, *again],
            {**environment, _VARIABLE: left},
        )


def without_rest(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables of the handover."""
    return {name: value for name, value in environment.items() if name != _VARIABLE}
