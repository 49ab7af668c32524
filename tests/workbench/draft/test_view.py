"""A view shows a draft as those inside see it, and tells exactly what was written."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.confine import end
from holdfast.confine.failures import PlaceLost
from holdfast.nouns import RelativePath
from holdfast.workbench.draft.drafts import Drafts
from holdfast.workbench.draft.view import DraftView, open_view
from holdfast.workbench.model import STAGE_PREFIX, DraftMode, TouchedPaths
from holdfast.workbench.store.store import CheckpointSource, Store
from tests.workbench.drafting_table import drafting, run
from tests.workbench.scribbling import furnish, scribble

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such drafts"),
    pytest.mark.timeout(method="signal"),  # no thread beside us: we fork
]


@pytest.fixture
def drafts(tmp_path: Path) -> Iterator[Drafts]:
    with drafting(tmp_path) as made:
        yield made


@pytest.fixture
def view(drafts: Drafts) -> Iterator[DraftView]:
    with open_view(drafts, drafts.make(DraftMode.OVERLAY)) as opened:
        yield opened


def sh(drafts: Drafts, view: DraftView, script: str) -> str:
    assert view.place is not None
    return run(view.place, script, cwd=drafts.project)


def read(view: DraftView, name: str) -> str | None:
    try:
        with open(os.open(name, os.O_RDONLY, dir_fd=view.root)) as file:
            return file.read()
    except FileNotFoundError:
        return None


def paths(*names: str) -> frozenset[RelativePath]:
    return frozenset(map(RelativePath.of, names))


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("true", TouchedPaths()),
        ("cat f d/g; ls -R; test -e nothing || true", TouchedPaths()),
        ("echo more >> f", TouchedPaths(paths("f"))),
        ("chmod 600 f", TouchedPaths(paths("f"))),
        ("rm f", TouchedPaths(paths("f"))),
        ("mv f moved", TouchedPaths(paths("f", "moved"))),
        ("ln -sf elsewhere link", TouchedPaths(paths("link"))),
        ("mkdir new; echo n > new/n", TouchedPaths(paths("new", "new/n"))),
        ("rm -r d", TouchedPaths(paths("d"))),
        ("rm -r d; mkdir d; echo n > d/n", TouchedPaths(whole=paths("d"))),
        ("rm -r d; echo n > d", TouchedPaths(paths("d"))),
        ("echo n >> d/deep/h", TouchedPaths(paths("d", "d/deep", "d/deep/h"))),
        ("mkfifo fifo; ln f hard", TouchedPaths(paths("fifo", "f", "hard"))),
        ("mv d/deep d/moved", TouchedPaths(paths("d", "d/deep", "d/moved", "d/moved/h"))),
        ("touch new; rm new; mkdir made; rmdir made", TouchedPaths()),
        (f"mkdir {STAGE_PREFIX}x; echo n > {STAGE_PREFIX}x/0", TouchedPaths()),
        ("mkdir -m 1755 .claude", TouchedPaths(paths(".claude"))),
    ],
)
def test_what_was_written_is_told(
    drafts: Drafts, view: DraftView, script: str, expected: TouchedPaths
) -> None:
    sh(drafts, view, script)

    assert view.touched() == expected


def test_what_is_written_by_its_root_is_seen_inside_and_not_in_the_project(
    drafts: Drafts, view: DraftView
) -> None:
    written = os.open("new", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=view.root)
    os.write(written, b"by us")
    os.close(written)

    assert sh(drafts, view, "cat new") == "by us"
    assert not (drafts.project / "new").exists()
    assert view.touched() == TouchedPaths(paths("new"))


def test_what_a_person_does_is_seen_after_a_refresh(drafts: Drafts, view: DraftView) -> None:
    sh(drafts, view, "cat f d/g; test -e new || ls -R")
    assert sorted(os.listdir(view.root)) == ["d", "f", "link"]
    (drafts.project / "swap").write_text("saved")
    (drafts.project / "swap").rename(drafts.project / "f")
    (drafts.project / "new").write_text("made")
    (drafts.project / "d").rename(drafts.project / "moved")
    (drafts.project / "link").unlink()

    view.refresh()

    assert sh(drafts, view, "cat f new moved/g; ls -R") == (
        "savedmadeg.:\nf\nmoved\nnew\n\n./moved:\ndeep\ng\n\n./moved/deep:\nh\n"
    )
    assert sorted(os.listdir(view.root)) == ["f", "moved", "new"]
    assert view.touched() == TouchedPaths()


def test_what_somebody_holds_on_to_is_told(drafts: Drafts, view: DraftView) -> None:
    held = os.open("f", os.O_RDONLY, dir_fd=view.root)
    (drafts.project / "swap").write_text("saved")
    (drafts.project / "swap").rename(drafts.project / "f")
    (drafts.project / "d" / "g").write_text("edited")
    asked = paths("f", "d/g", "d", "link", "nothing", "link/through")

    view.refresh()
    assert (view.stale(asked), read(view, "f")) == (paths("f"), "f")

    os.close(held)
    view.refresh()
    assert (view.stale(asked), read(view, "f")) == (paths(), "saved")


def test_a_place_whose_holder_died_is_made_anew(drafts: Drafts, view: DraftView) -> None:
    sh(drafts, view, "echo n > new")
    assert view.place is not None
    assert view.place.holder is not None
    os.kill(view.place.holder.pid, signal.SIGKILL)
    end(view.place.holder.directory)
    with pytest.raises(PlaceLost):
        view.refresh()

    with open_view(drafts, drafts.find()) as again:
        assert read(again, "new") == "n\n"
        assert again.touched() == TouchedPaths(paths("new"))


def test_a_layer_is_emptied_when_nobody_is_inside(drafts: Drafts, view: DraftView) -> None:
    sh(drafts, view, "echo n > new; rm -r d; chmod 600 f; mkdir closed; chmod 0 closed")
    (drafts.project / "new").write_text("published")
    view.touched()
    assert view.place is not None

    assert view.clear()

    assert view.place.is_lost
    assert not (Path(drafts.spec(drafts.find()).directory) / "old-upper").exists()
    with open_view(drafts, drafts.find()) as again:
        assert sorted(os.listdir(again.root)) == ["d", "f", "link", "new"]
        assert (read(again, "new"), again.touched()) == ("published", TouchedPaths())
        assert sh(drafts, again, "cat new") == "published"


@pytest.mark.parametrize(
    ("written", "is_large"),
    [
        ("echo n > new", False),
        ("mkdir many; cd many; seq 998 | xargs touch", False),
        ("mkdir many; cd many; seq 999 | xargs touch", True),
        ("truncate -s 64M large", True),
    ],
)
def test_a_layer_is_large_by_its_names_or_its_bytes(
    drafts: Drafts, view: DraftView, written: str, is_large: bool
) -> None:
    assert not view.is_large  # nobody has looked at it yet
    sh(drafts, view, written)
    view.touched()

    assert view.is_large == is_large


def test_a_layer_stays_while_somebody_is_inside(drafts: Drafts, view: DraftView) -> None:
    sh(drafts, view, "echo n > new; setsid sleep 100 > /dev/null 2>&1 & true")
    view.touched()

    assert (view.processes, view.clear()) == (1, False)
    assert read(view, "new") == "n\n"


@pytest.mark.parametrize("late", ["echo l > late", "echo changed > new", "rm new", "touch new"])
def test_a_layer_that_was_written_to_meanwhile_stays(
    drafts: Drafts, view: DraftView, late: str
) -> None:
    assert not view.clear()  # nobody has looked at it yet
    sh(drafts, view, "echo n > new")
    view.touched()
    sh(drafts, view, late)
    before = sh(drafts, view, "ls; cat *new* *late* 2>/dev/null || true")

    assert not view.clear()

    with open_view(drafts, drafts.find()) as again:
        assert sh(drafts, again, "ls; cat *new* *late* 2>/dev/null || true") == before
        again.touched()
        assert again.clear()


def test_what_a_kill_left_of_an_old_layer_is_removed(drafts: Drafts, view: DraftView) -> None:
    directory = Path(drafts.spec(drafts.find()).directory)
    end(directory)
    (directory / "old-upper" / "d").mkdir(parents=True)

    with open_view(drafts, drafts.find()) as again:
        assert again.touched() == TouchedPaths()
    assert not (directory / "old-upper").exists()


def test_a_copy_is_seen_where_it_is_and_must_be_looked_at_whole(drafts: Drafts) -> None:
    made = drafts.make(DraftMode.COPY)
    with open_view(drafts, made) as view:
        view.refresh()

        assert (view.place, view.processes, view.touched(), view.clear()) == (None, 0, None, False)
        assert view.stale(paths("f")) == paths()
        os.close(os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=view.root))
    assert (drafts.copy_of(made) / "new").exists()
    assert not (drafts.project / "new").exists()


@given(
    seed=st.integers(0, 2**32), operation_numbers=st.lists(st.booleans(), min_size=1, max_size=60)
)
@settings(max_examples=15, deadline=None)
def test_what_is_told_is_all_that_differs_whatever_agent_and_person_do(
    seed: int, operation_numbers: list[bool]
) -> None:
    """The project, with what a draft is told to have touched set in, is the draft as it is seen."""
    chance = Random(seed)
    with TemporaryDirectory() as name, drafting(Path(name)) as drafts:
        furnish(drafts.project)
        with (
            Store.open(Path(name, "store")) as store,
            open_view(drafts, drafts.make(DraftMode.OVERLAY)) as view,
        ):
            root = f"/proc/self/fd/{view.root}"
            for is_agent in operation_numbers:
                scribble(root if is_agent else str(drafts.project), chance)
                if not is_agent:
                    view.refresh()
            published = store.checkpoint(CheckpointSource(drafts.project))
            told = view.touched()
            assert told is not None
            grafted = store.partial_checkpoint(
                published, CheckpointSource(Path(root), "grafted"), told
            )
            whole = store.checkpoint(CheckpointSource(Path(root), "whole"))

            assert store.changes(grafted, whole) == ()
            assert store.uncovered(grafted) == store.uncovered(whole)
        for each in drafts.all():
            drafts.remove(each)
