"""Say what a sandboxed command needs of git data outside of its project.

A linked worktree has HEAD and its index in a directory of the repository it belongs to, and shares
objects and refs with it. A draft covers these directories, so what is written there stays in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.failures import Failure
from holdfast.workbench.git_repository import find_repository
from holdfast.workbench.worktrees import git_data_elsewhere

_SHARED: Final = ("objects", "refs", "logs")
_OBEYED: Final = ("commondir", "config.worktree")


@dataclass(frozen=True, slots=True)
class GitAccess:
    """Paths outside of a project that git in it reads, and directories that a commit writes to.

    What is readable inside of something writable stays as it is.
    """

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()


def git_access_for(project: Path) -> GitAccess:
    """What git in a draft of a project needs; nothing if all of it is inside of the project.

    Hooks and configuration are only readable. So is all of a repository that has them beside its
    HEAD, as that of a submodule: there git can look and not commit.
    """
    try:
        elsewhere = git_data_elsewhere(project)
        if not elsewhere:
            return GitAccess()
        repository = find_repository(project)
    except Failure:  # then there is no draft of it either
        return GitAccess()
    if not repository.is_linked_worktree or repository.top != project:
        return GitAccess(elsewhere)
    shared = (repository.common / name for name in _SHARED)
    writable = [str(each) for each in (*shared, repository.directory) if each.is_dir()]
    # Whoever changes these lets git read another configuration.
    obeyed = (str(repository.directory / name) for name in _OBEYED)
    return GitAccess((*elsewhere, *obeyed), tuple(writable))
