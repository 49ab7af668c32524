"""What a checkpoint covers: everything, except what has a reason that can be told."""

from __future__ import annotations

import stat
from dataclasses import dataclass

from blake3 import blake3

from holdfast.nouns import PATH_BYTES_MAX, RelativePath
from holdfast.workbench.model import UncoveredReason

DEPTH_MAX = 256  # a walk holds a descriptor for each directory on the way

_XATTRS = (b"user.", b"system.posix_acl_")
_XATTRS_OF_OTHERS = (b"user.overlay.",)  # the marks of a mount, which mean nothing outside of it


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the person wants to leave out: these paths, with all that is below them."""

    left_out: frozenset[RelativePath] = frozenset()

    @property
    def mark(self) -> str:
        """A word for it; what was looked at under another coverage must be looked at again."""
        spelled = b"\0".join(sorted(path.raw for path in self.left_out))
        return blake3(spelled).hexdigest(length=8)


EVERYTHING = Coverage()


def uncovered_reason(
    path: bytes, mode: int, *, is_other_mount: bool, coverage: Coverage
) -> UncoveredReason | None:
    """Why a checkpoint does not cover what stands at a path; None when it does.

    `is_other_mount` says that a directory lies on another file system than the one that it is in.
    """
    if len(path) > PATH_BYTES_MAX:
        return UncoveredReason.TOO_DEEP
    if coverage.left_out and RelativePath.of(path) in coverage.left_out:
        return UncoveredReason.POLICY
    if stat.S_ISDIR(mode):
        if is_other_mount:
            return UncoveredReason.MOUNTED
        return UncoveredReason.TOO_DEEP if path.count(b"/") + 1 >= DEPTH_MAX else None
    return None if stat.S_ISREG(mode) or stat.S_ISLNK(mode) else UncoveredReason.SPECIAL


def covers_xattr(name: bytes) -> bool:
    """Whether an extended attribute is the person's, and can be given back by the same user."""
    return name.startswith(_XATTRS) and not name.startswith(_XATTRS_OF_OTHERS)
