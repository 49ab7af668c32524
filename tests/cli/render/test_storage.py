"""Room, laid out and read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.cli.render.storage import (
    Room,
    Spared,
    size_of,
    size_text,
    spared_page,
    spared_record,
    storage_page,
    storage_record,
)
from holdfast.cli.render.style import look

PAGE = look(wanted="never", is_terminal=True, colourless=True, encoding="ascii", columns=80)
ROOM = Room(
    checkpoints=12,
    kept_bytes=3 * 2**20,
    other_bytes=17 * 2**20,
    free_bytes=5 * 2**30,
    quota_bytes=2**30,
)
SPARED = Spared(checkpoints=("cp_1", "cp_2"), bytes_before=2**20, bytes_after=2**19, is_trial=True)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1,023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (2**50, "1024.0 TiB")],
)
def test_bytes_in_words(count: int, text: str) -> None:
    assert size_text(count) == text


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("500", 500),
        ("500M", 500 * 2**20),
        ("1.5 GiB", 3 * 2**29),
        ("2gb", 2**31),
        ("2 x", None),
        ("", None),
        ("-1", None),
        ("1e9", None),
    ],
)
def test_words_for_bytes(text: str, count: int | None) -> None:
    assert size_of(text) == count


def test_the_use_of_room() -> None:
    assert storage_page(ROOM, PAGE).splitlines() == [
        "+ 3.0 MiB in 12 checkpoints",
        "     1.0 GiB  may be used",
        "    17.0 MiB  index and reserve",
        "     5.0 GiB  free on that disk",
    ]
    full = storage_page(replace(ROOM, quota_bytes=1), PAGE).splitlines()
    assert (full[0][0], full[-1]) == ("!", "  > holdfast storage --prune --dry-run")


def test_what_goes() -> None:
    assert spared_page(SPARED, PAGE).splitlines() == [
        "+ 2 checkpoints would go",
        "    cp_1",
        "    cp_2",
        "  1.0 MiB > 512.0 KiB",
    ]
    nothing = replace(SPARED, checkpoints=(), bytes_after=2**20)
    assert spared_page(nothing, PAGE) == "Nothing to remove.\n"
    many = replace(SPARED, checkpoints=("cp",) * 13, is_trial=False)
    assert spared_page(many, PAGE).splitlines()[0] == "+ 13 checkpoints went"
    assert "    ... and 3 more" in spared_page(many, PAGE).splitlines()


def test_the_same_for_a_program() -> None:
    assert storage_record(ROOM) == {
        "schema": 1,
        "type": "storage",
        "checkpoints": 12,
        "bytes": 3 * 2**20,
        "otherBytes": 17 * 2**20,
        "freeBytes": 5 * 2**30,
        "quotaBytes": 2**30,
    }
    assert spared_record(SPARED) == {
        "schema": 1,
        "type": "pruned",
        "checkpoints": ["cp_1", "cp_2"],
        "bytesBefore": 2**20,
        "bytesAfter": 2**19,
        "dryRun": True,
        "quotaBytes": None,
        "manualKept": 0,
    }
