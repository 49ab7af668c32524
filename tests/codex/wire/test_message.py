"""The form of a record: what it ignores, what it leaves out, and that it never changes."""

from __future__ import annotations

import gc

import msgspec
import pytest

from holdfast.codex.wire.message import WireMessage


class Note(WireMessage, frozen=True):
    """A record like any other."""

    thread_id: str
    lines: tuple[str, ...] = ()


def test_members_that_nobody_knows_are_ignored() -> None:
    sent = b'{"threadId":"t","novelty":{"deep":[1]},"lines":["a"]}'

    assert msgspec.json.decode(sent, type=Note) == Note(thread_id="t", lines=("a",))


def test_what_has_its_default_value_is_not_written() -> None:
    assert msgspec.json.encode(Note(thread_id="t")) == b'{"threadId":"t"}'


def test_a_record_never_changes() -> None:
    note = Note(thread_id="t")

    with pytest.raises(AttributeError):
        note.thread_id = "u"  # type: ignore[misc]  # the point of the test


def test_a_record_is_no_work_for_the_garbage_collector() -> None:
    assert not gc.is_tracked(Note(thread_id="t", lines=("a", "b")))
