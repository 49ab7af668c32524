"""A draft of a session is fresh before a turn, and can be gone back to after it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.host.draft import WorkbenchDraft
from holdfast.host.journal import JOURNAL, SessionJournal
from holdfast.host.model import PromptQueued, TurnClosed
from holdfast.host.ports import PublishResult
from holdfast.nouns import RelativePath
from holdfast.runners.model import TurnEnding
from holdfast.workbench import (
    NewFile,
    Workbench,
    apply,
    discard,
    enter_draft,
    list_drafts,
    open_draft,
)
from holdfast.workbench.model import DraftMode
from holdfast.world import SystemDisk, WriterThread
from holdfast.world.testing import run_inline

pytestmark = pytest.mark.anyio


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "file").write_text("old")
    bench = Workbench.at(tmp_path / "project", tmp_path / "state")
    yield bench
    for draft in list_drafts(bench):
        discard(bench, draft.id)


def workshop_of(bench: Workbench, draft: str, thread: WriterThread) -> WorkbenchDraft:
    home = bench.project.parent
    return WorkbenchDraft(bench.project, home / "state", draft, thread, home)


async def test_what_a_turn_has_changed_is_a_revision(bench: Workbench) -> None:
    draft = open_draft(bench, DraftMode.COPY)
    with WriterThread() as thread:
        workshop = workshop_of(bench, draft.id, thread)
        await workshop.prepare()
        (bench.project / "theirs").write_text("new")
        await workshop.prepare()
        with enter_draft(bench, draft.id) as entered:
            assert (entered.directory / "theirs").read_text() == "new"
            (entered.directory / "file").write_text("ours")
        made = await workshop.revise("turn 1")
        again = await workshop.revise("turn 2")

    assert made is not None
    assert again is None
    (found,) = list_drafts(bench)
    assert (found.revisions[-1].number, found.revisions[-1].checkpoint) == made
    assert (bench.project / "file").read_text() == "old"


@pytest.mark.promise("R8")
async def test_what_a_turn_has_changed_in_batches_only_is_a_revision(bench: Workbench) -> None:
    """As the file tools of our own agent do: each call leaves a revision of its own."""
    draft, directory = open_draft(bench, DraftMode.COPY), bench.project.parent
    book = SessionJournal.open(SystemDisk(), directory / JOURNAL, name="s", run=run_inline)
    with WriterThread() as thread:
        workshop = workshop_of(bench, draft.id, thread)
        await workshop.prepare()
        untouched = await workshop.revise("turn 0")
        await book.write(PromptQueued("c1", 1, "Do", 0))
        for name in ("one", "two"):
            apply(bench, draft.id, [NewFile(RelativePath.of(name), b"new", 0o644)], f"key {name}")
        made = await workshop.revise("turn 1")
        again = await workshop.revise("turn 1")
        await workshop.report(TurnClosed(1, TurnEnding.COMPLETED, 1), made)
        await workshop.prepare()
        idle = await workshop.revise("turn 2")
    book.close()

    assert (untouched, again, idle) == (None, None, None)
    (found,) = list_drafts(bench)
    assert made == (found.revisions[-1].number, found.revisions[-1].checkpoint)
    report = json.loads((directory / "reports" / "turn-1.json").read_text())
    assert [each["path"] for each in report["files"]] == ["one", "two"]


@pytest.mark.promise("R8")
async def test_what_is_published_under_a_key_is_published_once(bench: Workbench) -> None:
    draft = open_draft(bench, DraftMode.COPY)
    with WriterThread() as thread:
        workshop = workshop_of(bench, draft.id, thread)
        await workshop.prepare()
        nothing = await workshop.publish("s1/1")
        with enter_draft(bench, draft.id) as entered:
            (entered.directory / "file").write_text("ours")
        first = await workshop.publish("s1/2")
        (bench.project / "file").write_text("the person's")
        again = await workshop.publish("s1/2")

    assert nothing == PublishResult(0, None)
    assert (first.paths, first.checkpoint is None, again) == (1, False, first)
    assert (bench.project / "file").read_text() == "the person's"


@pytest.mark.promise("W13")
async def test_what_git_ignores_is_published_in_place_only_if_that_is_settled(
    bench: Workbench,
) -> None:
    draft, home = open_draft(bench, DraftMode.COPY), bench.project.parent
    is_wanted = [False]
    with WriterThread() as thread:
        workshop = WorkbenchDraft(
            bench.project, home / "state", draft.id, thread, home, with_ignored=is_wanted.pop
        )
        with enter_draft(bench, draft.id) as entered:
            (entered.directory / ".gitignore").write_text("*.pyc")
            (entered.directory / "x.pyc").write_text("x")
        without = await workshop.publish("s1/1")
        assert not (bench.project / "x.pyc").exists()
        is_wanted.append(True)
        whole = await workshop.publish("s1/2")

    assert (without.paths, whole.paths) == (1, 1)
    assert (bench.project / "x.pyc").exists()


@pytest.mark.promise("S3")
async def test_a_report_names_what_the_draft_says_was_touched(bench: Workbench) -> None:
    draft, directory = open_draft(bench, DraftMode.COPY), bench.project.parent
    book = SessionJournal.open(SystemDisk(), directory / JOURNAL, name="s", run=run_inline)
    with WriterThread() as thread:
        workshop = workshop_of(bench, draft.id, thread)
        for turn, name in enumerate(("new", "file"), start=1):
            await workshop.prepare()
            await book.write(PromptQueued(f"c{turn}", turn, "Do", 0))
            with enter_draft(bench, draft.id) as entered:
                (entered.directory / name).write_text("ours")
            made = await workshop.revise(f"turn {turn}")
            await workshop.report(TurnClosed(turn, TurnEnding.COMPLETED, 1), made)
    book.close()

    reports = [
        json.loads((directory / "reports" / f"turn-{turn}.json").read_text()) for turn in (1, 2)
    ]
    assert [each["files"] for each in reports] == [
        [{"path": "new", "deed": "added"}],
        [{"path": "file", "deed": "changed"}],
    ]
