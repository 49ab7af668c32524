"""Reading shows lines that can be named, in bounds, and says what cannot be read."""

from __future__ import annotations

import re

import pytest

from holdfast.agent.failures import ToolRefused
from holdfast.agent.memory import MemoryToolContext, MemoryWorkspace
from holdfast.agent.model import ToolResult
from holdfast.agent.text import CHARS_MAX, PAGE_MAX, receipt
from holdfast.agent.tools.documents import tagged
from holdfast.agent.tools.read import FILE_BYTES_MAX, ReadTool

pytestmark = pytest.mark.anyio

FILES = {
    "a": b"one\n  two\nthree",
    "dos": b"\xef\xbb\xbfone\r\ntwo\r\n",
    "long": b"".join(b"%d\n" % number for number in range(1, 5001)),
    "wide": b"x" * 60_000 + b"\ny\n",
    "latin": b"caf\xe9\n",
    "empty": b"",
    "binary": b"\0\1\2",
    "image.PNG": b"text all the same",
    "huge": b"x" * (FILE_BYTES_MAX + 1),
    "d/x": b"",
}


async def read(**arguments: object) -> str:
    done = await ReadTool(MemoryWorkspace(FILES)).use(dict(arguments), MemoryToolContext())
    assert done == ToolResult(done.text)
    return done.text


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("a", tagged(["one", "  two", "three"])),
        ("/project/a", tagged(["one", "  two", "three"])),
        ("dos", tagged(["one", "two"])),
        ("empty", ["(the file is empty)"]),
    ],
)
async def test_lines_are_shown(path: str, lines: list[str]) -> None:
    assert (await read(path=path)).split("\n") == lines


async def test_what_is_no_text_in_a_text_is_marked() -> None:
    assert (await read(path="latin")).endswith("|caf�")


async def test_a_part_is_shown_with_how_to_go_on() -> None:
    lines = (await read(path="long", offset=10, limit=2)).split("\n")

    expected = [*tagged(["10", "11"], 10), "(4989 more lines of 5000; go on with offset=12)"]
    assert lines == expected


async def test_much_is_bounded() -> None:
    long, wide = (await read(path="long")), (await read(path="wide"))

    assert PAGE_MAX - 20 < len(long) <= CHARS_MAX
    shown = long.count("\n")
    assert long.endswith(f"({5000 - shown} more lines of 5000; go on with offset={shown + 1})")
    assert len(wide) < 3000 and wide.endswith("|y")


@pytest.mark.promise("A1")
@pytest.mark.parametrize("width", [0, 1, 50, 80, 300, 1_999, 5_000])
async def test_pages_hold_every_line_and_are_shown_whole(width: int) -> None:
    """A receipt that cut a page would leave a hole that the model is not told to read."""
    texts = [f"{number} {'x' * width}" for number in range(1, 701)]
    tool = ReadTool(MemoryWorkspace({"f": "\n".join(texts).encode()}))
    seen: list[str] = []
    offset = 1
    while offset:
        page = (await tool.use({"path": "f", "offset": offset}, MemoryToolContext())).text
        assert receipt("call", page) == page
        *lines, last = page.split("\n")
        found = re.search(r"go on with offset=(\d+)\)$", last)
        seen += lines if found else [*lines, last]
        offset = int(found[1]) if found else 0

    assert seen == tagged(texts)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("x", "there is no x"),
        ("d", "is a directory"),
        ("binary", "is binary"),
        ("image.PNG", "is an image"),
        ("huge", "use search"),
        ("../a", "outside of the project"),
        ("a", "there is no line 9"),
    ],
)
async def test_what_cannot_be_read_is_said(path: str, reason: str) -> None:
    with pytest.raises(ToolRefused, match=reason):
        await read(path=path, offset=9 if path == "a" else 1)


def test_it_is_told_to_the_person() -> None:
    tool = ReadTool(MemoryWorkspace())

    assert tool.spec.name == "read"
    assert tool.title({"path": "a"}) == "Read a"
    assert tool.title({"path": "a\n\x1b", "offset": 2}) == "Read a <U+001B> from line 2"
