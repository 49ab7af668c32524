"""Which filesystem a path lies on."""

from __future__ import annotations

import pytest

from holdfast.app.doctor.storage import Mount, cgroup_directory, mount_of

MOUNTINFO = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,discard
30 22 0:26 / /dev/shm rw,nosuid - tmpfs tmpfs rw
31 22 0:27 / /mnt/two\\040words rw - xfs /dev/sdb1 rw,nobarrier
32 22 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup rw
33 22 0:29 / /covered rw - ext4 /dev/sdc1 rw
34 33 0:30 / /covered rw - tmpfs tmpfs rw
not a line
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/person", Mount("/", "ext4", ("rw", "relatime", "rw", "discard"))),
        ("/dev/shm/a/b", Mount("/dev/shm", "tmpfs", ("rw", "nosuid", "rw"))),
        ("/dev/shmem", Mount("/", "ext4", ("rw", "relatime", "rw", "discard"))),
        ("/mnt/two words/x", Mount("/mnt/two words", "xfs", ("rw", "rw", "nobarrier"))),
        ("/covered", Mount("/covered", "tmpfs", ("rw", "rw"))),
    ],
)
def test_the_longest_and_last_mount_wins(path: str, expected: Mount) -> None:
    assert mount_of(path, MOUNTINFO) == expected


def test_without_a_list_of_mounts_nothing_is_known() -> None:
    assert mount_of("/home", "") is None


@pytest.mark.parametrize(
    ("membership", "expected"),
    [
        ("0::/\n", "/sys/fs/cgroup/"),
        ("12:pids:/x\n0::/user.slice/a\n", "/sys/fs/cgroup/user.slice/a"),
        ("12:pids:/x\n", None),
    ],
)
def test_control_group(membership: str, expected: str | None) -> None:
    assert cgroup_directory(membership, MOUNTINFO) == expected
    assert cgroup_directory(membership, "") is None
