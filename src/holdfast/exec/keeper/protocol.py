"""Protocol between an exec-server and its keeper: JSON packets with file descriptors.

Theory of operation. The socket is AF_UNIX SOCK_SEQPACKET; each packet is one JSON object with
descriptors attached (SCM_RIGHTS). A message larger than PACKET_BYTES_MAX is sent in a memfd, whose
descriptor comes first. Requests carry an `id` and are answered in order; a message without an `id`
is a notification. Invariants: a packet is sent whole or not at all; received descriptors are
close-on-exec; a malformed packet closes the connection, never the keeper.

    hello {versions}                          -> {version, versions, pid}
    end {}                                    -> {is_ending}
    start {key, argv, arg0, cwd, env, terminal, pipe_stdin, entry}
                                              -> {held} + descriptors, or {errno, is_about_cwd}
    list {}                                   -> {held, more: true} + descriptors ..., {more: false}
    signal {key, signal, group}               -> {is_sent}
    close_stdin {key}                         -> {}
    forget {key}                              -> {}
    hold {key, name} + a descriptor           -> {is_held}
    notification: exited {key, status}, with the member `news`

`hello` and `end` are frozen for all versions, so that a server can always identify a keeper, and
replace one that holds nothing. `held` is {key, pid, status, holds}: `holds` names the attached
descriptors in order. A keeper that sets limit numbers (`world.process_marks`) adds `number`.

Since version 2 `start` may carry an `entry` {program, namespaces, groups, carried, limits, fence,
filter, shields, is_unprivileged, is_led}, to enter a place or a sandbox. Attached are as many
descriptors as `namespaces` and `groups` say, and one for each number in `carried`, which is its
descriptor number in the process. With `is_led` the terminal belongs to a child of the process.

Since version 3 the keeper can hold a descriptor of the server with a process (`hold`), which
replaces the previous one of that name. Its file position survives the server.
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
# The version in which processes can enter places and sandboxes.
ENTERS_SINCE = 2
# The version in which a server can have descriptors of its own held.
HOLDS_SINCE = 3
SOCKET_NAME, LOCK_NAME, LOG_NAME = "keeper.sock", "keeper.lock", "keeper.log"
# In the environment of a child: its key, "@" and the keeper's name.
MARK = "HOLDFAST_PROCESS"

# Of a keeper's name, in its limit numbers.
TAG_BITS = 32

PACKET_BYTES_MAX = 96 * 2**10
_DESCRIPTORS_MAX = 64
_BIG = b"big"
_INT = struct.Struct("i")
# Made once: it takes longer than to use.
_encoded = json.JSONEncoder(separators=(",", ":")).encode

Message = dict[str, object]
Packet = tuple[bytes, list[int]]


class MalformedPacket(ValueError):
    """A received packet is not valid in this protocol."""


class KeeperName(NamedTuple):
    """Identity of a keeper, unique since boot: pid, start time and pid namespace."""

    pid: int
    started: int
    namespace: int

    def __str__(self) -> str:
        return f"{self.pid}.{self.started}.{self.namespace}"

    @property
    def tag(self) -> int:
        """The last `TAG_BITS` of all limit numbers of this keeper (`exec.keeper.child`)."""
        return crc32(str(self).encode("ascii"))

    @classmethod
    def own(cls) -> KeeperName:
        with open("/proc/self/stat", "rb") as file:
            # The program name is in parentheses, and may itself contain parentheses.
            fields = file.read().rpartition(b") ")[2].split()
        return cls(os.getpid(), int(fields[19]), os.stat("/proc/self/ns/pid").st_ino)

    @classmethod
    def parse(cls, name: str) -> KeeperName | None:
        """Parse the name in a mark; None if it is not valid."""
        parts = name.split(".")
        if len(parts) != len(cls._fields) or not all(part.isdecimal() for part in parts):
            return None
        return cls(*map(int, parts))


def agreed(ours: Iterable[int], theirs: Iterable[int]) -> int | None:
    """Return the newest common version, None if there is none."""
    return max(set(ours) & set(theirs), default=None)


def send(connection: socket.socket, message: Message, descriptors: Sequence[int] = ()) -> None:
    """Send one message whole, or raise `BlockingIOError` and send nothing."""
    body, beside = _packed(message)
    try:
        socket.send_fds(connection, [body], [*beside, *descriptors])
    finally:
        close_all(beside)


def packet(message: Message, descriptors: Sequence[int] = ()) -> Packet:
    """Encode a message to send later, with duplicated descriptors, which the sender closes.

    Raises `OSError` if they cannot be duplicated.
    """
    body, beside = _packed(message)
    try:
        for each in descriptors:
            # One by one, so that those before it are known.
            beside.append(os.dup(each))
    except OSError:
        close_all(beside)
        raise
    return body, beside


def receive(connection: socket.socket) -> tuple[Message, list[int]] | None:
    """Receive one message with its descriptors; None at EOF.

    Raises `BlockingIOError` if there is none yet, and `MalformedPacket`.
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
    """Return a string member; raises `MalformedPacket`."""
    value = message.get(name)
    if not isinstance(value, str):
        raise MalformedPacket(f"{name} is not text")
    return value


def number(message: Message, name: str) -> int:
    """Return an integer member; raises `MalformedPacket`."""
    value = message.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise MalformedPacket(f"{name} is not a number")
    return value


def texts(message: Message, name: str) -> list[str]:
    """Return a list of strings; raises `MalformedPacket`."""
    value = message.get(name)
    if not isinstance(value, list):
        raise MalformedPacket(f"{name} is not a list")
    return [text({name: item}, name) for item in value]  # pyright: ignore[reportUnknownVariableType]  # text() looks at it


def numbers(message: Message, name: str) -> list[int]:
    """Return a list of integers; raises `MalformedPacket`."""
    value = message.get(name)
    if not isinstance(value, list):
        raise MalformedPacket(f"{name} is not a list")
    return [number({name: item}, name) for item in value]  # pyright: ignore[reportUnknownVariableType]  # number() looks at it


def mapping(message: Message, name: str) -> Message:
    """Return an object member; raises `MalformedPacket`."""
    value = message.get(name)
    if not isinstance(value, dict):
        raise MalformedPacket(f"{name} is not an object")
    return value  # pyright: ignore[reportUnknownVariableType]  # JSON has no other keys than texts


def close_all(descriptors: Iterable[int]) -> None:
    """Close descriptors, ignoring those that are closed already."""
    for descriptor in descriptors:
        with suppress(OSError):
            os.close(descriptor)


def _packed(message: Message) -> Packet:
    """Encode a message: as packet body, or in a memfd for the caller to close."""
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
