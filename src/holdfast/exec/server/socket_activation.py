"""Leave the door to a porter while nobody needs the server, and go on when somebody knocks."""

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

from holdfast.exec.server import idle_listener as porter

_VARIABLE = "HOLDFAST_RESTED"


@dataclass(frozen=True, slots=True)
class IdleHandover:
    """What outlives a server that rests: its listening socket, the lock of its state, that state.

    Nobody needs a private state once the server has ended, which it does after so many `seconds`.
    """

    listener: socket.socket
    lock: int
    state: Path
    is_private: bool
    seconds: float | None = None
    open_files: int | None = None  # the limit that we were given, and have raised since

    @classmethod
    def over(cls, environment: Mapping[str, str]) -> Self | None:
        """What we left to a porter, if one has called us; it belongs to whoever asks first."""
        number, _, left = environment.get(_VARIABLE, "").partition(":")
        if number != str(os.getpid()):
            return None
        listener, lock, is_private, state = left.split(":", 3)
        os.set_inheritable(int(lock), False)
        listening = socket.socket(fileno=int(listener))
        listening.set_inheritable(False)
        return cls(listening, int(lock), Path(state), is_private == "1")

    def begin(self, environment: Mapping[str, str]) -> NoReturn:
        """Become a porter, who becomes this server again when somebody knocks."""
        fd = self.listener.fileno()
        os.set_inheritable(fd, True)
        os.set_inheritable(self.lock, True)
        left = f"{os.getpid()}:{fd}:{self.lock}:{self.is_private:d}:{self.state}"
        path = self.listener.getsockname() if self.listener.family == socket.AF_UNIX else ""
        words = [
            str(fd),
            porter.FOR_EVER if self.seconds is None else str(self.seconds),
            path,
            str(os.lstat(path).st_ino if path else 0),
            str(self.state) if self.is_private else "",
        ]
        again = [sys.executable, *sys.orig_argv[1:]]
        if self.open_files is not None:
            allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.open_files, allowed))
        signal.pthread_sigmask(signal.SIG_BLOCK, porter.ENDINGS)
        os.execve(
            sys.executable,
            [sys.executable, "-I", "-S", porter.__file__, *words, *again],
            {**environment, _VARIABLE: left},
        )


def without_rest(environment: Mapping[str, str]) -> dict[str, str]:
    """The same environment without what is between a server and its porter."""
    return {name: value for name, value in environment.items() if name != _VARIABLE}
