"""One server and one keeper for each state directory, across versions."""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from holdfast.exec.failures import KeeperMismatched, KeeperUnavailable, StateTaken
from holdfast.exec.keeper import keeper as serving
from holdfast.exec.keeper.discovery import KeeperConnection, connect_keeper, has_keeper, lock_state
from holdfast.exec.keeper.protocol import MARK, VERSIONS, receive, send
from holdfast.world.failures import DiskMissing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no keeper here")


@contextmanager
def summoned(state: Path, *, versions: Sequence[int] = (1,)) -> Iterator[KeeperConnection]:
    """A keeper that is killed at the end, by its own number."""
    lock = lock_state(state)
    keeper = connect_keeper(state, versions=versions)
    try:
        yield keeper
    finally:
        keeper.connection.close()
        os.kill(keeper.name.pid, signal.SIGKILL)
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
        again = connect_keeper(tmp_path)
        again.connection.close()

        assert (first.was_there, again.was_there, again.name.pid) == (False, True, first.name.pid)
        assert has_keeper(tmp_path)


def test_the_path_of_a_state_may_be_longer_than_that_of_a_socket(tmp_path: Path) -> None:
    with summoned(tmp_path / ("long" * 30)) as keeper:
        assert keeper.version == 1


def test_a_keeper_is_nobodys_child_and_small(tmp_path: Path) -> None:
    with summoned(tmp_path) as keeper:
        status = Path(f"/proc/{keeper.name.pid}/status").read_text()
        lines = dict(line.split(":\t", 1) for line in status.splitlines())

        assert int(lines["PPid"]) != os.getpid()
        assert os.getsid(keeper.name.pid) == keeper.name.pid
        assert int(lines["VmRSS"].split()[0]) < 20_000
        assert int(lines["Threads"]) == 1


def _keep(state: str, versions: tuple[int, ...]) -> None:
    """Be a keeper of another version."""
    setattr(serving, "VERSIONS", versions)  # noqa: B010  # this process is that other version
    serving.Keeper(*serving.listen(state)).serve()


def _keep_nothing_briefly(state: str) -> None:
    """Be a keeper that soon finds that it has nothing to keep."""
    serving.Keeper(*serving.listen(state), alone_longest=0.1).serve()


def _keep_briefly(state: str) -> None:
    """Be a keeper that ends a second after its last server, unless it holds something."""
    serving.Keeper(*_listen_for_server(state), alone_longest=1.0).serve()


def _keep_ends_briefly(state: str) -> None:
    """Be a keeper that holds ends for a second after its last server."""
    serving.Keeper(*_listen_for_server(state), alone_longest=0.1, ends_longest=1.0).serve()


def _listen_for_server(state: str) -> tuple[socket.socket, int]:
    """Listen, and return when the first server connects.

    The keeper counts its time alone from its start: on a busy machine it would be over before the
    test, which is another process, has connected.
    """
    listener, lock = serving.listen(state)
    connects = select.poll()  # not `select`, which ends at descriptor 1023
    connects.register(listener, select.POLLIN)
    connects.poll()
    return listener, lock


def _hang_up(state: str) -> None:
    """Be a keeper that dies in the middle of the first hello."""
    listener, _ = serving.listen(state)
    receive(listener.accept()[0])
    os._exit(1)


def _chatter(state: str) -> None:
    """Be a keeper that answers a hello with nonsense."""
    connection = serving.listen(state)[0].accept()[0]
    receive(connection)
    send(connection, {"id": 0, "versions": "all", "pid": "mine"})
    receive(connection)


@contextmanager
def other_keeper(
    state: Path, versions: tuple[int, ...] = (1,), *, being: Callable[..., None] = _keep
) -> Iterator[BaseProcess]:
    args = (str(state), versions) if being is _keep else (str(state),)
    process = get_context("fork").Process(target=being, args=args)
    process.start()
    try:
        while process.is_alive() and not (has_keeper(state) and (state / "keeper.sock").exists()):
            process.join(timeout=0.01)
        yield process
    finally:
        process.kill()
        process.join()


@pytest.mark.parametrize(
    ("ours", "theirs", "version"),
    [((1,), (1, 2), 1), ((1, 2), (1, 2), 2)],
    ids=["newer keeper", "same"],
)
def test_versions_that_overlap_get_along(
    tmp_path: Path, ours: tuple[int, ...], theirs: tuple[int, ...], version: int
) -> None:
    with other_keeper(tmp_path, theirs):
        keeper = connect_keeper(tmp_path, versions=ours)
        keeper.connection.close()

        assert (keeper.version, keeper.was_there) == (version, True)


def test_a_keeper_of_another_version_that_holds_nothing_is_replaced(tmp_path: Path) -> None:
    with other_keeper(tmp_path, (7,)), summoned(tmp_path) as keeper:
        assert (keeper.version, keeper.was_there) == (1, False)


def test_a_keeper_of_the_version_before_is_replaced_unless_it_holds_a_process(
    tmp_path: Path,
) -> None:
    with other_keeper(tmp_path, (1,)), summoned(tmp_path, versions=(1, 2)) as keeper:
        assert (keeper.version, keeper.was_there) == (2, False)

    state = tmp_path / "other"
    state.mkdir()
    with other_keeper(state, (1,)), holding(state):
        keeper = connect_keeper(state, versions=(1, 2))
        keeper.connection.close()
        assert (keeper.version, keeper.was_there) == (1, True)


@contextmanager
def holding(state: Path) -> Iterator[None]:
    """A process that the keeper of a directory holds for a server that is gone."""
    pid = start_for_nobody(state, "sleep", "60")
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)


def _connect(server: socket.socket, state: Path) -> None:
    """Connect to the keeper; its socket refuses between `bind` and `listen`."""
    while True:
        try:
            return server.connect(str(state / "keeper.sock"))
        except ConnectionRefusedError:
            assert has_keeper(state)


def start_for_nobody(state: Path, *argv: str) -> int:
    """Be a server that starts a process and goes; the number of that process."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as old_server:
        _connect(old_server, state)
        order: dict[str, object] = {"key": "k", "argv": list(argv), "cwd": "/"}
        send(old_server, {"id": 1, "ask": "start", "env": {"PATH": os.defpath}, **order})
        received = receive(old_server)
        assert received is not None
        for descriptor in received[1]:
            os.close(descriptor)
    held = received[0]["held"]
    assert isinstance(held, dict)
    return int(held["pid"])


def test_a_keeper_of_another_version_that_holds_a_process_is_left_alone(tmp_path: Path) -> None:
    with other_keeper(tmp_path, (7,)), holding(tmp_path):
        with pytest.raises(KeeperMismatched) as raised:
            connect_keeper(tmp_path)

        assert raised.value == KeeperMismatched(state=str(tmp_path), ours=VERSIONS, theirs=(7,))


def test_a_keeper_that_cannot_start_is_named(tmp_path: Path) -> None:
    (tmp_path / "keeper.sock").mkdir()

    with pytest.raises(KeeperUnavailable, match=r"keeper\.log"):
        connect_keeper(tmp_path)


def test_a_keeper_that_hangs_is_named_in_time(tmp_path: Path) -> None:
    with other_keeper(tmp_path) as process:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGSTOP)

        with pytest.raises(KeeperUnavailable) as raised:
            connect_keeper(tmp_path, patience=0.3)

        assert raised.value == KeeperUnavailable(state=str(tmp_path), reason="it does not answer")


def test_a_keeper_that_speaks_nonsense_is_named(tmp_path: Path) -> None:
    with other_keeper(tmp_path, being=_chatter), pytest.raises(KeeperUnavailable, match="nonsense"):
        connect_keeper(tmp_path)


def test_a_keeper_that_dies_in_the_middle_of_a_hello_is_replaced(tmp_path: Path) -> None:
    with other_keeper(tmp_path, being=_hang_up), summoned(tmp_path) as keeper:
        assert keeper.was_there is False


def test_a_state_that_cannot_be_written_is_a_failure_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(DiskMissing):
        lock_state(tmp_path / "file" / "state")


def test_a_keeper_with_nothing_and_nobody_ends_by_itself(tmp_path: Path) -> None:
    with other_keeper(tmp_path, being=_keep_nothing_briefly) as process:
        process.join(timeout=60)

        assert process.exitcode == 0


def test_a_keeper_whose_directory_is_gone_stays_for_what_runs_alone(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    with other_keeper(state, being=_keep_briefly) as process:
        pid = start_for_nobody(state, "sleep", "60")
        shutil.rmtree(state)
        process.join(timeout=1.5)
        assert process.exitcode is None

        os.kill(pid, signal.SIGTERM)
        process.join(timeout=60)
        assert process.exitcode == 0


@pytest.mark.promise("X14")
def test_a_keeper_that_holds_only_ends_goes_when_no_server_comes(tmp_path: Path) -> None:
    with other_keeper(tmp_path, being=_keep_ends_briefly) as process:
        start_for_nobody(tmp_path, "sleep", "3")
        process.join(timeout=2.0)
        assert process.exitcode is None  # that one lives

        process.join(timeout=60)
        assert process.exitcode == 0
        assert not has_keeper(tmp_path)


def test_a_keeper_that_holds_an_end_waits_for_a_server(tmp_path: Path) -> None:
    with other_keeper(tmp_path, being=_keep_briefly) as process:
        start_for_nobody(tmp_path, "sleep", "0.1")
        process.join(timeout=1.5)
        assert process.exitcode is None

        with summoned_by_another(tmp_path) as again:
            send(again, {"id": 1, "ask": "forget", "key": "k"})
            while (answer := receive(again)) is not None and answer[0].get("id") != 1:
                pass
        process.join(timeout=60)
        assert process.exitcode == 0


@contextmanager
def summoned_by_another(state: Path) -> Iterator[socket.socket]:
    connection = connect_keeper(state).connection
    connection.setblocking(True)
    with connection:
        yield connection


def test_what_outlived_a_lost_keeper_is_ended_by_the_next_server(tmp_path: Path) -> None:
    with summoned(tmp_path) as lost:
        env = {MARK: f"key@{lost.name}"}
        orphan = subprocess.Popen(["/bin/sleep", "60"], env=env, start_new_session=True)
    while has_keeper(tmp_path):
        pass  # it was killed, and is about to be gone

    with orphan, summoned(tmp_path) as keeper:
        found = [(each.process.pid, each.key, each.command) for each in keeper.orphans]
        assert found == [(orphan.pid, "key", "/bin/sleep 60")]
        assert orphan.wait(timeout=60) == -signal.SIGKILL


@pytest.mark.parametrize("case", ["it ended in good order", "the directory is a copy"])
def test_nobody_else_is_ended(tmp_path: Path, case: str) -> None:
    state, copy = tmp_path / "state", tmp_path / "copy"
    copy.mkdir()
    with ExitStack() as undone:
        keeper = undone.enter_context(other_keeper_of(state))
        env = {MARK: f"key@{keeper.name}"}
        other = undone.enter_context(subprocess.Popen(["/bin/sleep", "60"], env=env))
        undone.callback(other.kill)
        if case == "the directory is a copy":
            shutil.copy(state / "keeper.lock", copy)
        else:
            keeper.connection.setblocking(True)
            send(keeper.connection, {"id": 1, "ask": "end"})
            while receive(keeper.connection) is not None:
                pass
            while has_keeper(state):
                pass  # it hung up, and is about to be gone
            copy = state

        with summoned(copy) as again:
            assert (again.orphans, other.poll()) == ([], None)


@contextmanager
def other_keeper_of(state: Path) -> Iterator[KeeperConnection]:
    """A keeper that may end by itself."""
    os.close(lock_state(state))
    keeper = connect_keeper(state)
    with keeper.connection:
        yield keeper
    with suppress(ProcessLookupError):
        os.kill(keeper.name.pid, signal.SIGKILL)
