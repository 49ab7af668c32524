"""A socket is made and dialled only where nobody else can get between."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from pathlib import Path

import pytest

from holdfast.rpc.failures import SocketRefused, SocketTaken, SocketUnsafe
from holdfast.rpc.transports.unix import (
    bind_unix,
    connect_unix,
    is_trusted,
    peer_uid,
    remove_socket,
)

STRANGER = 65534

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make files of a stranger")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "private" / "socket"


@pytest.fixture
def directory(path: Path) -> Path:
    path.parent.mkdir(mode=0o700)
    return path.parent


def abandoned(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(path))


def test_a_socket_and_its_directory_are_ours_alone(path: Path) -> None:
    umask = os.umask(0)
    try:
        with bind_unix(path):
            modes = [stat.S_IMODE(place.lstat().st_mode) for place in (path.parent, path)]
    finally:
        os.umask(umask)

    assert modes == [0o700, 0o600]


def test_a_socket_that_nobody_answers_is_replaced(path: Path, directory: Path) -> None:
    abandoned(path)

    with bind_unix(path), connect_unix(path) as connection:
        assert is_trusted(peer_uid(connection))


def test_a_socket_that_somebody_answers_is_left_alone(path: Path) -> None:
    with bind_unix(path):
        inode = path.lstat().st_ino
        with pytest.raises(SocketTaken) as raised:
            bind_unix(path)

        assert raised.value == SocketTaken(path=str(path))
        assert path.lstat().st_ino == inode


def test_no_two_processes_clear_one_directory_at_once(path: Path, directory: Path) -> None:
    abandoned(path)
    other = os.open(directory, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    try:
        with pytest.raises(BlockingIOError):
            bind_unix(path)
        assert path.exists()
    finally:
        os.close(other)
    bind_unix(path).close()


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_directory_that_others_may_write_is_refused(
    path: Path, directory: Path, mode: int
) -> None:
    directory.chmod(mode)

    with pytest.raises(SocketUnsafe, match="others may write"):
        bind_unix(path)


def test_a_directory_behind_a_link_is_refused(path: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    path.parent.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(SocketUnsafe):
        bind_unix(path)


@pytest.mark.parametrize("target", ["elsewhere", "nowhere"])
def test_a_link_planted_in_the_place_of_the_socket_is_refused(
    path: Path, directory: Path, target: str
) -> None:
    abandoned(directory / "elsewhere")
    path.symlink_to(directory / target)

    with pytest.raises(SocketUnsafe, match="not a socket"):
        bind_unix(path)
    with pytest.raises(SocketUnsafe, match="not a socket"):
        connect_unix(path)
    assert (directory / "elsewhere").exists()


def test_a_file_in_the_place_of_the_socket_is_refused_and_kept(path: Path, directory: Path) -> None:
    path.write_text("precious")

    with pytest.raises(SocketUnsafe, match="not a socket"):
        bind_unix(path)
    assert path.read_text() == "precious"


@as_root
def test_a_directory_of_a_stranger_is_refused(path: Path, directory: Path) -> None:
    os.chown(directory, STRANGER, STRANGER)

    with pytest.raises(SocketUnsafe, match=f"belongs to user {STRANGER}"):
        bind_unix(path)


@as_root
def test_a_socket_of_a_stranger_is_neither_replaced_nor_dialled(
    path: Path, directory: Path
) -> None:
    abandoned(path)
    os.chown(path, STRANGER, STRANGER)

    for attempt in (bind_unix, connect_unix):
        with pytest.raises(SocketUnsafe, match=f"belongs to user {STRANGER}"):
            attempt(path)


@as_root
def test_a_stranger_who_listens_behind_our_socket_is_found_out(path: Path, directory: Path) -> None:
    # The file is ours, but whoever listens is not: only the kernel's word for the peer tells.
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        os.seteuid(STRANGER)
        try:
            listener.listen()
        finally:
            os.seteuid(0)

        with pytest.raises(SocketUnsafe, match=f"user {STRANGER} listens"):
            connect_unix(path)


def test_a_path_that_is_too_long_is_refused_by_both_sides(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 108)

    for attempt in (bind_unix, connect_unix):
        with pytest.raises(SocketUnsafe, match="bytes and the system allows"):
            attempt(path)


def test_nobody_answers_at_what_a_dead_process_left(path: Path, directory: Path) -> None:
    abandoned(path)

    with pytest.raises(SocketRefused) as raised:
        connect_unix(path)
    assert raised.value == SocketRefused(path=str(path), reason="connection refused")


def test_only_our_own_socket_is_removed(path: Path) -> None:
    with bind_unix(path):
        inode = path.lstat().st_ino
        remove_socket(path, inode=inode + 1)
        assert path.exists()
        remove_socket(path, inode=inode)
        assert not path.exists()
        remove_socket(path, inode=inode)
