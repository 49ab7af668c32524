"""A place to try things in, below a directory that may not exist yet."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager

Facts = dict[str, object]


def nearest(directory: str) -> str:
    """The directory itself, or the nearest one above it that exists."""
    while not os.path.exists(directory) and directory != os.path.dirname(directory):
        directory = os.path.dirname(directory)
    return directory


class NowhereToTry(OSError):
    """No directory is writable."""


@contextmanager
def scratch(directory: str) -> Generator[str]:
    """A directory of our own on the same filesystem, removed afterwards whatever is in it."""
    path = os.path.join(nearest(directory), f".holdfast-doctor-{os.urandom(6).hex()}")
    try:
        os.mkdir(path, 0o700)
    except OSError as error:
        raise NowhereToTry(*error.args) from error
    try:
        yield path
    finally:
        _remove(path)


def write_file(path: str, content: bytes) -> None:
    """Replace what a file holds."""
    with open(path, "wb") as file:
        file.write(content)


def read_file(path: str) -> bytes:
    """All that a file holds."""
    with open(path, "rb") as file:
        return file.read()


def _remove(path: str) -> None:
    """Overlays leave directories behind that even their owner may not list."""
    os.chmod(path, 0o700)
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _remove(entry.path)
            else:
                os.unlink(entry.path)
    os.rmdir(path)
