"""Find names below a directory that programs obey by themselves, beside those of the policy.

Three sorts: files of programs that are kept where they exist; what configuration has git run or
obey inside of the directory (that of its repository, also if it is a worktree or a subdirectory,
of repositories in it, and of the person); and where there is no repository, the names that would
make a bare one of the directory itself.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from holdfast.confine.core.git_config import Obeyed, obeyed_in
from holdfast.confine.core.policy import is_within
from holdfast.confine.core.protected import ABSENT, bare_names, candidates, guards
from holdfast.confine.failures import SandboxRequestUnfit
from holdfast.confine.looking import beneath, look
from holdfast.nouns import KEPT

CONFIG_BYTES_MAX: Final = 1 << 20
_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_BARE: Final = (".git", ".git/HEAD", "HEAD", "objects", "refs", "config", "hooks")
_OF_THE_MACHINE: Final = "/etc/gitconfig"
_OF_THE_PERSON: Final = (".config/git/config", ".gitconfig")


class Kept(NamedTuple):
    """Names to be kept as they are, below a directory, and in sentences what cannot be.

    Where nothing is, an empty file stands in for `files`, and a directory for other names.
    """

    names: tuple[str, ...]
    files: tuple[str, ...]
    unkept: tuple[str, ...]


def obeyed_names(directory: str, *, root: int | None, repositories: Sequence[str] = ()) -> Kept:
    """What is to be kept below a directory, with these repositories in it."""
    names = [name for name in KEPT if look(f"{directory}/{name}", root=root) != ABSENT]
    files: list[str] = []
    unkept: list[str] = []
    above = _repository_above(directory, root)
    worktrees = [directory, *(f"{directory}/{each}" for each in repositories)]
    for each in _obeyed(worktrees if above is None else [above, *worktrees], root):
        if not is_within(each.path, (directory,)):
            continue
        name = each.path[len(directory) + 1 :]
        is_absent = _is_absent(each.path, root)
        # In a place everybody would see what stands in, as a change of the draft; its review marks
        # what git obeys.
        if not name or (is_absent and root is not None):
            unkept.append(f"{each.path} is what git obeys ({each.key}), and could be made")
        elif is_absent is not None:
            names.append(name)
            files += [name] if each.is_configuration else []
    found = {name: look(f"{directory}/{name}", root=root) for name in _BARE}
    names += bare_names(found, is_below_repository=above is not None)
    kept: list[str] = []
    for name in dict.fromkeys(names):
        seen = {path: look(path, root=root) for path in candidates(directory, (name,))}
        try:
            guards(directory, (name,), seen)
        except SandboxRequestUnfit as unfit:
            unkept.append(unfit.reason)
        else:
            kept.append(name)
    return Kept(tuple(kept), tuple(files), tuple(unkept))


def shared_configurations() -> tuple[str, tuple[str, ...]]:
    """The home of the person, and the configuration that git reads in every repository."""
    home = os.path.expanduser("~")
    return home, (_OF_THE_MACHINE, *(f"{home}/{each}" for each in _OF_THE_PERSON))


def read_configuration(path: str, *, root: int | None = None) -> bytes:
    """The content of a configuration file; nothing where it cannot be read."""
    try:
        descriptor = os.open(beneath(path, root), _OPEN, dir_fd=root)
    except (OSError, ValueError):
        return b""
    try:
        return os.read(descriptor, CONFIG_BYTES_MAX)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _is_absent(path: str, root: int | None) -> bool | None:
    """Whether nothing is there; None if nothing can be, or nobody may look."""
    try:
        return look(path, root=root) == ABSENT
    except (OSError, ValueError):
        return None


def _repository_above(directory: str, root: int | None) -> str | None:
    above = os.path.dirname(directory)
    while above != "/":
        if look(f"{above}/.git", root=root) != ABSENT:
            return above
        above = os.path.dirname(above)
    return None


def _obeyed(worktrees: Sequence[str], root: int | None) -> tuple[Obeyed, ...]:
    home, shared = shared_configurations()
    read = partial(read_configuration, root=root)
    every = (obeyed_in(each, read, home=home, shared=shared) for each in worktrees)
    return tuple(dict.fromkeys(obeyed for some in every for obeyed in some))
