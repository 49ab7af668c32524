"""Tell placeholders of protected names from files that a process has made there."""

from __future__ import annotations

import stat
from typing import Final

from holdfast.confine.model import PROTECTED
from holdfast.confine.policy import BARE, placeholder_content

MARK: Final = (
    stat.S_ISVTX
)  # set on placeholders: no other program sets the sticky bit on empty files

_NAMES: Final = {
    "/".join(name.split("/")[: count + 1])
    for name in (*PROTECTED, *BARE)
    for count in range(name.count("/") + 1)
}
_DEPTHS: Final = {name.count("/") + 1 for name in _NAMES}


def is_stand_in(path: str, mode: int, size: int) -> bool:
    """Whether it is what a sandbox puts where nothing is; of a directory `size` counts the names.

    Placeholders inside are not counted. A symbolic link is never a placeholder.
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
