"""Find what runs for us: sandboxes, servers, keepers and places, of one directory or of all.

A process belongs to a directory if it holds a lock of ours there open, and a place if its draft
lies there. Processes of other users are skipped: only their user may end them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from holdfast.cli.render.stop import Belonging, Sort
from holdfast.confine.place.place import places
from holdfast.confine.sandbox.placeholder_sweeper import is_sweeper
from holdfast.exec.keeper.discovery import SERVER_LOCK_NAME, MarkedProcess, orphans
from holdfast.exec.keeper.protocol import LOCK_NAME, KeeperName
from holdfast.world import SystemProcess, command_of, system_process, system_processes

_SORTS = {SERVER_LOCK_NAME: Sort.SERVER, LOCK_NAME: Sort.KEEPER}
_OF_SANDBOXES = "placeholders", ".needed"
_GONE = " (deleted)"  # what the kernel says of a file without a name
_US = "holdfast"
_LISTENS = "00010000"  # among the flags of a socket in /proc


def belongings(state: Path | None = None) -> list[Belonging]:
    """All of ours that runs, in the order in which it is to be ended.

    With a state directory, what runs for that one; without, whatever our user runs here.
    """
    home = "" if state is None else os.path.realpath(state)
    processes = [each for each in system_processes() if not each.is_dead]
    children = Counter(each.parent for each in processes)
    found: set[Belonging] = set()
    for process in processes:
        for path in _opened(process.pid):
            sort = _sort(process.pid, path)
            if sort is not None and process.pid != os.getpid() and _is_below(path, home):
                count = children[process.pid] if sort is Sort.KEEPER else 0
                kept = os.path.dirname(path)
                where = _cwd(process.pid) if sort is Sort.SANDBOX else kept
                found.add(Belonging(sort, process.pid, where, count, kept))
    for each in places():
        draft = os.path.realpath(each.holder.directory)
        if _is_below(draft, home):
            pid, project = each.holder.pid, each.holder.project
            found.add(Belonging(Sort.PLACE, pid, project, each.processes, draft))
    last = None if not home else _last_keeper(Path(home) / "exec")
    found.update(
        orphan(each)
        for each in orphans()
        if _is_ours(each.process.pid) and (not home or each.keeper == last)
    )
    order = list(Sort)
    return sorted(_outermost(found), key=lambda each: (order.index(each.sort), each.pid))


def _last_keeper(state: Path) -> KeeperName | None:
    """The keeper that was last to lock a directory, unless it ended in good order."""
    try:
        return KeeperName.parse((state / LOCK_NAME).read_text("ascii", errors="replace"))
    except OSError:
        return None


def address(server: int) -> str | None:
    """Where a server of this machine listens, if that is a socket with a path."""
    own = set(_opened(server))
    with suppress(OSError), open(f"/proc/{server}/net/unix", errors="surrogateescape") as sockets:
        for line in sockets:
            words = line.rstrip("\n").split(maxsplit=7)
            if words[3] == _LISTENS and f"socket:[{words[6]}]" in own and len(words) > 7:
                return f"unix://{words[7]}"
    return None


def orphan(found: MarkedProcess) -> Belonging:
    """A process that has outlived its keeper, as one of ours."""
    return Belonging(Sort.ORPHAN, found.process.pid, found.command)


def _sort(pid: int, path: str) -> Sort | None:
    """What has such a file open, if it is one of ours: others may use such names, too."""
    directory, name = os.path.split(path)
    where, ending = _OF_SANDBOXES
    if name.endswith(ending):
        is_sandbox = os.path.basename(directory) == where and not is_sweeper(command_of(pid))
        return Sort.SANDBOX if is_sandbox else None
    if name not in _SORTS:
        return None
    is_ours = os.path.exists(f"{directory}/{LOCK_NAME}") or _US in command_of(pid)
    return _SORTS[name] if is_ours else None


def _outermost(found: set[Belonging]) -> Iterator[Belonging]:
    """Of the processes of one sandbox, only the first, and none that ends with its keeper."""
    around = {each.pid for each in found if each.sort is Sort.SANDBOX}
    planes = {each.pid for each in found if each.sort in _SORTS.values()}
    for each in found:
        if each.sort is Sort.SANDBOX:
            above = _ancestors(each.pid)
            if above & around or (above | {each.pid}) & planes:
                continue
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


def _opened(pid: int) -> Iterator[str]:
    """The files that a process of our own user has open, under the names that they have or had."""
    if not _is_ours(pid):
        return
    with suppress(OSError):  # it is gone
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                yield os.readlink(f"/proc/{pid}/fd/{name}").removesuffix(_GONE)


def _is_ours(pid: int) -> bool:
    try:
        return os.stat(f"/proc/{pid}").st_uid == os.geteuid()
    except OSError:  # it is gone
        return False


def _is_below(path: str, home: str) -> bool:
    return path.startswith(f"{home}/")
