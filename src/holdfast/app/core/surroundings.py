"""Decide whether sockets can be made and which programs are at hand."""

from __future__ import annotations

import re
from dataclasses import dataclass

from holdfast.app.core.confinement import Ran
from holdfast.app.core.remedies import install, install_agent
from holdfast.app.model import Finding, Machine, Refused, Status

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
    return Finding(Status.WARNING, text, "Unlock or mend the keyring, then: keyring diagnose")


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
