"""What a checkpoint covers: everything, except what has a reason that can be told."""

from __future__ import annotations

import stat
from dataclasses import dataclass

from blake3 import blake3

from holdfast.nouns import PATH_BYTES_MAX, RelativePath
from holdfast.workbench.model import Lack

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


def lack_of(path: bytes, mode: int, *, is_elsewhere: bool, coverage: Coverage) -> Lack | None:
    """Why a checkpoint does not cover what stands at a path; None when it does.

    `is_elsewhere` says that a directory lies on another file system than the one that it is in.
    """
    if len(path) > PATH_BYTES_MAX:
        return Lack.TOO_DEEP
    if coverage.left_out and RelativePath.of(path) in coverage.left_out:
        return Lack.POLICY
    if stat.S_ISDIR(mode):
        if is_elsewhere:
            return Lack.MOUNTED
        return Lack.TOO_DEEP if path.count(b"/") + 1 >= DEPTH_MAX else None
    return None if stat.S_ISREG(mode) or stat.S_ISLNK(mode) else Lack.SPECIAL


def covers_xattr(name: bytes) -> bool:
    """Whether an extended attribute is the person's, and can be given back by the same user."""
    return name.startswith(_XATTRS) and not name.startswith(_XATTRS_OF_OTHERS)
