"""What every transport must keep, as tests to inherit, and the far end that they need."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import Protocol

import anyio

from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost, MessageTooLarge
from holdfast.rpc.framing import MESSAGE_BYTES_MAX
from holdfast.rpc.ports import Transport

PATIENCE = 60.0
STANDSTILL = 0.3
HELD_BYTES_MAX = 8 * 2**20


class FarEnd(Transport, Protocol):
    """The other side of the transport under test, which can also vanish."""

    async def cut(self, messages: Sequence[bytes], *, after: int) -> None:
        """Send only so many bytes of these messages as they look on the wire, and vanish."""
        ...


class Conversations(ABC):
    """Where a suite gets its connections, and what it asks of each afterwards."""

    @abstractmethod
    def connect(
        self, *, message_bytes_max: int
    ) -> AbstractAsyncContextManager[tuple[Transport, FarEnd]]:
        """A connected pair: the transport under test with this limit, and its far end."""

    def wire_sizes(self, messages: Sequence[bytes]) -> list[tuple[int, int]]:
        """For each message the bytes after which it is whole, and after which the next begins."""
        ends = accumulate(len(message) + 1 for message in messages)
        return [(end - 1, end) for end in ends]

    @asynccontextmanager
    async def connected(
        self, *, message_bytes_max: int = MESSAGE_BYTES_MAX
    ) -> AsyncGenerator[tuple[Transport, FarEnd]]:
        """A pair that leaves no task and no descriptor behind."""
        before = _tasks(), _descriptors()
        with anyio.fail_after(PATIENCE):
            async with self.connect(message_bytes_max=message_bytes_max) as (ours, far):
                try:
                    yield ours, far
                finally:
                    with anyio.CancelScope(shield=True):
                        await ours.aclose()
                        await far.aclose()
        assert (_tasks(), _descriptors()) == before


class CarriesMessages(Conversations):
    """Messages arrive whole, once and in order, whatever their size and whoever is slow."""

    async def test_messages_arrive_whole_and_in_order_both_ways(self) -> None:
        """Both sides send much at once, in batches of every size."""
        batches = [numbered(range(n, n + 1 + n % 7)) for n in range(0, 4000, 7)]
        sent = [message for batch in batches for message in batch]
        async with self.connected() as (ours, far), anyio.create_task_group() as tasks:
            for sender in (ours, far):
                tasks.start_soon(_send_all, sender, batches)
            assert await take(ours, len(sent)) == sent
            assert await take(far, len(sent)) == sent

    async def test_an_empty_batch_is_nothing(self) -> None:
        """Nothing arrives for nothing, and the connection lives."""
        async with self.connected() as (ours, far):
            await ours.send([])
            await ours.send([b"{}"])
            assert await far.receive() == [b"{}"]

    async def test_large_messages_arrive_whole(self) -> None:
        """One of 1 MiB and one of 20 MiB, between small ones, both ways."""
        sent = [b"{}", _of_size(2**20), b"{}", _of_size(20 * 2**20), b"{}"]
        async with self.connected() as (ours, far):
            for sender, receiver in ((ours, far), (far, ours)):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_send_all, sender, [[message] for message in sent])
                    assert await take(receiver, len(sent)) == sent

    async def test_many_may_send(self) -> None:
        """Batches of concurrent senders stay whole, and those of one sender in order."""
        batches = [[numbered(range(n, n + 5), name) for n in range(0, 200, 5)] for name in "abcdef"]
        async with self.connected() as (ours, far), anyio.create_task_group() as tasks:
            for own in batches:
                tasks.start_soon(_send_all, ours, own)
            got = await take(far, sum(len(batch) for own in batches for batch in own))
            got_batches = [got[first : first + 5] for first in range(0, len(got), 5)]
            for own in batches:
                assert [batch for batch in got_batches if batch in own] == own

    async def test_a_slow_reader_makes_the_sender_wait_and_loses_nothing(self) -> None:
        """Neither direction holds more than a bounded number of bytes."""
        async with self.connected() as (ours, far):
            for sender, receiver in ((ours, far), (far, ours)):
                sent = await fill(sender)
                assert sum(map(len, sent)) < HELD_BYTES_MAX
                assert await take(receiver, len(sent)) == sent

    async def test_an_offer_is_taken_while_there_is_room_and_never_in_part(self) -> None:
        """What is offered arrives if it was taken; once a slow reader reads, more is taken."""
        async with self.connected() as (ours, far):
            taken: list[bytes] = []
            for batch in ([message] for message in numbered(range(100_000))):
                if not ours.offer(batch):
                    break
                taken += batch
            assert 0 < len(taken) < 100_000
            assert await take(far, len(taken)) == taken
            assert ours.offer([b'{"n":"more"}'])
            assert await take(far, 1) == [b'{"n":"more"}']

    async def test_a_send_that_is_cancelled_happens_whole_or_not_at_all(self) -> None:
        """Nothing is lost of what was sent before and after it."""
        async with self.connected() as (ours, far), anyio.create_task_group() as tasks:
            sent = await fill(ours)
            tasks.start_soon(_send_all, ours, [[LAST]])
            got = await take(far, len(sent) + 1)
            if got[-1] != LAST:
                assert got.pop() == numbered([len(sent)])[0].ljust(2**10)
                got += await take(far, 1)
            assert got == [*sent, LAST]

    async def test_a_receive_that_is_cancelled_takes_nothing_along(self) -> None:
        """However often one gives up waiting, everything is received once."""
        got: list[bytes] = []
        async with self.connected() as (ours, far):
            for number in range(400):
                await far.send(numbered([number]))
                while len(got) <= number:
                    with anyio.move_on_after(number % 40 * 5e-6):
                        got += await ours.receive()
        assert got == numbered(range(400))


class Ends(Conversations):
    """However a connection ends, it is said by name, to everyone and for ever."""

    async def test_our_close_ends_it_for_both(self) -> None:
        """What we sent before still arrives."""
        async with self.connected() as (ours, far):
            await ours.send(numbered(range(3)))
            await ours.aclose()
            assert isinstance(await end_of(ours), ConnectionClosed)
            assert await take(far, 3) == numbered(range(3))
            assert isinstance(await end_of(far), ConnectionClosed | ConnectionLost)

    async def test_their_close_ends_it_after_their_last_message(self) -> None:
        """What they sent before is still received."""
        async with self.connected() as (ours, far):
            await far.send(numbered(range(3)))
            await far.aclose()
            assert await take(ours, 3) == numbered(range(3))
            assert isinstance(await end_of(ours), ConnectionClosed)

    async def test_what_was_said_before_the_end_is_received_after_it_is_known(self) -> None:
        """One who is slow to receive learns of the end by sending, and still misses nothing."""
        async with self.connected() as (ours, far):
            await far.send(numbered(range(3)))
            await far.aclose()
            await _send_until_ended(ours, [LAST] * 10_000)
            assert await take(ours, 3) == numbered(range(3))
            assert isinstance(await end_of(ours), ConnectionClosed | ConnectionLost)

    async def test_a_cut_at_any_byte_keeps_every_whole_message(self) -> None:
        """A part of a message is never taken for one, and is found in the failure."""
        messages = [b'{"id":1}', '{"ö":[2]}'.encode(), b"{}"]
        wire = b"".join(message + b"\n" for message in messages)
        sizes = self.wire_sizes(messages)
        for after in range(sizes[-1][1] + 1):
            whole = [m for m, (size, _) in zip(messages, sizes, strict=True) if size <= after]
            begins = max((end for size, end in sizes if size <= after), default=0)
            async with self.connected() as (ours, far):
                await far.cut(messages, after=after)
                assert await take(ours, len(whole)) == whole
                failure = await end_of(ours)
                assert isinstance(failure, ConnectionClosed | ConnectionLost)
                partial = wire[begins:after].decode(errors="backslashreplace")
                assert self.tells_partial(failure.partial, partial), (after, failure)

    def tells_partial(self, told: str, partial: str) -> bool:
        """Whether a failure tells what came of a message that was cut off."""
        return told == partial

    async def test_a_message_over_the_limit_ends_it_in_bounded_memory(self) -> None:
        """What came before is received; the far end cannot make us hold what follows."""
        too_large = _of_size(2**20)
        async with (
            self.connected(message_bytes_max=2**20 - 1) as (ours, far),
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(_send_until_ended, far, [b"{}", *[too_large] * 64])
            assert await take(ours, 1) == [b"{}"]
            assert await end_of(ours) == MessageTooLarge(bytes_max=2**20 - 1)
            await ours.aclose()
            assert await end_of(ours) == MessageTooLarge(bytes_max=2**20 - 1)
            tasks.cancel_scope.cancel()

    async def test_a_message_at_the_limit_is_carried(self) -> None:
        """The limit is the largest that is allowed."""
        largest = _of_size(2**20)
        async with (
            self.connected(message_bytes_max=2**20) as (ours, far),
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(_send_all, far, [[largest]])
            assert await take(ours, 1) == [largest]

    async def test_closing_wakes_whoever_waits(self) -> None:
        """A blocked receive and a blocked send get the same failure."""
        failures: list[Failure] = []

        async def note_end(wait: Callable[[], Awaitable[object]]) -> None:
            failures.append(await _failure_of(wait))

        async with self.connected() as (ours, _), anyio.create_task_group() as tasks:
            await fill(ours)
            tasks.start_soon(note_end, ours.receive)
            tasks.start_soon(note_end, lambda: ours.send([LAST]))
            await anyio.wait_all_tasks_blocked()
            await ours.aclose()
        assert [type(failure) for failure in failures] == [ConnectionClosed, ConnectionClosed]
        assert failures[0] == failures[1]

    async def test_closing_again_does_nothing(self) -> None:
        """Also by several tasks at once, and after the far end has gone."""
        async with self.connected() as (ours, far):
            await far.aclose()
            failure = await end_of(ours)
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(ours.aclose)
            await ours.aclose()
            assert await end_of(ours) == failure

    async def test_closing_finishes_although_it_is_cancelled(self) -> None:
        """Nothing is left behind by one who is in a hurry."""
        async with self.connected() as (ours, _):
            with anyio.CancelScope() as scope:
                scope.cancel()
                await ours.aclose()
            assert isinstance(await end_of(ours), ConnectionClosed)


class TransportContract(CarriesMessages, Ends):
    """Inherit from this in a test module of the anyio plugin, and say how to `connect`."""


LAST = b'{"last":true}'


def numbered(numbers: Iterable[int], name: str = "n") -> list[bytes]:
    """Small messages that tell one from another."""
    return [f'{{"{name}":{number}}}'.encode() for number in numbers]


async def take(transport: Transport, count: int) -> list[bytes]:
    """Receive exactly so many messages, in however many batches."""
    got: list[bytes] = []
    while len(got) < count:
        batch = await transport.receive()
        assert batch, "a batch has at least one message"
        got += batch
    assert len(got) == count
    return got


async def end_of(transport: Transport) -> Failure:
    """The failure that a transport ends with, which all who ask must get for ever."""
    failure = await _failure_of(transport.receive)
    for wait in (transport.receive, lambda: transport.send([LAST]), transport.receive):
        assert await _failure_of(wait) == failure
    return failure


async def fill(sender: Transport) -> list[bytes]:
    """Send numbered messages of 1 KiB to one who does not read until no more are taken."""
    sent: list[bytes] = []

    async def send() -> None:
        while True:
            message = numbered([len(sent)])[0].ljust(2**10)
            await sender.send([message])
            sent.append(message)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send)
        before = -1
        while before < len(sent):
            before = len(sent)
            await anyio.sleep(STANDSTILL)
        tasks.cancel_scope.cancel()
    return sent


async def _send_all(sender: Transport, batches: Sequence[Sequence[bytes]]) -> None:
    for batch in batches:
        await sender.send(batch)


async def _send_until_ended(sender: Transport, messages: Sequence[bytes]) -> None:
    with suppress(Failure):
        await _send_all(sender, [[message] for message in messages])


async def _failure_of(wait: Callable[[], Awaitable[object]]) -> Failure:
    try:
        got = await wait()
    except Failure as failure:
        return failure
    raise AssertionError(f"it should have ended, but there is {got!r}")


def _of_size(size: int) -> bytes:
    return b'{"x":"' + b"x" * (size - 8) + b'"}'


def _tasks() -> int:
    return len(anyio.get_running_tasks())


def _descriptors() -> int:
    """How many descriptors we hold, where the system can list them."""
    listing = Path("/dev/fd")
    return len(os.listdir(listing)) if listing.exists() else 0
