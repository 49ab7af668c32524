"""Those who keep snapshots of a directory, too: git in a shadow repository, cp, restic.

Each is measured by the processor time of the processes that it starts, their start included.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

# Nobody's settings but these; one object store beside the project, as shadow repositories have it.
_PLAIN = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
DURABLE = ("-c", "core.fsync=all", "-c", "core.fsyncMethod=batch")


def processor_seconds(work: Callable[[], object]) -> float:
    """How much processor time something takes, here and in the processes that it starts."""
    before = _processor()
    work()
    return _processor() - before


class Git:
    """A shadow repository of a directory: its files are tracked in another place."""

    def __init__(self, project: Path, home: Path, settings: tuple[str, ...] = ()) -> None:
        self._project = project
        self._settings = settings
        self._environment = {
            **os.environ,
            **_PLAIN,
            "GIT_DIR": str(home),
            "GIT_WORK_TREE": str(project),
        }
        self.run("init", "--quiet")

    def run(self, *words: str) -> None:
        """Run one command of git."""
        command = ["git", *self._settings, *words]
        subprocess.run(
            command, env=self._environment, cwd=self._project, stdout=subprocess.DEVNULL, check=True
        )

    def snapshot(self) -> None:
        """Keep the directory as it is, as far as git does."""
        self.run("add", "--all")
        self.run("write-tree")


class Restic:
    """A repository of restic; it encrypts, and derives a key at every command."""

    def __init__(self, project: Path, home: Path) -> None:
        self._project = project
        self._environment = {
            **os.environ,
            "RESTIC_REPOSITORY": str(home),
            "RESTIC_PASSWORD": "bench",
            "RESTIC_CACHE_DIR": str(home) + ".cache",
        }
        self._run("init")

    @staticmethod
    def is_here() -> bool:
        """Whether it can be measured."""
        return shutil.which("restic") is not None

    def snapshot(self) -> None:
        """Keep the directory as it is."""
        self._run("backup", "--quiet", ".")

    def _run(self, *words: str) -> None:
        subprocess.run(
            ["restic", *words],
            env=self._environment,
            cwd=self._project,
            stdout=subprocess.DEVNULL,
            check=True,
        )


def copy(project: Path, home: Path) -> None:
    """Copy a directory with all that `cp` knows of."""
    subprocess.run(["cp", "-a", str(project), str(home)], check=True)


def _processor() -> float:
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [resource.getrusage(each) for each in who]
    return sum(each.ru_utime + each.ru_stime for each in used)
