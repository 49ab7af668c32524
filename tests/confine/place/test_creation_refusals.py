"""Whoever cannot have a place is told what stands in the way."""

from __future__ import annotations

import errno

import pytest

from holdfast.confine.model import Step
from holdfast.confine.place.creation import Machine, reason

PLAIN = Machine(filesystem="ext4")


@pytest.mark.parametrize(
    ("step", "number", "machine", "expected"),
    [
        (Step.PROGRAM, 0, PLAIN, "was killed"),
        (Step.OVERLAY, errno.ETIMEDOUT, PLAIN, "did not answer"),
        (Step.NAMESPACES, errno.ENOSPC, Machine(namespaces_max=0), "user.max_user_namespaces"),
        (Step.NAMESPACES, errno.ENOSPC, Machine(namespaces_max=9), "as many user namespaces"),
        (Step.NAMESPACES, errno.EUSERS, PLAIN, "as many user namespaces"),
        (Step.NAMESPACES, errno.EINVAL, PLAIN, "this kernel has no user"),
        (Step.NAMESPACES, errno.EPERM, PLAIN, "a container or a filter"),
        (
            Step.NAMESPACES,
            errno.EPERM,
            Machine(is_clone_unprivileged=False),
            "kernel.unprivileged_userns_clone",
        ),
        (Step.NAMESPACES, errno.EPERM, Machine(is_restricted_by_apparmor=True), "AppArmor"),
        (Step.MAPS, errno.EPERM, PLAIN, "a container or a filter"),
        (Step.OVERLAY, errno.EACCES, Machine(is_restricted_by_apparmor=True), "AppArmor"),
        (Step.OVERLAY, errno.EINVAL, Machine(mounted_below="/p/data"), "at /p/data"),
        (Step.OVERLAY, errno.ENODEV, PLAIN, "no overlay file system"),
        (Step.OVERLAY, errno.EINVAL, Machine(filesystem="nfs4"), "on nfs4"),
        (Step.OVERLAY, errno.ENOMEM, PLAIN, "ENOMEM"),
        (Step.HIDING, errno.ENOMEM, PLAIN, "hidden: ENOMEM"),
        (Step.PROC, errno.EPERM, PLAIN, "parts of its /proc are covered"),
        (Step.PROC, errno.ENOMEM, PLAIN, "/proc of its own: ENOMEM"),
        (Step.PROGRAM, errno.ENOENT, PLAIN, "`sleep` cannot be run: ENOENT"),
    ],
)
def test_the_reason(step: Step, number: int, machine: Machine, expected: str) -> None:
    assert expected in reason(step, number, machine)


@pytest.mark.parametrize("step", Step)
@pytest.mark.parametrize("number", [0, errno.EIO, 99_999])
def test_every_step_that_fails_has_a_reason(step: Step, number: int) -> None:
    assert reason(step, number, PLAIN)
