"""Client of the keeper, used by the exec-server: start, signal and adopt processes."""

from __future__ import annotations

import asyncio
import base64
import errno
import fcntl
import os
import socket
import struct
import termios
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, Self

import anyio.lowlevel

from holdfast.confine import ProcessEntry
from holdfast.exec.failures import KeeperLost, KeeperOutdated, KeeperUnavailable, StartFailed
from holdfast.exec.keeper.discovery import KeeperConnection, connect_keeper, kill_held, lock_state
from holdfast.exec.keeper.protocol import (
    ENTERS_SINCE,
    HOLDS_SINCE,
    MalformedPacket,
    Message,
    Packet,
    close_all,
    mapping,
    number,
    packet,
    receive,
    text,
    texts,
)
from holdfast.exec.output_index import LOST_STATUS
from holdfast.exec.protocol import OutputStream
from holdfast.world import disk_failure, in_thread


@dataclass(frozen=True, slots=True)
class TerminalSize:
    """Initial terminal size."""

    rows: int = 24
    cols: int = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """A process to start; apart from a mark in `env` nothing is added or inherited.

    `key` is unique on the machine for all time; `arg0` replaces argv[0]. `way` enters a place or a
    sandbox; if `is_led` the terminal belongs to a process that the command starts.
    """

    key: str
    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    arg0: str | None = None
    terminal: TerminalSize | None = None
    pipe_stdin: bool = False
    way: ProcessEntry | None = None
    is_led: bool = False

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The descriptors to send with the message."""
        way = self.way
        return () if way is None else (*way.namespaces, *way.groups, *way.files)

    def message(self) -> Message:
        """Encode the start request."""
        terminal = self.terminal and {"rows": self.terminal.rows, "cols": self.terminal.cols}
        plain: Message = {
            "key": self.key,
            "argv": list(self.argv),
            "cwd": self.cwd,
            "env": dict(self.env),
            "arg0": self.arg0,
            "terminal": terminal,
            "pipe_stdin": self.pipe_stdin,
        }
        return plain if self.way is None else plain | {"entry": _entry(self.way, self.is_led)}


def _entry(way: ProcessEntry, is_led: bool) -> Message:
    fence = way.fence and {
        "files": way.fence.files,
        "network": way.fence.network,
        "scopes": way.fence.scopes,
        "paths": [path for path, _ in way.fence.grants],
        "rights": [rights for _, rights in way.fence.grants],
    }
    return {
        "program": way.program,
        "namespaces": len(way.namespaces),
        "groups": len(way.groups),
        "carried": list(way.files.values()),
        "limits": [each for limit in way.limits for each in limit],
        "fence": fence,
        "filter": base64.b64encode(way.filter).decode("ascii"),
        "shields": list(way.shields),
        "is_unprivileged": way.is_unprivileged,
        "is_led": is_led,
    }


# And the name of a stream: the descriptor whose position is that of its ring.
_RING = "ring "


class KeeperRequest(Protocol):
    """Sends a request to the keeper, with descriptors."""

    def __call__(self, message: Message, beside: Sequence[int] = (), /) -> Awaitable[Message]: ...


class KeptProcess:
    """A process that the keeper holds, with our copies of its descriptors.

    The caller of `take` owns that descriptor; `release` closes the rest.
    """

    def __init__(
        self,
        ask: KeeperRequest,
        held: Message,
        descriptors: list[int],
        *,
        can_hold: bool = False,
        reap: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._ask, self._reap = ask, reap
        self.can_hold = can_hold  # descriptors of ours, which not every keeper can
        self.key, self.pid = text(held, "key"), number(held, "pid")
        self._holds = dict(zip(texts(held, "holds"), descriptors, strict=True))
        self.exit_status = None if held.get("status") is None else number(held, "status")
        self.number = None if held.get("number") is None else number(held, "number")
        self.is_terminal = "pty" in self._holds
        self._listeners: list[Callable[[int], None]] = []

    @property
    def streams(self) -> tuple[OutputStream, ...]:
        """Its output streams."""
        return (
            (OutputStream.PTY,) if self.is_terminal else (OutputStream.STDOUT, OutputStream.STDERR)
        )

    @property
    def takes_input(self) -> bool:
        """Whether it had a stdin when the keeper was asked."""
        return self.is_terminal or "stdin" in self._holds

    def take(self, name: str) -> int | None:
        """Return a descriptor by its protocol name (`stdin`, ...); the caller closes it."""
        return self._holds.pop(name, None)

    def take_positions(self) -> dict[OutputStream, int]:
        """Return the descriptors that hold the ring positions of its streams."""
        taken = {stream: self.take(f"{_RING}{stream}") for stream in self.streams}
        return {stream: fd for stream, fd in taken.items() if fd is not None}

    async def hold_position(self, stream: OutputStream, descriptor: int) -> bool:
        """Let the keeper hold the position descriptor of a ring; returns whether it does."""
        about: Message = {"ask": "hold", "key": self.key, "name": f"{_RING}{stream}"}
        return (await self._ask(about, (descriptor,))).get("is_held") is True

    def copy(self, name: str) -> int | None:
        """Duplicate a descriptor; the caller closes it."""
        held = self._holds.get(name)
        return None if held is None else os.dup(held)

    def on_exit(self, told: Callable[[int], None]) -> None:
        """Call back with the exit status: at once if it is known."""
        if self.exit_status is None:
            self._listeners.append(told)
        else:
            told(self.exit_status)

    def exited(self, status: int) -> None:
        """Set the exit status; only the first call counts."""
        if self.exit_status is None:
            self.exit_status = status
            listeners, self._listeners = self._listeners, []
            for told in listeners:
                told(status)

    async def signal(self, number: int, *, group: bool = True) -> bool:
        """Signal it, or its process group; returns whether any process received the signal."""
        answer = await self._ask(
            {"ask": "signal", "key": self.key, "signal": number, "group": group}
        )
        return answer.get("is_sent") is True

    async def close_stdin(self) -> None:
        """Let the keeper close its write end of stdin; EOF follows once our copy is closed too."""
        await self._ask({"ask": "close_stdin", "key": self.key})

    async def forget(self) -> None:
        """Let the keeper release everything; a running process is killed."""
        self.release()
        await self._ask({"ask": "forget", "key": self.key})

    def reap(self) -> None:
        """Let the keeper reap it and close its descriptors, without waiting for the reply.

        Only for a process whose end is recorded on disk: the keeper forgets it.
        """
        self.release()
        self._reap(self.key)

    def resize(self, rows: int, cols: int) -> None:
        """Set the terminal size; the kernel sends SIGWINCH."""
        if (master := self._holds.get("pty")) is not None:
            fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def release(self) -> None:
        """Close the descriptors that were not taken; the keeper still holds its own."""
        close_all(self._holds.values())
        self._holds.clear()


_ASKS_MAX = 256
# Seconds; a keeper may be held up by the disk that a program is on.
_ANSWER_LONGEST = 30.0


class KeeperNotAsked(Exception):
    """The keeper was gone before the request was sent: nothing was started."""


class KeeperClient:
    """Connection of the server to its keeper, which holds all processes of one state directory."""

    def __init__(self, lock: int, summoned: KeeperConnection, state: Path) -> None:
        self._loop = asyncio.get_running_loop()
        self._state = state
        self._lock, self._connection = lock, summoned.connection
        self.pid, self.version = summoned.name.pid, summoned.version
        self.was_there = summoned.was_there
        self.orphans = summoned.orphans
        self._name = summoned.name
        self._kept: dict[str, KeptProcess] = {}
        self._asked: deque[_Question] = deque()
        self._outgoing: deque[tuple[_Question, Packet]] = deque()
        self._is_blocked = False
        self._room = asyncio.Semaphore(_ASKS_MAX)
        self._number = 0
        self._lost: asyncio.Future[KeeperLost] = self._loop.create_future()
        self._is_open = True
        self._loop.add_reader(self._connection.fileno(), self._read_replies)

    @classmethod
    async def open(
        cls, state: Path, *, lock: int | None = None, open_files: int | None = None
    ) -> Self:
        """Lock a state directory and connect to its keeper, or start one.

        Processes of a new keeper get `open_files` as soft limit, or ours. `lock` is passed by a
        server that held the lock all the time. Raises `StateTaken`, `KeeperMismatched`,
        `KeeperUnavailable` or a disk failure. A keeper that hangs or dies during the handshake
        raises within seconds; the event loop is not blocked meanwhile.
        """
        with ExitStack() as undone:
            lock = lock_state(state) if lock is None else lock
            undone.callback(os.close, lock)
            found = await in_thread(partial(connect_keeper, state, open_files=open_files))
            undone.enter_context(found.connection)
            await anyio.lowlevel.checkpoint()
            keeper = cls(lock, found, state)
            undone.pop_all()
        return keeper

    @property
    def lost(self) -> KeeperLost | None:
        """The failure of a keeper that is gone; None while it lives."""
        return self._lost.result() if self._lost.done() else None

    async def wait_lost(self) -> KeeperLost:
        """Wait until the keeper is gone, with all its children."""
        return await asyncio.shield(self._lost)

    async def start(self, order: ProcessSpec) -> KeptProcess:
        """Start a process; raises `StartFailed` with the reason.

        Raises `KeeperNotAsked` if the keeper was gone before, and `KeeperLost` if it was lost
        meanwhile: then the process may have run, and has ended. If the caller is cancelled, or the
        keeper is late (`KeeperUnavailable`), a process that starts later is killed and forgotten.
        """
        if order.way is not None and self.version < ENTERS_SINCE:
            raise KeeperOutdated(command=order.argv[0])
        message: Message = {"ask": "start", **order.message()}
        try:
            question = await self._put(message, order.descriptors)
        except OSError as error:
            reason = str(error.strerror).lower()
            raise StartFailed(command=order.argv[0], reason=reason) from error
        except KeeperLost as lost:
            raise KeeperNotAsked from lost
        try:
            async with asyncio.timeout(_ANSWER_LONGEST):
                await asyncio.shield(question.answered)
        except asyncio.CancelledError:
            question.answered.add_done_callback(lambda _: self._disown(question))
            raise
        except TimeoutError as error:
            question.answered.add_done_callback(lambda _: self._disown(question))
            reason = "it does not answer"
            raise KeeperUnavailable(state=str(self._state), reason=reason) from error
        except KeeperLost as lost:
            if not question.is_sent:
                raise KeeperNotAsked from lost
            raise
        answer, kept = question.answers[0]
        if kept is None:
            reason = os.strerror(number(answer, "errno")).lower()
            if answer.get("is_about_cwd") is True:
                reason = f"{order.cwd}: {reason}"
            raise StartFailed(command=order.argv[0], reason=reason)
        return kept

    async def adopt(self) -> list[KeptProcess]:
        """Return every process that the keeper holds, oldest first, exited ones included.

        Raises a disk failure if our limit of open files is too low for their descriptors.
        """
        question = await self._put({"ask": "list"})
        await asyncio.shield(question.answered)
        if any("errno" in answer for answer, _ in question.answers):
            error = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            raise disk_failure(error, path=str(self._state))
        return [kept for _, kept in question.answers if kept is not None]

    async def ask(self, message: Message, beside: Sequence[int] = (), /) -> Message:
        """Send a request and return the reply; raises `KeeperLost` once the keeper is gone.

        Raises `OSError` before sending if the descriptors cannot be duplicated.
        """
        question = await self._put(message, beside)
        await asyncio.shield(question.answered)
        return question.answers[0][0]

    def copy_lock(self) -> int:
        """Duplicate the lock descriptor; its holder stays the one server after we close."""
        return os.dup(self._lock)

    async def close(self, *, end_keeper: bool = False) -> None:
        """Disconnect from the keeper, which lives on; or end it too, if it holds nothing."""
        if end_keeper and self._is_open and not self._lost.done():
            await self.ask({"ask": "end"})
        if self._is_open:
            # What happens to the keeper from now on is not our loss.
            self._is_open = False
            self._disconnect(KeeperLost(reason="we let go of it"))
            for kept in self._kept.values():
                kept.release()
            os.close(self._lock)

    async def _put(self, message: Message, beside: Sequence[int] = ()) -> _Question:
        """Send a request as soon as fewer than _ASKS_MAX are without a reply."""
        await self._room.acquire()
        if self._lost.done():
            self._room.release()
            raise self._lost.result()
        try:
            question = self._post(message, beside)
        except OSError:
            self._room.release()
            raise
        question.answered.add_done_callback(lambda _: self._room.release())
        return question

    def _post(self, message: Message, beside: Sequence[int] = ()) -> _Question:
        # Duplicated: the keeper may be slow to receive them, and the owner may close its own.
        posted = packet(message | {"id": self._number + 1}, beside)
        # There will be no more news of it.
        if message["ask"] == "forget":
            self._kept.pop(text(message, "key"), None)
        self._number += 1
        question = _Question(self._number, self._loop.create_future(), [])
        self._asked.append(question)
        self._outgoing.append((question, posted))
        self._flush()
        return question

    def _flush(self) -> None:
        try:
            while self._outgoing:
                question, (body, beside) = self._outgoing[0]
                socket.send_fds(self._connection, [body], beside)
                question.is_sent = True
                self._outgoing.popleft()
                close_all(beside)
        except BlockingIOError:
            self._is_blocked = True
            self._loop.add_writer(self._connection.fileno(), self._flush)
            return
        except OSError as error:
            self._keeper_died(str(error.strerror).lower())
            return
        if self._is_blocked:
            self._is_blocked = False
            self._loop.remove_writer(self._connection.fileno())

    def _read_replies(self) -> None:
        try:
            while self._is_open and not self._lost.done():
                received = receive(self._connection)
                if received is None:
                    self._keeper_died("it ended or was killed")
                    return
                self._handle(*received)
        except BlockingIOError:
            return
        except MalformedPacket as error:
            self._keeper_died(f"it spoke nonsense: {error}")

    def _handle(self, message: Message, descriptors: list[int]) -> None:
        if "id" not in message:
            if message.get("news") == "exited" and (kept := self._kept.get(text(message, "key"))):
                kept.exited(number(message, "status"))
            return
        if not self._asked or self._asked[0].number != number(message, "id"):
            close_all(descriptors)
            raise MalformedPacket("an answer to nothing")
        question = self._asked[0]
        kept = None
        # Made here and now: the news of its end may be the next message.
        if "held" in message:
            kept = self._received(mapping(message, "held"), descriptors)
            if kept is None:
                message |= {"errno": errno.EMFILE}
        question.answers.append((message, kept))
        if message.get("more") is not True:
            self._asked.popleft()
            question.answered.set_result(None)
            # What we cannot hold must not run.
            if "held" in message and kept is None:
                self._post({"ask": "forget", "key": text(mapping(message, "held"), "key")})

    def _received(self, held: Message, descriptors: list[int]) -> KeptProcess | None:
        """Wrap a held process; None if we had no room for all its descriptors."""
        if len(descriptors) < len(texts(held, "holds")):
            close_all(descriptors)
            return None
        can_hold = self.version >= HOLDS_SINCE
        kept = KeptProcess(self.ask, held, descriptors, can_hold=can_hold, reap=self._reap)
        self._kept[kept.key] = kept
        return kept

    def _reap(self, key: str) -> None:
        # Not counted against _ASKS_MAX: there is one per process, and no caller waits for it.
        if not self._lost.done():
            self._post({"ask": "forget", "key": key})

    def _disown(self, question: _Question) -> None:
        """Forget a process whose caller has gone."""
        if question.answered.exception() is None and not self._lost.done():
            kept = question.answers[0][1]
            if kept is not None:
                kept.release()
                self._post({"ask": "forget", "key": kept.key})

    def _keeper_died(self, reason: str) -> None:
        """Kill what the keeper held, and fail every waiting request."""
        if not self._lost.done():
            self._disconnect(KeeperLost(reason=reason))
            # The next `connect_keeper` ends what is left.
            with suppress(OSError):
                self.orphans = kill_held(self._name)
            for kept in list(self._kept.values()):
                kept.exited(LOST_STATUS)

    def _disconnect(self, lost: KeeperLost) -> None:
        if self._lost.done():
            return
        self._lost.set_result(lost)
        self._loop.remove_reader(self._connection.fileno())
        self._loop.remove_writer(self._connection.fileno())
        self._connection.close()
        while self._outgoing:
            close_all(self._outgoing.popleft()[1][1])
        while self._asked:
            question = self._asked.popleft()
            question.answered.set_exception(lost)
            # Marks the exception as retrieved: its waiter may have been cancelled.
            question.answered.exception()


@dataclass(slots=True)
class _Question:
    number: int
    answered: asyncio.Future[None]
    answers: list[tuple[Message, KeptProcess | None]]
    is_sent: bool = False
