"""Say in words why the kernel makes no place, such that someone can do something."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from holdfast.confine.model import Step

_NOBODY = {
    0: "the process that was to hold it was killed",
    errno.ETIMEDOUT: "the kernel did not answer in time",
}
_DENIED = (errno.EPERM, errno.EACCES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What is known of the machine: its switches, None where it has no such switch.

    `filesystem` is the one of the draft; `mounted_below` is something mounted inside the project.
    """

    namespaces_max: int | None = None
    is_clone_unprivileged: bool | None = None
    is_restricted_by_apparmor: bool | None = None
    filesystem: str = "unknown"
    mounted_below: str | None = None


def reason(step: Step, number: int, machine: Machine) -> str:
    """Why a step failed with this number of the system; 0 if who was to do it just ended."""
    if number in _NOBODY:
        return _NOBODY[number]
    if step in (Step.NAMESPACES, Step.MAPS):
        return _without_namespaces(number, machine)
    if machine.is_restricted_by_apparmor and number in _DENIED:
        return _APPARMOR
    if step is Step.OVERLAY:
        return _without_overlay(number, machine)
    if step is Step.PROC and number == errno.EPERM:
        return "this is a container, and parts of its /proc are covered"
    return f"{_WORDS[step]}: {errno.errorcode.get(number, str(number))}"


_APPARMOR = "AppArmor keeps user namespaces from programs that it has no profile for"
_WORDS = {
    Step.HIDING: "the draft's own files cannot be hidden",
    Step.PROC: "there can be no /proc of its own",
    Step.PROGRAM: "`sleep` cannot be run",
}


def _without_namespaces(number: int, machine: Machine) -> str:
    if machine.namespaces_max == 0:
        return "user namespaces are switched off: user.max_user_namespaces is 0"
    if machine.is_clone_unprivileged is False:
        return "user namespaces are for root alone: kernel.unprivileged_userns_clone is 0"
    if number in (errno.ENOSPC, errno.EUSERS):
        return "there are as many user namespaces as there may be"
    if number == errno.EINVAL:
        return "this kernel has no user namespaces"
    if machine.is_restricted_by_apparmor:
        return _APPARMOR
    return "user namespaces are forbidden here, by a container or a filter of system calls"


def _without_overlay(number: int, machine: Machine) -> str:
    if machine.mounted_below is not None:
        return f"something else is mounted inside it, at {machine.mounted_below}"
    if number == errno.ENODEV:
        return "this kernel has no overlay file system"
    if number in (*_DENIED, errno.EINVAL, errno.EOPNOTSUPP):
        return f"an overlay cannot be kept on {machine.filesystem}, where the draft is"
    return f"no overlay can be laid over it: {errno.errorcode.get(number, str(number))}"
