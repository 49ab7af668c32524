"""Checkpoints are known by their ids, and what was pruned does not come back."""

from __future__ import annotations

from holdfast.workbench.objects.index import Index
from holdfast.workbench.objects.segments import Location

NAME, OTHER = b"n" * 32, b"o" * 32


def test_checkpoints_come_the_newest_first(index: Index) -> None:
    with index.writing() as rows:
        roster = rows.checkpoints
        roster.add("cp_1", NAME)
        roster.add("cp_3", NAME)
        roster.add("cp_2", OTHER)

        assert roster.find("cp_1") == NAME
        assert roster.find("cp_4") is None
        assert roster.all() == [("cp_3", NAME), ("cp_2", OTHER), ("cp_1", NAME)]
        assert roster.newest(2) == [("cp_3", NAME), ("cp_2", OTHER)]
        assert roster.count() == 3


def test_what_was_pruned_is_remembered_while_it_stands_somewhere(index: Index) -> None:
    with index.writing() as rows:
        roster = rows.checkpoints
        roster.add("cp_1", NAME)
        roster.add("cp_2", OTHER)
        rows.add_objects({NAME: Location(1, 16, 5, 69), OTHER: Location(2, 16, 5, 69)})
        roster.prune([NAME, OTHER])
        roster.prune([NAME])

        assert roster.all() == []
        assert roster.pruned() == [NAME, OTHER]
        rows.forget_segment(1)
        assert roster.pruned() == [OTHER]
