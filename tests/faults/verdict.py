"""Compare what a keeper said with what it left behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from holdfast.world.journal_format import encode_record
from tests.faults.keeper import content, opened


@dataclass(slots=True)
class Told:
    """What a keeper said, until it ended or was ended."""

    kept: list[int] = field(default_factory=list[int])
    replaced: list[int] = field(default_factory=list[int])
    failed: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def parse(cls, output: str, *, in_doubt: str = "") -> Told:
        """Read its output; what it said in doubt counts as neither kept nor lost."""
        doubts = (line.removeprefix("failed ").split()[:2] for line in in_doubt.splitlines())
        told = cls(failed={" ".join(words): "IN_DOUBT" for words in doubts})
        for line in output.splitlines():
            match line.split():
                case ["kept", number]:
                    told.kept.append(int(number))
                case ["replaced", number]:
                    told.replaced.append(int(number))
                case ["failed", *words, code]:
                    told.failed[" ".join(words)] = code
        return told

    def failed_numbers(self, word: str) -> set[int]:
        found = (what.split() for what in self.failed)
        return {int(rest[0]) for first, *rest in found if first == word}


@dataclass(frozen=True, slots=True)
class Before:
    """What was there before the keeper began."""

    records: tuple[int, ...] = ()
    log: bytes = b""

    def lay_out(self, root: Path) -> None:
        root.mkdir()
        (root / "target").write_bytes(content(0))
        if self.log:
            (root / "log").write_bytes(self.log)


def complaints(root: Path, before: Before, told: Told) -> list[str]:
    """What is wrong, if anything: a lost or invented record, a mixed file, an unusable journal."""
    journal = opened(root)
    found = [msgspec.json.decode(entry.data)[0] for entry in journal.read()]
    first = journal.append([encode_record([-1])])
    journal.close()
    kept, ours = found[: len(before.records)], found[len(before.records) :]
    wrong: list[str] = []
    if kept != list(before.records):
        wrong.append(f"of the records before, {kept} are left")
    if lost := sorted(set(told.kept) - set(ours)):
        wrong.append(f"acknowledged records {lost} are lost")
    latest = max([0, *told.kept, *told.failed_numbers("kept")])
    if ours != sorted(set(ours)) or not set(ours) <= set(range(1, latest + 2)):
        wrong.append(f"records {ours} were invented or are out of order")
    if first <= len(found):
        wrong.append(f"record {first} was given out twice")
    if (version := _version(root / "target")) not in _versions_allowed(told):
        wrong.append(f"the replaced file holds {version}")
    return wrong


def _version(path: Path) -> int | str:
    found = path.read_bytes()
    number = int(found.split(maxsplit=2)[1]) if found else -1
    return number if found == content(number) else f"{len(found)} mixed bytes"


def _versions_allowed(told: Told) -> set[int]:
    """The last one acknowledged, and those tried since: failed, or in hand when it ended."""
    last = max([0, *told.replaced])
    tried = {number for number in told.failed_numbers("replaced") if number > last}
    return {last, max([last, *tried]) + 3} | tried
