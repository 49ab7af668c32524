"""Look at what of this machine may keep a place from being made."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from holdfast.confine.core.refusals import Machine
from holdfast.confine.model import PlaceSpec

_ESCAPED = re.compile(rb"\\([0-7]{3})")


def machine_for(spec: PlaceSpec) -> Machine:
    """What is known of the machine, for one who wants such a place."""
    mounts = list(_mounts())
    around = [(len(point), kind) for point, kind in mounts if _is_within(spec.directory, point)]
    below = [point for point, _ in mounts for path in spec.covered if _is_within(point, path + "/")]
    clone = _switch("kernel/unprivileged_userns_clone")
    apparmor = _switch("kernel/apparmor_restrict_unprivileged_userns")
    return Machine(
        namespaces_max=_switch("user/max_user_namespaces"),
        is_clone_unprivileged=None if clone is None else clone > 0,
        is_restricted_by_apparmor=None if apparmor is None else apparmor > 0,
        filesystem=max(around, default=(0, "unknown"))[1],
        mounted_below=below[0] if below else None,
    )


def _switch(name: str) -> int | None:
    try:
        return int(Path("/proc/sys", name).read_text("ascii"))
    except (OSError, ValueError):
        return None


def _mounts() -> Iterator[tuple[str, str]]:
    """Where something is mounted, and of which kind it is, in the order of mounting."""
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        where, _, what = line.partition(b" - ")
        point = _ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), where.split(b" ")[4])
        yield os.fsdecode(point), os.fsdecode(what.split(b" ")[0])


def _is_within(path: str, directory: str) -> bool:
    return (path + "/").startswith(directory.rstrip("/") + "/")
