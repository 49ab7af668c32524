"""What a server and a keeper say to each other, and how it travels.

Each message is one packet: a JSON object, with descriptors beside it. A message that is too big
for a packet travels in a memory file, whose descriptor comes first. Requests carry an `id` and are
answered in their order; what has no `id` is news.

    hello {versions}                          -> {version, versions, pid}
    end {}                                    -> {is_ending}
    start {key, argv, arg0, cwd, env, terminal, pipe_stdin, entry}
                                              -> {held} + descriptors, or {errno, is_about_cwd}
    list {}                                   -> {held, more: true} + descriptors ..., {more: false}
    signal {key, signal, group}               -> {is_sent}
    close_stdin {key}                         -> {}
    forget {key}                              -> {}
    hold {key, name} + a descriptor           -> {is_held}
    news: exited {key, status}

`hello` and `end` are the same in every version there will ever be, so that a server can always
find out whom it met, and replace a keeper that holds nothing. `held` is {key, pid, status, holds}:
`holds` names the descriptors beside the message, in their order. A keeper that gives processes
limit numbers (`world.process_marks`) adds the `number`.

Since version 2 `start` may carry an `entry` {program, namespaces, groups, carried, limits, fence,
filter, shields, is_unprivileged, is_led}: the way into a place or a sandbox. Beside it come as many
descriptors as `namespaces` and `groups` say, and one for each number in `carried`, under which the
process finds it. A process that `is_led` leaves its terminal to one that it starts.

Since version 3 a server may have a descriptor of its own held with a process (`hold`), under a name
that takes the place of what had that name before. What its position says outlives the server.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple
from zlib import crc32

VERSIONS = (1, 2, 3)
ENTERS_SINCE = 2  # the version in which processes can enter places and sandboxes
HOLDS_SINCE = 3  # the version in which a server can have descriptors of its own held
SOCKET_NAME, LOCK_NAME, LOG_NAME = "keeper.sock", "keeper.lock", "keeper.log"
MARK = "HOLDFAST_PROCESS"  # in the environment of a child: its key, "@" and the keeper's name

TAG_BITS = 32  # of a keeper's name, in its limit numbers

PACKET_BYTES_MAX = 96 * 2**10
_DESCRIPTORS_MAX = 64
_BIG = b"big"
_INT = struct.Struct("i")
_encoded = json.JSONEncoder(separators=(",", ":")).encode  # made once: it takes longer than to use

Message = dict[str, object]
Packet = tuple[bytes, list[int]]


class MalformedPacket(ValueError):
    """What was received is not a message of this protocol."""


class KeeperName(NamedTuple):
    """One keeper, told from all others that the machine has had since it was switched on."""

    pid: int
    started: int
    namespace: int

    def __str__(self) -> str:
        return f"{self.pid}.{self.started}.{self.namespace}"

    @property
    def tag(self) -> int:
        """The last bits (`TAG_BITS`) of all limit numbers that it gives (`exec.keeper.child`)."""
        return crc32(str(self).encode("ascii"))

    @classmethod
    def own(cls) -> KeeperName:
        """Our own name."""
        with open("/proc/self/stat", "rb") as file:
            # The name of the program stands in parentheses and may contain anything, also these.
            fields = file.read().rpartition(b") ")[2].split()
        return cls(os.getpid(), int(fields[19]), os.stat("/proc/self/ns/pid").st_ino)

    @classmethod
    def parse(cls, name: str) -> KeeperName | None:
        """The name that stands in a mark, if it is one."""
        parts = name.split(".")
        if len(parts) != len(cls._fields) or not all(part.isdecimal() for part in parts):
            return None
        return cls(*map(int, parts))


def agreed(ours: Iterable[int], theirs: Iterable[int]) -> int | None:
    """The newest version that both sides speak, if there is one."""
    return max(set(ours) & set(theirs), default=None)


def send(connection: socket.socket, message: Message, descriptors: Sequence[int] = ()) -> None:
    """Send one message whole, or raise `BlockingIOError` and send nothing of it."""
    body, beside = _packed(message)
    try:
        socket.send_fds(connection, [body], [*beside, *descriptors])
    finally:
        close_all(beside)


def packet(message: Message, descriptors: Sequence[int] = ()) -> Packet:
    """One message to be sent later, with copies of its descriptors, for the sender to close.

    Raises `OSError` if there is no room for those.
    """
    body, beside = _packed(message)
    try:
        for each in descriptors:
            beside.append(os.dup(each))  # one by one, so that those before it are known
    except OSError:
        close_all(beside)
        raise
    return body, beside


def receive(connection: socket.socket) -> tuple[Message, list[int]] | None:
    """One message with its descriptors, or None once the other side is gone.

    Raises `BlockingIOError` if there is none yet, and `MalformedPacket` for anything else.
    """
    try:
        # `socket.recv_fds` forgets its flags, and these must not be inherited by any child.
        body, beside, _, _ = connection.recvmsg(
            PACKET_BYTES_MAX + 1,
            socket.CMSG_SPACE(_DESCRIPTORS_MAX * _INT.size),
            socket.MSG_CMSG_CLOEXEC,
        )
    except ConnectionResetError:
        return None
    if not body:
        return None
    descriptors: list[int] = [
        descriptor for _, _, data in beside for (descriptor,) in _INT.iter_unpack(data)
    ]
    try:
        if body == _BIG and descriptors:
            body = _unpacked(descriptors.pop(0))
        return _message(body), descriptors
    except (MalformedPacket, OSError) as error:
        close_all(descriptors)
        raise MalformedPacket(str(error)) from error


def text(message: Message, name: str) -> str:
    """A member that must be text."""
    value = message.get(name)
    if not isinstance(value, str):
        raise MalformedPacket(f"{name} is not text")
    return value


def number(message: Message, name: str) -> int:
    """A member that must be a whole number."""
    value = message.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise MalformedPacket(f"{name} is not a number")
    return value


def texts(message: Message, name: str) -> list[str]:
    """A member that must be a list of texts."""
    value = message.get(name)
    if not isinstance(value, list):
        raise MalformedPacket(f"{name} is not a list")
    return [text({name: item}, name) for item in value]  # pyright: ignore[reportUnknownVariableType]  # text() looks at it


def numbers(message: Message, name: str) -> list[int]:
    """A member that must be a list of whole numbers."""
    value = message.get(name)
    if not isinstance(value, list):
        raise MalformedPacket(f"{name} is not a list")
    return [number({name: item}, name) for item in value]  # pyright: ignore[reportUnknownVariableType]  # number() looks at it


def mapping(message: Message, name: str) -> Message:
    """A member that must be an object."""
    value = message.get(name)
    if not isinstance(value, dict):
        raise MalformedPacket(f"{name} is not an object")
    return value  # pyright: ignore[reportUnknownVariableType]  # JSON has no other keys than texts


def close_all(descriptors: Iterable[int]) -> None:
    """Close them, those that are closed already included."""
    for descriptor in descriptors:
        with suppress(OSError):
            os.close(descriptor)


def _packed(message: Message) -> Packet:
    """A message as it travels: by itself, or in a memory file that is to be closed."""
    body = _encoded(message).encode()
    if len(body) <= PACKET_BYTES_MAX:
        return body, []
    memory = os.memfd_create("message")
    try:
        with open(memory, "wb", closefd=False) as file:
            file.write(body)
    except OSError:
        os.close(memory)
        raise
    return _BIG, [memory]


def _unpacked(memory: int) -> bytes:
    with open(memory, "rb") as file:
        file.seek(0)
        return file.read()


def _message(body: bytes) -> Message:
    try:
        value: object = json.loads(body)
    except ValueError as error:
        raise MalformedPacket("it is not JSON") from error
    if not isinstance(value, dict):
        raise MalformedPacket("it is not an object")
    return value  # pyright: ignore[reportUnknownVariableType]  # JSON has no other keys than texts
