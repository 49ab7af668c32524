"""Find names below a directory that programs obey by themselves, beside those of the policy.

Three sorts: files of programs that are kept where they exist; what a repository's configuration has
git run or obey inside of the directory; and where there is no repository, the names that would make
a bare one of the directory itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from holdfast.confine.core.git_config import Obeyed, obeyed_paths
from holdfast.confine.core.policy import is_within
from holdfast.confine.core.protected import ABSENT, bare_names, candidates, guards
from holdfast.confine.failures import SandboxRequestUnfit
from holdfast.confine.looking import beneath, look
from holdfast.nouns import KEPT

_CONFIG_BYTES_MAX: Final = 1 << 20
_CONFIGS_MAX: Final = 16
_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_BARE: Final = (".git", ".git/HEAD", "HEAD", "objects", "refs", "config", "hooks")


def obeyed_names(directory: str, *, root: int | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names to be kept, and in sentences what cannot be."""
    names = [name for name in KEPT if look(f"{directory}/{name}", root=root) != ABSENT]
    unkept: list[str] = []
    for path, key in _obeyed(directory, root):
        if not is_within(path, (directory,)):
            continue
        if path == directory or look(path, root=root) == ABSENT:
            unkept.append(f"{path} is what git obeys ({key}), and could be made")
        else:
            names.append(path.removeprefix(f"{directory}/"))
    found = {name: look(f"{directory}/{name}", root=root) for name in _BARE}
    names += bare_names(found, is_below_repository=_is_below_repository(directory, root))
    kept: list[str] = []
    for name in dict.fromkeys(names):
        seen = {path: look(path, root=root) for path in candidates(directory, (name,))}
        try:
            guards(directory, (name,), seen)
        except SandboxRequestUnfit as unfit:
            unkept.append(unfit.reason)
        else:
            kept.append(name)
    return tuple(kept), tuple(unkept)


def _is_below_repository(directory: str, root: int | None) -> bool:
    above = os.path.dirname(directory)
    while above != "/":
        if look(f"{above}/.git", root=root) != ABSENT:
            return True
        above = os.path.dirname(above)
    return False


def _obeyed(directory: str, root: int | None) -> Iterator[Obeyed]:
    """All that the configuration of the repository names, and that further configuration names."""
    ahead, seen = [f"{directory}/.git/config", f"{directory}/.git/config.worktree"], set[str]()
    while ahead and len(seen) < _CONFIGS_MAX:
        path = ahead.pop()
        seen.add(path)
        for each in obeyed_paths(
            _read(path, root), directory=os.path.dirname(path), worktree=directory
        ):
            yield each
            if each.key == "include.path" and each.path not in seen:
                ahead.append(each.path)


def _read(path: str, root: int | None) -> bytes:
    try:
        descriptor = os.open(beneath(path, root), _OPEN, dir_fd=root)
    except OSError:
        return b""
    try:
        return os.read(descriptor, _CONFIG_BYTES_MAX)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
