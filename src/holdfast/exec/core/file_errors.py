"""Name what the system says about a file, in the words that clients of this wire know."""

from __future__ import annotations

import errno

from holdfast.exec.failures import FileFailed, FileMissing, RequestUnfit
from holdfast.failures import Failure
from holdfast.world.failures import DiskFull, DiskQuota

_NO_ROOM = {errno.ENOSPC: DiskFull, errno.EDQUOT: DiskQuota}
_UNFIT = {errno.EACCES, errno.EPERM, errno.EINVAL}


def file_failure(error: OSError, path: bytes) -> Failure:
    """The failure that an error of the system stands for."""
    reason, shown = reason_of(error), path.decode("utf-8", "backslashreplace")
    if (no_room := _NO_ROOM.get(error.errno or 0)) is not None:
        return no_room(path=shown)
    if error.errno == errno.ENOENT:
        return FileMissing(path=shown, reason=reason)
    if error.errno in _UNFIT:
        return RequestUnfit(reason=reason)
    return FileFailed(path=shown, reason=reason)


def reason_of(error: OSError) -> str:
    """The error as one phrase, with its number."""
    return f"{error.strerror or error} (os error {error.errno or 0})"
