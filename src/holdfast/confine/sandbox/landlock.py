"""Turn a plain entry into one with a fence of Landlock: the lesser way to shut a process in."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from holdfast.confine.entry import ProcessEntry
from holdfast.confine.filesystem import directory_info, system_paths
from holdfast.confine.policy import (
    Network,
    PathInfo,
    ProtectedPath,
    Protection,
    SandboxPolicy,
    is_within,
)
from holdfast.confine.restrict import landlock_version
from holdfast.confine.sandbox.arguments import fence
from holdfast.confine.sandbox.bubblewrap import limits_of_each
from holdfast.confine.sandbox.seccomp import SocketFamily, program

LACKS: Final = (
    "it sees the names of all files and the numbers of all processes",
    "it can change modes, owners and times of files outside that are its user's",
    "beside protected names it can make nothing new",
)


def fenced(
    entry: ProcessEntry,
    policy: SandboxPolicy,
    variables: Mapping[str, str],
    kept: Sequence[ProtectedPath],
    state: Path,
) -> tuple[ProcessEntry, ExitStack]:
    """The entry with a fence that keeps a policy as well as it can, and what undoes it.

    The process gets a directory of its own for temporary files, which is gone afterwards.
    """
    with ExitStack() as undo:
        scratch = tempfile.mkdtemp(prefix="scratch-", dir=state)
        undo.callback(shutil.rmtree, scratch, ignore_errors=True)
        granted = replace(policy, writable=(*policy.writable, scratch))
        families = [] if policy.network is Network.NONE else [SocketFamily.INET, SocketFamily.INET6]
        if policy.has_unix_sockets:
            families.append(SocketFamily.UNIX)
        own = {"HOME": scratch, "TMPDIR": scratch}
        path = variables.get("PATH", os.defpath)
        shut = replace(
            entry,
            env={**variables, **own},
            program=shutil.which(entry.program, path=path) or entry.program,
            limits=(*entry.limits, *limits_of_each(policy)),
            is_unprivileged=True,
            fence=fence(
                granted,
                kept,
                _children(granted, kept),
                system_paths=system_paths(),
                abi=landlock_version(),
            ),
            filter=program(platform.machine(), tuple(families)),
        )
        return shut, undo.pop_all()


def _children(
    policy: SandboxPolicy, kept: Sequence[ProtectedPath]
) -> dict[str, dict[str, PathInfo]]:
    pinned = [guard.path for guard in kept if guard.guarding is Protection.PINNED]
    around = [root for root in policy.writable if any(is_within(g.path, (root,)) for g in kept)]
    return {directory: directory_info(directory, root=None) for directory in (*around, *pinned)}
