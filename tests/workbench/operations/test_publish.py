"""What is published is what was reviewed, all that was chosen or nothing, and never over others."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from holdfast.workbench import (
    DeletePath,
    NewContent,
    NewFile,
    PublishOrder,
    PublishResult,
    WorkbenchRecords,
    apply,
    checkpoints,
    enter_draft,
    list_drafts,
    open_draft,
    preview,
    publish,
    review,
)
from holdfast.workbench.failures import (
    DraftMerged,
    DraftMovedOn,
    FileReadFailed,
    HunkMissing,
    PublishedChanged,
)
from holdfast.workbench.model import DraftMode, Occasion
from tests.faults.mounts import missing_for_mounts, mounted
from tests.workbench.benches import COMMITTED, LINES, PREPARED, Bench, at, disturbed, sight
from tests.workbench.drafting_table import run

PAST = b"1\n2\nthree\n4\n5\n6\n7\n8\nnine\n"


def reviewed(bench: Bench, **order: object) -> PublishResult:
    """Review, then publish what was seen."""
    seal = review(bench.workbench).seal
    return publish(bench.workbench, PublishOrder(sealed=seal, **order))  # type: ignore[arg-type]  # as each test spells it


@pytest.mark.promise("W1")
@pytest.mark.promise("W9")
def test_all_of_a_draft_goes_into_the_project(bench: Bench) -> None:
    draft = bench.draft()
    bench.run(
        "printf 'one\\n' > a; rm d/b; mkdir -m 0700 -p e/f; ln -s ../a e/l; printf x > e/x;"
        " chmod 0755 e/x; printf y > \"$(printf 'n\\377\\nm')\"",
    )
    before = bench.sight()

    done = reviewed(bench, key="all")

    after = bench.sight()
    assert after[b"a"] == ("file", 0o644, b"one\n", ())
    assert b"d/b" not in after and after[b"d"] == before[b"d"]
    assert after[b"e/f"] == ("directory", 0o700, b"", ())
    assert after[b"e/l"] == ("link", 0, b"../a", ())
    assert after[b"e/x"] == ("file", 0o755, b"x", ())
    assert after[b"n\xff\nm"] == ("file", 0o644, b"y", ())
    assert (done.count, done.remaining) == (7, 0)
    assert [each.id for each in list_drafts(bench.workbench)] == [draft]
    assert review(bench.workbench).files == ()
    assert bench.run("cat a e/x; ls d") == "one\nx"


@pytest.mark.promise("W1")
def test_whoever_has_entered_a_draft_can_use_it_after_it_was_published(layered: Bench) -> None:
    draft = layered.draft()
    layered.run("echo new > a")
    with enter_draft(layered.workbench, draft) as inside:
        publish(layered.workbench, PublishOrder(draft=draft))
        assert inside.view.place is not None
        assert not inside.view.place.is_lost
        assert run(inside.view.place, "cat a; echo newer > a", cwd=inside.directory) == "new\n"
    assert layered.run("cat a") == "newer\n"


@pytest.mark.promise("W3")
def test_the_project_as_it_was_is_kept_first(bench: Bench) -> None:
    bench.draft()
    bench.run("echo new > a")

    done = reviewed(bench)

    kept = checkpoints(bench.workbench)
    before = next(each for each in kept if each.id == done.checkpoint)
    assert before.occasion is Occasion.PUBLISH
    with bench.workbench.locked() as (handle, _):
        node = handle.store.node(before, at("a"))
        assert node is not None
        assert b"".join(handle.store.content(node.object)) == LINES


@pytest.mark.promise("W6")
def test_what_was_not_reviewed_is_not_published(bench: Bench) -> None:
    bench.draft()
    bench.run("echo new > a")
    seal = review(bench.workbench).seal
    before = bench.sight()
    bench.run("echo newer > a")

    with pytest.raises(DraftMovedOn):
        publish(bench.workbench, PublishOrder(sealed=seal))

    assert bench.sight() == before
    assert reviewed(bench).count == 1
    assert (bench.project / "a").read_bytes() == b"newer\n"


@pytest.mark.promise("W6")
def test_the_seal_is_of_what_is_chosen(bench: Bench) -> None:
    bench.draft()
    bench.run("echo new > a; mkdir n; echo 1 > n/f; echo 1 > log")
    order = PublishOrder(only=(at("n/f"),))
    seal = preview(bench.workbench, order).seal
    bench.run("echo 2 >> log; echo newer > a; echo 1 > n/g")

    done = publish(bench.workbench, replace(order, sealed=seal))

    assert done.paths == (at("n"), at("n/f"))
    assert done.remaining == 3
    for script in ("echo 2 > n/h; echo 2 > n/f", "chmod 700 n; echo 3 > n/f", "rm n/f"):
        seal = preview(bench.workbench, order).seal
        bench.run(script)
        with pytest.raises(DraftMovedOn):
            publish(bench.workbench, replace(order, sealed=seal))


@pytest.mark.promise("W6")
def test_a_chosen_file_is_published_while_another_one_is_being_written(layered: Bench) -> None:
    layered.draft()
    layered.run("echo new > b; (while :; do date >> log; done) >/dev/null 2>&1 &")
    order = PublishOrder(only=(at("b"),))

    for text in (b"new\n", b"newer\n", b"newest\n"):
        layered.run(f"echo {text.decode().strip()} > b")
        seal = preview(layered.workbench, order).seal
        assert publish(layered.workbench, replace(order, sealed=seal)).paths == (at("b"),)
        assert (layered.project / "b").read_bytes() == text
    assert not (layered.project / "log").exists()


@pytest.mark.promise("W6")
def test_what_the_person_does_elsewhere_leaves_the_approval_as_it_is(bench: Bench) -> None:
    bench.draft()
    bench.run("echo new > a")
    seal = review(bench.workbench).seal
    (bench.project / "d" / "b").write_bytes(b"theirs\n")
    (bench.project / "c").write_bytes(b"theirs, too\n")

    publish(bench.workbench, PublishOrder(sealed=seal))

    assert (bench.project / "a").read_bytes() == b"new\n"
    assert (bench.project / "d" / "b").read_bytes() == b"theirs\n"
    assert (bench.project / "c").read_bytes() == b"theirs, too\n"


@pytest.mark.promise("W5")
def test_a_clean_merge_goes_into_the_draft_and_is_reviewed_again(bench: Bench) -> None:
    bench.draft()
    bench.run("sed -i s/9/nine/ a")
    seal = review(bench.workbench).seal
    (bench.project / "a").write_bytes(LINES.replace(b"3", b"three"))
    theirs = bench.sight()
    assert review(bench.workbench).merges == (at("a"),)

    with pytest.raises(DraftMerged) as merged:
        publish(bench.workbench, PublishOrder(sealed=seal))

    assert merged.value.paths == ("a",)
    assert bench.sight() == theirs
    with pytest.raises(DraftMovedOn):
        publish(bench.workbench, PublishOrder(sealed=seal))
    assert bench.run("cat a").encode() == PAST
    (shown,) = review(bench.workbench).files
    assert (shown.added, shown.removed) == (1, 1)
    reviewed(bench)
    assert (bench.project / "a").read_bytes() == PAST


@pytest.mark.promise("W1")
@pytest.mark.promise("W5")
@pytest.mark.parametrize(
    ("script", "theirs"),
    [
        ("sed -i s/3/three/ a", LINES.replace(b"3", b"drei")),
        ("printf '\\0' > a", LINES + b"10\n"),
        ("rm a", LINES + b"10\n"),
        ("sed -i s/3/three/ a", None),
    ],
)
def test_a_conflict_names_the_files_and_changes_nothing(
    bench: Bench, script: str, theirs: bytes | None
) -> None:
    bench.draft()
    bench.run(f"{script}; echo new > c")
    if theirs is None:
        (bench.project / "a").unlink()
    else:
        (bench.project / "a").write_bytes(theirs)
    before, draft = bench.sight(), review(bench.workbench)

    with pytest.raises(PublishedChanged) as refused:
        reviewed(bench)

    assert refused.value.paths == ("a",)
    assert bench.sight() == before
    assert review(bench.workbench).files == draft.files
    assert [each.path for each in draft.conflicts] == [at("a")]


@pytest.mark.promise("W5")
def test_force_is_for_each_file_and_what_it_goes_over_is_kept(bench: Bench) -> None:
    bench.draft()
    bench.run("echo ours > a; echo ours > d/b")
    (bench.project / "a").write_bytes(b"theirs\n")
    (bench.project / "d" / "b").write_bytes(b"theirs\n")

    with pytest.raises(PublishedChanged) as refused:
        reviewed(bench, force=(at("a"),))
    assert refused.value.paths == ("d/b",)
    done = reviewed(bench, force=(at("a"),), only=(at("a"),))

    assert (bench.project / "a").read_bytes() == b"ours\n"
    assert (bench.project / "d" / "b").read_bytes() == b"theirs\n"
    with bench.workbench.locked() as (handle, _):
        node = handle.store.node(handle.store.find(str(done.checkpoint)), at("a"))
        assert node is not None
        assert b"".join(handle.store.content(node.object)) == b"theirs\n"


def test_a_part_of_the_files_is_published_and_the_rest_stays(bench: Bench) -> None:
    bench.draft()
    bench.run("echo new > a; mkdir e; echo e > e/x; echo e > e/y; rm d/b")

    done = reviewed(bench, only=(at("e/x"), at("d")))

    assert [str(path) for path in done.paths] == ["d/b", "e", "e/x"]
    assert done.remaining == 2
    assert (bench.project / "a").read_bytes() == LINES
    assert [str(each.path) for each in review(bench.workbench).files] == ["a", "e/y"]
    assert reviewed(bench).remaining == 0
    assert (bench.project / "e" / "y").read_bytes() == b"e\n"


def test_a_part_of_a_file_is_published_and_the_rest_stays(bench: Bench) -> None:
    bench.draft()
    bench.run("sed -i 's/3/three/;s/9/nine/' a; chmod 0755 a")

    assert reviewed(bench, hunks={at("a"): frozenset({2})}).remaining == 1
    assert (bench.project / "a").read_bytes() == LINES.replace(b"9", b"nine")
    (left,) = review(bench.workbench).files
    assert (left.hunks, left.added) == (1, 1)
    (bench.project / "a").write_bytes(LINES.replace(b"9", b"nine") + b"theirs\n")
    with pytest.raises(DraftMerged):
        reviewed(bench)
    reviewed(bench)
    assert (bench.project / "a").read_bytes() == PAST + b"theirs\n"
    assert os.stat(bench.project / "a").st_mode & 0o777 == 0o755


def test_hunks_that_a_file_does_not_have_are_refused(layered: Bench) -> None:
    layered.draft()
    layered.run("echo new > a; printf '\\0' > c; rm d/b")

    for path, count in (("a", 1), ("c", 0), ("d/b", 0), ("e", 0)):
        with pytest.raises(HunkMissing) as missing:
            reviewed(layered, hunks={at(path): frozenset({2})})
        assert missing.value == HunkMissing(path=path, number=2, count=count)
    assert (layered.project / "a").read_bytes() == LINES


def test_said_twice_it_is_done_once_with_the_same_answer(bench: Bench) -> None:
    bench.draft()
    bench.run("echo new > a")
    first = reviewed(bench, key="once")
    (bench.project / "a").write_bytes(b"later\n")

    assert publish(bench.workbench, PublishOrder(sealed="whatever", key="once")) == first
    assert (bench.project / "a").read_bytes() == b"later\n"


def test_what_the_person_saves_after_it_stays_and_is_no_conflict(bench: Bench) -> None:
    bench.draft()
    bench.run("printf '\\0ours' > a")
    reviewed(bench)
    (bench.project / "a").write_bytes(b"\0later")

    assert review(bench.workbench).files == ()
    assert bench.run("cat a") == "\0later"


@pytest.mark.promise("W1")
@pytest.mark.promise("W5")
@pytest.mark.parametrize("is_before", [True, False], ids=["before the marker", "after the marker"])
def test_what_the_person_saves_in_the_middle_of_it_stops_it(bench: Bench, is_before: bool) -> None:
    bench.draft()
    bench.run("echo ours > a; echo ours > c; rm d/b")
    seal = review(bench.workbench).seal
    theirs = bench.project / "d" / "b"
    workbench = disturbed(
        bench, PREPARED, lambda: theirs.write_bytes(b"theirs\n"), is_before=is_before
    )

    with pytest.raises(PublishedChanged) as refused:
        publish(workbench, PublishOrder(sealed=seal))

    assert refused.value.paths == ("d/b",)
    assert theirs.read_bytes() == b"theirs\n"
    assert (bench.project / "a").read_bytes() == LINES
    assert sorted(bench.sight()) == [b".git", b".git/HEAD", b"a", b"d", b"d/b"]
    assert [str(each.path) for each in review(bench.workbench).conflicts] == ["d/b"]
    reviewed(bench, force=(at("d/b"),))
    assert not theirs.exists()


@pytest.mark.promise("W5")
def test_what_the_person_saves_right_after_it_is_theirs(bench: Bench) -> None:
    bench.draft()
    bench.run("echo ours > a")
    seal = review(bench.workbench).seal
    theirs = bench.project / "a"
    workbench = disturbed(
        bench, COMMITTED, lambda: theirs.write_bytes(b"theirs\n"), is_before=False
    )

    done = publish(workbench, PublishOrder(sealed=seal))

    assert done.count == 1
    assert theirs.read_bytes() == b"theirs\n"
    assert review(bench.workbench).files == ()
    assert bench.run("cat a") == "theirs\n"


@pytest.mark.promise("W9")
def test_the_repository_is_withheld_unless_it_is_asked_for(bench: Bench) -> None:
    bench.draft()
    bench.run("echo other > .git/HEAD; echo new > a")
    seen = review(bench.workbench)
    assert seen.withheld == (at(".git/HEAD"),)
    assert [str(each.path) for each in seen.files] == ["a"]

    assert reviewed(bench).remaining == 1
    assert (bench.project / ".git" / "HEAD").read_bytes() == b"ref: refs/heads/main\n"
    assert bench.run("cat .git/HEAD") == "other\n"

    assert reviewed(bench, with_git=True).remaining == 0
    assert (bench.project / ".git" / "HEAD").read_bytes() == b"other\n"


@pytest.mark.promise("W9")
def test_what_cannot_be_kept_is_never_replaced(bench: Bench) -> None:
    os.mkfifo(bench.project / "d" / "pipe")
    bench.draft()
    bench.run("rm -rf d; echo file > d; echo new > a")
    before = bench.sight()

    with pytest.raises(FileReadFailed) as refused:
        reviewed(bench)

    assert "d" in refused.value.paths
    assert bench.sight() == before
    assert reviewed(bench, only=(at("a"),)).count == 1


@pytest.mark.promise("W9")
@pytest.mark.parametrize(
    ("script", "paths"),
    [("rm -f pipe; echo file > pipe", ("pipe",)), ("rm a; mkfifo a", ("a",))],
)
def test_what_was_or_becomes_something_that_cannot_be_kept_is_named(
    bench: Bench, script: str, paths: tuple[str, ...]
) -> None:
    os.mkfifo(bench.project / "pipe")
    bench.draft()
    bench.run(f"{script}; echo new > c")
    before = bench.sight()

    with pytest.raises(FileReadFailed) as refused:
        reviewed(bench)
    with pytest.raises(FileReadFailed):
        reviewed(bench, force=(at(paths[0]),))

    assert refused.value.paths == paths
    assert bench.sight() == before
    assert reviewed(bench, only=(at("c"),)).count == 1


def test_a_socket_of_a_server_in_the_draft_stops_nobody(bench: Bench) -> None:
    bench.draft()
    bench.run("mkfifo pipe; echo new > a")
    assert [str(each.path) for each in review(bench.workbench).uncovered] == ["pipe"]

    assert reviewed(bench).count == 1
    assert not (bench.project / "pipe").exists()


@pytest.mark.promise("W11")
def test_what_was_done_and_what_failed_can_be_read_offline(layered: Bench) -> None:
    layered.draft()
    layered.run("echo ours > a")
    (layered.project / "a").write_bytes(b"\0theirs")
    with pytest.raises(PublishedChanged):
        reviewed(layered)
    (layered.project / "a").write_bytes(LINES)
    reviewed(layered, key="done")

    meta = layered.workbench.directory / "meta"
    kinds = [event.kind for event in WorkbenchRecords.open(meta).events()]
    assert [kind for kind in kinds if kind.startswith("publish")] == [
        "publish_failed",
        "published",
    ]
    assert len(list((meta / "reports").glob("*.html"))) == 2


@pytest.mark.parametrize("written", ["echo ours > a", "seq 1000 | xargs touch; echo ours > a"])
def test_what_the_person_does_after_it_is_seen_in_the_draft(bench: Bench, written: str) -> None:
    bench.draft()
    bench.run(f"{written}; rm d/b")
    publish(bench.workbench, PublishOrder())
    (bench.project / "a").write_bytes(b"theirs\n")
    (bench.project / "d" / "b").write_bytes(b"back\n")

    assert bench.run("cat a d/b") == "theirs\nback\n"
    assert review(bench.workbench).files == ()


NAMES = ("a", "d", "d/b", "d/e", "d/e/f", "g", "g/h")
DEEDS = (
    "rm -rf {one}",
    "mkdir -p {one}",
    "rm -rf {one}; echo {number} > {one}",
    "echo {number} >> {one}",
    "mv -T {one} {other}",
    "chmod 7{number} {one}",
    "rm -rf {one}; ln -s {other} {one}",
    "rm -rf {one}; mkdir -p {one}; echo {number} > {one}/b",
    "rm -rf {one}; cp -a {other} {one}",
)


def operation_numbers(chance: Random) -> str:
    """A few things that somebody does, of which some are not possible."""
    chosen: list[str] = []
    for _ in range(chance.randint(1, 4)):
        one, other = chance.choices(NAMES, k=2)
        number = chance.randint(10, 77)
        chosen.append(chance.choice(DEEDS).format(one=one, other=other, number=number))
    return "; ".join(f"({each})" for each in (*chosen, "true"))


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(each, marks=pytest.mark.long) for each in range(1, 40))]
)
def test_whatever_both_do_the_draft_shows_the_project_afterwards(bench: Bench, seed: int) -> None:
    chance = Random(seed)
    bench.draft()
    for _ in range(4):
        bench.run(f"exec 2>/dev/null; {operation_numbers(chance)}")
        publish(bench.workbench, PublishOrder())
        theirs = ["/bin/sh", "-c", f"exec 2>/dev/null; {operation_numbers(chance)}"]
        subprocess.run(theirs, cwd=bench.project, check=True, timeout=60)

        assert review(bench.workbench).files == ()
        with enter_draft(bench.workbench) as inside:
            assert sight(Path(f"/proc/self/fd/{inside.view.root}/")) == bench.sight()


def test_nothing_to_publish_is_no_failure(layered: Bench) -> None:
    layered.draft()

    done = reviewed(layered)

    assert (done.checkpoint, done.paths, done.count) == (None, (), 0)


def test_batches_are_published_as_commands_are(layered: Bench) -> None:
    draft = layered.draft()
    steps = [NewFile(at("new/x"), b"x"), NewContent(at("a"), b"a\n"), DeletePath(at("d/b"))]
    apply(layered.workbench, draft, steps)

    assert [str(path) for path in reviewed(layered).paths] == ["a", "d/b", "new", "new/x"]


@pytest.mark.promise("W9")
@pytest.mark.skipif(missing_for_mounts() is not None, reason=str(missing_for_mounts()))
def test_a_bind_mount_in_the_project_stays_as_it_is_and_blocks_no_other_path(
    layered: Bench,
) -> None:
    elsewhere = layered.base / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "theirs").write_text("theirs\n")
    with mounted(layered.project / "mounted", "--bind", str(elsewhere)):
        open_draft(layered.workbench, DraftMode.COPY)
        layered.run("echo new > a; mkdir -p mounted; echo x > mounted/x")
        seal = review(layered.workbench).seal
        with pytest.raises(FileReadFailed, match="mounted/x"):
            publish(layered.workbench, PublishOrder(sealed=seal))
        publish(layered.workbench, PublishOrder(sealed=seal, only=(at("a"),)))

        assert (layered.project / "a").read_text() == "new\n"
        assert os.listdir(elsewhere) == ["theirs"]
