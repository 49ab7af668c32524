"""Say the exact command that installs something on this distribution."""

from __future__ import annotations

import shlex

from holdfast.app.doctor.model import Machine

_INSTALL = {
    "debian": "apt install",
    "fedora": "dnf install",
    "arch": "pacman -S",
    "alpine": "apk add",
    "suse": "zypper install",
}
_FAMILIES = {"debian", "fedora", "arch", "alpine", "suse"}
_RELATIVES = {"ubuntu": "debian", "rhel": "fedora", "centos": "fedora", "opensuse": "suse"}
_PROFILE = "/etc/apparmor.d/holdfast"
_NPM = {"codex": "@openai/codex"}


def family_of(name: str, like: str) -> str:
    """The distribution whose package manager this one uses, or nothing if that is not known."""
    words = [name, *like.split()]
    return next((_RELATIVES.get(word, word) for word in words if _is_known(word)), "")


def install(package: str, machine: Machine) -> str:
    """The command that installs a package of the system."""
    if machine.system == "Darwin":
        return f"brew install {package}"
    command = _INSTALL.get(machine.family)
    if command is None:
        return f"install {package} with the package manager of your system"
    return as_root(f"{command} {package}", machine)


def install_agent(program: str, machine: Machine) -> str:
    """The command that installs a coding agent."""
    command = f"npm install -g {_NPM[program]}"
    return as_root(command, machine) if machine.system == "Linux" else command


def install_profile(template: str, program: str, machine: Machine) -> str:
    """The command that tells AppArmor of our program, and of no other."""
    fill = shlex.join(["sed", f"s|@HOLDFAST@|{program}|", template])
    put = as_root(f"tee {_PROFILE} >/dev/null", machine)
    return f"{fill} | {put} && {as_root(f'apparmor_parser -r {_PROFILE}', machine)}"


def as_root(command: str, machine: Machine) -> str:
    """A command that only root may run, as this person has to write it."""
    return command if machine.is_root else f"sudo {command}"


def _is_known(word: str) -> bool:
    return word in _FAMILIES or word in _RELATIVES
