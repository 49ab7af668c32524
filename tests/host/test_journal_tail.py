"""The end of a log is kept in bounded memory, and nothing in it is ever skipped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.host.journal_tail import PAGE_BYTES, CachedLine, JournalTail, pages


@given(st.lists(st.lists(st.binary(max_size=30), min_size=1, max_size=5), max_size=30))
def test_what_is_not_forgotten_follows(batches: list[list[bytes]]) -> None:
    tail, written = JournalTail(bytes_max=40), list[CachedLine]()
    for batch in batches:
        tail.add(len(written) + 1, batch)
        written += [
            CachedLine(len(written) + place, data) for place, data in enumerate(batch, start=1)
        ]

    for after in range(len(written) + 1):
        page = tail.page(after)
        if page is not None:
            assert page == written[after:]
    kept = [after for after in range(len(written) + 1) if tail.page(after) is not None]
    assert sum(len(line.data) for line in written[min(kept, default=0) :]) <= 80 + 5 * 30


def test_a_gap_begins_anew() -> None:
    tail = JournalTail()
    tail.add(1, [b"a"])
    tail.add(5, [b"e", b"f"])

    assert tail.page(0) is None
    assert tail.page(4) == [CachedLine(5, b"e"), CachedLine(6, b"f")]
    assert tail.page(6) == []


def test_a_page_has_an_end() -> None:
    lines = [CachedLine(seq, b"x" * (PAGE_BYTES // 2)) for seq in range(1, 6)]

    assert list(pages(lines)) == [lines[:2], lines[2:4], lines[4:]]
    long = CachedLine(1, b"x" * 2 * PAGE_BYTES)
    assert list(pages([long, *lines])) == [[long], *pages(lines)]
    assert list(pages([])) == []


def test_what_is_not_far_back_is_never_forgotten() -> None:
    tail = JournalTail(bytes_max=40)
    for seq in range(1, 100):
        tail.add(seq, [b"x" * 10])

        page = tail.page(max(0, seq - 4))
        assert page is not None
        assert len(page) == min(seq, 4)
