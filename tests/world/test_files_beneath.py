"""Whatever a path is made of, nothing outside the root is read or changed."""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.failures import Failure
from holdfast.nouns import PathInvalid, RelativePath
from holdfast.world.failures import (
    DiskMissing,
    DiskOccupied,
    PathEscapes,
    PathUnfit,
)
from holdfast.world.files_beneath import (
    DirectoryItem,
    FileType,
    Opener,
    OpenMode,
    Root,
    open_by_walking,
)
from holdfast.world.openat2 import has_openat2, open_beneath

SECRET = b"secret"
NFC, NFD = (unicodedata.normalize(form, "é") for form in ("NFC", "NFD"))


@pytest.fixture(params=[open_beneath, open_by_walking], ids=["kernel", "walking"])
def opener(request: pytest.FixtureRequest) -> Opener:
    chosen: Opener = request.param
    if chosen is open_beneath and not has_openat2():
        pytest.skip("this system has no openat2")
    return chosen


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A root full of traps, beside what must stay untouched."""
    outside, root = tmp_path / "outside", tmp_path / "root"
    for directory in [outside / "deep", root / "dir" / "deep", root / "empty"]:
        directory.mkdir(parents=True)
    for file in [outside / "file", outside / "deep" / "file"]:
        file.write_bytes(SECRET)
    for name in ["file", "dir/file", "dir/deep/file", "-rf", ".GIT", "dot.", " ", NFC]:
        (root / name).write_bytes(b"inside")
    (root / os.fsdecode(b"\xff\n")).write_bytes(b"inside")
    os.link(outside / "file", root / "hard")
    os.mkfifo(root / "fifo")
    links = {
        "out": "../outside/file",
        "outdir": "../outside",
        "absolute": str(outside / "file"),
        "absdir": str(outside),
        "absin": str(root / "file"),
        "dangling": "../outside/new",
        "danglingin": "new",
        "slash": "/",
        "up": "..",
        "upagain": "dir/../..",
        "dir/out": "../../outside/file",
        "dir/up": "../..",
        "dir/in": "../file",
        "dir/deep/long": "../../dir/../../outside/file",
        "chain": "chain2",
        "chain2": "out",
        "loop": "loop",
        "in": "dir/file",
        "indir": "dir/deep",
        "trailing": "dir/",
        "proc": "/proc/self/cwd",
        "longlink": "dir/../" * 500 + "../outside/file",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    return tmp_path


def below(place: Path, opener: Opener) -> Root:
    return Root.at(place / "root", opener=opener)


def survey(top: Path) -> dict[str, tuple[object, ...]]:
    """Everything about everything under a directory, but for when it was last read."""
    found: dict[str, tuple[object, ...]] = {}
    for at in [top, *sorted(top.rglob("*"))]:
        facts = at.lstat()
        content = at.read_bytes() if stat.S_ISREG(facts.st_mode) else b""
        target = os.readlink(at) if at.is_symlink() else ""
        found[str(at)] = facts.st_mode, facts.st_mtime_ns, facts.st_size, content, target
    return found


CORPUS: list[bytes] = [
    *[b"..", b"../outside/file", b"dir/../../outside/file", b"./../outside/file", b"dir/.."],
    *[b"/", b"/etc/passwd", b"//etc/passwd", b"", b".", b"dir/", b"dir//file", b"dir/."],
    *[b"out", b"outdir", b"outdir/file", b"outdir/deep/file", b"outdir/new", b"absolute"],
    *[b"absdir/file", b"absin", b"dangling", b"danglingin", b"slash", b"slash/etc/passwd", b"up"],
    *[b"up/outside/file", b"upagain/outside/file", b"dir/out", b"dir/up/outside/file", b"chain"],
    *[b"dir/deep/long", b"longlink", b"loop", b"loop/file", b"proc", b"proc/x", b"fifo", b"hard"],
    *[b"file\0/../../outside/file", b"../outside/file\0", b"n" * 256, b"n/" * 2048 + b"file"],
    *[b"dir/deep/deeper/file", b"file/..", b"file/file", b"-rf", b".GIT", b"dot.", b" ", b"\xff\n"],
    *[NFC.encode(), NFD.encode(), b"..%2foutside", b"..\\outside\\file", b"~/x", b"$HOME", b"..."],
    *[
        "\uff0e\uff0e/outside".encode(),
        b"\xc0\xae\xc0\xae/outside",
        b"trailing/file",
        b"indir/file",
    ],
]


def read(root: Root, path: RelativePath, *, follow: bool) -> bytes:
    with root.open(path, OpenMode.READ, follow=follow) as file:
        return file.readall()


def write(opening: OpenMode, *, follow: bool) -> Callable[[Root, RelativePath], object]:
    def act(root: Root, path: RelativePath) -> object:
        with root.open(path, opening, follow=follow) as file:
            return file.write(b"written")

    return act


NEW = RelativePath.of("moved")
ACTS: dict[str, Callable[[Root, RelativePath], object]] = {
    "read": lambda root, path: read(root, path, follow=False),
    "read through": lambda root, path: read(root, path, follow=True),
    **{f"{each.name}": write(each, follow=False) for each in OpenMode if each is not OpenMode.READ},
    **{f"{each.name} through": write(each, follow=True) for each in OpenMode if each.value[0]},
    "stat": lambda root, path: root.stat(path).st_size,
    "stat through": lambda root, path: root.stat(path, follow=True).st_size,
    "list": lambda root, path: root.list(path),
    "list through": lambda root, path: root.list(path, follow=True),
    "mkdir": lambda root, path: root.make_directory(path),
    "mkdir parents": lambda root, path: root.make_directory(path / "x", parents=True),
    "remove": lambda root, path: root.remove(path),
    "rename from": lambda root, path: root.rename(path, NEW),
    "rename to": lambda root, path: root.rename(RelativePath.of("file"), path),
    "rename into": lambda root, path: root.rename(RelativePath.of("file"), path / "x"),
    "symlink": lambda root, path: root.symlink(path, target=b"/"),
    "readlink": lambda root, path: root.readlink(path),
    "chmod": lambda root, path: root.chmod(path, 0o600),
    "utime": lambda root, path: root.utime(path, accessed_ns=1, modified_ns=1),
}
# A hard link is the one way to share a file; what it shares is no longer outside.
TOUCHES_HARD_LINK = {
    *["UPDATE", "REPLACE", "APPEND", "chmod", "utime"],
    *["UPDATE through", "REPLACE through", "APPEND through"],
}


@pytest.mark.promise("W10")
@pytest.mark.parametrize("act", ACTS)
def test_nothing_outside_is_read_or_changed(place: Path, opener: Opener, act: str) -> None:
    before = survey(place / "outside")
    with below(place, opener) as root:
        for spelling in CORPUS:
            if spelling == b"hard" and act in TOUCHES_HARD_LINK:
                continue
            try:
                got = ACTS[act](root, RelativePath.of(spelling))
            except Failure:
                continue
            assert got != SECRET or spelling == b"hard", spelling
            assert survey(place / "outside") == before, spelling
        (place / "root" / "hard").unlink(missing_ok=True)

    assert survey(place / "outside") == before
    assert sorted(os.listdir(place)) == ["outside", "root"]


def test_both_ways_of_staying_beneath_come_to_the_same(
    place: Path,
) -> None:
    if not has_openat2():
        pytest.skip("this system has no openat2 to compare with")
    outcomes: list[dict[tuple[str, bytes], object]] = []
    for opener in (open_beneath, open_by_walking):
        mine: dict[tuple[str, bytes], object] = {}
        for act in ("read", "read through", "stat", "stat through", "list", "readlink"):
            with below(place, opener) as root:
                for spelling in CORPUS:
                    try:
                        mine[act, spelling] = ACTS[act](root, RelativePath.of(spelling))
                    except Failure as failure:
                        mine[act, spelling] = failure
        outcomes.append(mine)

    assert outcomes[0] == outcomes[1]


@pytest.mark.promise("W10")
@pytest.mark.parametrize(
    ("spelling", "plainly", "followed"),
    [
        ("file", b"inside", b"inside"),
        ("in", PathUnfit, b"inside"),
        ("dir/in", PathUnfit, b"inside"),
        ("indir/file", b"inside", b"inside"),
        ("trailing/file", b"inside", b"inside"),
        ("out", PathUnfit, PathEscapes),
        ("chain", PathUnfit, PathEscapes),
        ("absolute", PathUnfit, PathEscapes),
        ("absin", PathUnfit, PathEscapes),
        ("outdir/file", PathEscapes, PathEscapes),
        ("outdir/none", PathEscapes, PathEscapes),
        ("up/outside/file", PathEscapes, PathEscapes),
        ("upagain/outside/file", PathEscapes, PathEscapes),
        ("dir/up/outside/file", PathEscapes, PathEscapes),
        ("dir/deep/long", PathUnfit, PathEscapes),
        ("dangling", PathUnfit, PathEscapes),
        ("danglingin", PathUnfit, DiskMissing),
        ("loop", PathUnfit, PathUnfit),
        ("loop/file", PathUnfit, PathUnfit),
        ("dir", PathUnfit, PathUnfit),
        ("fifo", PathUnfit, PathUnfit),
        ("file/file", PathUnfit, PathUnfit),
        ("none", DiskMissing, DiskMissing),
        (NFC, b"inside", b"inside"),
        (NFD, DiskMissing, DiskMissing),
    ],
)
def test_reading(
    place: Path,
    opener: Opener,
    spelling: str,
    plainly: bytes | type[Failure],
    followed: bytes | type[Failure],
) -> None:
    got: list[bytes | type[Failure]] = []
    with below(place, opener) as root:
        for follow in (False, True):
            try:
                got.append(read(root, RelativePath.of(spelling), follow=follow))
            except Failure as failure:
                got.append(type(failure))

    assert got == [plainly, followed]


def test_an_escape_names_the_path_and_the_root(place: Path, opener: Opener) -> None:
    with below(place, opener) as root, pytest.raises(PathEscapes) as raised:
        root.stat(RelativePath.of("dir/out"), follow=True)

    assert raised.value == PathEscapes(path="dir/out", root=str(place / "root"))


def test_a_kernel_that_cannot_be_sure_is_done_without(place: Path) -> None:
    def unsure(root: int, path: bytes, flags: int, mode: int) -> int:
        raise BlockingIOError(errno.EAGAIN, "try again")

    with below(place, unsure) as root:
        assert read(root, RelativePath.of("dir/in"), follow=True) == b"inside"
        with refused(PathEscapes, path="chain"):
            read(root, RelativePath.of("chain"), follow=True)


@contextmanager
def refused(failure: type[Failure], *, path: str) -> Iterator[None]:
    with pytest.raises(failure) as raised:
        yield
    assert raised.value.details["path"] == path


class TestInside:
    """What is inside can be worked with as usual."""

    def test_files_are_made_changed_and_read(self, place: Path, opener: Opener) -> None:
        path = RelativePath.of("dir/new")
        with below(place, opener) as root:
            with root.open(path, OpenMode.CREATE, mode=0o640) as file:
                file.write(b"one")
            with refused(DiskOccupied, path="dir/new"):
                root.open(path, OpenMode.CREATE)
            with root.open(path, OpenMode.APPEND) as file:
                file.write(b"two")
            with root.open(path, OpenMode.UPDATE) as file:
                assert file.read(3) == b"one"
                file.write(b"2")
            assert read(root, path, follow=False) == b"one2wo"
            with root.open(path, OpenMode.REPLACE) as file:
                file.write(b"3")
            assert read(root, path, follow=False) == b"3"
            assert stat.S_IMODE(root.stat(path).st_mode) == 0o640 & ~_umask()

    def test_a_link_inside_is_written_through_only_when_asked(
        self, place: Path, opener: Opener
    ) -> None:
        with below(place, opener) as root:
            with refused(PathUnfit, path="in"):
                root.open(RelativePath.of("in"), OpenMode.REPLACE)
            with root.open(RelativePath.of("danglingin"), OpenMode.APPEND, follow=True) as file:
                file.write(b"made")

        assert (place / "root" / "new").read_bytes() == b"made"

    def test_directories_are_listed_made_and_removed(self, place: Path, opener: Opener) -> None:
        path = RelativePath.of("empty/a/b")
        with below(place, opener) as root:
            assert root.list(RelativePath.of("empty")) == ()
            with refused(DiskMissing, path="empty/a/b"):
                root.make_directory(path)
            root.make_directory(path, parents=True)
            root.make_directory(path, parents=True)
            with refused(DiskOccupied, path="empty/a/b"):
                root.make_directory(path)
            with refused(DiskOccupied, path="file"):
                root.make_directory(RelativePath.of("file"), parents=True)
            with refused(PathUnfit, path="empty/a"):
                root.remove(RelativePath.of("empty/a"))
            root.symlink(path / b"\xfe", target=b"x")
            with root.open(path / "f", OpenMode.CREATE):
                pass
            os.mkfifo(place / "root" / "empty" / "a" / "b" / "p")
            assert root.list(path) == (
                DirectoryItem(b"f", FileType.FILE),
                DirectoryItem(b"p", FileType.OTHER),
                DirectoryItem(b"\xfe", FileType.LINK),
            )
            for entry in root.list(path):
                root.remove(path / entry.name)
            root.remove(path)
            assert root.list(RelativePath.of("empty")) == (DirectoryItem(b"a", FileType.DIRECTORY),)
            assert DirectoryItem(b"empty", FileType.DIRECTORY) in root.list()

    def test_links_are_made_read_renamed_and_removed_themselves(
        self, place: Path, opener: Opener
    ) -> None:
        link, moved = RelativePath.of("dir/link"), RelativePath.of("moved")
        with below(place, opener) as root:
            root.symlink(link, target=b"../../outside/\xff")
            root.rename(link, moved)
            assert root.readlink(moved) == b"../../outside/\xff"
            assert stat.S_ISLNK(root.stat(moved).st_mode)
            root.rename(RelativePath.of("file"), moved)
            assert read(root, moved, follow=False) == b"inside"
            with refused(PathUnfit, path="moved"):
                root.readlink(moved)
            with refused(DiskMissing, path="dir/link"):
                root.rename(link, RelativePath.of("dir/elsewhere"))
            with refused(DiskOccupied, path="moved"):
                root.symlink(moved, target=b"x")
            root.remove(RelativePath.of("outdir"))

        assert (place / "outside").is_dir()

    @pytest.mark.parametrize("target", [b"", b"a\0b"])
    def test_a_link_needs_a_target(self, place: Path, opener: Opener, target: bytes) -> None:
        with below(place, opener) as root, refused(PathInvalid, path="new"):
            root.symlink(RelativePath.of("new"), target=target)

    def test_modes_and_times_are_set(self, place: Path, opener: Opener) -> None:
        with below(place, opener) as root:
            for name, mode in [("file", 0o400), ("dir", 0o750), ("fifo", 0o622)]:
                path = RelativePath.of(name)
                root.chmod(path, mode)
                root.utime(path, accessed_ns=1, modified_ns=1_234_567_890_123_456_789)
                found = root.stat(path)
                assert stat.S_IMODE(found.st_mode) == mode
                assert found.st_mtime_ns == 1_234_567_890_123_456_789
            root.utime(RelativePath.of("out"), accessed_ns=1, modified_ns=7)
            assert root.stat(RelativePath.of("out")).st_mtime_ns == 7
            with refused(PathUnfit, path="in"):
                root.chmod(RelativePath.of("in"), 0o777)

    def test_deep_paths_are_reached(self, place: Path, opener: Opener) -> None:
        path = RelativePath((b"d",) * 200)
        with below(place, opener) as root:
            root.make_directory(path, parents=True)
            assert stat.S_ISDIR(root.stat(path).st_mode)

    def test_a_root_may_be_a_descriptor(self, place: Path, opener: Opener) -> None:
        descriptor = os.open(place / "root", os.O_RDONLY | os.O_DIRECTORY)
        with Root(descriptor, name="draft", opener=opener) as root:
            assert read(root, RelativePath.of("file"), follow=False) == b"inside"

    def test_a_root_that_is_not_there_is_named(self, place: Path, opener: Opener) -> None:
        with refused(DiskMissing, path=str(place / "none")):
            Root.at(place / "none", opener=opener)

    def test_no_descriptor_stays_open(self, place: Path, opener: Opener) -> None:
        with below(place, opener) as root:
            before = len(os.listdir("/dev/fd"))
            for act in ACTS.values():
                for spelling in CORPUS:
                    try:
                        act(root, RelativePath.of(spelling))
                    except Failure:
                        continue
            assert len(os.listdir("/dev/fd")) == before


def _umask() -> int:
    before = os.umask(0)
    os.umask(before)
    return before
