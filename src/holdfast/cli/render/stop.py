"""Lay out what is to be ended, for a person and for a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.nouns import cut, printable

SCHEMA = 1
_PROMPT_CELLS = 60
PROMPT, AGAIN = "End all of this? [y/N] ", "y or n: "
_ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "": False}


class Sort(StrEnum):
    """What runs for us, in the order in which it is ended."""

    SANDBOX = "sandbox"
    SERVER = "exec-server"
    KEEPER = "keeper"
    ORPHAN = "orphan"
    PLACE = "place"


@dataclass(frozen=True, slots=True, order=True)
class Belonging:
    """One thing that runs for us: where it belongs, and how many processes end with it.

    An orphan belongs nowhere, and has its command there instead. `kept` is the directory in which
    we keep track of it, if there is one.
    """

    sort: Sort
    pid: int
    where: str
    processes: int = 0
    kept: str = ""


@dataclass(frozen=True, slots=True, order=True)
class RunningTurn:
    """A running turn that would be ended: its session, project and prompt."""

    session: str
    project: str
    prompt: str


def turns_page(turns: Sequence[RunningTurn]) -> str:
    """Which turns are running, a line for each; nothing if none is."""
    lines = "".join(
        f"  {printable(each.session)}  {printable(each.project)}: "
        f"{cut(printable(' '.join(each.prompt.split())), _PROMPT_CELLS, more='...')}\n"
        for each in turns
    )
    return f"Turns that are running, and would be stopped:\n{lines}" if lines else ""


def stop_page(found: Sequence[Belonging]) -> str:
    """A line for each."""
    widest = max((len(each.sort) for each in found), default=0)
    return "".join(
        f"  {each.sort:<{widest}}  {each.pid:>7}  {printable(each.where)}{_also(each)}\n"
        for each in found
    )


def same(found: Sequence[Belonging], now: Sequence[Belonging]) -> list[Belonging]:
    """What a person has agreed to, of what there is now: a number may have passed to another."""
    agreed = {(each.sort, each.pid) for each in found}
    return [each for each in now if (each.sort, each.pid) in agreed]


def stop_record(
    found: Sequence[Belonging], turns: Sequence[RunningTurn], *, is_ended: bool
) -> dict[str, object]:
    """The same for a program."""
    return {
        "schema": SCHEMA,
        "type": "stop",
        "ended": is_ended,
        "found": [
            {
                "kind": each.sort.value,
                "pid": each.pid,
                "where": each.where,
                "processes": each.processes,
                "kept": each.kept or None,
            }
            for each in found
        ],
        "turns": [
            {"session": each.session, "project": each.project, "prompt": each.prompt}
            for each in turns
        ],
    }


def consent(line: str) -> bool | None:
    """What an answer means; None if it means nothing."""
    return _ANSWERS.get(line.strip().lower())


def _also(each: Belonging) -> str:
    """What ends with it, and where we keep track of it, if that is not said already."""
    count = f" (with {each.processes} process{'' if each.processes == 1 else 'es'})"
    kept = "" if each.kept in ("", each.where) else f", kept in {printable(each.kept)}"
    return (count if each.processes else "") + kept
