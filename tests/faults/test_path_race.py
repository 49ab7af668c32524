"""Someone swaps directories for links while we open files below a root."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.failures import Failure
from holdfast.nouns import RelativePath
from holdfast.world import OpenMode, Root
from holdfast.world.files_beneath import open_by_walking
from holdfast.world.openat2 import has_openat2, open_beneath
from tests.faults.swapping import INSIDE, SECRET, lay_traps, swapping, traps

TRIES = 50_000
SECONDS_MAX = 200.0
PATH = RelativePath.of("a/b/file")

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="exchanging two names needs renameat2"),
    pytest.mark.promise("W10"),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A root and an outside of the same shape, and links that lead from one to the other."""
    return lay_traps(tmp_path)


def count(attempt: Callable[[], bytes], tries: int) -> dict[str, int]:
    """How often an attempt got what is inside, what is outside, or nothing."""
    counts = {"inside": 0, "outside": 0, "refused": 0}
    deadline = time.monotonic() + SECONDS_MAX
    for _ in range(tries):
        try:
            got = attempt()
        except (Failure, OSError):
            counts["refused"] += 1
        else:
            counts["outside" if got == SECRET else "inside"] += 1
        assert time.monotonic() < deadline, f"too slow: {counts}"
    return counts


@pytest.mark.parametrize("where", ["parent", "last"])
@pytest.mark.parametrize("opener", [open_beneath, open_by_walking], ids=["kernel", "walking"])
def test_no_swap_leads_outside(
    place: Path, opener: Callable[[int, bytes, int, int], int], where: str
) -> None:
    if opener is open_beneath and not has_openat2():
        pytest.skip("this system has no openat2")
    follow = where == "last"
    with Root.at(place / "root", opener=opener) as root, swapping(*traps(place, where)):

        def read() -> bytes:
            with root.open(PATH, OpenMode.READ, follow=follow) as file:
                return file.readall()

        def write() -> bytes:
            with root.open(PATH, OpenMode.APPEND, follow=follow) as file:
                file.write(b"")
            with root.open(RelativePath.of("a/b/new"), OpenMode.REPLACE) as file:
                file.write(b"")
            return INSIDE

        reads, writes = count(read, TRIES), count(write, TRIES // 5)

    assert reads["outside"] == 0
    assert min(reads["inside"], reads["refused"]) > TRIES // 100, f"hardly a race: {reads}"
    assert writes["inside"] > 0
    outside = place / "outside" / "a" / "b"
    assert {at.name: at.read_bytes() for at in outside.iterdir()} == {"file": SECRET}


def test_renames_elsewhere_do_not_get_in_the_way(place: Path) -> None:
    """The kernel is unsure of `..` while anyone renames anything, and then says: try again."""
    (place / "one").mkdir()
    (place / "other").symlink_to("nowhere")
    (place / "root" / "winding").symlink_to("a/../" * 750 + "a/b/file")
    with Root.at(place / "root") as root, swapping(place / "one", place / "other"):

        def read() -> bytes:
            with root.open(RelativePath.of("winding"), OpenMode.READ, follow=True) as file:
                return file.readall()

        found = count(read, 3_000)

    assert found == {"inside": 3_000, "outside": 0, "refused": 0}


def test_the_race_is_real(place: Path) -> None:
    """Opening without any check does get outside, so the swapping is seen by an opener."""
    seen, deadline = Counter[str](), time.monotonic() + SECONDS_MAX
    with swapping(*traps(place, "parent")):
        while min(seen["inside"], seen["outside"]) == 0 and time.monotonic() < deadline:
            seen += Counter(count((place / "root" / "a" / "b" / "file").read_bytes, 1_000))

    assert min(seen["inside"], seen["outside"]) > 0


@pytest.mark.long
def test_checking_before_opening_is_not_enough(place: Path) -> None:
    """What is usually written instead gets outside sometimes: this test has teeth."""
    root = os.path.realpath(place / "root")

    def naive() -> bytes:
        path = os.path.realpath(place / "root" / "a" / "b" / "file")
        if not path.startswith(root + os.sep):
            raise OSError("outside")
        return Path(root, *(part.decode() for part in PATH.parts)).read_bytes()

    escapes, deadline = 0, time.monotonic() + SECONDS_MAX
    with swapping(*traps(place, "parent")):
        while not escapes and time.monotonic() < deadline:
            escapes += count(naive, 1_000)["outside"]

    assert escapes > 0
