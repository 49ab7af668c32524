"""What was seen of a place is remembered for this place alone."""

from __future__ import annotations

from holdfast.workbench.objects.formats import Totals
from holdfast.workbench.objects.index import DirectoryRecord, Index

KNOWN = DirectoryRecord(b"n" * 32, Totals(1, 2, 3), b"sight", is_racy=False)


def test_what_is_known_of_a_place_is_its_own(index: Index) -> None:
    racy = KNOWN._replace(is_racy=True)
    with index.writing() as rows:
        sights = rows.stat_cache
        sights.note("one", [(b"", KNOWN), (b"a", racy), (b"a/b", KNOWN), (b"a-", racy)])
        sights.note("two", [(b"a", racy)])
        sights.forget("one", b"a")

        assert [sights.known("one", way) for way in (b"", b"a", b"a/b", b"a-")] == [
            KNOWN,
            None,
            None,
            racy,
        ]
        assert sights.all("one") == {b"": KNOWN, b"a-": racy}
        assert sights.racy("one") == [b"a-"]
        assert sights.racy("two") == [b"a"]
