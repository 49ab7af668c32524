"""Tell what stands in for a protected name from what somebody has made there."""

from __future__ import annotations

import stat
from typing import Final

from holdfast.confine.model import PROTECTED
from holdfast.confine.policy import BARE, placeholder_content

MARK: Final = stat.S_ISVTX  # on what we make: nobody else gives it to such things

_NAMES: Final = {
    "/".join(name.split("/")[: count + 1])
    for name in (*PROTECTED, *BARE)
    for count in range(name.count("/") + 1)
}
_DEPTHS: Final = {name.count("/") + 1 for name in _NAMES}


def is_stand_in(path: str, mode: int, size: int) -> bool:
    """Whether it is what a sandbox puts where nothing is; of a directory `size` counts the names.

    Names that stand in themselves are not counted. It says nothing about a link, which is none.
    """
    if not mode & MARK:  # nearly always
        return False
    parts = path.split("/")
    if not any("/".join(parts[-depth:]) in _NAMES for depth in _DEPTHS):
        return False
    content = placeholder_content(f"/{path}")
    if content is None:
        return stat.S_ISDIR(mode) and size == 0
    return stat.S_ISREG(mode) and size <= len(content)
