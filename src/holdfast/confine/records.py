"""Know who holds a place: by the record in the draft, and by the mark of the holder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from holdfast.confine.holding import MARK
from holdfast.confine.model import Holder, PlaceSpec
from holdfast.world import disk_failure, environment_of, system_process, system_processes

_NAME = "holder.json"
_MARK = MARK.encode() + b"="


def living_holder(directory: str) -> Holder | None:
    """The holder of a draft, if it lives; also one whose record was lost."""
    holder = recorded_holder(directory)
    if holder is None and os.path.exists(directory):
        return next((each for each in marked_holders() if each.directory == directory), None)
    return holder


def recorded_holder(directory: str) -> Holder | None:
    """The holder that the record of a draft names, if it lives."""
    try:
        holder = Holder.of(_read(Path(directory, _NAME).read_text("ascii")))
    except (OSError, ValueError):
        return None
    # A directory that was moved or copied tells of a place that is not its own.
    is_its_own = holder is not None and holder.directory == directory
    return holder if is_its_own and holder is not None and _lives(holder) else None


def marked_holders() -> Iterator[Holder]:
    """Every living holder of our own user on this machine, by its mark."""
    try:
        yield from _marked()
    except OSError as error:
        raise disk_failure(error, path="/proc") from error


def _marked() -> Iterator[Holder]:
    for process in system_processes():
        if process.is_dead:
            continue
        for variable in environment_of(process.pid):
            if variable.startswith(_MARK) and _is_holder_of_ours(process.pid):
                with suppress(ValueError):
                    data = _read(os.fsdecode(variable.removeprefix(_MARK)))
                    yield from _whole(data, process.pid)


def mark_of(spec: PlaceSpec, since: float) -> str:
    """What the holder of such a place shows, from before it has a number."""
    said = {"directory": spec.directory, "project": spec.project, "also": spec.also}
    return json.dumps({"version": 1, **said, "since": since})


def record(mark: str, pid: int) -> Holder | None:
    """Write down in the draft's directory who holds it; None if that one is gone already."""
    holder = next(_whole(_read(mark), pid), None)
    if holder is not None:
        path = Path(holder.directory, _NAME)
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(holder.plain()), encoding="ascii")
        draft.replace(path)
    return holder


def forget(directory: str) -> None:
    """Remove the record of a holder that is gone; for those who have the lock."""
    for name in (_NAME, "holder.new"):
        try:
            Path(directory, name).unlink(missing_ok=True)
        except OSError as error:
            raise disk_failure(error, path=directory) from error


def _lives(holder: Holder) -> bool:
    if (holder.boot, holder.namespace) != (_boot(), _namespace()):
        return False
    process = system_process(holder.pid)
    return process is not None and not process.is_dead and process.started == holder.started


def _whole(mark: dict[str, object], pid: int) -> Iterator[Holder]:
    process = system_process(pid)
    if process is not None and not process.is_dead:
        found = {"pid": pid, "started": process.started}
        holder = Holder.of({**mark, **found, "boot": _boot(), "namespace": _namespace()})
        if holder is not None:
            yield holder


def _read(text: str) -> dict[str, object]:
    data: Any = json.loads(text)  # Any: it may be anything
    return data if isinstance(data, dict) else {}  # pyright: ignore[reportUnknownVariableType]  # see above


def _is_holder_of_ours(pid: int) -> bool:
    """Whether it is what the mark says: anyone inside may have copied its words."""
    try:
        lines = Path(f"/proc/{pid}/status").read_bytes().splitlines()
    except OSError:
        return False
    fields = {name: values.split() for name, _, values in (line.partition(b":") for line in lines)}
    is_first = len(fields[b"NSpid"]) > 1 and fields[b"NSpid"][-1] == b"1"
    return is_first and int(fields[b"Uid"][1]) == os.geteuid()


@cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


@cache
def _namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino
