"""Time, chance, disk, journal: what the program cannot decide by itself."""

from holdfast.world.beneath import Entry, Opening, Root, Sort
from holdfast.world.chance import Chance, IdMaker, SystemChance
from holdfast.world.clock import Clock, SystemClock
from holdfast.world.commit_loop import GroupCommit, Runner
from holdfast.world.core.opening import Repairs
from holdfast.world.core.records import Encoded, accept_record, encode_record
from holdfast.world.core.scan import Damage
from holdfast.world.core.system_errors import disk_failure
from holdfast.world.database import Database, Transaction, Upgrade
from holdfast.world.disk import SystemDisk
from holdfast.world.journal import Journal
from holdfast.world.ports import Disk, FileStatus, OpenFile
from holdfast.world.reading import JournalEntry, RecordSchema, read_journal
from holdfast.world.replace import replace_file
from holdfast.world.retrying import Waiting, retrying
from holdfast.world.schema import Schema
from holdfast.world.writer_loop import WriterThread

__all__ = [
    "Chance",
    "Clock",
    "Damage",
    "Database",
    "Disk",
    "Encoded",
    "Entry",
    "FileStatus",
    "GroupCommit",
    "IdMaker",
    "Journal",
    "JournalEntry",
    "OpenFile",
    "Opening",
    "RecordSchema",
    "Repairs",
    "Root",
    "Runner",
    "Schema",
    "Sort",
    "SystemChance",
    "SystemClock",
    "SystemDisk",
    "Transaction",
    "Upgrade",
    "Waiting",
    "WriterThread",
    "accept_record",
    "disk_failure",
    "encode_record",
    "read_journal",
    "replace_file",
    "retrying",
]
