"""Have on the disk what an agent remembers: a turn is over when a power cut cannot undo it."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from holdfast.failures import Failure
from holdfast.world import disk_failure, in_thread

_ABOVE: Final = 4  # directories that may be new: Codex has one for each day, month and year


async def settled(path: str | None) -> None:
    """Sync a file that an agent keeps, and its name; without one, or on trouble, do nothing.

    What was said is in our own journal whatever happens here. An agent whose file is lost can
    only be told again what it knew.
    """
    if path is None:
        return
    with suppress(Failure):
        await in_thread(partial(_synced, Path(path)))


def _synced(path: Path) -> None:
    try:
        for each in (path, *path.parents[:_ABOVE]):
            file = os.open(each, os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)
    except OSError as error:
        raise disk_failure(error, path=str(path)) from error
