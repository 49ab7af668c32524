"""All processes of a session are known by id, however many they are."""

from __future__ import annotations

import pytest

from holdfast.exec.client.client import FeedTable
from holdfast.exec.client.connection import Channel, ClientSession
from holdfast.exec.client.events import EventSequence
from holdfast.exec.client.process import EventFeed
from holdfast.exec.client.recovery import RecoveryPolicy
from holdfast.exec.failures import ProcessExists
from holdfast.rpc import Connection, ConnectionConfig, Transport
from holdfast.rpc.model import Dialect

pytestmark = pytest.mark.anyio


class Watched(EventFeed):
    """A feed that counts how often it is looked at."""

    looks = 0
    is_done = False

    @property
    def is_over(self) -> bool:
        Watched.looks += 1
        return self.is_done


async def dial() -> Transport:
    raise AssertionError("nobody connects here")


async def greet(_: Connection) -> None:
    raise AssertionError("nobody connects here")


def watched(name: str) -> Watched:
    config = ConnectionConfig(dialect=Dialect(), peer="nobody")
    channel = Channel(dial, greet, policy=RecoveryPolicy(), config=config, heartbeat_policy=None)
    sequence = EventSequence(name, held_max=1, held_bytes_max=1)
    return Watched(sequence, channel, ClientSession("c", unread_bytes_max=1))


async def test_an_id_is_free_again_once_its_process_is_over() -> None:
    table = FeedTable()
    first, second = watched("p"), watched("p")
    table.add(first)
    with pytest.raises(ProcessExists):
        table.add(second)

    first.is_done = True
    table.add(second)
    with pytest.raises(ProcessExists):
        table.add(watched("p"))


async def test_many_are_not_looked_at_for_each_that_comes() -> None:
    table, count = FeedTable(), 2000
    Watched.looks = 0
    for number in range(count):
        table.add(watched(str(number)))

    assert Watched.looks <= 4 * count
