"""What a project tells agents is found on the way to where the person stands, in bounds."""

from __future__ import annotations

import pytest

from holdfast.agent.memory import MemoryWorkspace
from holdfast.agent.prompt import NOTE_BYTES_MAX, find_notes
from holdfast.nouns import RelativePath

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("files", "inside", "notes"),
    [
        ({}, None, ()),
        ({"AGENTS.md": b"\xef\xbb\xbfroot\n"}, None, (("AGENTS.md", "root"),)),
        (
            {
                "AGENTS.md": b"root",
                ".agents/AGENTS.md": b"hidden",
                "a/AGENTS.md": b"a",
                "a/b/AGENTS.md": b"b",
                "c/AGENTS.md": b"c",
            },
            "a/b",
            (
                ("AGENTS.md", "root"),
                (".agents/AGENTS.md", "hidden"),
                ("a/AGENTS.md", "a"),
                ("a/b/AGENTS.md", "b"),
            ),
        ),
        ({"AGENTS.md": b" \n", "AGENTS.md.bak": b"x"}, None, ()),
        ({"AGENTS.md/x": b"a directory"}, None, ()),
    ],
)
async def test_notes(
    files: dict[str, bytes], inside: str | None, notes: tuple[tuple[str, str], ...]
) -> None:
    place = None if inside is None else RelativePath.of(inside)
    assert await find_notes(MemoryWorkspace(files), place) == notes


async def test_the_nearest_are_kept_if_there_is_too_much() -> None:
    files = {f"{'a/' * depth}AGENTS.md": b"%d" % depth * 40_000 for depth in range(4)}

    found = await find_notes(MemoryWorkspace(files), RelativePath.of("a/a/a"))

    assert [path for path, _ in found][-2:] == ["a/a/AGENTS.md", "a/a/a/AGENTS.md"]
    assert len(found[-1][1]) == NOTE_BYTES_MAX + len("\n(the rest is left out)")
    assert sum(len(text) for _, text in found) < 66_000
