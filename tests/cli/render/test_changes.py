"""What changed, laid out: every line shown, none of them obeyed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from holdfast.cli.render.changes import (
    ChangedFile,
    changed_record,
    diff_page,
    path_lines,
    repository_page,
    stat_page,
    totals,
)
from holdfast.cli.render.style import look
from holdfast.nouns import RelativePath
from holdfast.workbench.model import ChangeNote, EntryKind, PathEntry

PLAIN = look(wanted="never", is_terminal=True, colourless=True, encoding="ascii", columns=60)
NARROW = replace(PLAIN, width=40)
COLOURED = look(wanted="always", is_terminal=True, colourless=False, encoding="utf-8", columns=60)
OLD = PathEntry(EntryKind.FILE, 0o644, b"o" * 32, size=3)
NEW = PathEntry(EntryKind.FILE, 0o644, b"n" * 32, size=5)
TEXT = ChangedFile(
    path=RelativePath.of("src/a.c"),
    before=OLD,
    after=NEW,
    added=1,
    removed=1,
    hunks=1,
    text=b"--- a/src/a.c\n+++ b/src/a.c\n@@ -1,1 +1,1 @@ change 1\n-one\n+two\n",
)
ADDED = ChangedFile(path=RelativePath.of("logo.png"), before=None, after=NEW, is_binary=True)
MODE = ChangedFile(
    path=RelativePath.of("run"),
    before=OLD,
    after=structs.replace(OLD, mode=0o755),
    notes=(ChangeNote("mode 644 to 755"),),
)
LOUD = replace(
    MODE, path=RelativePath.of("su"), notes=(ChangeNote("mode 644 to 4755 SETUID", is_loud=True),)
)
LINKED = ChangedFile(
    path=RelativePath.of("etc"),
    before=PathEntry(EntryKind.DIRECTORY, 0o755),
    after=PathEntry(EntryKind.LINK, 0o777, target=b"/etc"),
    added=1,
    text=b"diff --git a/etc b/etc\n",
    notes=(
        ChangeNote("was a directory, becomes a link", is_loud=True),
        ChangeNote("link to /etc", is_loud=True),
    ),
)
GONE = ChangedFile(
    path=RelativePath.of("d"), before=PathEntry(EntryKind.DIRECTORY, 0o755), after=None
)
HOSTILE = ChangedFile(
    path=RelativePath.of(b"\x1b]0;owned\x07\xff"),
    before=None,
    after=NEW,
    added=1,
    hunks=1,
    text=b"--- /dev/null\n+++ b/\x1b]0;owned\x07\xff\n@@ -0,0 +1,1 @@\n+\x1b[2J\xff\tx\r\n",
)


def test_a_diff_for_a_person() -> None:
    assert diff_page([TEXT, ADDED, MODE, GONE], PLAIN) == (
        "--- a/src/a.c\n+++ b/src/a.c\n@@ -1,1 +1,1 @@ change 1\n-one\n+two\n"
        "added logo.png (added)\n"
        "- run: mode 644 to 755\n"
        "deleted d (directory)\n"
    )


def test_a_diff_in_colour() -> None:
    assert diff_page([TEXT], COLOURED).splitlines()[2:] == [
        "\x1b[2m@@ -1,1 +1,1 @@ change 1\x1b[0m",
        "\x1b[31m-one\x1b[0m",
        "\x1b[32m+two\x1b[0m",
    ]


def test_what_is_left_out_is_counted() -> None:
    assert diff_page([replace(TEXT, lines_left_out=1234)], PLAIN).splitlines()[-1] == (
        "... and 1,234 more lines, which are not shown"
    )


def test_nothing_in_a_diff_steers_the_terminal() -> None:
    page = diff_page([HOSTILE], PLAIN) + stat_page([HOSTILE], PLAIN)

    assert page.splitlines()[1] == "+++ b/\\x1b]0;owned\\x07\\xff"
    assert page.splitlines()[3] == "+\\x1b[2J\\xff\tx\\r"
    assert {*page} & {"\x1b", "\x07", "\r"} == set()


@given(st.binary(max_size=200), st.binary(min_size=1, max_size=40))
def test_no_bytes_steer_the_terminal(text: bytes, name: bytes) -> None:
    safe = name.replace(b"/", b"").replace(b"\0", b"").strip(b".") or b"x"
    each = replace(HOSTILE, path=RelativePath.of(safe), text=text)
    page = diff_page([each], PLAIN) + stat_page([each], PLAIN) + path_lines([each.path], PLAIN)

    assert all(character.isprintable() or character in "\n\t" for character in page)


def test_a_line_for_each_file() -> None:
    assert stat_page([TEXT, ADDED, MODE, GONE], PLAIN) == (
        " M src/a.c  +1 -1  +-\n"
        " A logo.png  binary\n"
        " P run  mode\n"
        "      - mode 644 to 755\n"
        " D d  directory\n"
        "4 paths, +1 -1\n"
    )
    assert stat_page([], PLAIN) == ""


@pytest.mark.promise("W13")
def test_what_no_line_shows_is_said_in_every_view() -> None:
    assert stat_page([LOUD, LINKED], PLAIN) == (
        " P su  mode\n"
        "      ! mode 644 to 4755 SETUID\n"
        " T etc  +1 -0  +\n"
        "      ! was a directory, becomes a link\n"
        "      ! link to /etc\n"
        "2 paths, +1 -0\n"
    )
    assert diff_page([LOUD, LINKED], PLAIN) == (
        "! su: mode 644 to 4755 SETUID\n"
        "! etc: was a directory, becomes a link\n"
        "! etc: link to /etc\n"
        "diff --git a/etc b/etc\n"
    )
    assert "\x1b[31m! su: mode 644 to 4755 SETUID\x1b[0m" in diff_page([LOUD], COLOURED)
    record = changed_record(LINKED, has_text=False)
    assert record["notes"] == [
        {"text": "was a directory, becomes a link", "loud": True},
        {"text": "link to /etc", "loud": True},
    ]
    assert (record["runsByItself"], record["after"]) == (
        None,
        {"kind": "link", "mode": "777", "size": 0, "content": None, "target": "/etc", "xattrs": []},
    )
    assert changed_record(replace(LOUD, runs="why"), has_text=False)["runsByItself"] == "why"


@pytest.mark.promise("W13")
def test_of_a_repository_everything_is_shown_and_what_runs_comes_first() -> None:
    hook = replace(TEXT, path=RelativePath.of(".git/hooks/x"), runs="why")
    page = repository_page([replace(TEXT, text=b"ref\n"), replace(hook, text=b"hook\n")], PLAIN)

    assert page.splitlines()[0].startswith("! Changes in the project's own .git.")
    assert page.splitlines()[1:] == ["hook", "ref"]
    assert repository_page([], PLAIN) == ""


def test_nothing_in_a_note_steers_the_terminal() -> None:
    each = replace(LOUD, notes=(ChangeNote("link to \x1b]0;owned\x07\nx", is_loud=True),))
    page = diff_page([each], PLAIN) + stat_page([each], PLAIN)

    assert all(character.isprintable() or character == "\n" for character in page)


@pytest.mark.parametrize("page", [PLAIN, NARROW])
def test_a_line_is_never_wider_than_the_page(page: object) -> None:
    assert isinstance(page, type(PLAIN))
    long = replace(TEXT, path=RelativePath.of("x" * 200), added=90_000, removed=1)
    assert all(len(line) <= page.width for line in stat_page([long], page).splitlines()[:1])


def test_all_of_it_in_a_few_words() -> None:
    assert totals([GONE]) == "1 path"
    assert totals([replace(TEXT, added=1500)]) == "1 path, +1,500 -1"


def test_of_many_paths_the_first_are_shown() -> None:
    paths = [RelativePath.of(f"f{number}") for number in range(12)]

    assert path_lines(paths, PLAIN, most=2) == "    f0\n    f1\n    ... and 10 more\n"
    assert path_lines(paths[:1], PLAIN, count=2000) == "    f0\n    ... and 1,999 more\n"
    assert path_lines(paths[:1], PLAIN) == "    f0\n"


def test_a_change_for_a_program() -> None:
    assert changed_record(TEXT, has_text=False) == {
        "path": "src/a.c",
        "deed": "changed",
        "before": {
            "kind": "file",
            "mode": "644",
            "size": 3,
            "content": "6f" * 32,
            "target": None,
            "xattrs": [],
        },
        "after": {
            "kind": "file",
            "mode": "644",
            "size": 5,
            "content": "6e" * 32,
            "target": None,
            "xattrs": [],
        },
        "added": 1,
        "removed": 1,
        "hunks": 1,
        "binary": False,
        "linesLeftOut": 0,
        "notes": [],
        "runsByItself": None,
    }
    record = changed_record(GONE, has_text=True)
    assert (record["after"], record["diffBase64"]) == (None, "")
    assert record["before"] == {
        "kind": "directory",
        "mode": "755",
        "size": 0,
        "content": None,
        "target": None,
        "xattrs": [],
    }
