"""Changes as people see them, and as `git apply` takes them."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.nouns import RelativePath
from holdfast.workbench.model import ChangeNote, EntryKind, PathChange, PathEntry
from holdfast.workbench.operations.change_view import file_diffs, write_patch
from holdfast.workbench.store.store import Store
from tests.workbench.modelled import at, changes, directory, link

LONG = 8 * 2**20 + 1
NO_GIT = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
Files = Mapping[bytes, tuple[int, bytes]]
"""Files and links by path: the mode that git knows, and the content or target."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def kept(store: Store, data: bytes, mode: int = 0o644) -> PathEntry:
    content, size = store.put_content([data])
    return PathEntry(EntryKind.FILE, mode, content=content, size=size)


def patch_of(store: Store, *changed: PathChange) -> bytes:
    out = BytesIO()
    write_patch(store, changed, out)
    return out.getvalue()


def test_a_text_line_by_line(store: Store) -> None:
    before, after = kept(store, b"1\n2\n"), kept(store, b"1\nzwei\n3\n")

    (shown,) = file_diffs(store, [PathChange(at("x"), before, after)])

    assert shown.text == (
        b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@ change 1\n 1\n-2\n+zwei\n+3\n"
    )
    assert (shown.added, shown.removed, shown.hunks, shown.notes) == (2, 1, 1, ())


@pytest.mark.parametrize("data", [b"\0", bytes(LONG)])
def test_what_has_no_lines_is_named(store: Store, data: bytes) -> None:
    before, after = kept(store, b"1\n"), kept(store, data)

    for change in (PathChange(at("x"), before, after), PathChange(at("x"), None, after)):
        (shown,) = file_diffs(store, [change])
        assert (shown.is_binary, shown.hunks) == (True, 0)
        assert shown.text.endswith(b" and b/x differ\n")


@pytest.mark.promise("W13")
def test_a_mode_is_shown_beside_lines(store: Store) -> None:
    before, after = kept(store, b"1\n"), kept(store, b"1\n2\n", 0o4755)

    (shown,) = file_diffs(store, [PathChange(at("s.sh"), before, after)])

    assert shown.notes == (ChangeNote("mode 644 to 4755 SETUID", is_loud=True),)
    assert b"old mode 100644\nnew mode 100755\n" in shown.text
    assert (shown.added, shown.hunks) == (1, 1)
    patch = patch_of(store, PathChange(at("s.sh"), before, after))
    assert patch.startswith(b"# s.sh: mode 644 to 4755 SETUID\ndiff --git ")


@pytest.mark.promise("W13")
def test_targets_of_links_are_shown(store: Store) -> None:
    changed = [
        PathChange(at("d"), directory(), link("/etc")),
        PathChange(at("f"), kept(store, b"1\n"), link("y")),
        PathChange(at("l"), link("x"), link("../../y")),
    ]
    d, f, l = file_diffs(store, changed)  # noqa: E741  # as they are called above

    assert d.notes == (
        ChangeNote("was a directory, becomes a link", is_loud=True),
        ChangeNote("link to /etc (outside of the project)", is_loud=True),
    )
    assert b"new file mode 120000\n" in d.text and b"\n+/etc\n" in d.text
    assert (f.removed, f.added, f.hunks) == (1, 1, 0)
    assert b"deleted file mode 100644\n" in f.text and b"new file mode 120000\n" in f.text
    assert l.notes == (
        ChangeNote("link to ../../y, was to x (outside of the project)", is_loud=True),
    )
    assert b"-x\n" in l.text and b"+../../y\n" in l.text


@pytest.mark.promise("W13")
def test_what_runs_by_itself_is_marked(store: Store) -> None:
    data = kept(store, b"1\n")
    new, gone, plain = file_diffs(
        store,
        [
            PathChange(at("sub/.envrc"), None, data),
            PathChange(at(".vscode/tasks.json"), data, None),
            PathChange(at("src/main.c"), None, data),
        ],
    )

    assert new.runs and new.notes == (ChangeNote(f"runs by itself: {new.runs}", is_loud=True),)
    assert (gone.runs, gone.notes, plain.runs, plain.notes) == ("", (), "", ())


def test_names_in_comments_cannot_steer_a_terminal(store: Store) -> None:
    hostile = RelativePath.of(b"\x1b[2J\n+++ b/x")
    patch = patch_of(store, PathChange(hostile, None, link("\x1b]0;owned\x07\n@@")))

    notes = patch.split(b"diff --git")[0]
    assert notes.count(b"\n") == 1 and b"\x1b" not in notes and b"\x07" not in notes


@NO_GIT
@pytest.mark.promise("W13")
def test_what_git_refuses_spoils_nothing_else(store: Store, tmp_path: Path) -> None:
    data = kept(store, b"1\n")
    refused = ["sub/.git/config", "sub/.GIT/hooks/x", "git~1", ".git./x", ".git"]
    every = [PathChange(at(name), None, data) for name in (*refused, "plain")]
    every.append(PathChange(at(".gitmodules"), None, link("plain")))
    every.append(PathChange(at("empty"), None, directory()))

    patch = patch_of(store, *every)

    for name in refused:
        assert f"# {name}: git applies no patch of such a path".encode() in patch
    assert b"# +1\n" in patch and b"# empty: directory added\n" in patch
    applied(tmp_path / "tree", patch)
    assert {each.name for each in (tmp_path / "tree").iterdir()} == {"plain"}


NAMES = st.sampled_from(
    [
        b"a",
        b"b",
        b"a b",
        b" x ",
        "zwölf".encode(),
        b"\xff\xfe",
        b'q"u',
        b"back\\slash",
        b"tab\tx",
        b"new\nline",
        b"-n",
        b"x b",
        b"\x7f\x01",
    ]
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(b"/".join)
CONTENTS = st.one_of(
    st.sampled_from([b"", b"\n", b"no end", b"a\0b", b"a\r\nb\r\n", b"\xff\xfe\n"]),
    st.lists(st.sampled_from([b"a", b"b", b"c", b"", b"\\ No"]), max_size=12).map(b"\n".join),
    st.binary(max_size=200),
)
ENTRIES = st.one_of(
    st.tuples(st.sampled_from([0o644, 0o755, 0o600, 0o4755]), CONTENTS),
    st.tuples(st.just(0o120000), st.sampled_from([b"a", b"../x", b"/etc", b"o dd\n\xff"])),
)


def _tree(wanted: Mapping[bytes, tuple[int, bytes]]) -> Files:
    """Of these files, those that can be beside each other: none is below another one."""
    return {
        path: entry
        for path, entry in wanted.items()
        if not any(other != path and path.startswith(other + b"/") for other in wanted)
    }


TREES = st.dictionaries(PATHS, ENTRIES, max_size=8).map(_tree)


def _entries(store: Store, files: Files) -> dict[RelativePath, PathEntry]:
    found: dict[RelativePath, PathEntry] = {}
    for raw, (mode, data) in files.items():
        path = RelativePath.of(raw)
        if mode == 0o120000:
            found[path] = PathEntry(EntryKind.LINK, 0o777, target=data)
        else:
            found[path] = kept(store, data, mode)
        while (above := path.parent) is not None:
            found[above] = directory()
            path = above
    return found


def _written(root: Path, files: Files) -> None:
    root.mkdir()
    for raw, (mode, data) in files.items():
        path = os.path.join(os.fsencode(root), raw)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if mode == 0o120000:
            os.symlink(data, path)
            continue
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, mode)


def _known_to_git(files: Files) -> dict[bytes, tuple[int, bytes]]:
    return {
        path: (mode if mode == 0o120000 else 0o755 if mode & 0o100 else 0o644, data)
        for path, (mode, data) in files.items()
    }


def _read(root: Path) -> dict[bytes, tuple[int, bytes]]:
    found: dict[bytes, tuple[int, bytes]] = {}
    top = os.fsencode(root)
    for above, directories, names in os.walk(top):
        for name in (*directories, *names):
            path = os.path.join(above, name)
            mode = os.lstat(path).st_mode
            spelled = os.path.relpath(path, top)
            if stat.S_ISLNK(mode):
                found[spelled] = (0o120000, os.readlink(path))
            elif stat.S_ISREG(mode):
                with open(path, "rb") as file:
                    found[spelled] = (0o755 if mode & 0o100 else 0o644, file.read())
    return found


def applied(root: Path, patch: bytes, *words: str) -> None:
    """Let the real git apply a patch to a directory, with no settings of anybody."""
    root.mkdir(exist_ok=True)
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", *words],
        cwd=root,
        input=patch,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CEILING_DIRECTORIES": str(root.parent),
        },
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, (done.stderr, patch)


@NO_GIT
@pytest.mark.promise("W13")
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(before=TREES, after=TREES)
def test_git_applies_it_forwards_and_backwards(store: Store, before: Files, after: Files) -> None:
    changed = changes(_entries(store, before), _entries(store, after))
    patch = patch_of(store, *changed)
    with tempfile.TemporaryDirectory() as made:
        root = Path(made, "tree")
        _written(root, before)
        if b"diff --git " in patch:  # git refuses a patch of nothing
            applied(root, patch)
        assert _read(root) == _known_to_git(after)
        if b"diff --git " in patch:
            applied(root, patch, "-R")
        assert _read(root) == _known_to_git(before)


@NO_GIT
@pytest.mark.promise("W13")
def test_git_applies_what_is_too_long_to_be_shown(store: Store, tmp_path: Path) -> None:
    long = b"".join(b"%d\n" % number for number in range(60_000))
    large = os.urandom(LONG)
    before: Files = {b"large": (0o644, large[::-1]), b"long": (0o644, b"")}
    after: Files = {b"large": (0o644, large), b"long": (0o644, long)}
    changed = changes(_entries(store, before), _entries(store, after))
    assert sum(each.lines_left_out for each in file_diffs(store, changed)) > 0

    _written(tmp_path / "tree", before)
    applied(tmp_path / "tree", patch_of(store, *changed))

    assert _read(tmp_path / "tree") == after
