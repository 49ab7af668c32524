"""Make sure that a Unix socket is where only its owner can listen, answer and read."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import struct
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from holdfast.rpc.failures import SocketRefused, SocketTaken, SocketUnsafe, SystemExhausted
from holdfast.world import make_private

BACKLOG = 128

_PATH_BYTES_MAX = 107 if sys.platform == "linux" else 103
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def listening(path: Path) -> socket.socket:
    """A socket that listens at a path and that nobody but us and root can reach.

    Its directory is made if it is missing, and refused if it is not ours or others may write to
    it. A socket that a dead process left behind is replaced; one that answers is not. Raises
    `BlockingIOError` while another process is at the same in that directory.
    """
    _check_length(path)
    with _refusals(path):
        make_private(path.parent)
        with _own_directory(path):
            _make_room(path)
            listener = _stream_socket()
            try:
                listener.bind(str(path))
                os.chmod(path, 0o600)  # in time: nobody can connect before we listen
                listener.listen(BACKLOG)
            except OSError:
                listener.close()
                raise
            return listener


def dialled(path: Path) -> socket.socket:
    """A socket connected to a listener that is ours or root's.

    Raises `BlockingIOError` while too many wait to be accepted there.
    """
    _check_length(path)
    with _refusals(path):
        found = path.lstat()
        if not stat.S_ISSOCK(found.st_mode):
            raise SocketUnsafe(path=str(path), reason="it is not a socket")
        if not is_trusted(found.st_uid):
            raise SocketUnsafe(path=str(path), reason=f"it belongs to user {found.st_uid}")
        connection = _stream_socket()
        try:
            connection.connect(str(path))
            listener = peer_uid(connection)
        except OSError:
            connection.close()
            raise
        if not is_trusted(listener):
            connection.close()
            raise SocketUnsafe(path=str(path), reason=f"user {listener} listens there")
        return connection


def remove(path: Path, *, inode: int) -> None:
    """Remove our socket, unless somebody has put another in its place."""
    with suppress(FileNotFoundError):
        if path.lstat().st_ino == inode:
            path.unlink()


def is_trusted(uid: int) -> bool:
    """Whether a user may speak with us: ourselves and root, who could do so anyway."""
    return uid in (os.geteuid(), 0)


def peer_uid(connection: socket.socket) -> int:
    """The user at the other end, as the kernel knows it."""
    if sys.platform == "linux":
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        uid = struct.unpack("=iII", credentials)[1]
    else:
        xucred = connection.getsockopt(0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED
        uid = struct.unpack_from("=II", xucred)[1]
    return int(uid)


def _check_length(path: Path) -> None:
    length = len(os.fsencode(path))
    if length > _PATH_BYTES_MAX:
        reason = f"its path has {length} bytes and the system allows {_PATH_BYTES_MAX}"
        raise SocketUnsafe(path=str(path), reason=reason)


@contextmanager
def _own_directory(path: Path) -> Generator[None]:
    """Hold the directory of a socket, so that no two processes clear it at once."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    directory = os.open(path.parent, flags)
    try:
        found = os.fstat(directory)
        if found.st_uid != os.geteuid():
            reason = f"its directory belongs to user {found.st_uid}"
            raise SocketUnsafe(path=str(path), reason=reason)
        if found.st_mode & _OTHERS_MAY_WRITE:
            raise SocketUnsafe(path=str(path), reason="others may write to its directory")
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(directory)


def _make_room(path: Path) -> None:
    """Remove a socket of ours at which nobody answers; touch nothing else."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise SocketUnsafe(path=str(path), reason="something that is not a socket is there")
    if found.st_uid != os.geteuid():
        raise SocketUnsafe(path=str(path), reason=f"it belongs to user {found.st_uid}")
    with closing(_stream_socket()) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except BlockingIOError:
            pass  # so many wait there that somebody must be listening
    raise SocketTaken(path=str(path))


def _stream_socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.setblocking(False)
    return made


@contextmanager
def _refusals(path: Path) -> Generator[None]:
    """Name what the system refuses; that something is busy now is left to those who can wait."""
    try:
        yield
    except BlockingIOError:
        raise
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise SocketRefused(path=str(path), reason=str(error.strerror).lower()) from error
    except OSError as error:
        reason = str(error.strerror).lower()
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
            raise SystemExhausted(reason=reason) from error
        raise SocketUnsafe(path=str(path), reason=reason) from error
