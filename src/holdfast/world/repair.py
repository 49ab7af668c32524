"""Set the damaged bytes of a journal aside, so that a writer can go on without them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.world.core.records import Record, write_line
from holdfast.world.core.scan import Scanner
from holdfast.world.failures import DiskDenied, DiskUnusable
from holdfast.world.ports import Disk, OpenFile
from holdfast.world.reading import Survey, scan
from holdfast.world.replace import replace_file

_PIECE_BYTES = 1024 * 1024


def cut_tail(disk: Disk, path: Path, file: OpenFile, found: Survey) -> str:
    """Move what follows the last intact record to a file of its own; return its name."""
    aside = _free_name(disk, path)
    replace_file(disk, aside, _pieces(file, found.end))
    file.truncate(found.end)
    return aside.name


def rewrite(disk: Disk, path: Path, file: OpenFile) -> str:
    """Replace a journal by its intact records and keep the original; return its new name."""
    aside = _free_name(disk, path)
    try:
        disk.link(path, aside)
    except (DiskDenied, DiskUnusable):  # not every file system has second names
        replace_file(disk, aside, _pieces(file, 0))
    disk.sync_directory(path.parent)
    replace_file(disk, path, _intact_lines(file))
    return aside.name


def _free_name(disk: Disk, path: Path) -> Path:
    names, number = set(disk.names(path.parent)), 1
    while (name := f"{path.name}.damaged-{number}") in names:
        number += 1
    return path.with_name(name)


def _pieces(file: OpenFile, at: int) -> Iterator[bytes]:
    while piece := file.read(_PIECE_BYTES, at=at):
        yield piece
        at += len(piece)


def _intact_lines(file: OpenFile) -> Iterator[bytes]:
    for found in scan(file, Scanner()):
        if isinstance(found, Record):
            yield write_line(found)
