"""A report says what became of every path, and nothing in it can do harm."""

from __future__ import annotations

from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.nouns import RelativePath
from holdfast.workbench.model import EntryKind, PathChange, PathEntry, change_kind
from holdfast.workbench.operations.report_page import (
    FILES_MAX,
    OperationReport,
    report_page,
    report_record,
)
from tests.workbench.pages import record_in

OLD = PathEntry(EntryKind.FILE, 0o644, b"o" * 32, size=3)
NEW = PathEntry(EntryKind.FILE, 0o644, b"n" * 32, size=5)
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PATH = RelativePath.of("a.txt")
HOSTILE = RelativePath.of(b"<script>alert(1)</script>\x1b[31m\xff".replace(b"/", b"_"))


class Seen(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.references: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.references += [name for name, _ in attrs if name in {"href", "src", "onclick"}]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize(
    ("before", "after", "deed"),
    [
        (None, NEW, "added"),
        (OLD, None, "deleted"),
        (OLD, NEW, "changed"),
        (OLD, PathEntry(EntryKind.FILE, 0o755, b"o" * 32), "mode"),
        (OLD, PathEntry(EntryKind.LINK, 0o777, target=b"x"), "changed"),
    ],
)
def test_a_deed_has_a_word(before: PathEntry | None, after: PathEntry | None, deed: str) -> None:
    assert change_kind(before, after) == deed


def test_a_report_for_a_program() -> None:
    report = OperationReport(
        deed="publish",
        at=AT,
        project="/p",
        key="k",
        draft="dr_1",
        checkpoint="cp_1",
        files=(PathChange(PATH, OLD, NEW),),
        remarks=((PATH, "forced"), (HOSTILE, "conflict")),
        kept=("The draft is kept.",),
    )
    assert report_record(report) == {
        "schema": 1,
        "type": "report",
        "deed": "publish",
        "at": "2026-01-02T03:04:05+00:00",
        "project": "/p",
        "key": "k",
        "draft": "dr_1",
        "checkpoint": "cp_1",
        "files": [
            {
                "path": "a.txt",
                "deed": "changed",
                "sizeBefore": 3,
                "sizeAfter": 5,
                "remark": "forced",
            }
        ],
        "filesCount": 1,
        "remarks": [
            {"path": "a.txt", "remark": "forced"},
            {"path": str(HOSTILE), "remark": "conflict"},
        ],
        "kept": ["The draft is kept."],
        "error": None,
    }


@pytest.mark.promise("S2")
def test_a_report_of_a_failure_says_what_to_do() -> None:
    failure = {
        "code": "CONFLICT_PUBLISHED_CHANGED",
        "title": "The project changed meanwhile",
        "userMessage": "Nothing was published: <b> changed.",
        "phase": "publish",
        "actions": ["merge_into_draft", "force"],
    }
    report = OperationReport(
        deed="publish",
        at=AT,
        project="/p",
        failure=failure,
        remarks=((HOSTILE, "changed in the project"),),
        kept=("The draft is kept.",),
    )
    seen = Seen(report_page(report))
    for words in (
        "The project changed meanwhile",
        "Nothing was published: <b> changed.",
        "merge into draft, or force",
        "CONFLICT_PUBLISHED_CHANGED",
        str(HOSTILE),
        "The draft is kept.",
    ):
        assert words in seen.text
    assert "script" not in seen.elements


texts = st.text(max_size=30)
paths = (
    st.binary(min_size=1, max_size=30)
    .filter(lambda raw: b"/" not in raw and b"\0" not in raw and raw not in {b".", b".."})
    .map(RelativePath.of)
)


@pytest.mark.promise("T6")
@given(texts, texts, paths, texts)
def test_whatever_stands_in_it_is_only_text(
    project: str, kept: str, path: RelativePath, remark: str
) -> None:
    report = OperationReport(
        deed="restore",
        at=AT,
        project=project,
        files=(PathChange(path, None, NEW),),
        remarks=((path, remark),),
        failure={"title": kept, "userMessage": project, "code": remark, "phase": "<i>"},
        kept=(kept,),
    )
    page = report_page(report)
    seen = Seen(page)
    assert record_in(page) == report_record(report)
    allowed = {"html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "strong"}
    allowed |= {"table", "tr", "th", "td", "code", "ul", "li", "details", "summary", "pre"}
    assert set(seen.elements) <= allowed
    assert seen.references == []


def test_a_report_is_bounded_and_counts_what_it_leaves_out() -> None:
    files = tuple(
        PathChange(RelativePath.of(f"f{number}"), None, NEW) for number in range(FILES_MAX + 7)
    )
    report = OperationReport(deed="publish", at=AT, project="/p", files=files)
    record = report_record(report)
    assert record["filesCount"] == FILES_MAX + 7
    assert "7 more are not listed here." in report_page(report)
    assert len(report_page(report)) < 2_000_000
