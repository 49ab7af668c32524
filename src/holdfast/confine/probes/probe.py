"""Run the probes without a sandbox and in one, and find what is contained."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from holdfast.confine.entry import ProcessEntry, enter
from holdfast.confine.failures import SandboxFailed
from holdfast.confine.policy import SandboxPolicy
from holdfast.confine.probes import attempts, neighbour
from holdfast.confine.probes.attempts import ATTEMPTS, DESCRIPTOR, Scene
from holdfast.confine.probes.neighbour import SIGNALLED
from holdfast.confine.sandbox.sandbox import SandboxedEntry, prepare_sandbox

# Set the scene for the probes: something outside, a workspace, and a process beside them.

CANARY_NAME = "PROBE_API_KEY"


@contextmanager
def staged(directory: Path, *, workspace: Path | None = None) -> Generator[Scene]:
    """A scene in an empty directory; its process ends with the scene."""
    workspace, outside = workspace or directory / "workspace", directory / "outside"
    outside.mkdir(mode=0o700)
    for name in ("target", "secret"):
        (outside / name).write_text(name)
    (outside / "target").chmod(0o600)
    (workspace / ".git" / "hooks").mkdir(parents=True)
    (workspace / ".git" / "config").touch()
    (workspace / ".git" / "hooks" / "pre-commit").touch()
    (workspace / "link").symlink_to(outside / "target")
    canary = f"canary-{secrets.token_hex(8)}"
    command = [sys.executable, "-I", neighbour.__file__, str(outside), canary]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={CANARY_NAME: canary},
    )
    with process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        yield Scene(workspace=str(workspace), outside=str(outside), canary=canary, **told)


_PATH: Final = "/usr/bin:/bin"
_UNWITNESSED: Final = "no listener received it"


class ProbeVerdict(StrEnum):
    """What became of a probe."""

    CONTAINED = "contained"
    ESCAPED = "escaped"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class ProbeFinding:
    """One probe: what it tries, what became of it, and what refused it, if anything did."""

    name: str
    tries: str
    verdict: ProbeVerdict
    why: str


def probe(policy: SandboxPolicy | None = None, *, state: Path) -> tuple[ProbeFinding, ...]:
    """Try every way out of the sandbox that a policy makes here; the workspace is a probe's own.

    A way that is closed on this machine even without a sandbox proves nothing: it is said to be
    not applicable.
    """
    with TemporaryDirectory() as plain, TemporaryDirectory() as shut:
        with staged(Path(plain)) as scene:
            without = attempted(trying(scene), scene)
        with staged(Path(shut)) as scene:
            asked = policy or SandboxPolicy()
            allowed = replace(
                asked,
                readable=(*asked.readable, *readable_for_python()),
                writable=(scene.workspace,),
            )
            with prepare_sandbox(trying(scene), allowed, state=state) as made:
                within = attempted(made, scene)
    return findings(without, within)


def findings(
    without: dict[str, str | None], within: dict[str, str | None]
) -> tuple[ProbeFinding, ...]:
    """What follows from why each way was closed without a sandbox, and in one."""
    found: list[ProbeFinding] = []
    for attempt in ATTEMPTS:
        name, tries = attempt.__name__, (attempt.__doc__ or "").strip()
        verdict, why = ProbeVerdict.CONTAINED, within[name]
        if within[name] is None:
            verdict, why = ProbeVerdict.ESCAPED, ""
        elif without[name] is not None:
            verdict, why = ProbeVerdict.NOT_APPLICABLE, f"without a sandbox, too: {without[name]}"
        found.append(ProbeFinding(name, tries, verdict, why or ""))
    return tuple(found)


def attempted(tried: ProcessEntry | SandboxedEntry, scene: Scene) -> dict[str, str | None]:
    """Try every way out in a process that is shut in, or not, and say why each was closed.

    Whoever is not shut in gets a descriptor of the directory outside; whoever is, only if it is
    left open by mistake.
    """
    with ExitStack() as undo:
        hears, tells = os.pipe2(os.O_CLOEXEC)
        undo.callback(os.close, tells)
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        undo.callback(os.close, nothing)
        leaked = os.open(scene.outside, os.O_RDONLY | os.O_DIRECTORY)
        undo.callback(os.close, leaked)
        os.set_inheritable(leaked, True)
        if isinstance(tried, SandboxedEntry):
            entry = replace(tried.entry, files={nothing: 0, tells: 1, **tried.entry.files})
        else:
            entry = replace(tried, files={nothing: 0, tells: 1, leaked: DESCRIPTOR})
        pid = enter(entry)
    with open(hears) as reports:
        said = reports.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status != 0:
        raise SandboxFailed(reason=f"the probes ended with status {status}")
    ended: dict[str, str | None] = json.loads(said)
    if not Path(scene.outside, SIGNALLED).exists():
        ended["signal_outside"] = ended["signal_outside"] or _UNWITNESSED
    return ended


def trying(scene: Scene) -> ProcessEntry:
    """The process that tries every way out of a scene, as it would start plainly."""
    argv = [sys.executable, "-I", attempts.__file__, json.dumps(asdict(scene))]
    env = {"PATH": _PATH, CANARY_NAME: scene.canary}
    # Without a sandbox it may do whatever we may, so that only the sandbox can be what refuses.
    return ProcessEntry(argv, env, scene.workspace, sys.executable, is_unprivileged=False)


def readable_for_python() -> Sequence[str]:
    """What must be seen for this Python to run the probes."""
    needed = (sys.prefix, sys.base_prefix, os.path.dirname(attempts.__file__))
    return tuple(dict.fromkeys(os.path.realpath(path) for path in needed))
