"""Replace a whole file: after any crash it is exactly the old or exactly the new one."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

from holdfast.failures import Failure
from holdfast.world.failures import DiskIo
from holdfast.world.ports import Disk, OpenFile

_SUFFIX = ".tmp"


def replace_file(disk: Disk, path: Path, pieces: Iterable[bytes], *, mode: int = 0o600) -> None:
    """Make these the content of a file; durable when it returns, untouched when it raises.

    Only a failure to sync the directory, after the rename, leaves open which of the two it is.
    """
    _replace(disk, path, pieces, mode)
    disk.sync_directory(path.parent)


def write_all(file: OpenFile, data: bytes, *, path: Path) -> None:
    """Append all of it, however little the disk takes at a time."""
    while data:
        taken = file.append(data)
        if taken <= 0:
            raise DiskIo(path=str(path), reason="nothing was taken")
        data = data[taken:]


def remove_leftovers(disk: Disk, path: Path) -> None:
    """Take away what replacements of this file left behind when their process was killed.

    Only who alone may replace the file may call this.
    """
    for name in disk.names(path.parent):
        if name.startswith(_prefix(path)) and name.endswith(_SUFFIX):
            disk.unlink(path.with_name(name))


def _replace(disk: Disk, path: Path, pieces: Iterable[bytes], mode: int) -> None:
    """Make these the content of a file; that it has the name is not durable yet."""
    temporary = path.with_name(f"{_prefix(path)}{disk.fresh_word()}{_SUFFIX}")
    with ExitStack() as undo:
        file = disk.create(temporary, mode=mode)
        undo.callback(_discard, disk, temporary)
        try:
            _fill(file, pieces, path)
            file.sync()
        finally:
            file.close()
        disk.rename(temporary, path)
        undo.pop_all()


def _prefix(path: Path) -> str:
    return f".{path.name}."


def _fill(file: OpenFile, pieces: Iterable[bytes], path: Path) -> None:
    expected = 0
    for piece in pieces:
        write_all(file, piece, path=path)
        expected += len(piece)
    found = file.status().size
    if found != expected:
        raise DiskIo(path=str(path), reason=f"{found} bytes were kept of {expected}")


def _discard(disk: Disk, temporary: Path) -> None:
    with suppress(Failure):  # what went wrong before matters more, and a leftover goes later
        disk.unlink(temporary)
