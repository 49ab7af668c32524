"""What facts about the state directory mean."""

from __future__ import annotations

import pytest

from holdfast.app.doctor.model import Finding, Refused, Status
from holdfast.app.doctor.storage import (
    CLOCK_EARLIEST,
    Clock,
    Home,
    Space,
    Syncing,
    judge_clock,
    judge_home,
    judge_space,
    judge_syncing,
)

OK, WARNING, FAILED, SKIPPED = Status.OK, Status.WARNING, Status.FAILED, Status.SKIPPED
DISK = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
UNWRITABLE = Refused("Permission denied", "EACCES", is_nowhere=True)
ELSEWHERE = "export HOLDFAST_HOME=/a/directory/of/yours"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (Home(exists=True, is_ours=True, mode=0o700), Finding(OK, "/s")),
        (Home(exists=False, is_ours=False, mode=0o1777), Finding(OK, "/s (will be made)")),
        (
            Home(exists=True, is_ours=True, mode=0o755),
            Finding(WARNING, "/s is open to others (mode 0755)", "chmod 700 '/s'"),
        ),
        (
            Home(exists=True, is_ours=False, mode=0o700),
            Finding(FAILED, "/s belongs to someone else", ELSEWHERE),
        ),
        (UNWRITABLE, Finding(FAILED, "/s cannot be written (Permission denied)", ELSEWHERE)),
    ],
)
def test_home(facts: Home | Refused, expected: Finding) -> None:
    assert judge_home(facts, wanted="/s") == expected


def mounted(kind: str, options: str = "rw") -> str:
    return f"22 1 8:1 / / rw - {kind} /dev/sda1 {options}\n"


@pytest.mark.parametrize(
    ("median", "mountinfo", "preload", "status", "words"),
    [
        (430e-6, DISK, "", OK, "fdatasync on ext4 takes 430 µs (median of 15)"),
        (4.3e-3, DISK, "", OK, "fdatasync on ext4 takes 4.3 ms (median of 15)"),
        (430e-6, "", "", OK, "fdatasync on the disk takes 430 µs (median of 15)"),
        (20e-6, DISK, "", OK, "takes 20 µs"),
        (19e-6, DISK, "", WARNING, "answers in 19 µs, faster than any disk"),
        (1e-6, mounted("tmpfs"), "", WARNING, "tmpfs lives in memory"),
        (1e-3, mounted("9p"), "", WARNING, "9p is kept by another machine"),
        (1e-3, mounted("ext4", "rw,nobarrier"), "", WARNING, "without barriers"),
        (1e-3, mounted("ext4", "rw,barrier=0"), "", WARNING, "without barriers"),
        (1e-3, DISK, "/usr/lib/libeatmydata.so", WARNING, "eatmydata is loaded"),
    ],
)
def test_syncing(median: float, mountinfo: str, preload: str, status: Status, words: str) -> None:
    finding = judge_syncing(Syncing(median, 15, "/s"), mountinfo, preload=preload)

    assert finding.status is status
    assert words in finding.text
    assert (finding.remedy is None) == (status is OK)


@pytest.mark.parametrize(
    ("refused", "status"),
    [(UNWRITABLE, SKIPPED), (Refused("Input/output error", "EIO"), FAILED)],
)
def test_syncing_that_fails_is_not_the_same_as_nowhere_to_try(
    refused: Refused, status: Status
) -> None:
    assert judge_syncing(refused, DISK, preload="").status is status


@pytest.mark.parametrize(
    ("facts", "status", "text"),
    [
        (Space(5 << 30, 10**6, 10**7), OK, "5 GiB free"),
        (Space(3 << 40, 0, 0), OK, "3.0 TiB free"),
        (Space((1 << 30) - 1, 10**6, 10**7), WARNING, "only 1024 MiB free"),
        (Space((100 << 20) - 1, 10**6, 10**7), FAILED, "only 100 MiB free"),
        (Space(5 << 30, 99, 10**7), WARNING, "5 GiB free, but room for only 99 more files"),
        (Refused("why"), WARNING, "free space is not known (why)"),
    ],
)
def test_space(facts: Space | Refused, status: Status, text: str) -> None:
    finding = judge_space(facts)

    assert (finding.status, finding.text) == (status, text)


NOON = CLOCK_EARLIEST + 43_200


@pytest.mark.parametrize(
    ("facts", "status", "text"),
    [
        (Clock(NOON, NOON + 1), OK, "2026-01-01 12:00:00 UTC"),
        (Clock(0.0, 0.0), WARNING, "the clock says 1970-01-01 00:00:00+00:00"),
        (Clock(NOON, NOON - 90), WARNING, "files are dated 90 s off the clock"),
        (UNWRITABLE, SKIPPED, "needs a state directory that can be written"),
    ],
)
def test_clock(facts: Clock | Refused, status: Status, text: str) -> None:
    finding = judge_clock(facts)

    assert (finding.status, finding.text) == (status, text)
