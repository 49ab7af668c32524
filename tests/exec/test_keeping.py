"""One server and one keeper for each state directory, across versions."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import pytest

from holdfast.exec.failures import KeeperMismatched, KeeperUnavailable, StateTaken
from holdfast.exec.keeper import serving
from holdfast.exec.keeper.protocol import receive, send
from holdfast.exec.keeping import Summoned, has_keeper, lock_state, summon

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no keeper here")


@contextmanager
def summoned(state: Path, *, versions: Sequence[int] = (1,)) -> Iterator[Summoned]:
    """A keeper that is killed at the end, by its own number."""
    lock = lock_state(state)
    keeper = summon(state, versions=versions)
    try:
        yield keeper
    finally:
        keeper.connection.close()
        os.kill(keeper.pid, signal.SIGKILL)
        os.close(lock)


def test_a_second_server_is_refused_by_name(tmp_path: Path) -> None:
    lock = lock_state(tmp_path)

    with pytest.raises(StateTaken) as raised:
        lock_state(tmp_path)

    assert raised.value == StateTaken(state=str(tmp_path))
    os.close(lock)
    os.close(lock_state(tmp_path))


def test_a_living_keeper_is_found_again(tmp_path: Path) -> None:
    with summoned(tmp_path) as first:
        again = summon(tmp_path)
        again.connection.close()

        assert (first.was_there, again.was_there, again.pid) == (False, True, first.pid)
        assert has_keeper(tmp_path)


def test_the_path_of_a_state_may_be_longer_than_that_of_a_socket(tmp_path: Path) -> None:
    with summoned(tmp_path / ("long" * 30)) as keeper:
        assert keeper.version == 1


def test_a_keeper_is_nobodys_child_and_small(tmp_path: Path) -> None:
    with summoned(tmp_path) as keeper:
        status = Path(f"/proc/{keeper.pid}/status").read_text()
        lines = dict(line.split(":\t", 1) for line in status.splitlines())

        assert int(lines["PPid"]) != os.getpid()
        assert os.getsid(keeper.pid) == keeper.pid
        assert int(lines["VmRSS"].split()[0]) < 20_000
        assert int(lines["Threads"]) == 1


def _keep(state: str, versions: tuple[int, ...]) -> None:
    """Be a keeper of another version."""
    setattr(serving, "VERSIONS", versions)  # noqa: B010  # this process is that other version
    serving.Keeper(serving.listen(state)).serve()


@contextmanager
def other_keeper(state: Path, versions: tuple[int, ...]) -> Iterator[None]:
    process = get_context("fork").Process(target=_keep, args=(str(state), versions))
    process.start()
    try:
        while not (has_keeper(state) and (state / "keeper.sock").exists()):
            process.join(timeout=0.01)
        yield
    finally:
        process.kill()
        process.join()


@pytest.mark.parametrize(
    ("ours", "theirs", "version"),
    [((1,), (1, 2), 1), ((1, 2), (1,), 1), ((1, 2), (1, 2), 2)],
    ids=["newer keeper", "previous keeper", "same"],
)
def test_versions_that_overlap_get_along(
    tmp_path: Path, ours: tuple[int, ...], theirs: tuple[int, ...], version: int
) -> None:
    with other_keeper(tmp_path, theirs):
        keeper = summon(tmp_path, versions=ours)
        keeper.connection.close()

        assert (keeper.version, keeper.was_there) == (version, True)


def test_a_keeper_of_another_version_that_holds_nothing_is_replaced(tmp_path: Path) -> None:
    with other_keeper(tmp_path, (7,)), summoned(tmp_path) as keeper:
        assert (keeper.version, keeper.was_there) == (1, False)


def test_a_keeper_of_another_version_that_holds_a_process_is_left_alone(tmp_path: Path) -> None:
    with other_keeper(tmp_path, (7,)):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as old_server:
            old_server.connect(str(tmp_path / "keeper.sock"))
            order: dict[str, object] = {"key": "k", "argv": ["sleep", "60"], "cwd": "/"}
            send(old_server, {"id": 1, "ask": "start", "env": {"PATH": os.defpath}, **order})
            received = receive(old_server)
            assert received is not None
            for descriptor in received[1]:
                os.close(descriptor)

        with pytest.raises(KeeperMismatched) as raised:
            summon(tmp_path)

        assert raised.value == KeeperMismatched(state=str(tmp_path), ours=(1,), theirs=(7,))
        held = received[0]["held"]
        assert isinstance(held, dict)
        os.kill(held["pid"], signal.SIGKILL)


def test_a_keeper_that_cannot_start_is_named(tmp_path: Path) -> None:
    (tmp_path / "keeper.sock").mkdir()

    with pytest.raises(KeeperUnavailable, match=r"keeper\.log"):
        summon(tmp_path)
