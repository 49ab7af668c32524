"""A file is read again when it may have changed, and only then."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, fields, replace
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.workbench.scan.stat_cache import (
    BLANK,
    LINE_BYTES,
    RACY_COARSE_NS,
    RACY_NS,
    decode_stats,
    encode_stats,
    is_racy,
    is_same,
    names_of,
    stat_line,
)

NOW = 1_700_000_000_123_456_789
WHOLE = 1_700_000_000_000_000_000


@dataclass(frozen=True)
class Seen:
    st_gid: int = 1
    st_mode: int = 0o100644
    st_ino: int = 2
    st_dev: int = 3
    st_size: int = 4
    st_mtime_ns: int = 5
    st_ctime_ns: int = 6


@pytest.mark.parametrize("field", [field.name for field in fields(Seen)])
def test_any_difference_shows(field: str) -> None:
    other = replace(Seen(), **{field: 99})

    assert stat_line(other) != stat_line(Seen())
    assert not is_same(other, Seen())
    assert is_same(other, replace(other))


def test_a_line_of_a_real_file_is_never_blank() -> None:
    line = stat_line(os.stat("/"))

    assert len(line) == LINE_BYTES
    assert line != BLANK


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_no_two_devices_look_the_same(one: int, other: int) -> None:
    lines = {stat_line(replace(Seen(), st_dev=device)) for device in (one, other)}

    assert len(lines) == len({one, other})


@pytest.mark.skipif(sys.platform != "linux", reason="this is not Linux")
@given(st.integers(0, 2**12 - 1), st.integers(0, 2**20 - 1))
def test_devices_are_told_as_linux_tells_them(major: int, minor: int) -> None:
    line = stat_line(replace(Seen(), st_dev=os.makedev(major, minor)))

    assert line[-8:] == pack("=II", major, minor)


@pytest.mark.parametrize(
    ("changed_ns", "scanned_ns", "expected"),
    [
        (NOW, NOW, True),
        (NOW - RACY_NS, NOW, True),
        (NOW - RACY_NS - 1, NOW, False),
        (NOW + 1_000, NOW, True),  # the clock was set back
        (WHOLE, WHOLE + RACY_COARSE_NS, True),
        (WHOLE, WHOLE + RACY_COARSE_NS + 1, False),
    ],
)
def test_racy(changed_ns: int, scanned_ns: int, expected: bool) -> None:
    assert is_racy(changed_ns, scanned_ns=scanned_ns) is expected


@given(
    st.dictionaries(
        st.binary(min_size=1, max_size=255).filter(lambda name: 0 not in name),
        st.binary(min_size=LINE_BYTES, max_size=LINE_BYTES),
    )
)
def test_a_sight_is_read_back(lines: dict[bytes, bytes]) -> None:
    stats = encode_stats(list(lines), list(lines.values()))

    assert decode_stats(stats) == lines
    assert names_of(stats) == list(lines)


@pytest.mark.parametrize("at", range(12))
def test_what_is_spoiled_is_no_sight(at: int) -> None:
    stats = encode_stats([b"one", b"two"], [b"x" * LINE_BYTES, b"y" * LINE_BYTES])
    for damaged in (stats[:at], stats + b"z", bytes([stats[0] ^ 1]) + stats[1:]):
        with pytest.raises(ValueError):
            decode_stats(damaged)


def test_no_two_directories_look_the_same() -> None:
    line = b"\0a" * (LINE_BYTES // 2)
    sights = [([], []), ([b"a"], [line]), ([b"b"], [line]), ([b"a"], [BLANK])]

    assert len({encode_stats(names, lines) for names, lines in sights}) == len(sights)
