"""A program that does one thing to a workbench and says what it acknowledged.

It speaks by a file that is mapped into its memory, so that saying something takes no system call,
and a tracer that harms the calls it makes does not harm what it says. Its habits plant bugs, or
have one write take less than all, as a signal or a nearly full disk may.
"""

from __future__ import annotations

import encodings.ascii  # noqa: F401  # or it would be loaded while every call is traced
import mmap
import os
import sqlite3  # noqa: F401  # as above
import sys
import traceback
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

from holdfast.failures import Failure
from tests.faults.workbench_habits import take_up
from tests.faults.workbench_scene import Home
from tests.faults.workbench_scenes import SCENES

_BYTES_MAX = 1 << 16


class Telling:
    """What is said, line by line; once said, it is heard whatever becomes of who said it."""

    def __init__(self, path: Path) -> None:
        with path.open("wb+") as file:
            file.truncate(_BYTES_MAX)
            self._lines = mmap.mmap(file.fileno(), _BYTES_MAX)

    def say(self, word: str, fact: object = None) -> None:
        """Say one thing."""
        self._lines.write(msgspec.json.encode([word, fact]) + b"\n")


def heard(path: Path) -> dict[str, object]:
    """All that was said, by its word."""
    lines = path.read_bytes().rstrip(b"\0").splitlines()
    return dict(msgspec.json.decode(line, type=tuple[str, object]) for line in lines)


def main_when_told(
    order: tuple[str, str, Home, Path], habits: tuple[str, ...], told: Connection
) -> None:
    """Be ready to begin, let a tracer attach, and do what is ordered."""
    scene, deed, home, output = order
    telling = Telling(output)
    take_up(habits)
    loaded = set(sys.modules)
    told.send_bytes(b"ready")
    told.recv_bytes()
    try:
        telling.say("done", getattr(SCENES[scene], deed)(home))
    except Failure as failure:
        telling.say("failed", failure.code)
    except BaseException:  # noqa: BLE001  # whatever it is, it must be heard
        telling.say("crashed", traceback.format_exc(limit=-6))
    telling.say("loaded", sorted(set(sys.modules) - loaded))
    os._exit(0)
