"""A draft is there whole or not at all, and of a removed one nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.confine import find, places
from holdfast.confine.failures import PlaceUnavailable
from holdfast.nouns import Id
from holdfast.workbench.draft.drafts import Drafts
from holdfast.workbench.draft.view import open_view
from holdfast.workbench.failures import (
    DraftDamaged,
    DraftMissing,
    ProjectRefused,
    ReflinkUnavailable,
    WorktreeUncovered,
)
from holdfast.workbench.model import DraftMode, Revision, WorkProgress
from tests.workbench.drafting_table import drafting, mounts_below, opened, run
from tests.workbench.git.test_repository_worktrees import git, repository

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such drafts"),
    pytest.mark.timeout(method="signal"),  # no thread beside us: we fork
]


@pytest.fixture
def drafts(tmp_path: Path) -> Iterator[Drafts]:
    with drafting(tmp_path) as made:
        yield made


def left_of(drafts: Drafts) -> tuple[list[str], list[bytes], list[str]]:
    """What is left of all drafts: files, mounts and processes."""
    base = drafts.directory.parent.parent
    living = [each.holder.directory for each in places()]
    names = sorted(os.listdir(drafts.directory)) if drafts.directory.exists() else []
    return (
        names,
        mounts_below(base),
        [each for each in living if Path(each).is_relative_to(base)],
    )


NOTHING: tuple[list[str], list[bytes], list[str]] = ([], [], [])


@pytest.mark.parametrize("mode", [DraftMode.OVERLAY, DraftMode.COPY])
def test_a_draft_is_made_found_saved_and_removed(drafts: Drafts, mode: DraftMode) -> None:
    made = drafts.make(mode)
    again = opened(drafts.directory.parent.parent, drafts.project)
    assert (again.all(), again.find(), again.find(made.id)) == ((made,), made, made)

    base = replace(
        made,
        base=Id("cp_1"),
        revisions=(Revision(number=1, checkpoint=Id("cp_2"), at_ms=3, cause="x"),),
    )
    again.save(base)
    assert drafts.all() == (base,)

    drafts.remove(base)
    assert left_of(drafts) == NOTHING
    assert drafts.all() == ()


def test_the_best_way_is_taken_and_a_better_one_explained(
    drafts: Drafts, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (drafts.make().mode, drafts.make().reason) == (DraftMode.OVERLAY, "")
    monkeypatch.setattr(sys, "platform", "darwin")

    made = drafts.make()

    assert made.mode is DraftMode.COPY  # no test machine may count on reflinks
    assert "overlay: " in made.reason
    assert "only Linux has such views" in made.reason
    assert "reflink: " in made.reason


def test_a_mode_that_was_asked_for_is_that_or_nothing(
    drafts: Drafts, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sys, "platform", "darwin")
        with pytest.raises(PlaceUnavailable):
            drafts.make(DraftMode.OVERLAY)
    try:
        drafts.remove(drafts.make(DraftMode.REFLINK))
    except ReflinkUnavailable as failure:
        assert failure.project == str(drafts.project)

    assert left_of(drafts) == NOTHING


def test_a_draft_is_known_by_the_beginning_of_its_name(drafts: Drafts) -> None:
    first, second = drafts.make(DraftMode.COPY), drafts.make(DraftMode.COPY)

    assert drafts.all() == (first, second)
    assert drafts.find() == second
    for spelled in (first.id, first.id.removeprefix("draft_"), first.id[:-1]):
        assert drafts.find(spelled) == first
    for nobody in ("", "draft_", "draft_7zz", "x", "../x"):
        with pytest.raises(DraftMissing) as raised:
            drafts.find(nobody)
        assert raised.value.draft == nobody


def test_where_there_is_no_draft_none_is_found(tmp_path: Path) -> None:
    drafts = opened(tmp_path, tmp_path)

    assert drafts.all() == ()
    with pytest.raises(DraftMissing):
        drafts.find()


def test_several_drafts_of_one_project_do_not_see_each_other(drafts: Drafts) -> None:
    views = [
        open_view(drafts, drafts.make(mode)) for mode in (*[DraftMode.OVERLAY] * 3, DraftMode.COPY)
    ]
    for number, view in enumerate(views):
        os.close(os.open(f"of-{number}", os.O_CREAT | os.O_WRONLY, dir_fd=view.root))
    for number, view in enumerate(views):
        with view:
            names = [name for name in os.listdir(view.root) if name.startswith("of-")]
            assert names == [f"of-{number}"]
    assert sorted(os.listdir(drafts.project)) == ["d", "f", "link"]


def test_nothing_that_we_keep_is_seen_inside(drafts: Drafts) -> None:
    state, made = drafts.directory.parent, drafts.make(DraftMode.OVERLAY)
    (state / "wb.db").write_text("the store")
    with open_view(drafts, made) as view:
        assert view.place is not None
        said = run(view.place, f"ls -A {state} 2>&1 || true", cwd=drafts.project)

    assert "wb.db" not in said


def test_a_record_that_is_spoiled_is_told_and_nothing_is_removed(drafts: Drafts) -> None:
    good, bad, none = (drafts.make(DraftMode.COPY) for _ in range(3))
    (drafts.home(bad) / "draft.json").write_text("{")
    (drafts.home(none) / "draft.json").unlink()

    again = opened(drafts.directory.parent.parent, drafts.project)

    assert again.all() == (good,)
    assert [each.draft for each in again.damaged()] == [bad.id, none.id]
    with pytest.raises(DraftDamaged):
        again.find(bad.id)
    assert (drafts.copy_of(bad) / "f").exists()
    again.remove(bad)
    again.remove(none)
    assert sorted(os.listdir(drafts.directory)) == [good.id]


def test_a_record_of_another_draft_is_not_believed(drafts: Drafts) -> None:
    one, two = drafts.make(DraftMode.COPY), drafts.make(DraftMode.COPY)
    (drafts.home(two) / "draft.json").write_bytes((drafts.home(one) / "draft.json").read_bytes())

    with pytest.raises(DraftDamaged):
        drafts.find()


def test_everyone_inside_ends_with_the_draft(drafts: Drafts) -> None:
    made = drafts.make(DraftMode.OVERLAY)
    with open_view(drafts, made) as view:
        assert view.place is not None
        run(view.place, "setsid sleep 100 > /dev/null 2>&1 & true", cwd=drafts.project)
        assert view.processes == 1

        drafts.remove(made)

        assert view.place.is_lost
    assert left_of(drafts) == NOTHING
    drafts.remove(made)  # it is removed already


def test_a_worktree_is_covered_with_its_repository(tmp_path: Path, drafts: Drafts) -> None:
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", "../tree")
    head = git(main, "for-each-ref")
    of_tree = opened(tmp_path, tmp_path / "tree")
    made = of_tree.make(DraftMode.OVERLAY)
    assert made.also == (str(main / ".git"),)
    with open_view(of_tree, made) as view:
        assert view.place is not None
        commit = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m drafted"
        settled = "git config --global --add safe.directory '*'"
        said = run(
            view.place,
            f"export HOME=/tmp/{made.id}; mkdir $HOME; {settled}; {commit} && git log --format=%s;"
            "rm -r $HOME",
            cwd=tmp_path / "tree",
        )
        assert said == "drafted\nfirst\n"
        (main / ".git" / "later").write_text("")
        view.refresh()
    assert git(main, "for-each-ref") == head
    with pytest.raises(WorktreeUncovered) as raised:
        of_tree.make(DraftMode.COPY)
    assert raised.value.outside == str(main / ".git")


def test_a_copy_that_would_share_a_repository_is_refused(drafts: Drafts) -> None:
    main = drafts.project / "main"
    repository(main)
    git(main, "worktree", "add", "-q", "../tree")

    with pytest.raises(WorktreeUncovered) as raised:
        drafts.make(DraftMode.COPY)

    assert raised.value.outside == str(main / ".git" / "worktrees" / "tree")
    assert left_of(drafts) == NOTHING


def test_what_can_have_no_draft_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    drafts = opened(tmp_path, tmp_path)
    with pytest.raises(ProjectRefused):
        drafts.make()
    assert list(tmp_path.iterdir()) == []


def test_somebody_is_told_how_far_a_copy_has_come(drafts: Drafts) -> None:
    for number in range(2100):
        (drafts.project / f"{number}").write_text("")
    heard: list[WorkProgress] = []

    drafts.make(DraftMode.COPY, on_progress=heard.append)

    assert heard == [WorkProgress("copy", 1000), WorkProgress("copy", 2000)]


_MAKE_AND_REMOVE = """
import sys
from pathlib import Path
from holdfast.workbench.model import DraftMode
from tests.workbench.drafting_table import opened
drafts = opened(Path(sys.argv[1]), Path(sys.argv[2]))
print("go", flush=True)
while True:
    made = drafts.make(DraftMode(sys.argv[3]))
    (drafts.home(made) / "x" / "y" / "z").mkdir(parents=True)
    drafts.remove(made)
"""


@pytest.mark.parametrize("mode", [DraftMode.OVERLAY, DraftMode.COPY])
def test_killed_at_any_moment_a_draft_is_whole_or_gone(
    drafts: Drafts, tmp_path: Path, mode: DraftMode
) -> None:
    for number in range(50):
        (drafts.project / "d" / f"{number}").write_text("content")
    names = sorted(path.name for path in (drafts.project / "d").iterdir())
    command = [sys.executable, "-c", _MAKE_AND_REMOVE, tmp_path, drafts.project, mode]
    met: set[str] = set()
    for round in range(12):
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=_environment()) as killed:
            assert killed.stdout is not None
            killed.stdout.readline()
            with pytest.raises(subprocess.TimeoutExpired):
                killed.wait(0.003 * (round + 1) ** 1.5)
            killed.send_signal(signal.SIGKILL)
        met |= {name[:5] for name in left_of(drafts)[0]}
        again = opened(tmp_path, drafts.project)
        assert again.damaged() == ()
        assert [name for name in left_of(drafts)[0] if name.startswith(".")] == []
        for each in again.all():
            with open_view(again, each) as view:
                below = os.open("d", os.O_RDONLY, dir_fd=view.root)
                assert sorted(os.listdir(below)) == names
                os.close(below)
            again.remove(each)
        assert left_of(drafts) == NOTHING
    assert met, "it was never met at work"


def _environment() -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path)}


def test_the_holder_of_a_killed_maker_is_found(drafts: Drafts, tmp_path: Path) -> None:
    made = drafts.make(DraftMode.OVERLAY)
    again = opened(tmp_path, drafts.project)
    place = find(drafts.spec(made).directory)
    assert place is not None
    with place, open_view(again, made) as view:
        assert view.place is not None
        assert view.place.holder == place.holder


def test_a_project_may_be_reached_by_a_link(drafts: Drafts, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(drafts.project)
    linked = opened(tmp_path, tmp_path / "link")
    with open_view(linked, linked.make()) as view:
        assert sorted(os.listdir(view.root)) == ["d", "f", "link"]
    assert drafts.find().project == str(drafts.project)
