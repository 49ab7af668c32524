"""A program that keeps records and replaces a file, and says so only once it is durable.

    python keeper.py DIRECTORY RECORDS [step] [early] [without-sync_data] [without-sync_directory]

It writes one line per event to its output, each with a single system call: `open`, `kept N`,
`replaced N`, or with `failed` in front and the code of the failure behind. Tests interrupt it at
every system call, fill its disk and cut its power, and compare what it said with what is there.

With `step` it waits for a byte of input after each line. The other words plant a bug: to say a
record is kept before it is, or to leave out a call that syncs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from holdfast.failures import Failure
from holdfast.world.disk import SystemDisk, SystemFile
from holdfast.world.file_replacement import replace_file
from holdfast.world.journal import Journal
from holdfast.world.journal_format import encode_record
from holdfast.world.schema import Schema

SCHEMA: Schema[Callable[[object], object]] = Schema("faults", 1)
LOG = "log1"
PADDING = "x" * 300


class PlainDisk(SystemDisk):
    """Uses the same temporary names in every run, so that a tracer can be told about them."""

    def fresh_word(self) -> str:
        return "word"


def content(number: int) -> bytes:
    """What the replaced file holds in its version `number`."""
    return b"version %d\n" % number * (1000 + number)


def opened(root: Path) -> Journal:
    return Journal.open(PlainDisk(), root / "log", schema=SCHEMA, log=LOG)


def say(words: str, *, waits: bool = False) -> None:
    os.write(1, words.encode() + b"\n")
    if waits:
        os.read(0, 1)


def attempt(words: str, action: Callable[[], object], *, waits: bool) -> None:
    try:
        action()
    except Failure as failure:
        words = f"failed {words} {failure.code}"
    say(words, waits=waits)


def main(root: Path, records: int, habits: list[str]) -> None:
    for call in ("sync_data", "sync_directory"):
        if f"without-{call}" in habits:
            owner = SystemFile if call == "sync_data" else SystemDisk
            setattr(owner, call, lambda *_: None)
    waits = "step" in habits
    try:
        journal = opened(root)
    except Failure as failure:
        say(f"failed open {failure.code}")
        return
    say("open", waits=waits)
    for number in range(1, records + 1):
        data = encode_record([number, PADDING])
        if "early" in habits:
            say(f"kept {number}")
        attempt(f"kept {number}", lambda data=data: journal.append([data]), waits=waits)
        if number % 3 == 0:
            pieces = [content(number)]
            attempt(
                f"replaced {number}",
                lambda pieces=pieces: replace_file(PlainDisk(), root / "target", pieces),
                waits=waits,
            )
    journal.close()


def main_when_told(
    root: Path, records: int, habits: list[str], output: Path, told: Connection
) -> None:
    """Be ready to begin, but let a tracer attach first: a message says that it has."""
    os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 1)
    told.recv_bytes()
    main(root, records, habits)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
