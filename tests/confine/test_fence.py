"""A fence, as the kernel reads it."""

from __future__ import annotations

from holdfast.confine.fence import Fence, grant


def test_a_kernel_without_scopes_does_not_hear_of_them() -> None:
    fences = [Fence(3, 1, 0, ()), Fence(3, 1, 2, ())]
    assert [fence.attributes() for fence in fences] == [
        b"\3\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0",
        b"\3\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0",
    ]


def test_a_grant_has_no_room_between_its_parts() -> None:
    assert grant(4, 7) == b"\4\0\0\0\0\0\0\0\7\0\0\0"
