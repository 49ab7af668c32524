"""Every intact record is found, in order, and nothing is invented, whatever the damage."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.world.journal_format import (
    MARKER,
    RECORD_BYTES_MAX,
    Damage,
    DamageReason,
    Found,
    JournalRecord,
    Scanner,
    encode_record,
    write_line,
    write_lines,
)

OPENING = JournalRecord(0, 1, 1, b'{"format":1}', is_opening=True)
ONE, TWO, THREE = (JournalRecord(seq, 1, 1, b'{"n":"%d"}' % seq) for seq in (1, 2, 3))
L0, L1, L2, L3 = (write_line(record) for record in (OPENING, ONE, TWO, THREE))


def scan(text: bytes, piece: int = 1 << 20) -> list[Found]:
    scanner = Scanner()
    found: list[Found] = []
    for at in range(0, len(text), piece):
        found += scanner.feed(text[at : at + piece])
    return found + scanner.finish()


def damage(offset: int, length: int, after_seq: int, reason: str) -> Damage:
    return Damage(offset, length, after_seq, DamageReason(reason))


FLIPPED = L2.replace(b'"n"', b'"m"')
STALE = JournalRecord(2, 1, 1, b'"late"')
SECOND = JournalRecord(1, 2, 1, b"{}", is_opening=True)
N0, N1, N2 = len(L0), len(L0 + L1), len(L0 + L1 + L2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", []),
        (L0 + L1 + L2, [OPENING, ONE, TWO]),
        (L0 + L1 + L2[:-1], [OPENING, ONE, TWO]),
        (L0 + L1 + L2[:-2], [OPENING, ONE, damage(N1, len(L2) - 2, 1, "torn")]),
        (L0 + L1 + L2[:3], [OPENING, ONE, damage(N1, 3, 1, "torn")]),
        (L0 + L1 + bytes(9), [OPENING, ONE, damage(N1, 9, 1, "zeros")]),
        (L0 + L1 + bytes(9) + L2, [OPENING, ONE, damage(N1, 9, 1, "zeros"), TWO]),
        (L0 + L1[:-1] + L2, [OPENING, ONE, TWO]),
        (L0 + L1[:-1] + b"?" + L2, [OPENING, ONE, damage(N1 - 1, 1, 1, "unreadable"), TWO]),
        (L0 + L1[:-1] + bytes(4), [OPENING, ONE, damage(N1 - 1, 4, 1, "zeros")]),
        (L0 + L1 + L1 + L2, [OPENING, ONE, damage(N1, len(L1), 1, "duplicate"), TWO]),
        (L0 + L0 + L1, [OPENING, damage(N0, len(L0), 0, "duplicate"), ONE]),
        (
            L0 + L1 + FLIPPED + L3,
            [OPENING, ONE, damage(N1, len(L2), 1, "unreadable"), THREE],
        ),
        (L0 + L1 + L3, [OPENING, ONE, damage(N1, 0, 1, "missing"), THREE]),
        (L0 + L1 + b"\n\n" + L2, [OPENING, ONE, TWO]),
        (
            L0 + L1[:20] + L2 + L3,
            [OPENING, damage(N0, 20, 0, "unreadable"), TWO, THREE],
        ),
        (b"garbage\nmore\n" + L0, [damage(0, 13, 0, "unreadable"), OPENING]),
        (
            L0 + L1 + write_line(SECOND) + write_line(STALE),
            [
                OPENING,
                ONE,
                SECOND,
                damage(N1 + len(write_line(SECOND)), len(write_line(STALE)), 1, "stale"),
            ],
        ),
        (MARKER * 3, [damage(0, 24, 0, "torn")]),
    ],
)
def test_what_is_found(text: bytes, expected: list[Found]) -> None:
    assert scan(text) == expected
    assert scan(text, piece=1) == expected


@pytest.mark.parametrize(
    ("text", "end", "is_terminated"),
    [
        (b"", 0, True),
        (L0 + L1, N1, True),
        (L0 + L1[:-1], N1 - 1, False),
        (L0 + L1[:-1] + b"?", N1 - 1, False),
        (L0 + L1 + b"?", N1, True),
        (L0 + L1 + b"\n\n?", N1 + 2, True),
        (L0 + L1 + L1, N1, True),
    ],
)
def test_a_writer_learns_where_to_go_on(text: bytes, end: int, is_terminated: bool) -> None:
    scanner = Scanner()
    scanner.feed(text)
    scanner.finish()

    assert (scanner.end, scanner.is_terminated) == (end, is_terminated)


LINES = [
    write_line(JournalRecord(0, 1, 1, b"{}", is_opening=True)),
    *(
        write_line(JournalRecord(seq, 1, 1, encode_record(value)))
        for seq, value in enumerate(
            [
                {"a": "{ "},
                "{ ",
                {"x": {"y": {"z": [{}]}}},
                "}" * 9,
                {"{ ": 'say "seq":1'},
                {"a": 1, "crc": "00000000"},
                [',"crc":"00000000"}'],
            ],
            start=1,
        )
    ),
]
FILE = b"".join(LINES)
STARTS = [len(b"".join(LINES[:number])) for number in range(len(LINES))]

Edit = tuple[int, int, bytes]
junk = st.binary(max_size=30) | st.sampled_from([MARKER, b"\n", b"}", bytes(99), LINES[2], L0[:-5]])
edits = st.lists(st.tuples(st.integers(0, len(FILE)), st.integers(0, 40), junk), max_size=4)


def apply(changes: list[Edit]) -> tuple[bytes, set[int]]:
    """The file after each change replaced some bytes; and the lines that none of them touched."""
    text, touched, limit = FILE, set[int](), len(FILE) + 1
    for at, length, put in sorted(changes, reverse=True):
        end = min(at + length, len(FILE))
        if end > limit:
            continue
        text, limit = text[:at] + put + text[end:], at
        for number, start in enumerate(STARTS):
            last = start + len(LINES[number]) - 1  # its newline may go
            if at < last and end > start:
                touched.add(number)
            if start < at < last:
                touched.add(number)
    return text, set(range(len(LINES))) - touched


@settings(max_examples=500, deadline=None)
@given(edits, st.integers(1, 200))
@example([(STARTS[2], 0, LINES[1])], 7)
def test_untouched_records_are_found_and_none_is_invented(changes: list[Edit], piece: int) -> None:
    text, untouched = apply(changes)
    found = scan(text, piece)

    records = [write_line(item) for item in found if isinstance(item, JournalRecord)]
    assert set(records) <= set(LINES)
    if not any(put == LINES[2] for _, _, put in changes):  # a copy put earlier counts as the one
        assert {LINES[number] for number in untouched} <= set(records)
    seqs = [item.seq for item in found if isinstance(item, JournalRecord) and not item.is_opening]
    assert all(one < other for one, other in pairwise(seqs))


@settings(max_examples=500, deadline=None)
@given(edits)
def test_every_byte_is_in_a_record_or_in_reported_damage(changes: list[Edit]) -> None:
    text, _ = apply(changes)
    found = scan(text)

    told = sum(
        item.length if isinstance(item, Damage) else len(write_line(item)) - 1 for item in found
    )
    untold = len(text) - told
    assert 0 <= untold <= text.count(b"\n")


@given(st.binary(max_size=300), st.integers(1, 50))
def test_no_bytes_make_it_raise(text: bytes, piece: int) -> None:
    assert scan(text, piece) == scan(text)


@given(st.integers(0, len(FILE)))
def test_a_file_cut_anywhere_keeps_all_whole_records(at: int) -> None:
    found = [write_line(item) for item in scan(FILE[:at]) if isinstance(item, JournalRecord)]

    assert found == [
        line for line, start in zip(LINES, STARTS, strict=True) if start + len(line) - 1 <= at
    ]


@pytest.mark.parametrize("filler", [b"x", b"\0", b"}", b'{ "seq":1,"epoch"'], ids=repr)
def test_a_record_behind_a_huge_garbage_line_is_found(filler: bytes) -> None:
    scanner = Scanner()
    garbage = filler * (1_000_000 // len(filler))
    found = scanner.feed(L0 + L1[:-1])
    for _ in range(5 * RECORD_BYTES_MAX // 4 // len(garbage)):
        found += scanner.feed(garbage)
    found += [*scanner.feed(L2), *scanner.finish()]

    assert [item for item in found if isinstance(item, JournalRecord)] == [OPENING, ONE, TWO]


def test_a_marker_cut_in_two_behind_a_huge_line_is_found() -> None:
    scanner = Scanner()
    found = scanner.feed(L0 + MARKER + b"x" * (RECORD_BYTES_MAX + 300) + L1[:4])
    found += [*scanner.feed(L1[4:]), *scanner.finish()]

    assert [item for item in found if isinstance(item, JournalRecord)] == [OPENING, ONE]


def test_memory_stays_bounded_by_one_record() -> None:
    import tracemalloc

    scanner = Scanner()
    piece = write_lines([encode_record("x" * 1000)] * 1000, first=1, epoch=1, version=1)
    tracemalloc.start()
    for _ in range(40):
        scanner.feed(piece)
        scanner.feed(MARKER + b"?" * len(piece))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 3 * RECORD_BYTES_MAX
