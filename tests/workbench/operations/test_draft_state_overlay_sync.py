"""A draft that is an overlay stays right while its project changes beneath it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from holdfast.workbench import PublishOrder, RestoreOrder, publish, restore, review
from holdfast.workbench.failures import FileReadFailed
from holdfast.workbench.model import DraftMode, UncoveredReason, change_kind
from tests.workbench.benches import Bench, at, bench_at

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has overlays")

WAIT = "until [ -e {0} ]; do sleep 0.02; done"


def shown(bench: Bench) -> dict[str, str]:
    """What a review says of each path."""
    return {
        str(each.path): change_kind(each.before, each.after)
        for each in review(bench.workbench).files
    }


def publish_all(bench: Bench) -> str | None:
    return publish(bench.workbench, PublishOrder()).checkpoint


@pytest.mark.promise("W13")
def test_what_goes_from_a_published_directory_is_shown_and_published(bench: Bench) -> None:
    bench.draft()
    bench.run("mkdir -p nd/x; echo 1 >nd/x/f; echo 2 >nd/x/g")
    publish_all(bench)

    bench.run("mv nd/x/f nd/x/renamed; rm nd/x/g")

    assert shown(bench) == {"nd/x/f": "deleted", "nd/x/g": "deleted", "nd/x/renamed": "added"}
    publish_all(bench)
    assert [path.name for path in (bench.project / "nd/x").iterdir()] == ["renamed"]


@pytest.mark.promise("W13")
@pytest.mark.parametrize("deed", ["rm -r nd/x", "rm -r nd/x; echo 3 >nd/x", "mv nd/x y; rm -r nd"])
def test_a_published_directory_goes_with_all_that_is_in_it(layered: Bench, deed: str) -> None:
    layered.draft()
    layered.run("mkdir -p nd/x; echo 1 >nd/x/f")
    publish_all(layered)

    layered.run(deed)

    assert shown(layered)["nd/x/f"] == "deleted"
    publish_all(layered)
    assert not (layered.project / "nd/x/f").exists()
    assert shown(layered) == {}


@pytest.mark.promise("W13")
def test_a_process_goes_on_in_a_directory_that_is_published(layered: Bench) -> None:
    layered.draft()
    layered.run("mkdir nd; echo 1 >nd/f; echo 2 >nd/g")
    at_work = f"{WAIT.format('go')}; rm f go; echo 3 >h; : >../done"
    layered.run(f"cd nd; ({at_work}) >/dev/null 2>&1 &")
    publish_all(layered)
    (layered.project / "nd" / "mine").write_text("the person's")

    layered.run(f": >nd/go; {WAIT.format('done')}; rm done")

    assert shown(layered) == {"nd/f": "deleted", "nd/h": "added"}
    assert sorted(layered.run("ls nd").split()) == ["g", "h", "mine"]
    publish_all(layered)
    assert sorted(path.name for path in (layered.project / "nd").iterdir()) == ["g", "h", "mine"]


@pytest.mark.promise("W13")
def test_a_directory_that_both_made_is_one_of_the_draft(layered: Bench) -> None:
    layered.draft()
    layered.run("mkdir nd; echo 1 >nd/f")
    layered.run("cd nd; sleep 1000 >/dev/null 2>&1 &")
    (layered.project / "nd").mkdir()
    (layered.project / "nd" / "f").write_text("1\n")
    (layered.project / "nd" / "mine").write_text("the person's")
    assert shown(layered) == {}

    layered.run("rm nd/f")

    assert shown(layered) == {"nd/f": "deleted"}
    assert layered.run("ls nd") == "mine\n"


@pytest.mark.promise("W13")
def test_a_directory_that_the_person_removed_and_made_again_is_one_of_the_draft(
    layered: Bench,
) -> None:
    layered.draft()
    layered.run("echo 1 >d/own")
    shutil.rmtree(layered.project / "d")
    assert shown(layered) == {"d/own": "added"}
    layered.run("cd d; sleep 1000 >/dev/null 2>&1 &")
    (layered.project / "d").mkdir()
    (layered.project / "d" / "mine").write_text("the person's")
    publish_all(layered)

    layered.run("rm d/own")

    assert shown(layered) == {"d/own": "deleted"}
    publish_all(layered)
    assert [path.name for path in (layered.project / "d").iterdir()] == ["mine"]
    assert layered.run("ls d") == "mine\n"


@pytest.mark.promise("W9", "W13")
def test_a_dead_directory_is_published_once_its_process_has_ended(layered: Bench) -> None:
    layered.draft()
    layered.run("echo 1 >d/own")
    process = layered.run("cd d; sleep 1000 >/dev/null 2>&1 & echo $!").strip()
    shutil.rmtree(layered.project / "d")
    shown(layered)
    (layered.project / "d").mkdir()
    (layered.project / "d" / "mine").write_text("the person's")
    with pytest.raises(FileReadFailed) as refused:
        publish_all(layered)
    assert refused.value.details == {"paths": ("d",)}

    layered.run(f"kill {process}; while kill -0 {process} 2>/dev/null; do sleep 0.02; done")

    assert shown(layered) == {"d/own": "added"}
    assert layered.run("ls d; rm d/own") == "mine\nown\n"
    assert shown(layered) == {}


@pytest.mark.promise("W5", "W13")
def test_a_directory_that_was_removed_and_made_again_is_seen(layered: Bench) -> None:
    layered.draft()
    assert layered.run("ls d") == "b\n"
    replace_directory(layered)

    assert layered.run("ls d; rm d/b") == "b\n"

    assert shown(layered) == {"d/b": "deleted"}


@pytest.mark.promise("W4", "W13")
@pytest.mark.parametrize("left", ["nothing", "empty", "half", "zeros", "old"])
def test_the_overlay_is_refreshed_whatever_a_power_cut_leaves_of_the_noted_layout(
    layered: Bench, left: str
) -> None:
    """The note is never synced: without the right one the overlay is only refreshed once more."""
    layered.draft()
    assert shown(layered) == {}
    (note,) = layered.base.rglob("place/layout")
    old = note.read_bytes()
    replace_directory(layered)
    assert shown(layered) == {}
    new = note.read_bytes()
    assert new not in {old, b""}
    assert layered.run("ls d") == "b\n"

    replace_directory(layered)
    note.unlink()
    spoiled = {"empty": b"", "half": new[: len(new) // 2], "zeros": bytes(len(new)), "old": old}
    if left in spoiled:
        note.write_bytes(spoiled[left])

    assert layered.run("ls d; rm d/b") == "b\n"
    assert shown(layered) == {"d/b": "deleted"}


def replace_directory(bench: Bench) -> None:
    """Remove a directory of the project and make the same again, as switching branches does."""
    shutil.copytree(bench.project / "d", bench.base / "d")
    shutil.rmtree(bench.project / "d")
    shutil.move(bench.base / "d", bench.project / "d")


@pytest.mark.promise("W13")
def test_a_restored_project_is_seen_in_a_draft_that_was_published(bench: Bench) -> None:
    bench.draft()
    bench.run("mkdir nd; echo 1 >nd/f; rm -r d")
    before = publish_all(bench)
    assert before is not None
    again = restore(bench.workbench, RestoreOrder(checkpoint=before)).before
    assert shown(bench) == {}
    assert bench.run("ls -A") == ".git\na\nd\n"

    assert again is not None
    restore(bench.workbench, RestoreOrder(checkpoint=again))

    assert shown(bench) == {}
    assert bench.run("ls -A; cat nd/f; rm nd/f") == ".git\na\nnd\n1\n"
    assert shown(bench) == {"nd/f": "deleted"}


@pytest.mark.promise("W9", "W13")
def test_a_dead_directory_is_told_of_until_its_process_ends(layered: Bench) -> None:
    layered.draft()
    layered.run("echo 1 >d/own")
    process = layered.run("cd d; sleep 1000 >/dev/null 2>&1 & echo $!").strip()
    shutil.rmtree(layered.project / "d")

    found = review(layered.workbench)

    assert [(each.path, each.reason) for each in found.uncovered] == [
        (at("d"), UncoveredReason.UNREADABLE)
    ]
    layered.run(f"kill {process}; while kill -0 {process} 2>/dev/null; do sleep 0.02; done")
    assert shown(layered) == {"d/own": "added"}


@pytest.mark.promise("W9")
@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="there is no tmpfs at /dev/shm")
@pytest.mark.parametrize("mode", [DraftMode.OVERLAY, DraftMode.COPY])
def test_a_write_through_a_mapping_is_found_in_a_draft_that_is_kept_in_memory(
    mode: DraftMode,
) -> None:
    """On tmpfs such a write changes no time of a file, and an overlay hides what it writes to."""
    script = (
        "import mmap, os, time; file = open('a', 'r+b'); mapping = mmap.mmap(file.fileno(), 0); "
        "mapping[0:1] = b'x'; os.mkdir('mapped'); "
        "[time.sleep(0.01) for _ in iter(lambda: os.path.exists('go'), True)]; "
        "mapping[0:1] = b'y'; os.mkdir('written')"
    )
    with TemporaryDirectory(dir="/dev/shm") as made, bench_at(Path(made), mode) as bench:
        bench.draft()
        bench.run(f'{sys.executable} -c "{script}" >/dev/null 2>&1 & {WAIT.format("mapped")}')
        assert first_byte(bench) == b"x"
        bench.run(f"mkdir go; {WAIT.format('written')}")
        assert first_byte(bench) == b"y"


def first_byte(bench: Bench) -> bytes:
    """What the file `a` of the draft begins with, by its third review."""
    found = [review(bench.workbench).files[0] for _ in range(3)][-1].after
    assert found is not None
    with bench.workbench.locked() as (handle, _):
        return b"".join(handle.store.content(found.content))[:1]
