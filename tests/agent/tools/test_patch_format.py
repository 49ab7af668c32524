"""A patch is applied to the letter, or refused with the reason."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agent.failures import ToolRefused
from holdfast.agent.tools.documents import parsed
from holdfast.agent.tools.patch_format import (
    AddFile,
    DeleteFile,
    FilePatch,
    PatchHunk,
    UpdateFile,
    parsed_patch,
    patched,
)


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])


def hunk(*lines: str, below: tuple[str, ...] = (), is_last: bool = False) -> PatchHunk:
    return PatchHunk(tuple((line[0], line[1:]) for line in lines), below, is_last)


@pytest.mark.parametrize(
    ("text", "files"),
    [
        (patch("*** Add File: a", "+x", "+"), [AddFile("a", ("x", ""))]),
        (patch("*** Add File: a"), [AddFile("a", ())]),
        (patch("*** Delete File: a b"), [DeleteFile("a b")]),
        (
            patch("*** Update File: a", "@@", " x", "-y", "+z"),
            [UpdateFile("a", (hunk(" x", "-y", "+z"),))],
        ),
        (
            patch("*** Update File: a", "*** Move to: b"),
            [UpdateFile("a", (), "b")],
        ),
        (
            patch(
                "*** Update File: a",
                "@@ class A:",
                "@@     def f(self):",
                "-x",
                "+y",
                "",
                "@@ -1,2 +3 @@",
                "+end",
                "*** End of File",
                "*** Delete File: b",
            ),
            [
                UpdateFile(
                    "a",
                    (
                        hunk("-x", "+y", " ", below=("class A:", "def f(self):")),
                        hunk("+end", is_last=True),
                    ),
                ),
                DeleteFile("b"),
            ],
        ),
    ],
)
def test_a_patch_is_read(text: str, files: list[FilePatch]) -> None:
    assert parsed_patch(text) == files


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "begins with"),
        ("*** Begin Patch\n*** Delete File: a", "ends with"),
        (patch(), "is empty"),
        (patch("hello"), "begins no file"),
        (patch("*** Add File: a", "x"), "begins with +"),
        (patch("*** Update File: a"), "nothing in it"),
        (patch("*** Update File: a", " x"), "needs lines"),
        (patch("*** Update File: a", "?x"), "needs lines"),
        (patch("*** Delete File: a", "*** Add File: a", "+x"), "twice"),
    ],
)
def test_what_is_no_patch_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ToolRefused, match=reason.replace("+", r"\+")):
        parsed_patch(text)


@pytest.mark.parametrize(
    ("before", "hunks", "after"),
    [
        (b"a\nb\nc\n", [hunk(" a", "-b", "+x", "+y", " c")], b"a\nx\ny\nc\n"),
        (b"a\r\nb\nc", [hunk("-b", "+x"), hunk("-c", "+z")], b"a\r\nx\nz"),
        (b"f\n x\ng\n x\n", [hunk("- x", "+ y", below=("g",))], b"f\n x\ng\n y\n"),
        (b"x\nx\n", [hunk("-x", "+y", is_last=True)], b"x\ny\n"),
        (b"a\n", [hunk("+b")], b"a\nb\n"),
        (b"a\nb\n", [hunk("+x", below=("a",))], b"a\nx\nb\n"),
        (b"a\nb\na\n", [hunk("-a", "-b", "+x"), hunk("-a", "+y")], b"x\ny\n"),
        (b"a\nb\nc\nd\n", [hunk("-a", " b", "-c", "+x", " d")], b"b\nx\nd\n"),
    ],
)
def test_hunks_are_applied(before: bytes, hunks: list[PatchHunk], after: bytes) -> None:
    assert patched("f", parsed(before), hunks).encoded() == after


@pytest.mark.parametrize(
    ("before", "one", "reason"),
    [
        (b"a \n", hunk("-a", "+x"), "to the letter"),
        (b"\ta\n", hunk("-    a", "+x"), "to the letter"),
        (b"a\na\n", hunk("-a", "+x"), "lines 1 and 2"),
        (b"a\n", hunk("-a", "+x", below=("b",)), "no line 'b'"),
        (b"a\nb\n", hunk("-a", "+x", is_last=True), "to the letter"),
        (b"", hunk("-a", "+x"), "to the letter"),
    ],
)
def test_what_does_not_fit_to_the_letter_is_refused(
    before: bytes, one: PatchHunk, reason: str
) -> None:
    with pytest.raises(ToolRefused, match=reason):
        patched("f", parsed(before), [one])


@settings(deadline=None)
@given(st.lists(st.sampled_from("abcd"), max_size=12), st.data())
def test_any_change_that_is_spelled_out_whole_is_made(
    before: list[str], data: st.DataObject
) -> None:
    lines: list[tuple[str, str]] = []
    for text in before:
        added = data.draw(st.lists(st.sampled_from("xy"), max_size=2))
        lines += [("+", new) for new in added]
        lines.append((data.draw(st.sampled_from(" -")), text))
    lines.append(("+", "end"))

    made = patched(
        "f", parsed("".join(f"{each}\n" for each in before).encode()), [PatchHunk(tuple(lines))]
    )

    assert made.texts == [text for sign, text in lines if sign != "-"]
