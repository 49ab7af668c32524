"""What follows from a call that names a path."""

from __future__ import annotations

import os
import struct

import pytest

from holdfast.confine.failures import SandboxUnavailable
from holdfast.confine.sandbox.seccomp import (
    HERE,
    AccessIntent,
    PathAccess,
    PathRefusal,
    RefusalReason,
    Refusals,
    calls_of,
    directory_of,
    has_listeners,
    is_ours_to_tell,
    verdict,
    watching_program,
)

WRITES, MAKES = os.O_WRONLY | os.O_TRUNC, os.O_RDONLY | os.O_CREAT
SEEN = PathAccess(is_inside=True, is_outside=True, is_read_only=False)
KEPT = PathAccess(is_inside=True, is_outside=True, is_read_only=True)
HIDDEN = PathAccess(is_inside=False, is_outside=True, is_read_only=True)
NOWHERE = PathAccess(is_inside=False, is_outside=False, is_read_only=False)
NOWHERE_KEPT = PathAccess(is_inside=False, is_outside=False, is_read_only=True)
DEVICE = PathAccess(is_inside=True, is_outside=True, is_read_only=True, is_plain=False)


@pytest.mark.parametrize(
    ("wish", "flags", "found", "why"),
    [
        (AccessIntent.OPEN, os.O_RDONLY, SEEN, None),
        (AccessIntent.OPEN, WRITES, SEEN, None),
        (AccessIntent.OPEN, os.O_RDONLY, KEPT, None),
        (AccessIntent.OPEN, WRITES, KEPT, RefusalReason.READ_ONLY),
        (AccessIntent.OPEN, os.O_RDWR, KEPT, RefusalReason.READ_ONLY),
        (AccessIntent.OPEN, MAKES, KEPT, None),  # it is there, and only read
        (AccessIntent.OPEN, MAKES, NOWHERE_KEPT, RefusalReason.READ_ONLY),
        (AccessIntent.OPEN, MAKES, NOWHERE, None),
        (
            AccessIntent.OPEN,
            os.O_RDONLY,
            NOWHERE_KEPT,
            None,
        ),  # it would not be found outside either
        (AccessIntent.OPEN, os.O_RDONLY, HIDDEN, RefusalReason.UNSEEN),
        (AccessIntent.OPEN, WRITES, DEVICE, None),
        (AccessIntent.CHANGE, 0, DEVICE, RefusalReason.READ_ONLY),
        (AccessIntent.CHANGE, 0, KEPT, RefusalReason.READ_ONLY),
        (AccessIntent.CHANGE, 0, SEEN, None),
        (AccessIntent.CHANGE, 0, HIDDEN, RefusalReason.UNSEEN),
        (AccessIntent.MAKE, 0, KEPT, None),  # it is there already, and that is the error
        (AccessIntent.MAKE, 0, NOWHERE_KEPT, RefusalReason.READ_ONLY),
        (AccessIntent.MAKE, 0, NOWHERE, None),
    ],
)
def test_verdict(
    wish: AccessIntent, flags: int, found: PathAccess, why: RefusalReason | None
) -> None:
    assert verdict(wish, flags, found) is why


def test_calls_are_known_by_the_numbers_of_each_machine() -> None:
    x86, arm = calls_of("x86_64"), calls_of("aarch64")
    assert x86[257] == arm[56]  # openat
    assert x86[316].paths == ((0, 1), (2, 3))  # renameat2
    assert len(arm) == sum(call in arm.values() for call in arm.values())
    with pytest.raises(SandboxUnavailable):
        calls_of("vax")


def test_the_filter_asks_about_these_and_allows_the_rest() -> None:
    steps = list(struct.iter_unpack("=HBBI", watching_program("x86_64")))
    assert sum(step == (0x06, 0, 0, 0x7FC0_0000) for step in steps) == len(calls_of("x86_64"))
    assert steps[-1] == (0x06, 0, 0, 0x7FFF_0000)


def test_descriptors_are_numbers_of_32_bits() -> None:
    assert [directory_of(each) for each in (3, 2**32 - 100, 2**64 - 100)] == [3, HERE, HERE]


@pytest.mark.parametrize(
    ("release", "has"),
    [
        ("5.4.0-42-generic", False),
        ("5.5", True),
        ("5.10.0-rc1", True),
        ("6.1.0", True),
        ("", False),
    ],
)
def test_old_kernels_cannot_let_calls_go_on(release: str, has: bool) -> None:
    assert has_listeners(release) is has


def test_what_each_sandbox_has_of_its_own_is_not_compared() -> None:
    assert [is_ours_to_tell(path) for path in ("/etc/x", "/proc", "/proc/1/x", "/dev/pts/0")] == [
        True,
        False,
        False,
        False,
    ]
    assert not is_ours_to_tell("pipe:[1]/x")


def test_each_is_told_once_and_not_without_a_bound() -> None:
    refusals = Refusals(most=2)
    for path in ("/b", "/a", "/b", "/c", "/c"):
        refusals.add(path, RefusalReason.UNSEEN)
    assert list(refusals) == [
        PathRefusal("/a", RefusalReason.UNSEEN, 1),
        PathRefusal("/b", RefusalReason.UNSEEN, 2),
    ]
    assert refusals.untold == 2
