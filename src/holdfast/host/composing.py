"""Write a whole journal at once, for a conversation that was held elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from holdfast.host.book import JOURNAL, SCHEMA
from holdfast.host.model import AnyRecord
from holdfast.world import Journal, SystemDisk, encode_record


def compose_book(directory: Path, records: Iterable[AnyRecord], *, name: str) -> bool:
    """Make these the first records of a session, all or none; say whether it had none before."""
    journal = Journal.open(SystemDisk(), directory / JOURNAL, schema=SCHEMA, log=name)
    try:
        if journal.seq:
            return False
        journal.append([encode_record(record) for record in records])
    finally:
        journal.close()
    return True
