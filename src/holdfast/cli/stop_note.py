"""Leave word that all was ended, for those who would start it again without being asked."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from holdfast.failures import Failure
from holdfast.world import SystemDisk, replace_file

_NAME = "stopped.json"


class StopNote(msgspec.Struct, frozen=True):
    """When a server was ended with all that it kept, and by whom."""

    at_ms: int
    user: str
    pid: int


def leave_note(directories: Iterable[Path]) -> None:
    """Tell whoever works with the servers of these directories; a later word is another one."""
    note = StopNote(time.time_ns() // 1_000_000, _user(), os.getpid())
    for directory in directories:
        if directory.is_dir():
            with suppress(Failure):  # where nothing can be written, nothing can be started either
                replace_file(SystemDisk(), directory / _NAME, [msgspec.json.encode(note)])


def last_note(directory: Path) -> StopNote | None:
    """The last word that was left there, if any was."""
    try:
        return msgspec.json.decode((directory / _NAME).read_bytes(), type=StopNote)
    except (OSError, ValueError):  # it may not even be text
        return None


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
