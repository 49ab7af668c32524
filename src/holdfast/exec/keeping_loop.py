"""Speak with the keeper: start processes, signal them, adopt what a former server left."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from holdfast.exec.failures import KeeperLost, StartFailed
from holdfast.exec.keeper.protocol import (
    KeeperName,
    Malformed,
    Message,
    close_all,
    mapping,
    number,
    receive,
    send,
    text,
    texts,
)
from holdfast.exec.keeping import Summoned, lock_state, summon
from holdfast.exec.orphans import kill_held
from holdfast.exec.wire import Stream

KILLED_STATUS = 137  # what a process ends with when SIGKILL ends it

_ASKS_MAX = 256


@dataclass(frozen=True, slots=True)
class Terminal:
    """The size of a process's terminal when it starts."""

    rows: int = 24
    cols: int = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Which process to start, and how; but for a mark in `env`, nothing is added or inherited.

    `key` names it on the whole machine and for ever; `arg0` is what it is told as its own name.
    """

    key: str
    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    arg0: str | None = None
    terminal: Terminal | None = None
    pipe_stdin: bool = False

    def message(self) -> Message:
        """The order as the keeper reads it."""
        terminal = self.terminal and {"rows": self.terminal.rows, "cols": self.terminal.cols}
        return {
            "key": self.key,
            "argv": list(self.argv),
            "cwd": self.cwd,
            "env": dict(self.env),
            "arg0": self.arg0,
            "terminal": terminal,
            "pipe_stdin": self.pipe_stdin,
        }


class Kept:
    """One process that the keeper holds, with our copies of its descriptors.

    The descriptors belong to whoever takes them (`take`); the rest is closed with `release`.
    """

    def __init__(self, keeping: Keeping, held: Message, descriptors: list[int]) -> None:
        self._keeping = keeping
        self.key, self.pid = text(held, "key"), number(held, "pid")
        self._holds = dict(zip(texts(held, "holds"), descriptors, strict=True))
        self.exit_status = None if held.get("status") is None else number(held, "status")
        self.is_terminal = "pty" in self._holds
        self._listeners: list[Callable[[int], None]] = []

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Where its output comes from."""
        return (Stream.PTY,) if self.is_terminal else (Stream.STDOUT, Stream.STDERR)

    def take(self, name: str) -> int | None:
        """One descriptor by its name in the protocol (`stdin`, …), for the caller to close."""
        return self._holds.pop(name, None)

    def copy(self, name: str) -> int | None:
        """Another descriptor for the same, which the caller must close."""
        held = self._holds.get(name)
        return None if held is None else os.dup(held)

    def on_exit(self, told: Callable[[int], None]) -> None:
        """Tell of its end: at once if that is known, else when it comes."""
        if self.exit_status is None:
            self._listeners.append(told)
        else:
            told(self.exit_status)

    def exited(self, status: int) -> None:
        """Learn how it ended; only the first time counts."""
        if self.exit_status is None:
            self.exit_status = status
            listeners, self._listeners = self._listeners, []
            for told in listeners:
                told(status)

    async def signal(self, number: int, *, group: bool = True) -> bool:
        """Signal it, or its whole group; say whether anybody was there, and hit no stranger."""
        answer = await self._keeping.ask(
            {"ask": "signal", "key": self.key, "signal": number, "group": group}
        )
        return answer.get("is_sent") is True

    async def close_stdin(self) -> None:
        """Make the keeper let go of its standard input; it ends once our copy is closed too."""
        await self._keeping.ask({"ask": "close_stdin", "key": self.key})

    async def forget(self) -> None:
        """Have the keeper let go of everything; a process that still runs is killed."""
        self.release()
        await self._keeping.forget(self.key)

    def resize(self, rows: int, cols: int) -> None:
        """Change the size of its terminal, of which the kernel tells it."""
        if (master := self._holds.get("pty")) is not None:
            fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def release(self) -> None:
        """Close what nobody has taken; the keeper still holds it."""
        close_all(self._holds.values())
        self._holds.clear()


class Keeping:
    """The server's side of one keeper: every process of one state directory."""

    def __init__(self, lock: int, summoned: Summoned) -> None:
        self._loop = asyncio.get_running_loop()
        self._lock, self._connection = lock, summoned.connection
        self.pid, self.version = summoned.pid, summoned.version
        self.was_there = summoned.was_there
        self._keeper = KeeperName.of(summoned.pid)
        self._kept: dict[str, Kept] = {}
        self._asked: deque[_Question] = deque()
        self._outgoing: deque[Message] = deque()
        self._room = asyncio.Semaphore(_ASKS_MAX)
        self._number = 0
        self._lost: asyncio.Future[KeeperLost] = self._loop.create_future()
        self._is_open = True
        self._loop.add_reader(self._connection.fileno(), self._hear)

    @classmethod
    async def open(cls, state: Path) -> Self:
        """Become the one server of a directory, with its living keeper or a new one.

        Raises `StateTaken`, `KeeperMismatched` or `KeeperUnavailable`. Waits, without giving way to
        anything else, for as long as a keeper needs to answer.
        """
        with ExitStack() as undone:
            lock = lock_state(state)
            undone.callback(os.close, lock)
            keeping = cls(lock, summon(state))
            undone.pop_all()
        return keeping

    @property
    def lost(self) -> KeeperLost | None:
        """Why the keeper is gone, if it is."""
        return self._lost.result() if self._lost.done() else None

    async def wait_lost(self) -> KeeperLost:
        """Wait until the keeper is gone, with all that it held."""
        return await asyncio.shield(self._lost)

    async def start(self, order: Order) -> Kept:
        """A new process; raises `StartFailed` with the reason if there is none.

        If the caller is cancelled, what was started meanwhile is killed and forgotten.
        """
        question = await self._put({"ask": "start", **order.message()})
        try:
            await asyncio.shield(question.answered)
        except asyncio.CancelledError:
            question.answered.add_done_callback(lambda _: self._disown(question))
            raise
        answer, kept = question.answers[0]
        if kept is None:
            reason = os.strerror(number(answer, "errno")).lower()
            if answer.get("is_about_cwd") is True:
                reason = f"{order.cwd}: {reason}"
            raise StartFailed(command=order.argv[0], reason=reason)
        return kept

    async def adopt(self) -> list[Kept]:
        """Every process that the keeper holds, oldest first, ended ones included."""
        question = await self._put({"ask": "list"})
        await asyncio.shield(question.answered)
        return [kept for _, kept in question.answers if kept is not None]

    async def ask(self, message: Message) -> Message:
        """The keeper's answer; raises `KeeperLost` once it is gone."""
        question = await self._put(message)
        await asyncio.shield(question.answered)
        return question.answers[0][0]

    async def forget(self, key: str) -> None:
        """Have the keeper let go of a process; nothing happens if it does not hold it."""
        self._kept.pop(key, None)
        await self.ask({"ask": "forget", "key": key})

    async def close(self, *, end_keeper: bool = False) -> None:
        """Let go of the keeper, which lives on; or end it too, if it holds nothing."""
        if end_keeper and self._is_open and not self._lost.done():
            await self.ask({"ask": "end"})
        if self._is_open:
            self._is_open = False  # what happens to the keeper from now on is not our loss
            self._hang_up(KeeperLost(reason="we let go of it"))
            for kept in self._kept.values():
                kept.release()
            os.close(self._lock)

    async def _put(self, message: Message) -> _Question:
        """Ask as soon as there is room among the questions that have no answer yet."""
        await self._room.acquire()
        if self._lost.done():
            self._room.release()
            raise self._lost.result()
        question = self._post(message)
        question.answered.add_done_callback(lambda _: self._room.release())
        return question

    def _post(self, message: Message) -> _Question:
        self._number += 1
        question = _Question(self._number, self._loop.create_future(), [])
        self._asked.append(question)
        self._outgoing.append(message | {"id": self._number})
        self._flush()
        return question

    def _flush(self) -> None:
        try:
            while self._outgoing:
                send(self._connection, self._outgoing[0])
                self._outgoing.popleft()
        except BlockingIOError:
            self._loop.add_writer(self._connection.fileno(), self._flush)
            return
        except OSError as error:
            self._die(str(error.strerror).lower())
            return
        self._loop.remove_writer(self._connection.fileno())

    def _hear(self) -> None:
        try:
            while self._is_open and not self._lost.done():
                received = receive(self._connection)
                if received is None:
                    self._die("it ended or was killed")
                    return
                self._take_in(*received)
        except BlockingIOError:
            return
        except Malformed as error:
            self._die(f"it spoke nonsense: {error}")

    def _take_in(self, message: Message, descriptors: list[int]) -> None:
        if "id" not in message:
            if message.get("news") == "exited" and (kept := self._kept.get(text(message, "key"))):
                kept.exited(number(message, "status"))
            return
        if not self._asked or self._asked[0].number != number(message, "id"):
            close_all(descriptors)
            raise Malformed("an answer to nothing")
        question = self._asked[0]
        kept = None
        if "held" in message:  # made here and now: the news of its end may be the next message
            kept = Kept(self, mapping(message, "held"), descriptors)
            self._kept[kept.key] = kept
        question.answers.append((message, kept))
        if message.get("more") is not True:
            self._asked.popleft()
            question.answered.set_result(None)

    def _disown(self, question: _Question) -> None:
        """Forget a process that nobody waits for any more."""
        if question.answered.exception() is None and not self._lost.done():
            kept = question.answers[0][1]
            if kept is not None:
                kept.release()
                del self._kept[kept.key]
                self._post({"ask": "forget", "key": kept.key})

    def _die(self, reason: str) -> None:
        """The keeper is gone: end what it held, and say so to everyone who waits."""
        if not self._lost.done():
            self._hang_up(KeeperLost(reason=reason))
            kill_held(self._keeper)
            for kept in list(self._kept.values()):
                kept.exited(KILLED_STATUS)

    def _hang_up(self, lost: KeeperLost) -> None:
        if self._lost.done():
            return
        self._lost.set_result(lost)
        self._loop.remove_reader(self._connection.fileno())
        self._loop.remove_writer(self._connection.fileno())
        self._connection.close()
        self._outgoing.clear()
        while self._asked:
            question = self._asked.popleft()
            question.answered.set_exception(lost)
            question.answered.exception()  # whoever waited for it may be gone


@dataclass(slots=True)
class _Question:
    number: int
    answered: asyncio.Future[None]
    answers: list[tuple[Message, Kept | None]]
