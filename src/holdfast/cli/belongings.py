"""Find what runs for one state directory: sandboxes, servers, keepers and places.

A process belongs to a directory if it holds a lock there open, and a place if its draft lies
there. Nobody else is looked at twice: what belongs to another directory is another's to end.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from holdfast.cli.core.stop_page import Belonging, Sort
from holdfast.confine.place import places
from holdfast.exec.keeper.protocol import LOCK_NAME
from holdfast.exec.keeping import SERVER_LOCK_NAME
from holdfast.exec.orphans import Marked
from holdfast.world import SystemProcess, system_process, system_processes

_SORTS = {SERVER_LOCK_NAME: Sort.SERVER, LOCK_NAME: Sort.KEEPER}
_OF_SANDBOXES = ".needed"


def belongings(state: Path) -> list[Belonging]:
    """All that runs for a state directory, in the order in which it is to be ended."""
    home = os.path.realpath(state)
    processes = [each for each in system_processes() if not each.is_dead]
    children = Counter(each.parent for each in processes)
    found: set[Belonging] = set()
    for process in processes:
        for path in _opened(process.pid, home):
            sort = _sort(os.path.basename(path))
            if sort is not None and process.pid != os.getpid():
                count = children[process.pid] if sort is Sort.KEEPER else 0
                where = os.path.dirname(path) if sort in _SORTS.values() else _cwd(process.pid)
                found.add(Belonging(sort, process.pid, where, count))
    found.update(
        Belonging(Sort.PLACE, each.holder.pid, each.holder.project, each.processes)
        for each in places()
        if _is_below(os.path.realpath(each.holder.directory), home)
    )
    order = list(Sort)
    return sorted(_outermost(found), key=lambda each: (order.index(each.sort), each.pid))


def orphan(found: Marked) -> Belonging:
    """A process that has outlived its keeper, as one of ours."""
    return Belonging(Sort.ORPHAN, found.process.pid, found.command)


def _sort(name: str) -> Sort | None:
    return Sort.SANDBOX if name.endswith(_OF_SANDBOXES) else _SORTS.get(name)


def _outermost(found: set[Belonging]) -> Iterator[Belonging]:
    """Of the processes of one sandbox, only the first: the others end with it."""
    sandboxes = {each.pid for each in found if each.sort is Sort.SANDBOX}
    for each in found:
        if each.sort is not Sort.SANDBOX or not _ancestors(each.pid) & sandboxes:
            yield each


def _ancestors(pid: int) -> set[int]:
    above: set[int] = set()
    process: SystemProcess | None = system_process(pid)
    while process is not None and process.parent and process.parent not in above:
        above.add(process.parent)
        process = system_process(process.parent)
    return above


def _cwd(pid: int) -> str:
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/cwd")
    return ""


def _opened(pid: int, home: str) -> Iterator[str]:
    """The files below a directory that a process has open."""
    with suppress(OSError):  # it is gone, or not ours to see
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                path = os.readlink(f"/proc/{pid}/fd/{name}")
                if _is_below(path, home):
                    yield path


def _is_below(path: str, home: str) -> bool:
    return path.startswith(f"{home}/")
