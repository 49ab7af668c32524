"""Start gate: hold a sandbox between its setup and the start of its command.

Bubblewrap reports the pid of its first process, a shell that waits for a byte on a pipe before it
execs the command; if the starter dies, the pipe closes and the shell exits. Meanwhile a listening
socket is created in the sandbox's network namespace: a socket stays in the namespace where it was
created, whichever process holds it. Clients inside thus reach the proxy outside.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import select
import socket
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, NoReturn, Self

from holdfast.confine.entry import ProcessEntry
from holdfast.confine.failures import SandboxFailed
from holdfast.confine.kernel import join

PROXY_PORT: Final = 3128  # free: a new network namespace has no listeners

_NS_GET_USERNS: Final = 0xB701
_IP_FREEBIND: Final = 15  # Python has no name for it
_WAIT: Final = 'read -r word <&{0} || exit 126; exec {0}<&-; exec "$@"'
_LAST_DIGIT: Final = 9  # plain shells know no higher numbers
_INFO_BYTES_MAX: Final = 4096
_BACKLOG: Final = 128
_STANDING_LONGEST: Final = 15.0  # seconds
_LOOPBACK: Final = "127.0.0.1"


class StartGate:
    """Holds a sandbox up before its command begins; `entry` is what is to be entered.

    The entry leads through bubblewrap. If the threshold is left without having been crossed, even
    because we were killed, the command never begins.
    """

    def __init__(self, entry: ProcessEntry) -> None:
        used = {0, 1, 2, *entry.files.values()}
        gate = next(number for number in range(_LAST_DIGIT + 1) if number not in used)
        told = max(_LAST_DIGIT, *used) + 1
        self._hears, info = os.pipe()
        word, self._tells = os.pipe()
        self._theirs = [info, word]
        program, *options = entry.argv
        ours, command = options[: options.index("--")], options[options.index("--") + 1 :]
        waiting = ["/bin/sh", "-c", _WAIT.format(gate), "sh", *command]
        self.entry = replace(
            entry,
            argv=[program, "--info-fd", str(told), *ours, "--", *waiting],
            files={**entry.files, info: told, word: gate},
        )
        self.first = 0  # the number of the first process inside, as we see it

    def arrive(self) -> None:
        """Wait, after it was entered, until the sandbox stands."""
        self._forget_theirs()
        told = b""
        while len(told) < _INFO_BYTES_MAX:
            if not select.select([self._hears], [], [], _STANDING_LONGEST)[0]:
                raise SandboxFailed(reason="it does not come to stand")
            piece = os.read(self._hears, _INFO_BYTES_MAX)
            if not piece:
                break
            told += piece
        try:
            self.first = int(json.loads(told)["child-pid"])
        except (ValueError, KeyError) as error:
            raise SandboxFailed(reason="it ended before its command began") from error

    def listen(self) -> socket.socket:
        """A socket that listens in there, at `PROXY_PORT`, and that only we can accept from.

        May be called only where there is one thread.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            child = os.fork()
            if child == 0:
                _listen_inside(self.first, theirs)
            theirs.close()
            word, found, _, _ = socket.recv_fds(ours, 1, 1)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if not word:
            raise SandboxFailed(reason=f"no way out of its network ({os.strerror(status)})")
        return socket.socket(fileno=found[0])

    def cross(self) -> None:
        """Let the command begin."""
        with suppress(BrokenPipeError):  # the sandbox has ended: its waiter reports that
            os.write(self._tells, b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._forget_theirs()
        os.close(self._hears)
        os.close(self._tells)

    def _forget_theirs(self) -> None:
        while self._theirs:
            os.close(self._theirs.pop())


def command_of(first: int) -> int | None:
    """The number of the command that the first process of a sandbox waits for, while it runs."""
    with suppress(OSError):
        children = Path(f"/proc/{first}/task/{first}/children").read_text("ascii").split()
        if children:
            return int(children[0])
    return None


def _listen_inside(first: int, theirs: socket.socket) -> NoReturn:
    """Go where the network is, make a socket there, hand it out and be gone."""
    number = errno.EIO
    try:
        network = os.open(f"/proc/{first}/ns/net", os.O_RDONLY)
        owner = fcntl.ioctl(network, _NS_GET_USERNS)
        if not os.path.samestat(os.fstat(owner), os.stat("/proc/self/ns/user")):
            join(owner)
        join(network)
        with socket.socket() as listener:
            # The address may not be there yet: the sandbox is still being made.
            listener.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)
            listener.bind((_LOOPBACK, PROXY_PORT))
            listener.listen(_BACKLOG)
            socket.send_fds(theirs, [b"+"], [listener.fileno()])
        number = 0
    except OSError as error:
        number = error.errno or errno.EIO
    finally:
        os._exit(number)
