"""Drop the dentry cache of an overlay by remounting it.

An overlay caches lookups and does not notice files that are replaced, created or removed in its
lower directory. A remount drops every cached name that is not in use. It takes a process that joins
the namespaces of the place. Only the standard library is imported: where there are threads, a small
interpreter of its own does it.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

import holdfast.confine.kernel as kernel

_AGAIN: Final = 32 | kernel.MS_NOSUID | kernel.MS_NODEV  # MS_REMOUNT, and as it was mounted
_PATIENCE: Final = 60.0
_BOOT: Final = """
import sys
sys.path.insert(0, sys.argv[1])
from holdfast.confine.place.remount import main
main(sys.argv[2:])
"""


def remount(namespaces: Sequence[int], directories: Sequence[int]) -> None:
    """Remount the overlays over these directories of a place; raises `OSError`.

    Directories are descriptors that were opened in the place. Names of files that a process inside
    has open, and of its working directory, stay cached until it releases them.
    """
    if len(os.listdir("/proc/self/task")) > 1:
        number = _apart(namespaces, directories)
    else:
        child = os.fork()
        if child == 0:
            _remount(namespaces, directories)
        number = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if number:
        number = number if number > 0 else errno.ECHILD  # the child was killed
        raise OSError(number, os.strerror(number))


def main(words: Sequence[str]) -> NoReturn:
    """Do it in a process that has one thread: the namespaces, a word between, the directories."""
    middle = words.index("in")
    _remount([int(word) for word in words[:middle]], [int(word) for word in words[middle + 1 :]])


def _remount(namespaces: Sequence[int], directories: Sequence[int]) -> NoReturn:
    status = 0
    try:
        for namespace in namespaces:
            kernel.join(namespace)
        for directory in directories:
            os.fchdir(directory)  # a path could lead elsewhere by now
            kernel.mount(None, b".", flags=_AGAIN)
    except OSError as error:
        status = error.errno or errno.EIO
    finally:
        os._exit(status)


def _apart(namespaces: Sequence[int], directories: Sequence[int]) -> int:
    ours = str(Path(__file__).resolve().parents[3])
    # -I -S: nothing of the user's and nothing that is installed; what it needs, it has.
    command = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT, ours]
    words = [*map(str, namespaces), "in", *map(str, directories)]
    given = (*namespaces, *directories)
    return subprocess.run(
        [*command, *words], pass_fds=given, cwd="/", timeout=_PATIENCE, check=False
    ).returncode
