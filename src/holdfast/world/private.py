"""Make directories that nobody else can look into."""

from __future__ import annotations

from pathlib import Path


def make_private(directory: Path) -> None:
    """Make a directory, and those above it that are missing, for us alone; raises `OSError`.

    `Path.mkdir` would leave those above it open to everyone.
    """
    for each in (*reversed(directory.parents), directory):
        if not each.is_dir():
            each.mkdir(mode=0o700, exist_ok=True)
