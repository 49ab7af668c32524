"""The keeper serves the last server that came, holds on, and does not die of what it is told."""

from __future__ import annotations

import errno
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.exec.keeper.discovery import KeeperConnection, connect_keeper, lock_state
from holdfast.exec.keeper.protocol import (
    LOCK_NAME,
    SOCKET_NAME,
    VERSIONS,
    Message,
    close_all,
    mapping,
    receive,
    send,
    texts,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no keeper here")


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[KeeperConnection]:
    lock = lock_state(tmp_path)
    summoned = connect_keeper(tmp_path)
    summoned.connection.settimeout(60)
    yield summoned
    summoned.connection.close()
    os.kill(summoned.name.pid, signal.SIGKILL)
    os.close(lock)


def asked(connection: socket.socket, message: Message) -> Message:
    send(connection, {"id": 1, **message})
    while (received := receive(connection)) is not None:
        answer, descriptors = received
        for descriptor in descriptors:
            os.close(descriptor)
        if "id" in answer:
            return answer
    raise ConnectionResetError


def dialled(state: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(60)
    connection.connect(str(state / SOCKET_NAME))
    return connection


def start(key: str, script: str) -> Message:
    order: Message = {"ask": "start", "key": key, "argv": ["/bin/sh", "-c", script], "cwd": "/"}
    return order | {"env": {}}


@pytest.mark.parametrize(
    "packet",
    [
        b"nonsense",
        b'{"id": 1}',
        b'{"id": 1, "ask": "dance"}',
        b'{"id": "1", "ask": "hello"}',
        b'{"id": 1, "ask": "start", "key": "k", "argv": [], "cwd": "/", "env": {}}',
        b'{"id": 1, "ask": "start", "key": "k", "argv": ["true"], "cwd": "/", "env": {"A": 1}}',
        b'{"id": 1, "ask": "start", "key": "k", "argv": ["true"], "cwd": "/", "env": {},'
        b' "terminal": {"rows": -1, "cols": 1}}',
        b'{"id": 1, "ask": "signal", "key": "k", "signal": 900}',
    ],
)
def test_a_server_that_speaks_nonsense_is_dismissed(
    keeper: KeeperConnection, tmp_path: Path, packet: bytes
) -> None:
    keeper.connection.send(packet)
    assert receive(keeper.connection) is None

    with dialled(tmp_path) as again:
        assert asked(again, {"ask": "hello", "versions": [1]}) == {
            "id": 1,
            "version": max(VERSIONS),
            "versions": list(VERSIONS),
            "pid": keeper.name.pid,
        }


def test_a_new_server_takes_the_place_of_the_old(keeper: KeeperConnection, tmp_path: Path) -> None:
    held = asked(keeper.connection, start("k", "exec sleep 60"))["held"]
    with dialled(tmp_path) as again:
        assert asked(again, {"ask": "list"})["held"] == held
        assert receive(keeper.connection) is None
        assert receive(again) == ({"id": 1, "more": False}, [])
        assert asked(again, {"ask": "forget", "key": "k"}) == {"id": 1}


def test_a_key_is_held_once(keeper: KeeperConnection) -> None:
    asked(keeper.connection, start("k", "exec sleep 60"))

    again = asked(keeper.connection, start("k", "exit"))

    assert again == {"id": 1, "errno": 17, "is_about_cwd": False}
    asked(keeper.connection, {"ask": "forget", "key": "k"})


def test_what_a_server_has_held_is_given_to_the_next_with_its_position(
    keeper: KeeperConnection, tmp_path: Path
) -> None:
    asked(keeper.connection, start("k", "sleep 60"))
    answers = [asked(keeper.connection, {"ask": "hold", "key": "k", "name": "ring"})]
    for key, name in (("k", "ring"), ("k", "ring"), ("j", "ring")):
        file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
        send(keeper.connection, {"id": 1, "ask": "hold", "key": key, "name": name}, [file])
        received = receive(keeper.connection)
        assert received is not None
        answers.append(received[0])
        os.write(file, b"words")
        os.close(file)
    assert [answer["is_held"] for answer in answers] == [False, True, True, False]

    with dialled(tmp_path) as following:
        send(following, {"id": 1, "ask": "list"})
        received = receive(following)
    assert received is not None
    held = mapping(received[0], "held")
    by_name = dict(zip(texts(held, "holds"), received[1], strict=True))
    assert os.lseek(by_name["ring"], 0, os.SEEK_CUR) == 5
    close_all(by_name.values())


def test_who_is_not_held_cannot_be_signalled(keeper: KeeperConnection) -> None:
    signalled: Message = {"ask": "signal", "key": "k", "signal": 9, "group": True}

    assert asked(keeper.connection, signalled) == {"id": 1, "is_sent": False}
    assert asked(keeper.connection, {"ask": "close_stdin", "key": "k"}) == {"id": 1}
    assert asked(keeper.connection, {"ask": "forget", "key": "k"}) == {"id": 1}


def test_the_end_comes_only_when_nothing_is_held(keeper: KeeperConnection, tmp_path: Path) -> None:
    asked(keeper.connection, start("k", "exit"))
    while (received := receive(keeper.connection)) and received[0].get("news") != "exited":
        pass
    assert asked(keeper.connection, {"ask": "end"})["is_ending"] is False
    asked(keeper.connection, {"ask": "forget", "key": "k"})

    assert asked(keeper.connection, {"ask": "end"})["is_ending"] is True
    assert receive(keeper.connection) is None


def test_nobody_else_can_reach_it(keeper: KeeperConnection, tmp_path: Path) -> None:
    assert {oct((tmp_path / name).stat().st_mode & 0o777) for name in (SOCKET_NAME, LOCK_NAME)} == {
        "0o600"
    }


def test_a_server_that_takes_no_answers_is_not_listened_to_and_blocks_nobody(
    keeper: KeeperConnection, tmp_path: Path
) -> None:
    keeper.connection.setblocking(False)
    with pytest.raises(BlockingIOError):
        while True:
            send(keeper.connection, {"id": 1, "ask": "hello", "padding": "x" * 1000})

    with dialled(tmp_path) as again:
        assert asked(again, {"ask": "hello"})["pid"] == keeper.name.pid


def test_ends_are_learnt_of_where_their_signal_is_ignored(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        lock = lock_state(tmp_path)
        summoned = connect_keeper(tmp_path)
    finally:
        signal.signal(signal.SIGCHLD, before)
    with summoned.connection as connection:
        connection.settimeout(60)
        asked(connection, start("k", "exit 3"))
        assert receive(connection) == ({"news": "exited", "key": "k", "status": 3}, [])
    os.kill(summoned.name.pid, signal.SIGKILL)
    os.close(lock)


def test_a_keeper_with_too_many_open_files_goes_on(keeper: KeeperConnection) -> None:
    asked(keeper.connection, start("k", "exec sleep 60"))
    entry: Message = {"program": "/bin/true", "namespaces": 0, "groups": 0, "carried": [7]}
    entry |= {"limits": [], "fence": None, "filter": "", "shields": []}
    pid = keeper.name.pid
    highest = max(int(name) for name in os.listdir(f"/proc/{pid}/fd"))
    hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
    lowest_free = min({*range(highest)} - {int(name) for name in os.listdir(f"/proc/{pid}/fd")})
    for room in (0, 1):
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest_free + room, hard))
        with open(os.devnull, "rb") as file:
            held: Message = {"id": 1, "ask": "hold", "key": "k", "name": f"room {room}"}
            send(keeper.connection, held, [file.fileno()])
            assert receive(keeper.connection) == ({"id": 1, "is_held": room == 1}, [])
            send(keeper.connection, {"id": 2} | start("m", "") | {"entry": entry}, [file.fileno()])
            expected = {"id": 2, "errno": errno.EMFILE, "is_about_cwd": False}
            assert receive(keeper.connection) == (expected, [])
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))

    assert asked(keeper.connection, start("n", "exec sleep 60"))["id"] == 1
    for key in ("k", "n"):
        asked(keeper.connection, {"ask": "forget", "key": key})
