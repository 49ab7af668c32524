"""Time, chance, disk, journal: what the program cannot decide by itself.

What it offers is loaded when it is first asked for: not everyone needs all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import face

# At once: a module of the same name would stand in its way later.
from holdfast.world.retrying import Waiting, retrying

if TYPE_CHECKING:
    from holdfast.world.accompanying import companions
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
    from holdfast.world.inbox import Inbox
    from holdfast.world.journal import Journal
    from holdfast.world.linkless import open_linkless
    from holdfast.world.openat2 import open_in_root
    from holdfast.world.ports import Disk, FileStatus, OpenFile
    from holdfast.world.private import make_private
    from holdfast.world.process_marks import (
        END_LONGEST,
        MARK,
        SERVICE,
        Ended,
        IsMember,
        agents,
        end_members,
        is_service,
        members,
        sweep,
    )
    from holdfast.world.processes import (
        SystemProcess,
        command_of,
        environment_of,
        limit_number,
        signal_exactly,
        system_process,
        system_processes,
    )
    from holdfast.world.questions import Questions
    from holdfast.world.reading import (
        Bookmark,
        JournalEntry,
        RecordSchema,
        last_seq,
        read_journal,
    )
    from holdfast.world.replace import remove_leftovers, replace_file, write_all
    from holdfast.world.schema import Schema
    from holdfast.world.worker_threads import in_worker
    from holdfast.world.writer_loop import WriterThread, in_thread

__all__ = [
    "END_LONGEST",
    "MARK",
    "SERVICE",
    "Bookmark",
    "Chance",
    "Clock",
    "Damage",
    "Database",
    "Disk",
    "Encoded",
    "Ended",
    "Entry",
    "FileStatus",
    "GroupCommit",
    "IdMaker",
    "Inbox",
    "IsMember",
    "Journal",
    "JournalEntry",
    "OpenFile",
    "Opening",
    "Questions",
    "RecordSchema",
    "Repairs",
    "Root",
    "Runner",
    "Schema",
    "Sort",
    "SystemChance",
    "SystemClock",
    "SystemDisk",
    "SystemProcess",
    "Transaction",
    "Upgrade",
    "Waiting",
    "WriterThread",
    "accept_record",
    "agents",
    "command_of",
    "companions",
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

__getattr__ = face(
    __name__,
    {
        "Bookmark": "reading",
        "Chance": "chance",
        "Clock": "clock",
        "Damage": "core.scan",
        "Database": "database",
        "Disk": "ports",
        "Encoded": "core.records",
        "Entry": "beneath",
        "FileStatus": "ports",
        "GroupCommit": "commit_loop",
        "IdMaker": "chance",
        "Inbox": "inbox",
        "Journal": "journal",
        "JournalEntry": "reading",
        "END_LONGEST": "process_marks",
        "MARK": "process_marks",
        "SERVICE": "process_marks",
        "OpenFile": "ports",
        "Opening": "beneath",
        "Questions": "questions",
        "RecordSchema": "reading",
        "Repairs": "core.opening",
        "Root": "beneath",
        "Runner": "commit_loop",
        "Schema": "schema",
        "Sort": "beneath",
        "SystemChance": "chance",
        "SystemClock": "clock",
        "SystemDisk": "disk",
        "SystemProcess": "processes",
        "Transaction": "database",
        "Upgrade": "database",
        "WriterThread": "writer_loop",
        "in_thread": "writer_loop",
        "is_service": "process_marks",
        "in_worker": "worker_threads",
        "last_seq": "reading",
        "limit_number": "processes",
        "accept_record": "core.records",
        "command_of": "processes",
        "companions": "accompanying",
        "disk_failure": "core.system_errors",
        "encode_record": "core.records",
        "environment_of": "processes",
        "make_private": "private",
        "open_in_root": "openat2",
        "open_linkless": "linkless",
        "read_journal": "reading",
        "remove_leftovers": "replace",
        "replace_file": "replace",
        "signal_exactly": "processes",
        "sweep": "process_marks",
        "members": "process_marks",
        "end_members": "process_marks",
        "agents": "process_marks",
        "Ended": "process_marks",
        "IsMember": "process_marks",
        "system_process": "processes",
        "system_processes": "processes",
        "write_all": "replace",
    },
)
