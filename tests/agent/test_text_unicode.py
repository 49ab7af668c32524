"""Every record can be written as JSON, whatever bytes its texts came from."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agent.model import (
    Task,
    TaskProgress,
    ToolResult,
    ToolUse,
    ToolUseEnded,
    TurnNote,
    TurnQuestion,
)
from holdfast.agent.text import is_well_formed, well_formed, writable

ANY_TEXT = st.text(st.characters(exclude_categories=()))
ESCAPED = b"a\xffb".decode("utf-8", "surrogateescape")


@given(ANY_TEXT)
def test_text_becomes_valid_and_valid_text_stays(text: str) -> None:
    clean = well_formed(text)

    clean.encode()
    assert is_well_formed(clean)
    assert len(clean) == len(text)
    assert (clean == text) == is_well_formed(text)


@pytest.mark.promise("A1")
@given(ANY_TEXT)
def test_every_record_can_be_written(text: str) -> None:
    done = ToolResult(text, shown=text, paths=(text,), plan=(Task(1, text, TaskProgress.DONE),))
    for record in (
        ToolUseEnded("c", done),
        ToolUse("c", text, text, {text: [text, {"a": text}]}),
        TurnQuestion("q", text, text, (text,)),
        TurnNote(text, {"code": text}),
    ):
        clean = writable(record)
        msgspec.json.encode(clean)
        assert type(clean) is type(record)
        assert (clean is record) == is_well_formed(text)


def test_bytes_that_are_not_utf8_are_marked() -> None:
    assert writable(ToolUseEnded("c", ToolResult(ESCAPED, status=3))) == ToolUseEnded(
        "c", ToolResult("a�b", status=3)
    )
