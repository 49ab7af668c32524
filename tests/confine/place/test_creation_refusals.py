"""Whoever cannot have a place is told what stands in the way."""

from __future__ import annotations

import errno

import pytest

from holdfast.confine.model import PlaceStep
from holdfast.confine.place.creation import MachineFacts, reason

PLAIN = MachineFacts(filesystem="ext4")


@pytest.mark.parametrize(
    ("step", "number", "machine", "expected"),
    [
        (PlaceStep.PROGRAM, 0, PLAIN, "was killed"),
        (PlaceStep.OVERLAY, errno.ETIMEDOUT, PLAIN, "did not answer"),
        (
            PlaceStep.NAMESPACES,
            errno.ENOSPC,
            MachineFacts(namespaces_max=0),
            "user.max_user_namespaces",
        ),
        (
            PlaceStep.NAMESPACES,
            errno.ENOSPC,
            MachineFacts(namespaces_max=9),
            "as many user namespaces",
        ),
        (PlaceStep.NAMESPACES, errno.EUSERS, PLAIN, "as many user namespaces"),
        (PlaceStep.NAMESPACES, errno.EINVAL, PLAIN, "this kernel has no user"),
        (PlaceStep.NAMESPACES, errno.EPERM, PLAIN, "a container or a filter"),
        (
            PlaceStep.NAMESPACES,
            errno.EPERM,
            MachineFacts(is_clone_unprivileged=False),
            "kernel.unprivileged_userns_clone",
        ),
        (
            PlaceStep.NAMESPACES,
            errno.EPERM,
            MachineFacts(is_restricted_by_apparmor=True),
            "AppArmor",
        ),
        (PlaceStep.MAPS, errno.EPERM, PLAIN, "a container or a filter"),
        (PlaceStep.OVERLAY, errno.EACCES, MachineFacts(is_restricted_by_apparmor=True), "AppArmor"),
        (PlaceStep.OVERLAY, errno.EINVAL, MachineFacts(mounted_below="/p/data"), "at /p/data"),
        (PlaceStep.OVERLAY, errno.ENODEV, PLAIN, "no overlay file system"),
        (PlaceStep.OVERLAY, errno.EINVAL, MachineFacts(filesystem="nfs4"), "on nfs4"),
        (PlaceStep.OVERLAY, errno.ENOMEM, PLAIN, "ENOMEM"),
        (PlaceStep.HIDING, errno.ENOMEM, PLAIN, "hidden: ENOMEM"),
        (PlaceStep.PROC, errno.EPERM, PLAIN, "parts of its /proc are covered"),
        (PlaceStep.PROC, errno.ENOMEM, PLAIN, "/proc of its own: ENOMEM"),
        (PlaceStep.PROGRAM, errno.ENOENT, PLAIN, "`sleep` cannot be run: ENOENT"),
    ],
)
def test_the_reason(step: PlaceStep, number: int, machine: MachineFacts, expected: str) -> None:
    assert expected in reason(step, number, machine)


@pytest.mark.parametrize("step", PlaceStep)
@pytest.mark.parametrize("number", [0, errno.EIO, 99_999])
def test_every_step_that_fails_has_a_reason(step: PlaceStep, number: int) -> None:
    assert reason(step, number, PLAIN)
