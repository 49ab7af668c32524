"""Small real sandboxes for tests: a workspace, something outside, and what a command said."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.confine.entry import ProcessEntry, enter
from holdfast.confine.policy import ResourceLimits, SandboxPolicy, Strength
from holdfast.confine.sandbox.sandbox import SandboxedEntry, prepare_sandbox

SMALL = ResourceLimits(
    processes=64,
    memory_bytes=256 << 20,
    file_bytes=32 << 20,
    open_files=256,
    temporary_bytes=32 << 20,
)
PATH = {"PATH": "/usr/bin:/bin"}
# What Python needs to run there, and our own code and tests.
PYTHON = tuple(
    dict.fromkeys(
        os.path.realpath(each)
        for each in (sys.prefix, sys.base_prefix, Path(__file__).parents[2] / "src")
    )
)


@dataclass(frozen=True)
class Outcome:
    """How a command that was shut in ended."""

    status: int
    said: str
    complained: str
    strength: Strength


@dataclass(frozen=True)
class Stage:
    """A workspace that may be written, a state directory, and a directory outside of both."""

    workspace: Path
    outside: Path
    state: Path

    @property
    def policy(self) -> SandboxPolicy:
        """The usual policy: the workspace can be written, little of the machine be used."""
        return SandboxPolicy(writable=(str(self.workspace),), limits=SMALL)

    def run(
        self,
        *command: str,
        policy: SandboxPolicy | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Outcome:
        """Run a command, shut in, and wait for its end."""
        entry = plain(command, self.workspace if cwd is None else cwd, {**PATH, **(env or {})})
        with prepare_sandbox(entry, policy or self.policy, state=self.state) as shut:
            return self.ended(shut)

    def shell(self, script: str, policy: SandboxPolicy | None = None) -> Outcome:
        """Run a script of the shell."""
        return self.run("sh", "-c", script, policy=policy)

    def ended(self, shut: SandboxedEntry) -> Outcome:
        """Start what is shut in, and wait for its end."""
        names = [self.state / "stdout", self.state / "stderr"]
        nothing = os.open(os.devnull, os.O_RDONLY)
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        out, err = (os.open(name, flags, 0o600) for name in names)
        try:
            status = run_to_end(shut.entry, {nothing: 0, out: 1, err: 2})
        finally:
            for each in (nothing, out, err):
                os.close(each)
        said, complained = (name.read_text(errors="replace") for name in names)
        return Outcome(status, said, complained, shut.strength)


def stage(directory: Path) -> Stage:
    """A stage in a directory: a repository with hooks, a secret outside."""
    made = Stage(directory / "workspace", directory / "outside", directory / "state")
    for each in (made.workspace / ".git" / "hooks", made.outside, made.state):
        each.mkdir(parents=True)
    (made.workspace / ".git" / "config").write_text("[core]\n\tbare = false\n")
    (made.workspace / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\n")
    (made.workspace / "file").write_text("file")
    (made.outside / "secret").write_text("a secret of the person")
    (made.outside / "target").write_text("target")
    return made


def plain(command: Sequence[str], cwd: str | Path, env: Mapping[str, str]) -> ProcessEntry:
    """The entry of a command that is not shut in."""
    return ProcessEntry(command, env, str(cwd), command[0])


def run_to_end(entry: ProcessEntry, files: Mapping[int, int]) -> int:
    """Enter with these descriptors beside its own, and wait for the end."""
    first = {**files, **entry.files}
    pid = enter(
        ProcessEntry(
            **{name: getattr(entry, name) for name in ProcessEntry.__slots__} | {"files": first}
        )
    )
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
