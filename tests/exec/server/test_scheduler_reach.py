"""How far the answer to a read reaches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.exec.server.scheduler import ProcessProgress, ReadReach, has_output, is_due, reach_of

RUNNING = ProcessProgress(next_seq=7)
ENDED = ProcessProgress(next_seq=9, exit_seq=4, closed_seq=8)


@pytest.mark.parametrize(
    ("progress", "last", "bytes_max", "expected"),
    [
        (RUNNING, None, None, ReadReach(7, False, False, is_last=True)),
        (RUNNING, 6, None, ReadReach(7, False, False, is_last=True)),
        (RUNNING, 6, 100, ReadReach(7, False, False, is_last=True)),
        (RUNNING, 3, 100, ReadReach(4, False, False, is_last=False)),
        (ENDED, None, 100, ReadReach(9, True, True, is_last=True)),
        (ENDED, 7, None, ReadReach(9, True, True, is_last=True)),
        (ENDED, 7, 100, ReadReach(8, True, True, is_last=True)),
        # An unbounded read that had to stop early speaks of that moment.
        (ENDED, 3, None, ReadReach(4, False, False, is_last=True)),
        (ENDED, 5, None, ReadReach(6, True, False, is_last=True)),
    ],
)
def test_an_answer_reports(
    progress: ProcessProgress, last: int | None, bytes_max: int | None, expected: ReadReach
) -> None:
    assert reach_of(progress, last_seq=last, bytes_max=bytes_max) == expected


@pytest.mark.parametrize(
    ("progress", "after", "expected"),
    [
        (RUNNING, 6, False),
        (RUNNING, 5, True),
        (ProcessProgress(next_seq=3, exit_seq=2), 1, True),
        (ProcessProgress(next_seq=3, exit_seq=2), 2, False),
        (ProcessProgress(next_seq=4, exit_seq=2, closed_seq=3), 3, True),
    ],
)
def test_a_read_waits_until_there_is_something_to_tell(
    progress: ProcessProgress, after: int, expected: bool
) -> None:
    assert is_due(progress, after_seq=after) is expected


@given(st.data())
def test_output_is_whatever_is_neither_exit_nor_close(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 12))
    numbers = list(range(1, count + 1))
    exit_seq = data.draw(st.sampled_from([None, *numbers]))
    closed = count if exit_seq is not None and exit_seq < count else None
    first = data.draw(st.integers(1, count + 1))
    after = data.draw(st.integers(0, count))
    progress = ProcessProgress(count + 1, first, exit_seq, closed)

    kept = [n for n in numbers if n >= first and n > after and n not in {exit_seq, closed}]
    assert has_output(progress, after_seq=after) == bool(kept)
