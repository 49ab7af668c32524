"""Decide how well this machine can shut a process in and kill all that it started.

Nothing here is a failure: without a sandbox Holdfast refuses to run agents, it never runs them
unconfined in silence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from holdfast.app.doctor.model import Finding, Machine, Refused, Status
from holdfast.app.doctor.remedies import as_root, install, install_agent
from holdfast.app.doctor.storage import untried

LANDLOCK_WANTED = 4  # the first version that rules TCP

_REMEDIES = {
    "clone": "sysctl -w kernel.unprivileged_userns_clone=1",
    "count": "sysctl -w user.max_user_namespaces=10000",
}
_BELOW = "See the remedies below."
_CONTAINER = "In a container, start it with user namespaces allowed (see its seccomp profile)."


@dataclass(frozen=True, slots=True)
class Sandbox:
    """How well a small program could be shut in, and why not better."""

    strength: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Whether a draft could be given a view of its own, and why not."""

    is_made: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Whether we could become someone else in a view of our own, and which switch forbids it."""

    is_allowed: bool
    reason: str = ""
    switch: str = ""


@dataclass(frozen=True, slots=True)
class Ran:
    """A program that ran to its end, and the first line that it wrote."""

    status: int
    line: str


@dataclass(frozen=True, slots=True)
class Landlock:
    """The version of Landlock that the kernel offers."""

    abi: int


@dataclass(frozen=True, slots=True)
class Overlay:
    """What became of a write through an overlay that we mounted ourselves."""

    lower_kept: bool
    upper_holds: bool


@dataclass(frozen=True, slots=True)
class OpenBeneath:
    """Whether the kernel itself refuses to leave a directory."""

    is_enforced: bool


@dataclass(frozen=True, slots=True)
class Cgroup:
    """Whether a whole group of processes died at one word."""

    is_killed: bool


def judge_sandbox(facts: Sandbox | Refused) -> Finding:
    """A command can be shut in, by all the walls that we build."""
    if isinstance(facts, Refused):
        return Finding(Status.WARNING, f"could not be tried ({facts.reason})")
    if facts.strength == "full":
        return Finding(Status.OK, "shut a command in, at full strength")
    why = "; ".join(facts.reasons)
    if facts.strength == "reduced":
        text = f"only a lesser one can be made, without a network ({why})"
    else:
        text = f"none can be made, and nothing that needs one is run ({why})"
    return Finding(Status.WARNING, text, _BELOW)


def judge_place(facts: Place | Refused) -> Finding:
    """A draft can be seen at the project's own path."""
    if isinstance(facts, Refused) and facts.is_nowhere:
        return untried(facts, otherwise=Status.WARNING)
    if isinstance(facts, Refused):
        return Finding(Status.WARNING, f"could not be tried ({facts.reason})")
    if not facts.is_made:
        text = f"no view of its own for a draft ({facts.reason}); drafts will be copies"
        return Finding(Status.WARNING, text, _BELOW)
    return Finding(Status.OK, "made one for a draft, and ended it")


def judge_user(machine: Machine) -> Finding:
    """What gets out of a place, or was never shut in, has no more power than an ordinary user."""
    if machine.is_root:
        text = "you are root: what runs without a sandbox, even in a place, rules the machine"
        return Finding(Status.WARNING, text, "Run Holdfast as an ordinary user.")
    return Finding(Status.OK, "an ordinary one, who does not rule the machine")


def judge_bubblewrap(facts: Ran | Refused, machine: Machine) -> Finding:
    """A command runs in a sandbox: tried, not read from a version."""
    if isinstance(facts, Refused) and facts.errno == "ENOENT":
        text = "bwrap was not found; agents cannot be shut in fully"
        return Finding(Status.WARNING, text, install("bubblewrap", machine))
    if isinstance(facts, Refused):
        return Finding(Status.WARNING, f"bwrap does not run ({facts.reason})")
    if facts.status != 0:
        text = f"bwrap cannot make a sandbox ({facts.line or f'status {facts.status}'})"
        return Finding(Status.WARNING, text, "See the remedy for user namespaces.")
    return Finding(Status.OK, "bwrap ran a command in a sandbox")


def judge_deaths(facts: Ran | Refused, machine: Machine) -> Finding:
    """What we start dies with us, even when we are killed."""
    remedy = install("util-linux", machine)
    if isinstance(facts, Refused) and facts.errno == "ENOENT":
        text = "setpriv was not found; what we start may outlive us when we are killed"
        return Finding(Status.WARNING, text, remedy)
    if isinstance(facts, Refused) or facts.status != 0:
        reason = facts.reason if isinstance(facts, Refused) else facts.line
        return Finding(Status.WARNING, f"setpriv cannot bind a child to us ({reason})", remedy)
    return Finding(Status.OK, "what we start dies with us (setpriv)")


def judge_namespaces(facts: Namespaces | Refused, machine: Machine, *, profile: str) -> Finding:
    """A process may have users, mounts and process ids of its own.

    `profile` is the command that tells AppArmor to let us.
    """
    if isinstance(facts, Refused):
        return Finding(Status.WARNING, f"could not be tried ({facts.reason})")
    if facts.switch == "apparmor" and not facts.is_allowed:
        text = "AppArmor keeps them from programs that it has no profile for"
        return Finding(Status.WARNING, text, profile)
    if not facts.is_allowed:
        command = _REMEDIES.get(facts.switch)
        remedy = as_root(command, machine) if command else _CONTAINER
        return Finding(Status.WARNING, f"the kernel refuses them ({facts.reason})", remedy)
    return Finding(Status.OK, "users, mounts and processes can be unshared")


def judge_landlock(facts: Landlock | Refused) -> Finding:
    """The kernel can restrict files and network even where namespaces are forbidden."""
    if isinstance(facts, Refused):
        return Finding(Status.WARNING, f"could not be tried ({facts.reason})")
    if facts.abi == 0:
        text = "the kernel has none; the second line of defence is missing"
        return Finding(Status.WARNING, text, "Boot with lsm=landlock,... or Linux 6.7 or newer.")
    if facts.abi < LANDLOCK_WANTED:
        text = f"version {facts.abi} does not rule the network"
        return Finding(Status.WARNING, text, "Linux 6.7 or newer has version 4.")
    return Finding(Status.OK, f"version {facts.abi}")


def judge_overlay(facts: Overlay | Refused) -> Finding:
    """A draft can be a view of the project that costs nothing to make."""
    if isinstance(facts, Refused) and facts.is_nowhere:
        return untried(facts, otherwise=Status.WARNING)
    if isinstance(facts, Refused):
        text = f"the state directory cannot carry one ({facts.reason}); drafts will be copies"
        return Finding(Status.WARNING, text, "Set HOLDFAST_HOME to a directory on ext4 or XFS.")
    if not (facts.lower_kept and facts.upper_holds):
        text = "a write through an overlay went to the wrong place; drafts will be copies"
        return Finding(Status.WARNING, text, "Set HOLDFAST_HOME to a directory on ext4 or XFS.")
    return Finding(Status.OK, "mounted one and wrote through it")


def judge_open_beneath(facts: OpenBeneath | Refused) -> Finding:
    """No path leads out of a directory, not even in a race."""
    if isinstance(facts, Refused) or not facts.is_enforced:
        text = "openat2 is missing; paths are checked step by step, which is slower"
        return Finding(Status.WARNING, text, "Linux 5.6 or newer has it.")
    return Finding(Status.OK, "openat2 keeps paths inside their root")


def judge_cgroup(facts: Cgroup | Refused, machine: Machine) -> Finding:
    """Whatever a process started can be killed at one word."""
    if isinstance(facts, Cgroup) and facts.is_killed:
        return Finding(Status.OK, "cgroup.kill ended a group of processes")
    reason = facts.reason if isinstance(facts, Refused) else "cgroup.kill had no effect"
    text = f"no group of our own ({reason}); killing is done one by one"
    remedy = None if machine.is_root else "systemd-run --user --scope -p Delegate=yes holdfast ..."
    return Finding(Status.WARNING, text, remedy)


# Decide whether sockets can be made and which programs are at hand.

SOCKET_NAME_LONGEST = len("/host-") + 26 + len(".sock")
SOCKET_PATH_LONGEST = {"Linux": 107, "Darwin": 103}

_VERSION = re.compile(r"\d+(\.\d+)+[-.\w]*")
_PACKAGES = {"node": "nodejs", "git": "git", "rg": "ripgrep"}
_BECAUSE = {
    "codex": "to run Codex",
    "node": "to install coding agents",
    "git": "to know what a project ignores",
    "rg": "to search fast",
}


@dataclass(frozen=True, slots=True)
class Reached:
    """A listener that we made answered us."""

    answered: bool


@dataclass(frozen=True, slots=True)
class Keyring:
    """A keyring answered us."""

    name: str


def judge_keyring(facts: Keyring | Refused) -> Finding:
    """Keys of providers may also be in the keyring, where there is one."""
    if isinstance(facts, Keyring):
        return Finding(Status.OK, facts.name)
    if facts.errno == "ENOENT":
        text = "no library for it; keys come from the environment or from keys.toml"
        return Finding(Status.SKIPPED, text)
    text = f"cannot be used ({facts.reason}); keys come from the environment or from keys.toml"
    return Finding(Status.WARNING, text, "Unlock or repair the keyring, then: keyring diagnose")


def judge_loopback(facts: Reached | Refused) -> Finding:
    """A server on this machine can be reached from this machine."""
    if isinstance(facts, Refused) or not facts.answered:
        reason = facts.reason if isinstance(facts, Refused) else "no answer"
        text = f"127.0.0.1 cannot be used ({reason})"
        return Finding(Status.FAILED, text, "Bring the loopback interface up: ip link set lo up")
    return Finding(Status.OK, "127.0.0.1 accepts connections")


def judge_socket(facts: Reached | Refused, machine: Machine, *, directory: str) -> Finding:
    """Sessions can be reached by a socket that only we may open."""
    room = SOCKET_PATH_LONGEST.get(machine.system, 103) - SOCKET_NAME_LONGEST
    excess = len(directory.encode("utf-8", "surrogateescape")) - room
    if excess > 0:
        text = f"{directory} is {excess} bytes too long for a socket"
        return Finding(Status.FAILED, text, "export HOLDFAST_HOME=/a/shorter/path")
    if isinstance(facts, Refused) or not facts.answered:
        reason = facts.reason if isinstance(facts, Refused) else "no answer"
        text = f"no socket can be made in {directory} ({reason})"
        return Finding(Status.FAILED, text, "export HOLDFAST_HOME=/a/directory/of/yours")
    return Finding(Status.OK, f"sockets work in {directory}")


def judge_program(facts: Ran | Refused, machine: Machine, *, name: str) -> Finding:
    """A program that some work needs is installed and starts."""
    if isinstance(facts, Refused) and facts.errno == "ENOENT":
        return Finding(Status.WARNING, f"not found; needed {_BECAUSE[name]}", _get(name, machine))
    if isinstance(facts, Refused):
        return Finding(Status.WARNING, f"does not start ({facts.reason})", _get(name, machine))
    if facts.status != 0:
        reason = facts.line or "no output"
        text = f"does not start (status {facts.status}: {reason})"
        return Finding(Status.WARNING, text, _get(name, machine))
    found = _VERSION.search(facts.line)
    return Finding(Status.OK, found[0] if found else facts.line)


def _get(name: str, machine: Machine) -> str:
    if name in _PACKAGES:
        return install(_PACKAGES[name], machine)
    return install_agent(name, machine)
