"""Find out which filesystem a path lies on, from the text of `/proc/self/mountinfo`."""

from __future__ import annotations

import re
from typing import NamedTuple

_ESCAPE = re.compile(r"\\([0-7]{3})")


class Mount(NamedTuple):
    """A mounted filesystem."""

    point: str
    kind: str
    options: tuple[str, ...] = ()


def mount_of(path: str, mountinfo: str) -> Mount | None:
    """The mount that an absolute, resolved path lies on; the last one mounted there wins."""
    found: Mount | None = None
    for line in mountinfo.splitlines():
        mount = _parse(line)
        if mount is None or not _covers(mount.point, path):
            continue
        if found is None or len(mount.point) >= len(found.point):
            found = mount
    return found


def _parse(line: str) -> Mount | None:
    """Fields before ` - `: ids, root, mount point, options; after it: type, source, options."""
    before, _, after = line.partition(" - ")
    place, filesystem = before.split(), after.split()
    if len(place) < 6 or len(filesystem) < 3:
        return None
    options = (*place[5].split(","), *filesystem[2].split(","))
    point = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), place[4])
    return Mount(point, filesystem[0], options)


def _covers(point: str, path: str) -> bool:
    return path == point or path.startswith(point.rstrip("/") + "/")


def cgroup_directory(membership: str, mountinfo: str) -> str | None:
    """Where the control group of a process lies, from the text of its `/proc/…/cgroup`."""
    inside = next((line[3:] for line in membership.splitlines() if line.startswith("0::")), None)
    mounts = (_parse(line) for line in mountinfo.splitlines())
    root = next((mount.point for mount in mounts if mount and mount.kind == "cgroup2"), None)
    if inside is None or root is None:
        return None
    return root.rstrip("/") + inside
