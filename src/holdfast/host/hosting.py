"""One process for one session: it holds the runner, the journal and a socket until it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio

from holdfast.failures import to_wire
from holdfast.host.book import JOURNAL, Book
from holdfast.host.core.session import Phase, resumed
from holdfast.host.model import AnyRecord, Happened, Opened
from holdfast.host.ports import Workshop
from holdfast.host.room import watch_room
from holdfast.host.serving import Reception, Server
from holdfast.host.turns import ANSWER_LONGEST, Converser, EndEarlier, Turns, nothing_earlier
from holdfast.rpc import listen
from holdfast.runners.model import Noticed
from holdfast.world import Clock, Disk, SystemClock, SystemDisk, WriterThread, companions

# Seconds that a host with nothing to do and without a client stays. It costs 45 MiB to keep one
# after each `ask`, and half a second to start another one.
IDLE_LONGEST: Final = 30.0
_LOOK_AGAIN: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOrder:
    """Which session is to be hosted, where it is kept, and where its host is to be reached.

    `reason` says what became of the host before, as far as anybody knows; `answer_longest`, for
    how long a question waits for a person. `end_earlier` ends all that earlier hosts of the session
    have started and returns the commands of what could not be ended. `stopped_by` names whoever has
    ended everything here on purpose at this time (ms) or later.
    """

    session: str
    directory: Path
    socket: Path
    project: str
    draft: str
    runner: str
    reason: str = "its host died"
    answer_longest: float = ANSWER_LONGEST
    end_earlier: EndEarlier = nothing_earlier
    stopped_by: Callable[[int], str] = field(default=lambda _: "")


async def run_host(
    order: HostOrder,
    runner: Converser,
    workshop: Workshop,
    *,
    disk: Disk | None = None,
    clock: Clock | None = None,
) -> None:
    """Host a session until it is closed, or nobody has wanted anything of it for a while."""
    clock = clock or SystemClock()
    with WriterThread() as thread:
        path = order.directory / JOURNAL
        book = Book.open(disk or SystemDisk(), path, name=order.session, run=thread.start)
        try:
            server = await listen(order.socket)
            try:
                await hosted(order, book, server, runner, workshop, clock)
            finally:
                with anyio.CancelScope(shield=True):
                    await server.aclose()
        finally:
            book.close()


async def hosted(
    order: HostOrder,
    book: Book,
    server: Server,
    runner: Converser,
    workshop: Workshop,
    clock: Clock,
) -> None:
    """Host a session on what is open already, until it is closed or left alone."""
    reception = Reception(book, clock)
    turns = Turns(
        book=book,
        runner=runner,
        workshop=workshop,
        clock=clock,
        told=reception.show,
        troubled=reception.complain,
        answer_longest=order.answer_longest,
        end_earlier=order.end_earlier,
        stopped_by=order.stopped_by,
    )
    async with companions() as tasks:
        tasks.start_soon(reception.serve, server, turns)  # at once: who comes is told of trouble
        tasks.start_soon(watch_room, order.directory, reception)
        await turns.keep(lambda: _first_words(order, book, int(clock.now() * 1000)))
        tasks.start_soon(_leave_if_idle, book, reception, tasks.cancel_scope)
        await turns.run()
        await reception.farewell()


def _first_words(order: HostOrder, book: Book, at_ms: int) -> tuple[AnyRecord, ...]:
    records: tuple[AnyRecord, ...] = resumed(book.session, at_ms=at_ms, reason=order.reason)
    if (damage := book.damage) is not None:
        told = Noticed(damage.user_message, to_wire(damage.stamped(at_ms / 1000)))
        records = (*records, Happened(book.session.turn, told))
    if book.session.id:
        return records
    # Nothing was written down yet, or power failed while its first words were.
    return (Opened(order.session, order.project, order.draft, order.runner, at_ms), *records)


async def _leave_if_idle(book: Book, reception: Reception, scope: anyio.CancelScope) -> None:
    """Go when nobody has been there and nothing has run for a while: the journal is all we know."""
    idle = 0.0
    while idle < IDLE_LONGEST:
        await anyio.sleep(_LOOK_AGAIN)
        is_idle = book.session.phase is Phase.IDLE and not reception.is_visited
        idle = idle + _LOOK_AGAIN if is_idle and not book.session.waiting else 0.0
    scope.cancel()
