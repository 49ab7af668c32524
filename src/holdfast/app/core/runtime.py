"""Decide whether the interpreter, its SQLite and the settings can carry Holdfast."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from holdfast.app.core.remedies import install
from holdfast.app.core.storage import untried
from holdfast.app.model import Finding, Machine, Refused, Status

PYTHON_OLDEST = (3, 11)
SQLITE_OLDEST = (3, 37, 0)  # strict tables


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python that runs us."""

    version: tuple[int, ...]
    implementation: str
    is_64_bit: bool


@dataclass(frozen=True, slots=True)
class Sqlite:
    """The SQLite that Python brought along, tried on a file of its own."""

    version: tuple[int, ...]
    threadsafety: int
    journal: str
    integrity: str


def judge_interpreter(facts: Interpreter, machine: Machine) -> Finding:
    """The interpreter is new enough, and can address large files."""
    text = f"{_dotted(facts.version)} ({facts.implementation})"
    if facts.version < PYTHON_OLDEST:
        return Finding(Status.FAILED, f"{text} is too old", install("python3", machine))
    if not facts.is_64_bit:
        text = f"{text} is a 32-bit build: large files are out of reach"
        return Finding(Status.FAILED, text, "Install a 64-bit Python.")
    return Finding(Status.OK, f"{text}, 64 bit")


def judge_sqlite(facts: Sqlite | Refused, machine: Machine) -> Finding:
    """SQLite keeps a write-ahead log in the state directory, and may be used from a thread."""
    if isinstance(facts, Refused):
        return untried(facts, otherwise=Status.FAILED)
    text = _dotted(facts.version)
    if facts.version < SQLITE_OLDEST:
        text = f"{text} is older than {_dotted(SQLITE_OLDEST)}"
        return Finding(Status.FAILED, text, install("libsqlite3-0", machine))
    if facts.threadsafety == 0:
        text = f"{text} was built without thread safety"
        return Finding(Status.FAILED, text, "Use the Python of your distribution.")
    if facts.journal != "wal" or facts.integrity != "ok":
        text = f"{text} cannot keep a write-ahead log in the state directory"
        return Finding(Status.FAILED, text, "Set HOLDFAST_HOME to a directory on a local disk.")
    return Finding(Status.OK, f"{text}, write-ahead log works")


def judge_variables(unknown: tuple[str, ...], *, known: tuple[str, ...]) -> Finding:
    """No setting is misspelt."""
    if not unknown:
        return Finding(Status.OK, "no unknown variables")
    name = unknown[0]
    nearest = get_close_matches(name, known, n=1)
    hint = f"Did you mean {nearest[0]}?" if nearest else f"unset {name}"
    return Finding(Status.WARNING, f"{', '.join(unknown)} means nothing to Holdfast", hint)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
