"""Every record can be written as JSON, whatever bytes its texts came from."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agent.model import Asking, Done, Noting, Progress, Task, UsedUp, Using
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
    done = Done(text, shown=text, paths=(text,), plan=(Task(1, text, Progress.DONE),))
    for record in (
        UsedUp("c", done),
        Using("c", text, text, {text: [text, {"a": text}]}),
        Asking("q", text, text, (text,)),
        Noting(text, {"code": text}),
    ):
        clean = writable(record)
        msgspec.json.encode(clean)
        assert type(clean) is type(record)
        assert (clean is record) == is_well_formed(text)


def test_bytes_that_are_not_utf8_are_marked() -> None:
    assert writable(UsedUp("c", Done(ESCAPED, status=3))) == UsedUp("c", Done("a�b", status=3))
