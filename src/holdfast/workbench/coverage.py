"""Coverage: which paths and attributes a checkpoint includes. Pure."""

from __future__ import annotations

import stat
from dataclasses import dataclass

from blake3 import blake3

from holdfast.nouns import PATH_BYTES_MAX, RelativePath
from holdfast.workbench.model import UncoveredReason

# A scan holds one descriptor per level.
DEPTH_MAX = 256

_XATTRS = (b"user.", b"system.posix_acl_")
# Overlay metadata, meaningless elsewhere.
_XATTRS_OF_OTHERS = (b"user.overlay.",)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Paths excluded by the user, with all below them."""

    left_out: frozenset[RelativePath] = frozenset()

    @property
    def mark(self) -> str:
        """Hash of the coverage; the stat cache is keyed by it."""
        spelled = b"\0".join(sorted(path.raw for path in self.left_out))
        return blake3(spelled).hexdigest(length=8)


EVERYTHING = Coverage()


def uncovered_reason(
    path: bytes, mode: int, *, is_other_mount: bool, coverage: Coverage
) -> UncoveredReason | None:
    """Return why a path is not covered; None if it is.

    `is_other_mount`: a directory on another mount than its parent.
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
    """Whether an extended attribute belongs to the user and can be restored without privileges."""
    return name.startswith(_XATTRS) and not name.startswith(_XATTRS_OF_OTHERS)
