"""A restore brings back every byte of what was kept, touches nothing else, and can be undone."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from holdfast.workbench import (
    RestoreOrder,
    checkpoint,
    checkpoints,
    compare,
    preview_restore,
    restore,
    review,
)
from holdfast.workbench.failures import (
    CheckpointMissing,
    FileReadFailed,
    RestoreConflict,
    RestoreStale,
)
from holdfast.workbench.model import Occasion
from tests.workbench.benches import PREPARED, Bench, at, disturbed, sight
from tests.workbench.drafting_table import ENV

DATE_NS = 1_000_000_000_123_456_789
GIT = shutil.which("git")


def nasty(root: Path) -> None:
    """A project with everything in it that other tools lose."""
    (root / "ignored").mkdir()
    (root / "ignored" / "deep").write_bytes(b"deep")
    (root / ".gitignore").write_bytes(b"ignored\n.env\n*.log\n")
    (root / ".gitattributes").write_bytes(b"* text=auto\n")
    (root / ".env").write_bytes(b"SECRET=1\n")
    (root / "x.log").write_bytes(b"log")
    (root / "crlf").write_bytes(b"a\r\nb\r\n")
    (root / "untracked").write_bytes(b"untracked")
    (root / "empty").mkdir()
    (root / "private").write_bytes(b"p")
    (root / "private").chmod(0o600)
    (root / "readonly").write_bytes(b"r")
    (root / "readonly").chmod(0o444)
    (root / "run").write_bytes(b"#!/bin/sh\n")
    (root / "run").chmod(0o755)
    (root / "closed").mkdir(mode=0o700)
    (root / "link").symlink_to("untracked")
    (root / "dangling").symlink_to("nowhere/at all")
    (root / "new\nline").write_bytes(b"n")
    (root / ":colon").write_bytes(b"c")
    (root / os.fsdecode(b"\xff\xfe")).write_bytes(b"bytes")
    (root / "big").write_bytes(bytes(range(256)) * 4096 * 12)  # more than is kept whole
    (root / "nested" / ".git").mkdir(parents=True)
    (root / "nested" / ".git" / "HEAD").write_bytes(b"ref: refs/heads/x\n")
    (root / "nested" / "file").write_bytes(b"nested")
    os.setxattr(root / "untracked", "user.note", b"kept")
    os.utime(root / "untracked", ns=(DATE_NS, DATE_NS))


def damage(root: Path) -> None:
    """Change, remove or retype every single thing."""
    for name in os.listdir(root):
        path = root / name
        if name == ".git":
            continue
        if path.is_symlink() or path.is_file():
            path.unlink()
            path.write_bytes(b"damaged")
        else:
            shutil.rmtree(path)
    (root / "later").write_bytes(b"later")
    (root / "empty").write_bytes(b"a file now")
    (root / "link").unlink()
    (root / "link").mkdir()
    (root / "link" / "inside").write_bytes(b"")


@pytest.mark.promise("W9")
def test_everything_comes_back_byte_for_byte(layered: Bench) -> None:
    nasty(layered.project)
    before = layered.sight()
    kept = checkpoint(layered.workbench, "before the damage")
    damage(layered.project)

    done = restore(layered.workbench, RestoreOrder(checkpoint=kept.id))

    assert layered.sight() == before
    assert done.left == ()
    assert os.stat(layered.project / "untracked").st_mtime_ns == DATE_NS


@pytest.mark.skipif(GIT is None, reason="there is no git here to compare with")
def test_a_shadow_repository_loses_what_we_bring_back(tmp_path: Path) -> None:
    project, shadow = tmp_path / "project", tmp_path / "shadow"
    project.mkdir()
    nasty(project)
    before = sight(project)
    git = [str(GIT), "--git-dir", str(shadow), "--work-tree", str(project)]
    for args in (["init", "-q"], ["add", "-A"]):
        subprocess.run([*git, *args], cwd=project, env=ENV, check=True, capture_output=True)
    damage(project)
    for args in (["clean", "-ffdq"], ["checkout-index", "-a", "-f"]):
        subprocess.run([*git, *args], cwd=project, env=ENV, check=False, capture_output=True)

    after = sight(project)

    lost = {path for path, was in before.items() if after.get(path) != was}
    assert {b".env", b"ignored/deep", b"x.log", b"private", b"crlf", b"nested/.git/HEAD"} <= lost
    assert {b"empty", b"readonly", b"untracked"} <= lost  # the last for its attribute


@pytest.mark.promise("W3")
def test_a_restore_can_be_undone_and_that_again(layered: Bench) -> None:
    first = checkpoint(layered.workbench)
    one = layered.sight()
    (layered.project / "a").write_bytes(b"later\n")
    (layered.project / "new").mkdir()
    two = layered.sight()

    there = restore(layered.workbench, RestoreOrder(checkpoint=first.id))
    assert layered.sight() == one
    back = restore(layered.workbench, RestoreOrder(checkpoint=str(there.before)))
    assert layered.sight() == two
    restore(layered.workbench, RestoreOrder(checkpoint=str(back.before)))
    assert layered.sight() == one
    occasions = [each.occasion for each in checkpoints(layered.workbench)]
    assert occasions.count(Occasion.PRE_RESTORE) == 3


def test_only_what_was_chosen_is_touched(layered: Bench) -> None:
    (layered.project / "e").mkdir()
    (layered.project / "e" / "x").write_bytes(b"x")
    kept = checkpoint(layered.workbench)
    shutil.rmtree(layered.project / "e")
    (layered.project / "a").write_bytes(b"later\n")

    only = (at("e/x"), at("nothing"))
    done = restore(layered.workbench, RestoreOrder(checkpoint=kept.id, only=only))

    assert [str(path) for path in done.paths] == ["e", "e/x"]
    assert (layered.project / "a").read_bytes() == b"later\n"


@pytest.mark.promise("W9")
def test_the_repository_stays_unless_it_is_asked_for(layered: Bench) -> None:
    kept = checkpoint(layered.workbench)
    (layered.project / ".git" / "HEAD").write_bytes(b"later")

    assert restore(layered.workbench, RestoreOrder(checkpoint=kept.id)).count == 0
    assert (layered.project / ".git" / "HEAD").read_bytes() == b"later"
    order = RestoreOrder(checkpoint=kept.id, with_git=True)
    assert restore(layered.workbench, order).count == 1
    assert (layered.project / ".git" / "HEAD").read_bytes() == b"ref: refs/heads/main\n"


@pytest.mark.promise("W9")
def test_what_is_not_covered_stays_with_its_directory(layered: Bench) -> None:
    os.mkfifo(layered.project / "before")
    kept = checkpoint(layered.workbench)
    os.mkfifo(layered.project / "later")
    (layered.project / "before").unlink()
    (layered.project / "before").write_bytes(b"something else now")
    (layered.project / "server").mkdir()
    (layered.project / "server" / "log").write_bytes(b"log")
    os.mknod(layered.project / "server" / "socket", stat.S_IFSOCK | 0o600)
    (layered.project / "a").write_bytes(b"later\n")

    done = restore(layered.workbench, RestoreOrder(checkpoint=kept.id))

    assert [str(path) for path in done.left] == ["before", "later", "server", "server/socket"]
    assert [str(path) for path in done.paths] == ["a", "server/log"]
    assert (layered.project / "before").read_bytes() == b"something else now"
    assert sorted(os.listdir(layered.project / "server")) == ["socket"]


@pytest.mark.promise("W9")
def test_what_would_be_lost_is_named_and_nothing_is_restored(layered: Bench) -> None:
    kept = checkpoint(layered.workbench)
    (layered.project / "a").unlink()
    os.mkfifo(layered.project / "a")
    (layered.project / "d" / "b").write_bytes(b"later\n")
    before = layered.sight()

    with pytest.raises(FileReadFailed) as refused:
        restore(layered.workbench, RestoreOrder(checkpoint=kept.id))

    assert refused.value.paths == ("a",)
    assert layered.sight() == before


@pytest.mark.promise("W1")
@pytest.mark.parametrize("is_before", [True, False], ids=["before the marker", "after the marker"])
def test_what_is_saved_in_the_middle_of_it_stops_it(layered: Bench, is_before: bool) -> None:
    kept = checkpoint(layered.workbench)
    (layered.project / "a").write_bytes(b"later\n")
    (layered.project / "d" / "b").unlink()
    theirs = layered.project / "a"
    workbench = disturbed(
        layered, PREPARED, lambda: theirs.write_bytes(b"saved\n"), is_before=is_before
    )

    with pytest.raises(RestoreConflict) as refused:
        restore(workbench, RestoreOrder(checkpoint=kept.id))

    assert refused.value.paths == ("a",)
    assert sorted(layered.sight()) == [b".git", b".git/HEAD", b"a", b"d"]
    assert theirs.read_bytes() == b"saved\n"


def test_said_twice_it_is_done_once(layered: Bench) -> None:
    kept = checkpoint(layered.workbench)
    (layered.project / "a").write_bytes(b"later\n")
    order = RestoreOrder(checkpoint=kept.id, key="once")
    first = restore(layered.workbench, order)
    (layered.project / "a").write_bytes(b"later still\n")

    assert restore(layered.workbench, order) == first
    assert (layered.project / "a").read_bytes() == b"later still\n"


def test_a_checkpoint_is_found_by_the_beginning_of_its_id(layered: Bench) -> None:
    kept = checkpoint(layered.workbench)

    found = restore(layered.workbench, RestoreOrder(checkpoint=kept.id.partition("_")[2][:20]))

    assert found.checkpoint == kept.id
    for nobody in ("", "cp_", "nothing"):
        with pytest.raises(CheckpointMissing):
            checkpoint(layered.workbench)
            restore(layered.workbench, RestoreOrder(checkpoint=nobody))


def test_a_draft_takes_a_restore_as_it_takes_what_the_person_does(bench: Bench) -> None:
    kept = checkpoint(bench.workbench)
    (bench.project / "a").write_bytes(b"later\n")
    bench.draft()
    bench.run("echo ours > d/b")

    restore(bench.workbench, RestoreOrder(checkpoint=kept.id))

    assert [str(each.path) for each in review(bench.workbench).files] == ["d/b"]
    assert bench.run("head -1 a") == "1\n"
    assert compare(bench.workbench, kept.id) == ()


@pytest.mark.promise("W3")
def test_what_was_not_shown_is_not_restored(layered: Bench) -> None:
    kept = checkpoint(layered.workbench)
    (layered.project / "a").write_bytes(b"changed\n")
    seen = preview_restore(layered.workbench, RestoreOrder(checkpoint=kept.id))
    assert [str(each.path) for each in seen.files] == ["a"]
    (layered.project / "later").write_bytes(b"later\n")
    before = layered.sight()
    order = RestoreOrder(checkpoint=kept.id, sealed=seen.seal)
    with pytest.raises(RestoreStale):
        restore(layered.workbench, order)
    assert layered.sight() == before
    (layered.project / "later").unlink()
    restore(layered.workbench, order)
    assert (layered.project / "a").read_bytes() != b"changed\n"


@pytest.mark.promise("W3")
def test_a_directory_with_something_new_in_it_stays_one(layered: Bench) -> None:
    kept = checkpoint(layered.workbench)
    (layered.project / "a").unlink()
    (layered.project / "a").mkdir()
    (layered.project / "a" / "new").write_bytes(b"new\n")
    (layered.project / "d" / "b").unlink()
    done = restore(layered.workbench, RestoreOrder(checkpoint=kept.id, keep_new=True))
    assert (layered.project / "a" / "new").read_bytes() == b"new\n"
    assert (layered.project / "d" / "b").read_bytes() == b"b\n"
    assert done.left == (at("a"), at("a/new"))
