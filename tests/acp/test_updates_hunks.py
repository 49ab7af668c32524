"""What an agent shows as a diff is read as what was there and what is, or not at all."""

from __future__ import annotations

from difflib import unified_diff

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.acp.updates import Hunk, hunks_of

CHANGED = "--- a/src/x.py\n+++ b/src/x.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"
NEW = "--- /dev/null\n+++ b/new\n@@ -0,0 +1,2 @@\n+one\n+two"
GONE = "--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-one"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CHANGED, [Hunk("src/x.py", "one\ntwo\nthree\n", "one\n2\nthree\n")]),
        (NEW, [Hunk("new", None, "one\ntwo\n")]),
        (GONE, [Hunk("old", "one\n", "")]),
        (
            f"{CHANGED}\n@@ -9 +9 @@\n---- x\n+++ y\n{NEW}",
            [
                Hunk("src/x.py", "one\ntwo\nthree\n", "one\n2\nthree\n"),
                Hunk("src/x.py", "--- x\n", "++ y\n"),
                Hunk("new", None, "one\ntwo\n"),
            ],
        ),
        (f"{CHANGED}\n\\ No newline", [Hunk("src/x.py", "one\ntwo\nthree\n", "one\n2\nthree\n")]),
        (f"{CHANGED}\n… (9 more characters)", None),
        (CHANGED[:-8], None),
        ("--- a/x", None),
        ("--- a/x\n+++ b/x\n@@ -1,9 +1 @@\n-one", None),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n one\n two", None),
        ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n one", None),
        (f"--- a/x\n+++ b/x\n@@ -1,{'9' * 5000} +1 @@\n-one", None),
        ("--- a/x\n+++ b/x\n@@ -1,\u0661 +1 @@\n-one\n+1", None),
        ("Made x (3 bytes).", None),
        ("", []),
    ],
)
def test_diffs_are_read(text: str, expected: list[Hunk] | None) -> None:
    assert hunks_of(text) == expected


LINES = st.lists(st.text("ab-+@ \\", max_size=4), max_size=12)


@given(before=LINES, after=LINES)
def test_what_is_read_changes_the_one_into_the_other(before: list[str], after: list[str]) -> None:
    whole = "\n".join(unified_diff(before, after, "a/x", "b/x", lineterm="", n=20))
    old, new = ("".join(f"{line}\n" for line in lines) for lines in (before, after))

    assert hunks_of(whole) == ([] if before == after else [Hunk("x", old, new)])
