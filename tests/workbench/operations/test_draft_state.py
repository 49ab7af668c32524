"""A draft shows what the person does, and knows what is its own."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from holdfast.workbench import (
    ConflictReason,
    PublishOrder,
    RestoreOrder,
    checkpoint,
    checkpoints,
    discard,
    publish,
    restore,
    review,
    show,
)
from holdfast.workbench.failures import FileReadFailed, PublishedChanged
from holdfast.workbench.operations.draft_state import draft_state
from holdfast.workbench.operations.recovery import opened
from tests.workbench.benches import LINES, Bench, at


def own(bench: Bench, draft: str | None = None) -> list[str]:
    """The paths that a draft changes."""
    return [str(each.path) for each in review(bench.workbench, draft).files]


@pytest.mark.promise("W5")
def test_what_the_person_does_is_seen_between_two_commands(bench: Bench) -> None:
    bench.draft()
    assert bench.run("cat a d/b; ls") == f"{LINES.decode()}b\na\nd\n"
    (bench.project / "a").unlink()
    (bench.project / "a").write_bytes(b"theirs\n")
    (bench.project / "d" / "b").unlink()
    (bench.project / "d" / "c").write_bytes(b"c\n")
    (bench.project / "e").mkdir(mode=0o750)
    (bench.project / "e" / "l").symlink_to("../a")

    assert bench.run("cat a d/c e/l; ls d; stat -c %a e") == "theirs\nc\ntheirs\nc\n750\n"
    assert own(bench) == []


@pytest.mark.promise("W5")
def test_what_was_written_without_a_difference_follows_the_person(bench: Bench) -> None:
    bench.draft()
    bench.run(
        "echo x >> a; printf '1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n' > a; chmod 0700 d; chmod 0755 d"
    )
    assert own(bench) == []
    (bench.project / "a").write_bytes(b"theirs\n")
    (bench.project / "d").chmod(0o750)

    assert bench.run("cat a; stat -c %a d") == "theirs\n750\n"
    assert own(bench) == []


@pytest.mark.promise("W5")
def test_what_the_draft_changed_stays_its_own(bench: Bench) -> None:
    bench.draft()
    bench.run("echo ours > a; echo ours > d/c")
    (bench.project / "a").write_bytes(b"theirs\n")
    (bench.project / "d" / "b").unlink()

    assert bench.run("cat a; ls d") == "ours\nc\n"
    assert own(bench) == ["a", "d/c"]


@pytest.mark.promise("W5")
def test_a_directory_that_the_person_removes_stays_while_the_draft_needs_it(bench: Bench) -> None:
    (bench.project / "d" / "x").write_bytes(b"x\n")
    bench.draft()
    bench.run("echo ours > d/b")
    shutil.rmtree(bench.project / "d")

    assert bench.run("cat d/b; ls d") == "ours\nb\n"
    found = review(bench.workbench)
    assert [str(each.path) for each in found.conflicts] == ["d/b"]
    bench.run("rm -r d")
    assert own(bench) == []
    assert review(bench.workbench).conflicts == ()


def test_a_copy_that_the_person_changed_before_it_was_entered_catches_up(bench: Bench) -> None:
    bench.draft()
    (bench.project / "a").write_bytes(b"theirs\n")

    assert bench.run("cat a") == "theirs\n"
    assert own(bench) == []


@pytest.mark.promise("W9")
def test_what_nobody_can_copy_is_no_change_of_the_draft(bench: Bench) -> None:
    os.mkfifo(bench.project / "pipe")
    bench.draft()
    assert own(bench) == []
    (bench.project / "a").unlink()
    os.mkfifo(bench.project / "a")

    assert own(bench) == []
    assert review(bench.workbench).conflicts == ()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything; run as somebody else")
def test_what_may_not_be_read_is_listed_and_stays_as_it_is(bench: Bench) -> None:
    secret = bench.project / "d" / "secret"
    secret.write_bytes(b"secret")
    secret.chmod(0)
    bench.draft()
    bench.run("echo ours > a; rm -f d/secret; echo ours > d/secret")
    before = checkpoint(bench.workbench)

    seen = review(bench.workbench)
    assert [(str(each.path), each.reason) for each in seen.conflicts] == [
        ("d/secret", ConflictReason.NOT_COVERED)
    ]
    with pytest.raises(FileReadFailed) as refused:
        publish(bench.workbench, PublishOrder(sealed=seen.seal))
    assert refused.value.paths == ("d/secret",)
    publish(bench.workbench, PublishOrder(sealed=seen.seal, only=(at("a"),)))
    assert [str(each.path) for each in show(bench.workbench, before.id).uncovered] == ["d/secret"]
    restored = restore(bench.workbench, RestoreOrder(checkpoint=before.id))
    assert (restored.count, secret.stat().st_size) == (1, 6)


def test_a_look_at_what_has_not_changed_leaves_nothing_behind(bench: Bench) -> None:
    bench.draft()
    bench.run("echo ours > a")
    review(bench.workbench)
    before = checkpoints(bench.workbench, of_drafts=True)

    for _ in range(3):
        review(bench.workbench)

    assert checkpoints(bench.workbench, of_drafts=True) == before


def test_the_base_is_the_project_wherever_the_draft_is_like_it(bench: Bench) -> None:
    bench.draft()
    bench.run("echo ours > a; echo same > c")
    (bench.project / "c").write_bytes(b"same\n")
    (bench.project / "a").write_bytes(b"theirs\n")
    (bench.project / "d" / "b").write_bytes(b"theirs\n")

    with bench.workbench.locked() as (handle, _):
        draft = handle.drafts.find()
        with opened(handle, draft) as view:
            standing = draft_state(handle, view, draft)
        base = {str(change.path) for change in handle.store.changes(standing.base, standing.theirs)}
        ours = {str(change.path) for change in standing.changes}

    assert base == {"a"}
    assert ours == {"a"}


@pytest.mark.promise("W5")
def test_what_somebody_inside_holds_on_to_is_replaced_all_the_same(bench: Bench) -> None:
    bench.draft()
    bench.run("for f in a d/b; do setsid sleep 30 < $f > /dev/null 2>&1 & done; true")
    (bench.project / "swap").write_bytes(b"theirs\n")
    (bench.project / "swap").rename(bench.project / "a")
    (bench.project / "d" / "b").unlink()

    assert bench.run("cat a; ls d") == "theirs\n"
    assert own(bench) == []
    bench.run("echo ours >> a")
    publish(bench.workbench, PublishOrder())
    assert (bench.project / "a").read_bytes() == b"theirs\nours\n"


@pytest.mark.promise("W5")
def test_a_directory_that_somebody_works_in_is_replaced_all_the_same(bench: Bench) -> None:
    bench.draft()
    bench.run("cd d; setsid sleep 30 < b > /dev/null 2>&1 & true")
    (bench.project / "d").rename(bench.project / "moved")
    (bench.project / "d").mkdir()
    (bench.project / "d" / "new").write_bytes(b"new\n")

    assert bench.run("cat d/new moved/b; ls d") == "new\nb\nnew\n"
    assert own(bench) == []


@pytest.mark.parametrize(
    ("stands", "leaves", "made"),
    [
        ("mkdir -m 1755 .idea", "rmdir .idea", ".idea/mine"),
        ("mkdir -m 1755 .git/hooks", "rmdir .git/hooks", ".git/hooks/mine"),
        (
            "echo . > .git/commondir; chmod 1644 .git/commondir",
            "rm .git/commondir",
            ".git/commondir",
        ),
    ],
)
def test_what_stands_in_for_a_name_is_no_change_even_if_the_person_makes_it(
    bench: Bench, stands: str, leaves: str, made: str
) -> None:
    bench.draft()
    bench.run(f"echo ours > n; {stands}")
    assert own(bench) == ["n"]
    (bench.project / made).parent.mkdir(exist_ok=True)
    (bench.project / made).write_bytes(b"theirs\n")
    assert own(bench) == ["n"]
    bench.run(f"{leaves} || true")
    before = bench.sight()

    assert publish(bench.workbench, PublishOrder(with_git=True)).paths == (at("n"),)
    assert {path: each for path, each in bench.sight().items() if path != b"n"} == before
    assert bench.run(f"cat {made}") == "theirs\n"


def test_what_stands_in_for_what_the_draft_removed_hides_nothing(bench: Bench) -> None:
    (bench.project / ".idea").mkdir()
    (bench.project / ".idea" / "mine").write_bytes(b"mine\n")
    bench.draft()
    bench.run("rm -r .idea; mkdir -m 1755 .idea")
    assert own(bench) == [".idea", ".idea/mine"]
    (bench.project / ".idea" / "mine").write_bytes(b"changed\n")
    assert own(bench) == [".idea", ".idea/mine"]
    bench.run("rmdir .idea")

    with pytest.raises(PublishedChanged):
        publish(bench.workbench, PublishOrder())
    assert (bench.project / ".idea" / "mine").read_bytes() == b"changed\n"


@pytest.mark.parametrize("is_theirs", [True, False])
def test_a_path_that_is_too_long_stops_nobody(bench: Bench, is_theirs: bool) -> None:
    name = "n" * 250
    half = "/".join([name] * 9)
    deeper = f"mkdir -p {half} m/{half}; mv m/{name} {half}; rmdir m"
    if is_theirs:
        subprocess.run(["/bin/sh", "-c", deeper], cwd=bench.project, check=True, timeout=60)
    draft = bench.draft()
    bench.run(f"echo ours > n; {'true' if is_theirs else deeper}")

    assert own(bench)[0] == "n"
    assert publish(bench.workbench, PublishOrder()).paths[0] == at("n")
    assert own(bench) == []
    assert checkpoint(bench.workbench).uncovered == is_theirs
    discard(bench.workbench, draft)
