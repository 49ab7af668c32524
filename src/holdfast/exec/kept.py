"""Have one process that the keeper holds: its descriptors, its end, and a way to signal it."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from holdfast.exec.keeper.protocol import Message, close_all, number, text, texts
from holdfast.exec.wire import Stream

_RING = "ring "  # and the name of a stream: the descriptor whose position is that of its ring


class Ask(Protocol):
    """A way to ask the keeper something, with descriptors beside it."""

    def __call__(self, message: Message, beside: Sequence[int] = (), /) -> Awaitable[Message]:
        """The keeper's answer."""
        ...


class Kept:
    """One process that the keeper holds, with our copies of its descriptors.

    The descriptors belong to whoever takes them (`take`); the rest is closed with `release`.
    """

    def __init__(
        self,
        ask: Ask,
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
    def streams(self) -> tuple[Stream, ...]:
        """Where its output comes from."""
        return (Stream.PTY,) if self.is_terminal else (Stream.STDOUT, Stream.STDERR)

    @property
    def takes_input(self) -> bool:
        """Whether anything can be written to it, as far as its keeper knew when it was asked."""
        return self.is_terminal or "stdin" in self._holds

    def take(self, name: str) -> int | None:
        """One descriptor by its name in the protocol (`stdin`, …), for the caller to close."""
        return self._holds.pop(name, None)

    def take_positions(self) -> dict[Stream, int]:
        """The descriptors that tell how far the rings of its streams have come."""
        taken = {stream: self.take(f"{_RING}{stream}") for stream in self.streams}
        return {stream: fd for stream, fd in taken.items() if fd is not None}

    async def hold_position(self, stream: Stream, descriptor: int) -> bool:
        """Have the keeper hold the position of a stream's ring; say whether it does."""
        about: Message = {"ask": "hold", "key": self.key, "name": f"{_RING}{stream}"}
        return (await self._ask(about, (descriptor,))).get("is_held") is True

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
        answer = await self._ask(
            {"ask": "signal", "key": self.key, "signal": number, "group": group}
        )
        return answer.get("is_sent") is True

    async def close_stdin(self) -> None:
        """Make the keeper let go of its standard input; it ends once our copy is closed too."""
        await self._ask({"ask": "close_stdin", "key": self.key})

    async def forget(self) -> None:
        """Have the keeper let go of everything; a process that still runs is killed."""
        self.release()
        await self._ask({"ask": "forget", "key": self.key})

    def reap(self) -> None:
        """Have the keeper reap it and close its descriptors, without waiting for that.

        Only for a process whose end is recorded on disk: the keeper keeps no trace of it.
        """
        self.release()
        self._reap(self.key)

    def resize(self, rows: int, cols: int) -> None:
        """Change the size of its terminal, of which the kernel tells it."""
        if (master := self._holds.get("pty")) is not None:
            fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def release(self) -> None:
        """Close what nobody has taken; the keeper still holds it."""
        close_all(self._holds.values())
        self._holds.clear()
