"""What a commit of published changes holds."""

from __future__ import annotations

import pytest

from holdfast.nouns import RelativePath
from holdfast.workbench.git.plans import (
    Difference,
    TreeEntry,
    combined_content,
    default_message,
    differences,
    following,
    index_lines,
    is_removed,
    listed_index,
    mode_of,
    select,
)
from holdfast.workbench.model import EntryKind, PathChange, PathEntry

FILE = PathEntry(EntryKind.FILE, 0o644, content=b"1")
OTHER = PathEntry(EntryKind.FILE, 0o600, content=b"2")
PROGRAM = PathEntry(EntryKind.FILE, 0o755, content=b"1")
LINK = PathEntry(EntryKind.LINK, 0o777, target=b"a")
DIRECTORY = PathEntry(EntryKind.DIRECTORY, 0o755)
ONE, TWO = TreeEntry(b"100644", b"1" * 40), TreeEntry(b"100644", b"2" * 40)
RUNS = TreeEntry(b"100755", b"1" * 40)
at = RelativePath.of


@pytest.mark.promise("W14")
def test_what_a_commit_cannot_hold_is_named() -> None:
    changes = [
        PathChange(at("a"), None, FILE),
        PathChange(at("d"), None, DIRECTORY),
        PathChange(at("gone"), DIRECTORY, None),
        PathChange(at("was"), FILE, DIRECTORY),
        PathChange(at("sub/x"), None, FILE),
        PathChange(at("d/.GIT/hooks/x"), None, FILE),
        PathChange(at("chmod"), DIRECTORY, PathEntry(EntryKind.DIRECTORY, 0o700)),
    ]
    chosen = select(changes, [at("sub")])
    assert [str(each.path) for each in chosen.changes] == ["a", "gone", "was"]
    assert [str(each) for each in chosen.left_out] == ["sub/x", "d/.GIT/hooks/x"]
    assert [is_removed(each) for each in chosen.changes] == [False, True, True]


@pytest.mark.parametrize(
    ("before", "after", "known", "mode"),
    [
        (None, FILE, None, b"100644"),
        (None, PROGRAM, None, b"100755"),
        (FILE, PROGRAM, ONE, b"100755"),
        (PROGRAM, FILE, RUNS, b"100644"),
        (FILE, OTHER, RUNS, b"100755"),  # as it is committed: the publication did not change it
        (FILE, OTHER, None, b"100644"),
        (FILE, LINK, ONE, b"120000"),
        (LINK, PROGRAM, TreeEntry(b"120000", b"1" * 40), b"100755"),
    ],
)
def test_modes(
    before: PathEntry | None, after: PathEntry, known: TreeEntry | None, mode: bytes
) -> None:
    assert mode_of(PathChange(at("a"), before, after), known) == mode


@pytest.mark.parametrize(
    ("before", "committed", "after", "expected"),
    [
        (b"1\n2\n3\n4\nmine\n", b"1\n2\n3\n4\n5\n", b"one\n2\n3\n4\nmine\n", b"one\n2\n3\n4\n5\n"),
        (b"mine\n", b"1\n", b"ours\n", None),
        (b"1\n\0", b"1\n", b"2\n", None),
    ],
)
def test_only_what_was_published_is_committed(
    before: bytes, committed: bytes, after: bytes, expected: bytes | None
) -> None:
    assert combined_content(before, committed, after) == expected


def test_removals_come_first() -> None:
    lines = index_lines({b"b": ONE, b"b/x\n": None}, object_digits=40)
    assert lines == b"0 " + b"0" * 40 + b"\tb/x\n\x00" + b"100644 " + b"1" * 40 + b"\tb\0"


def test_listings_are_read() -> None:
    listing = b"100644 %s 0\ta\tb\n\x00100644 %s 1\tc\x00" % (ONE.object, TWO.object)
    assert dict(listed_index(listing)) == {b"a\tb\n": ONE, b"c": None}
    raw = b":100644 000000 %s %s D\0a\0:000000 100755 %s %s A\0b\0"
    nothing = b"0" * 40
    assert list(differences(raw % (ONE.object, nothing, nothing, RUNS.object))) == [
        Difference(b"a", ONE, None),
        Difference(b"b", None, RUNS),
    ]


@pytest.mark.promise("W14")
@pytest.mark.parametrize(
    ("staged", "change", "moves"),
    [
        ({b"a": ONE}, Difference(b"a", ONE, TWO), True),
        ({}, Difference(b"a", None, TWO), True),
        ({b"a": ONE}, Difference(b"a", ONE, None), True),
        ({b"a": TWO}, Difference(b"a", ONE, RUNS), False),  # staged otherwise
        ({}, Difference(b"a", ONE, TWO), False),  # its removal is staged
        ({b"a": ONE}, Difference(b"a", None, TWO), False),  # it was added
        ({b"a": None}, Difference(b"a", ONE, TWO), False),  # unmerged
        ({b"a": None}, Difference(b"a", None, TWO), False),
    ],
)
def test_index_entries_follow_unless_something_is_staged(
    staged: dict[bytes, TreeEntry | None], change: Difference, moves: bool
) -> None:
    assert following(staged, [change]) == ({b"a": change.after} if moves else {})


def test_a_commit_without_a_message_names_its_files() -> None:
    paths = [at(each) for each in ("a", "b\n", "c", "d", "e")]
    assert default_message(paths[:1]) == "Publish a"
    assert "\n" not in default_message(paths)
    assert default_message(paths).endswith(", c and 2 more")
