"""Clock, random source, disk, journal, database, processes: effects behind ports.

Exports are imported on first use, because most processes need few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import lazy_exports

if TYPE_CHECKING:
    from holdfast.world.batch_queue import BatchQueue
    from holdfast.world.clock import Clock, IdMaker, RandomSource, SystemClock, SystemRandomSource
    from holdfast.world.commit_loop import BlockingRunner, GroupCommit
    from holdfast.world.database import Database, Transaction, Upgrade
    from holdfast.world.disk import SystemDisk, make_private
    from holdfast.world.errors import disk_failure
    from holdfast.world.file_replacement import remove_leftovers, replace_file, write_all
    from holdfast.world.files_beneath import DirectoryItem, FileType, OpenMode, Root, open_linkless
    from holdfast.world.journal import Journal
    from holdfast.world.journal_format import Damage, Encoded, Repairs, accept_record, encode_record
    from holdfast.world.journal_reader import (
        Bookmark,
        JournalEntry,
        RecordSchema,
        last_seq,
        read_journal,
    )
    from holdfast.world.openat2 import open_in_root
    from holdfast.world.ports import Disk, FileStatus, OpenFile
    from holdfast.world.processes import (
        END_LONGEST,
        MARK,
        SERVICE,
        IsMember,
        SweepResult,
        SystemProcess,
        agents,
        command_of,
        end_members,
        environment_of,
        is_service,
        limit_number,
        members,
        signal_exactly,
        sweep,
        system_process,
        system_processes,
    )
    from holdfast.world.questions import PendingReplies
    from holdfast.world.retries import RetryWait, retrying
    from holdfast.world.schema import Schema
    from holdfast.world.tasks import background_tasks, in_worker
    from holdfast.world.writer_loop import WriterThread, in_thread

__all__ = [
    "END_LONGEST",
    "MARK",
    "SERVICE",
    "BatchQueue",
    "BlockingRunner",
    "Bookmark",
    "Clock",
    "Damage",
    "Database",
    "DirectoryItem",
    "Disk",
    "Encoded",
    "FileStatus",
    "FileType",
    "GroupCommit",
    "IdMaker",
    "IsMember",
    "Journal",
    "JournalEntry",
    "OpenFile",
    "OpenMode",
    "PendingReplies",
    "RandomSource",
    "RecordSchema",
    "Repairs",
    "RetryWait",
    "Root",
    "Schema",
    "SweepResult",
    "SystemClock",
    "SystemDisk",
    "SystemProcess",
    "SystemRandomSource",
    "Transaction",
    "Upgrade",
    "WriterThread",
    "accept_record",
    "agents",
    "background_tasks",
    "command_of",
    "disk_failure",
    "encode_record",
    "end_members",
    "environment_of",
    "in_thread",
    "in_worker",
    "is_service",
    "last_seq",
    "limit_number",
    "make_private",
    "members",
    "open_in_root",
    "open_linkless",
    "read_journal",
    "remove_leftovers",
    "replace_file",
    "retrying",
    "signal_exactly",
    "sweep",
    "system_process",
    "system_processes",
    "write_all",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "Bookmark": "journal_reader",
        "RandomSource": "clock",
        "Clock": "clock",
        "Damage": "journal_format",
        "Database": "database",
        "Disk": "ports",
        "Encoded": "journal_format",
        "DirectoryItem": "files_beneath",
        "FileStatus": "ports",
        "GroupCommit": "commit_loop",
        "IdMaker": "clock",
        "BatchQueue": "batch_queue",
        "Journal": "journal",
        "JournalEntry": "journal_reader",
        "END_LONGEST": "processes",
        "MARK": "processes",
        "SERVICE": "processes",
        "OpenFile": "ports",
        "OpenMode": "files_beneath",
        "PendingReplies": "questions",
        "RecordSchema": "journal_reader",
        "Repairs": "journal_format",
        "Root": "files_beneath",
        "BlockingRunner": "commit_loop",
        "Schema": "schema",
        "FileType": "files_beneath",
        "SystemRandomSource": "clock",
        "SystemClock": "clock",
        "SystemDisk": "disk",
        "SystemProcess": "processes",
        "Transaction": "database",
        "Upgrade": "database",
        "WriterThread": "writer_loop",
        "in_thread": "writer_loop",
        "is_service": "processes",
        "in_worker": "tasks",
        "last_seq": "journal_reader",
        "limit_number": "processes",
        "accept_record": "journal_format",
        "command_of": "processes",
        "background_tasks": "tasks",
        "disk_failure": "errors",
        "encode_record": "journal_format",
        "environment_of": "processes",
        "make_private": "disk",
        "open_in_root": "openat2",
        "open_linkless": "files_beneath",
        "read_journal": "journal_reader",
        "RetryWait": "retries",
        "retrying": "retries",
        "remove_leftovers": "file_replacement",
        "replace_file": "file_replacement",
        "signal_exactly": "processes",
        "sweep": "processes",
        "members": "processes",
        "end_members": "processes",
        "agents": "processes",
        "SweepResult": "processes",
        "IsMember": "processes",
        "system_process": "processes",
        "system_processes": "processes",
        "write_all": "file_replacement",
    },
)
