"""Walking by hand finds what the kernel finds, and refuses what the kernel refuses."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.world.files_beneath import Opener, open_by_walking
from holdfast.world.openat2 import has_openat2, open_beneath

DIRECTORIES = ["", "a", "a/b", "b", "b/a"]  # each with a file `f` and perhaps links `l` and `k`
names = st.sampled_from(["a", "b", "f", "l", "k"])
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
targets = st.lists(names | st.sampled_from(["..", "..", ".", ""]), min_size=1, max_size=5).map(
    "/".join
)
links = st.dictionaries(
    st.tuples(st.sampled_from(DIRECTORIES), st.sampled_from(["l", "k"])).map("/".join),
    targets.filter(bool),
    min_size=1,
    max_size=8,
)
flags = st.sampled_from(
    [
        os.O_RDONLY,
        os.O_RDONLY | os.O_NOFOLLOW,
        os.O_RDONLY | os.O_DIRECTORY,
        os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW,
        os.O_WRONLY | os.O_CREAT,
        os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW,
        os.O_WRONLY | os.O_CREAT | os.O_EXCL,
    ]
)


def outcome(opener: Opener, root: int, path: str, wanted: int) -> str | tuple[int, int]:
    """What was opened, by device and inode, or the name of the refusal."""
    try:
        opened = opener(root, path.encode(), wanted, 0o600 if wanted & os.O_CREAT else 0)
    except BlockingIOError:  # somebody on this machine renamed something meanwhile
        return outcome(opener, root, path, wanted)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    try:
        found = os.fstat(opened)
        return found.st_dev, found.st_ino
    finally:
        os.close(opened)


@pytest.mark.skipif(not has_openat2(), reason="this kernel has no openat2 to compare with")
@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(planted=links, path=paths, wanted=flags)
def test_it_agrees_with_the_kernel(planted: dict[str, str], path: str, wanted: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, "x", "root")
        for directory in DIRECTORIES:
            (root / directory).mkdir(parents=True, exist_ok=True)
            (root / directory / "f").touch()
        for link, target in planted.items():
            (root / link.lstrip("/")).symlink_to(target)
        descriptor = os.open(root, os.O_RDONLY)
        try:
            theirs = outcome(open_beneath, descriptor, path, wanted & ~os.O_CREAT)
            ours = outcome(open_by_walking, descriptor, path, wanted & ~os.O_CREAT)
            assert ours == theirs
            made = outcome(open_by_walking, descriptor, path, wanted)
            if not isinstance(made, str) and not wanted & os.O_EXCL:
                assert outcome(open_beneath, descriptor, path, wanted) == made
        finally:
            os.close(descriptor)
        assert os.listdir(place) == ["x"]
        assert os.listdir(Path(place, "x")) == ["root"]


@pytest.mark.parametrize(("links", "refusal"), [(40, None), (41, "ELOOP")])
@pytest.mark.parametrize("opener", [open_beneath, open_by_walking])
def test_as_many_links_as_the_kernel_allows(
    tmp_path: Path, opener: Opener, links: int, refusal: str | None
) -> None:
    if opener is open_beneath and not has_openat2():
        pytest.skip("this kernel has no openat2 to compare with")
    (tmp_path / "0").touch()
    for number in range(1, links + 1):
        (tmp_path / str(number)).symlink_to(str(number - 1))
    root = os.open(tmp_path, os.O_RDONLY)
    try:
        found = outcome(opener, root, str(links), os.O_RDONLY)
    finally:
        os.close(root)

    assert (found if isinstance(found, str) else None) == refusal


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "up").symlink_to("../../../..")
    (tmp_path / "a" / "b" / "file").touch()
    root = os.open(tmp_path, os.O_RDONLY)
    try:
        before = sorted(os.listdir("/dev/fd"))
        for path in ["a/b/file", "a/b/up", "a/b/none", "a/none/x", "a/b/file/x"]:
            outcome(open_by_walking, root, path, os.O_RDONLY)
        assert sorted(os.listdir("/dev/fd")) == before
    finally:
        os.close(root)
