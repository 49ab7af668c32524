"""What follows from a call that names a path."""

from __future__ import annotations

import os
import struct

import pytest

from holdfast.confine.failures import SandboxUnavailable
from holdfast.confine.sandbox.seccomp import (
    HERE,
    Found,
    Refusal,
    Refusals,
    Why,
    Wish,
    calls_of,
    directory_of,
    has_listeners,
    is_ours_to_tell,
    verdict,
    watching_program,
)

WRITES, MAKES = os.O_WRONLY | os.O_TRUNC, os.O_RDONLY | os.O_CREAT
SEEN = Found(is_inside=True, is_outside=True, is_read_only=False)
KEPT = Found(is_inside=True, is_outside=True, is_read_only=True)
HIDDEN = Found(is_inside=False, is_outside=True, is_read_only=True)
NOWHERE = Found(is_inside=False, is_outside=False, is_read_only=False)
NOWHERE_KEPT = Found(is_inside=False, is_outside=False, is_read_only=True)
DEVICE = Found(is_inside=True, is_outside=True, is_read_only=True, is_plain=False)


@pytest.mark.parametrize(
    ("wish", "flags", "found", "why"),
    [
        (Wish.OPEN, os.O_RDONLY, SEEN, None),
        (Wish.OPEN, WRITES, SEEN, None),
        (Wish.OPEN, os.O_RDONLY, KEPT, None),
        (Wish.OPEN, WRITES, KEPT, Why.READ_ONLY),
        (Wish.OPEN, os.O_RDWR, KEPT, Why.READ_ONLY),
        (Wish.OPEN, MAKES, KEPT, None),  # it is there, and only read
        (Wish.OPEN, MAKES, NOWHERE_KEPT, Why.READ_ONLY),
        (Wish.OPEN, MAKES, NOWHERE, None),
        (Wish.OPEN, os.O_RDONLY, NOWHERE_KEPT, None),  # it would not be found outside either
        (Wish.OPEN, os.O_RDONLY, HIDDEN, Why.UNSEEN),
        (Wish.OPEN, WRITES, DEVICE, None),
        (Wish.CHANGE, 0, DEVICE, Why.READ_ONLY),
        (Wish.CHANGE, 0, KEPT, Why.READ_ONLY),
        (Wish.CHANGE, 0, SEEN, None),
        (Wish.CHANGE, 0, HIDDEN, Why.UNSEEN),
        (Wish.MAKE, 0, KEPT, None),  # it is there already, and that is the error
        (Wish.MAKE, 0, NOWHERE_KEPT, Why.READ_ONLY),
        (Wish.MAKE, 0, NOWHERE, None),
    ],
)
def test_verdict(wish: Wish, flags: int, found: Found, why: Why | None) -> None:
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
        refusals.add(path, Why.UNSEEN)
    assert list(refusals) == [Refusal("/a", Why.UNSEEN, 1), Refusal("/b", Why.UNSEEN, 2)]
    assert refusals.untold == 2
