"""What of a change no line shows is said beside it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.workbench.diff.git_patch import notes_of, special_bits
from holdfast.workbench.model import ChangeNote, EntryKind, PathEntry
from tests.workbench.modelled import at, directory, file, link

F = file("x")


@pytest.mark.promise("W13")
@pytest.mark.parametrize(
    ("before", "after", "notes"),
    [
        (None, F, ()),
        (F, None, ()),
        (F, file("y"), ()),
        (None, file("x", 0o755), ()),
        (F, file("x", 0o755), (ChangeNote("mode 644 to 755"),)),
        (F, file("y", 0o600), (ChangeNote("mode 644 to 600"),)),
        (F, file("y", 0o4755), (ChangeNote("mode 644 to 4755 SETUID", is_loud=True),)),
        (None, file("y", 0o6711), (ChangeNote("mode 6711 SETUID and SETGID", is_loud=True),)),
        (file("x", 0o4755), file("y", 0o4755), (ChangeNote("mode 4755 SETUID", is_loud=True),)),
        (file("x", 0o2755), file("x", 0o755), (ChangeNote("mode 2755 to 755"),)),
        (None, file("x", 0o666), (ChangeNote("mode 666"),)),
        (None, directory(), ()),
        (None, directory(0o2775), (ChangeNote("mode 2775"),)),
        (None, link("../y"), (ChangeNote("link to ../y"),)),
        (
            None,
            link("../../y"),
            (ChangeNote("link to ../../y (outside of the project)", is_loud=True),),
        ),
        (link("y"), None, (ChangeNote("was a link to y"),)),
        (
            F,
            link("/etc"),
            (
                ChangeNote("was a file, becomes a link", is_loud=True),
                ChangeNote("link to /etc (outside of the project)", is_loud=True),
            ),
        ),
        (
            link("y"),
            directory(),
            (
                ChangeNote("was a link, becomes a directory", is_loud=True),
                ChangeNote("was a link to y"),
            ),
        ),
        (
            replace(F, xattrs=((b"user.a", b"1"), (b"user.b", b"1"))),
            replace(F, xattrs=((b"user.a", b"2"), (b"user.c", b"1"))),
            (ChangeNote("extended attributes: sets user.a, sets user.c, removes user.b"),),
        ),
    ],
)
def test_notes(
    before: PathEntry | None, after: PathEntry | None, notes: tuple[ChangeNote, ...]
) -> None:
    assert notes_of(at("d/x"), before, after) == notes


def test_what_goes_no_longer_runs() -> None:
    assert notes_of(at("x"), F, None, "why") == ()
    assert notes_of(at("x"), None, F, "why") == (ChangeNote("runs by itself: why", is_loud=True),)


def test_every_change_says_something_or_has_lines() -> None:
    kinds = [F, file("y"), file("x", 0o755), link("a"), link("b"), directory(), directory(0o700)]
    for before in kinds:
        for after in kinds:
            is_quiet = not notes_of(at("x"), before, after)
            has_lines = (
                before.kind is after.kind is EntryKind.FILE and before.content != after.content
            )
            assert is_quiet == (before == after or (has_lines and before.mode == after.mode))


def test_bits_of_directories_give_nobody_power() -> None:
    assert special_bits(file("x", 0o6755)) == ("setuid", "setgid")
    assert special_bits(directory(0o2775)) == special_bits(None) == ()
