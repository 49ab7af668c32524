"""What is read of a draft's repository, and what git says about it."""

from __future__ import annotations

import pytest

from holdfast.workbench.git.plans import (
    CommitLine,
    FileCount,
    alternates,
    commit_lines,
    file_counts,
    is_loose_directory,
    is_loose_object,
    is_pack,
    is_table,
    without,
)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("ab", {"directory"}),
        ("abc", set[str]()),
        ("a" * 38, {"object"}),
        ("a" * 62, {"object"}),
        ("a" * 37 + "\n", set[str]()),
        ("info", set[str]()),
        (f"pack-{'a' * 40}.pack", {"pack"}),
        (f"pack-{'a' * 40}.idx", set[str]()),
        (f"../pack-{'a' * 40}.pack", set[str]()),
        ("tables.list", {"table"}),
        ("0x01-0x02-abc.ref", {"table"}),
        ("0x01.ref.lock", set[str]()),
    ],
)
def test_only_names_that_git_writes_are_read(name: str, kinds: set[str]) -> None:
    found = {
        "directory": is_loose_directory(name),
        "object": is_loose_object(name),
        "pack": is_pack(name),
        "table": is_table(name),
    }
    assert {kind for kind, is_it in found.items() if is_it} == kinds


def test_a_directory_of_any_name_can_be_borrowed_from() -> None:
    assert alternates(b'/a"b\\c\nd') == b'"/a\\"b\\\\c\\nd"\n'


def test_listings_are_read() -> None:
    assert without(["a"], ["b", "c"]) == b"a\n^b\n^c\n"
    assert commit_lines(b"1\nAda\nSubject\0" + b"2\n\xff\n\0") == (
        CommitLine("1", "Ada", "Subject"),
        CommitLine("2", "\\xff", ""),
    )
    assert file_counts(b"1\t2\ta\tb\0-\t-\tc\0") == (
        FileCount(b"a\tb", 1, 2),
        FileCount(b"c", None, None),
    )
