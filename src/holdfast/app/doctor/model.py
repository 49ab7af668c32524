"""What an examination of the machine consists of."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

SCHEMA = 1


class Status(StrEnum):
    """What a check found."""

    OK = "ok"
    WARNING = "warning"  # something is missing or weaker; what is promised still holds without it
    FAILED = "failed"  # a promise cannot be kept on this machine
    SKIPPED = "skipped"  # the question does not arise here


@dataclass(frozen=True, slots=True)
class Machine:
    """What remedies depend on: the system, its distribution, and who is asking."""

    system: str
    release: str = ""
    name: str = ""
    family: str = ""
    is_root: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer in one line, and what to do about it."""

    status: Status
    text: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A probe got no facts: the system said no, or there was no place to try it in."""

    reason: str
    errno: str = ""
    is_nowhere: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """What one check found, and how long it took in seconds."""

    id: str
    group: str
    title: str
    finding: Finding
    duration: float


@dataclass(frozen=True, slots=True)
class Report:
    """All findings of one examination, in the order of the checks."""

    version: str
    machine: Machine
    results: tuple[Result, ...]

    def count(self, status: Status) -> int:
        """How many checks ended with this status."""
        return Counter(result.finding.status for result in self.results)[status]

    @property
    def exit_status(self) -> int:
        """1 when a promise cannot be kept here, else 0: a warning is not a failure."""
        return 1 if self.count(Status.FAILED) else 0

    def to_wire(self) -> dict[str, object]:
        """The report as one JSON object; `schema` changes when a reader would have to."""
        return {
            "schema": SCHEMA,
            "version": self.version,
            "system": f"{self.machine.system} {self.machine.release}".strip(),
            "distribution": self.machine.name,
            "checks": [_wire(result) for result in self.results],
            "summary": {status.value: self.count(status) for status in Status},
        }


def _wire(result: Result) -> dict[str, object]:
    return {
        "id": result.id,
        "group": result.group,
        "title": result.title,
        "status": result.finding.status.value,
        "finding": result.finding.text,
        "remedy": result.finding.remedy,
        "durationSeconds": round(result.duration, 4),
    }
