"""Time, chance, disk, journal: what the program cannot decide by itself."""

from holdfast.world.beneath import Entry, Opening, Root, Sort
from holdfast.world.chance import Chance, IdMaker, SystemChance
from holdfast.world.clock import Clock, SystemClock
from holdfast.world.database import Database, Transaction, Upgrade
from holdfast.world.retrying import Waiting, retrying

__all__ = [
    "Chance",
    "Clock",
    "Database",
    "Entry",
    "IdMaker",
    "Opening",
    "Root",
    "Sort",
    "SystemChance",
    "SystemClock",
    "Transaction",
    "Upgrade",
    "Waiting",
    "retrying",
]
