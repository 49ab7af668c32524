"""A write is new, done, or may have happened; and only the last ones are remembered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.exec.keeper.write_ids import SLOT_BYTES, SLOTS, Slot, WriteLog, WriteState


def put(file: bytearray, slot: Slot) -> None:
    file.extend(bytes(max(0, slot.offset + SLOT_BYTES - len(file))))
    file[slot.offset : slot.offset + SLOT_BYTES] = slot.pack()


@pytest.mark.parametrize(
    ("steps", "state"),
    [(0, None), (1, WriteState.BEGUN), (2, WriteState.DONE)],
    ids=["unknown", "begun", "done"],
)
def test_the_next_server_knows_how_far_a_write_came(steps: int, state: WriteState | None) -> None:
    file, writes = bytearray(), WriteLog()
    if steps:
        put(file, begun := writes.begin("w"))
        if steps > 1:
            put(file, writes.finish(begun))

    assert (writes.look("w"), WriteLog(bytes(file)).look("w")) == (state, state)


def test_a_write_that_could_not_be_noted_is_new_again() -> None:
    writes = WriteLog()
    writes.withdraw(writes.begin("w"))

    assert writes.look("w") is None


def test_a_torn_note_is_no_note() -> None:
    file, writes = bytearray(), WriteLog()
    put(file, writes.begin("w"))
    file[3] ^= 1

    assert WriteLog(bytes(file)).look("w") is None


def test_the_oldest_are_forgotten() -> None:
    file, writes = bytearray(), WriteLog()
    for number in range(SLOTS + 10):
        begun = writes.begin(str(number))
        put(file, begun)
        put(file, writes.finish(begun))

    for known in (writes, WriteLog(bytes(file))):
        assert [known.look(str(number)) for number in (9, 10, SLOTS + 9)] == [
            None,
            WriteState.DONE,
            WriteState.DONE,
        ]
    assert len(file) == SLOTS * SLOT_BYTES


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans())))
def test_what_the_file_says_is_what_was_known(steps: list[tuple[int, bool]]) -> None:
    file, writes = bytearray(), WriteLog()
    for number, is_finished in steps:
        if writes.look(str(number)) is None:
            begun = writes.begin(str(number))
            put(file, begun)
            if is_finished:
                put(file, writes.finish(begun))

    again = WriteLog(bytes(file))
    assert [again.look(str(n)) for n in range(31)] == [writes.look(str(n)) for n in range(31)]
