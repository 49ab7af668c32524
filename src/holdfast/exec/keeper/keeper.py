"""The keeper process: parent of all children of one state directory.

Theory of operation:

    exec-server ──SOCK_SEQPACKET, JSON + SCM_RIGHTS──▶ keeper ──posix_spawn / fork──▶ children
        ▲                                              │  holds: pidfd, pipes, pty of each child
        └────── replies, `exited` notifications ◀──────┘

    child:  running ──pidfd readable──▶ exited (zombie) ──forget──▶ reaped
               └────forget: SIGKILL──▶ exited ──▶ reaped

Invariants: one thread and one epoll loop, no call that waits for a server; one server at a time,
the newest connection replaces the old one, which may be dead or stuck; a server is read only while
it takes its replies (backpressure); an exited child stays a zombie until it is forgotten, so that
its pid is not reused and its status is not lost; children survive any number of servers. The flock
on `keeper.lock` is held for life, and the file contains our name, by which the next server kills
what outlives us after SIGKILL. On a clean exit the name is erased.

The keeper ends by itself: ALONE_LONGEST seconds after the last server left if it holds nothing;
ENDS_LONGEST if it holds only exited children; at once if its directory was deleted and nothing
runs.

Decision: docs/decisions/0043-keeper-process.md
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import select
import signal
import socket
import struct
import time
from collections import deque
from contextlib import suppress

from holdfast.exec.keeper.child import ChildSpec, KeptChild, started
from holdfast.exec.keeper.protocol import (
    LOCK_NAME,
    SOCKET_NAME,
    VERSIONS,
    KeeperName,
    MalformedPacket,
    Message,
    close_all,
    number,
    receive,
    send,
    text,
)

# Seconds that a keeper with nothing to keep waits for a server.
ALONE_LONGEST = 30.0
# Seconds that one waits which holds only ends: the status and the last output of processes that
# ended while no server was there. No session waits longer for its client than this.
ENDS_LONGEST = 86_400.0

_EXITED = "exited"


class StateLocked(Exception):
    """Another keeper holds this state directory."""


class Keeper:
    """The children of one state directory, and the current server connection."""

    def __init__(
        self,
        listener: socket.socket,
        lock: int,
        *,
        alone_longest: float = ALONE_LONGEST,
        ends_longest: float = ENDS_LONGEST,
    ) -> None:
        self._listener, self._lock = listener, lock
        self._alone_longest, self._ends_longest = alone_longest, ends_longest
        self._alone_since = self._looked_at = time.monotonic()
        self._server: socket.socket | None = None
        self._outgoing: deque[tuple[Message, list[int]]] = deque()
        self._children: dict[str, KeptChild] = {}
        self._by_pidfd: dict[int, KeptChild] = {}
        self._is_ending = False
        self._name = KeeperName.own()
        self._poll = select.epoll()
        self._poll.register(listener, select.EPOLLIN)

    def serve(self) -> None:
        """Serve requests until it is told to end, or has been idle for too long."""
        while not (self._is_ending and not self._outgoing):
            found = self._poll.poll(self._patience())
            if not found and self._patience() == 0.0:
                if not self._by_pidfd or self._is_directory_gone() or self._is_abandoned():
                    return
                self._looked_at = time.monotonic()
            for descriptor, _ in found:
                if child := self._by_pidfd.get(descriptor):
                    self._look(child)
                elif descriptor == self._listener.fileno():
                    self._accept()
                elif self._server is not None and descriptor == self._server.fileno():
                    self._serve_request(self._server)

    def _patience(self) -> float | None:
        """Timeout of the next poll in seconds; None (no timeout) while a server or a child is
        there.
        """
        if self._server is not None or any(
            child.status is None for child in self._by_pidfd.values()
        ):
            return None
        since = max(self._alone_since, self._looked_at)
        return max(0.0, since + self._alone_longest - time.monotonic())

    def _is_abandoned(self) -> bool:
        """Whether no server has come for exited children within `ends_longest`."""
        return time.monotonic() - self._alone_since >= self._ends_longest

    def _is_directory_gone(self) -> bool:
        """Whether the state directory was deleted: then no server can connect."""
        return not os.fstat(self._lock).st_nlink

    def _accept(self) -> None:
        """Accept a new server, which replaces the current one."""
        try:
            connection, _ = self._listener.accept()
        except OSError:
            # It gave up, or there are too many open files: it may come again.
            return
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        uid = struct.unpack("=iII", credentials)[1]
        if uid not in (os.geteuid(), 0):
            connection.close()
            return
        self._drop_server()
        connection.setblocking(False)
        self._server = connection
        self._poll.register(connection, select.EPOLLIN)

    def _drop_server(self) -> None:
        if self._server is not None:
            self._poll.unregister(self._server)
            self._server.close()
        self._server = None
        self._alone_since = time.monotonic()
        self._outgoing.clear()

    def _serve_request(self, server: socket.socket) -> None:
        """Send pending replies; only then read the next request."""
        if self._outgoing:
            self._flush()
            return
        try:
            received = receive(server)
            if received is None:
                self._drop_server()
                return
            message, descriptors = received
            try:
                self._answer(message, descriptors)
            finally:
                close_all(descriptors)
        except BlockingIOError:
            return
        except MalformedPacket:
            self._drop_server()

    def _answer(self, message: Message, descriptors: list[int]) -> None:
        about: Message = {"id": number(message, "id")}
        match text(message, "ask"):
            case "hello":
                versions: Message = {"version": max(VERSIONS), "versions": list(VERSIONS)}
                self._send(about | versions | {"pid": os.getpid()})
            case "end":
                self._is_ending = not self._by_pidfd
                self._send(about | {"is_ending": self._is_ending})
            case "start":
                self._start(about, message, descriptors)
            case "list":
                for child in self._children.values():
                    self._outgoing.append(_held(about | {"more": True}, child))
                self._send(about | {"more": False})
            case "signal":
                self._signal(about, message)
            case "close_stdin" | "forget" as ask:
                self._release(text(message, "key"), is_forgotten=ask == "forget")
                self._send(about)
            case "hold":
                keeps, name = self._children.get(text(message, "key")), text(message, "name")
                is_held = keeps is not None and bool(descriptors)
                if keeps is not None and descriptors:
                    keeps.hold(name, descriptors.pop(0))
                self._send(about | {"is_held": is_held})
            case unknown:
                raise MalformedPacket(f"nobody knows how to {unknown}")

    def _start(self, about: Message, message: Message, descriptors: list[int]) -> None:
        try:
            order = ChildSpec(message, descriptors)
            if order.key in self._children:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            child = started(order, self._name)
        except OSError as error:
            is_about_cwd = error.filename == message.get("cwd")
            self._send(about | {"errno": error.errno, "is_about_cwd": is_about_cwd})
            return
        except MalformedPacket:
            # A kind of ValueError, but none that the order's own words explain.
            raise
        except ValueError:
            # NUL in a text, or a variable whose name contains "=".
            self._send(about | {"errno": errno.EINVAL})
            return
        self._children[child.key] = self._by_pidfd[child.pidfd] = child
        self._poll.register(child.pidfd, select.EPOLLIN)
        self._outgoing.append(_held(about, child))
        self._flush()

    def _signal(self, about: Message, message: Message) -> None:
        child = self._children.get(text(message, "key"))
        number_asked, group = number(message, "signal"), message.get("group") is True
        if number_asked not in signal.valid_signals():
            raise MalformedPacket(f"there is no signal {number_asked}")
        is_sent = child is not None and child.signal(number_asked, group=group)
        self._send(about | {"is_sent": is_sent})

    def _release(self, key: str, *, is_forgotten: bool) -> None:
        child = self._children.get(key)
        if child is None:
            return
        child.close_stdin()
        if is_forgotten:
            del self._children[key]
            child.release()
            if child.status is None:
                # And reaped once that has worked.
                child.signal(signal.SIGKILL, group=True)
            else:
                self._reap(child)

    def _look(self, child: KeptChild) -> None:
        if not child.look():
            return
        self._poll.unregister(child.pidfd)
        self._alone_since = time.monotonic()
        if self._children.get(child.key) is child:
            self._send({"news": _EXITED, "key": child.key, "status": child.status})
        else:
            self._reap(child)

    def _reap(self, child: KeptChild) -> None:
        del self._by_pidfd[child.pidfd]
        self._alone_since = time.monotonic()
        child.reap()

    def _send(self, message: Message) -> None:
        if self._server is not None:
            self._outgoing.append((message, []))
            self._flush()

    def _flush(self) -> None:
        """Send until the socket buffer is full; epoll continues."""
        if self._server is None:
            self._outgoing.clear()
            return
        try:
            while self._outgoing:
                send(self._server, *self._outgoing[0])
                self._outgoing.popleft()
        except BlockingIOError:
            self._poll.modify(self._server, select.EPOLLOUT)
            return
        except OSError:
            self._drop_server()
            return
        self._poll.modify(self._server, select.EPOLLIN)


def listen(state: str) -> tuple[socket.socket, int]:
    """Lock a state directory and listen there; raises `StateLocked`.

    Our name stays in the lock file if we are killed: the next server kills what outlived us.
    """
    directory = os.open(state, os.O_RDONLY | os.O_DIRECTORY)
    lock = os.open(LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600, dir_fd=directory)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StateLocked from None
    # A full disk: what outlives us would only be reported, not ended.
    with suppress(OSError):
        os.ftruncate(lock, 0)
        os.write(lock, str(KeeperName.own()).encode())
    with suppress(FileNotFoundError):
        os.unlink(SOCKET_NAME, dir_fd=directory)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # Bound through the directory descriptor, since socket paths are limited to 107 bytes.
    umask = os.umask(0o177)
    try:
        listener.bind(f"/proc/self/fd/{directory}/{SOCKET_NAME}")
    finally:
        os.umask(umask)
    os.close(directory)
    listener.listen(8)
    return listener, lock


def main(state: str) -> int:
    """Fork the keeper of a directory; returns 0 once it listens, 1 if another keeper does."""
    hears, tells = os.pipe()
    if os.fork():
        os.close(tells)
        return 0 if os.read(hears, 1) else 1
    os.setsid()
    os.close(hears)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # With SIG_IGN the kernel would reap children itself, and their status would be lost.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    listener, lock = listen(state)
    keeper = Keeper(listener, lock)
    os.write(tells, b"!")
    os.close(tells)
    keeper.serve()
    with suppress(OSError):
        # A clean exit: the next server must not kill anything.
        os.ftruncate(lock, 0)
    return 0


def _held(about: Message, child: KeptChild) -> tuple[Message, list[int]]:
    held = {"key": child.key, "pid": child.pid, "status": child.status, "holds": list(child.holds)}
    if child.number is not None:
        held["number"] = child.number
    return about | {"held": held}, list(child.holds.values())
