"""A place is made whole wherever a project may be, or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.confine.failures import PlaceUnavailable
from holdfast.confine.model import PlaceSpec
from holdfast.confine.place.creation import create
from holdfast.confine.place.place import end, find, places
from holdfast.world.failures import DiskMissing
from tests.confine.workshop import Workshop, opened, run
from tests.faults.mounts import missing_for_mounts, mounted

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces"),
    pytest.mark.timeout(method="signal"),  # no thread beside us: we fork
]

needs_mounts = pytest.mark.skipif(
    missing_for_mounts() is not None, reason=str(missing_for_mounts())
)


@pytest.mark.parametrize(
    "name",
    [
        b"with space",
        b"comma,comma",
        b"colon:colon",
        b"back\\slash",
        b"new\nline",
        b"'\"$(quotes)`",
        b"not utf-8 \xff\xfe",
        b"-rf",
        b"lowerdir=x,upperdir=y",
        "schön 日本語".encode(),
        b"n" * 255,
    ],
)
def test_any_name_will_do(tmp_path: Path, name: bytes) -> None:
    above = tmp_path / os.fsdecode(name)
    above.mkdir()
    with opened(above) as workshop:
        with workshop.place() as place:
            assert place.holder is not None
            assert place.holder.project == str(workshop.project)
            assert workshop.sh(place, "touch new; ls") == "below\nlink\nnew\nold\n"
            assert [each.holder for each in places() if each.holder == place.holder]
        assert (workshop.draft / "upper" / "new").exists()


def test_a_project_behind_a_link_is_covered_both_ways(workshop: Workshop, tmp_path: Path) -> None:
    link = tmp_path / "by-link"
    link.symlink_to("project")
    with create(replace(workshop.spec, project=str(link))) as place:
        assert run(place, "/bin/sh", "-c", "touch new; pwd -P", cwd=str(link)) == (
            0,
            f"{workshop.project}\n",
        )
        assert workshop.sh(place, "ls") == "below\nlink\nnew\nold\n"
        end(workshop.draft)


def test_an_empty_project_a_mode_and_a_time(workshop: Workshop, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    empty.chmod(0o2751)
    with create(replace(workshop.spec, project=str(empty))) as place:
        assert run(place, "/bin/sh", "-c", "ls -A; stat -c %a .; mkdir a", cwd=str(empty)) == (
            0,
            "2751\n",
        )
        end(workshop.draft)
    assert list(empty.iterdir()) == []


def test_more_than_one_directory_can_be_covered_and_hidden(
    workshop: Workshop, tmp_path: Path
) -> None:
    common, secret = tmp_path / "common", tmp_path / "secret"
    for each in (common, secret):
        each.mkdir()
        (each / "there").write_text("there")
    spec = replace(workshop.spec, also=(str(common),), hidden=(str(secret), "/nowhere"))
    with create(spec) as place:
        said = workshop.run(
            place, "/bin/sh", "-c", f"rm {common}/there; touch {common}/new new; ls -A {secret}"
        )
        end(workshop.draft)

    assert (said[0] != 0, "Permission denied" in said[1]) == (True, True)
    assert [path.name for path in common.iterdir()] == ["there"]
    assert sorted(path.name for path in (workshop.draft / "upper-1").iterdir()) == ["new", "there"]
    assert [path.name for path in (workshop.draft / "upper").iterdir()] == ["new"]


def test_a_process_with_threads_makes_one_too(workshop: Workshop) -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        with workshop.place() as place:
            assert workshop.sh(place, "touch new; ls") == "below\nlink\nnew\nold\n"
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize(
    ("directory", "project", "why"),
    [
        ("{base}/project/draft", "{base}/project", "the draft lies inside of it"),
        ("{base}/project", "{base}/project", "it lies in what is to be hidden"),
        ("{base}", "{base}/project", "it lies in what is to be hidden"),
        ("{base}/draft", "{base}/project/old", "it is not a directory"),
        ("{base}/draft", "{base}/nothing", "it is not a directory"),
    ],
)
def test_what_makes_no_sense_is_refused(
    workshop: Workshop, directory: str, project: str, why: str
) -> None:
    base = workshop.project.parent
    before = sorted(base.rglob("*"))
    with pytest.raises(PlaceUnavailable) as raised:
        create(PlaceSpec(directory=directory.format(base=base), project=project.format(base=base)))

    assert raised.value.reason == why
    assert sorted(base.rglob("*")) == before


def test_a_draft_needs_a_directory_to_be_in(workshop: Workshop, tmp_path: Path) -> None:
    with pytest.raises(DiskMissing):
        create(replace(workshop.spec, directory=str(tmp_path / "a" / "b")))


@needs_mounts
def test_a_project_on_another_filesystem(workshop: Workshop, tmp_path: Path) -> None:
    with mounted(tmp_path / "other", "-t", "tmpfs", "none") as other, opened(other) as there:
        spec = replace(there.spec, directory=str(workshop.draft))
        with create(spec) as place:
            assert there.sh(place, "echo more >> old; ls") == "below\nlink\nold\n"
            end(workshop.draft)
    assert (workshop.draft / "upper" / "old").read_text() == "oldmore\n"


@needs_mounts
def test_a_read_only_project_can_be_written_inside(workshop: Workshop) -> None:
    project = workshop.project
    with mounted(project, "--bind", str(project)):
        subprocess.run(["mount", "-o", "remount,bind,ro", str(project)], check=True)
        with workshop.place() as place:
            assert workshop.sh(place, "echo more >> old; cat old") == "oldmore\n"


@needs_mounts
def test_something_mounted_inside_the_project_is_named_and_nothing_is_left(
    workshop: Workshop,
) -> None:
    data = workshop.project / "below" / "deep"
    with mounted(data, "-t", "tmpfs", "none"):
        with pytest.raises(PlaceUnavailable) as raised:
            create(workshop.spec)

    assert raised.value.reason == f"something else is mounted inside it, at {data}"
    assert not workshop.draft.exists()


@needs_mounts
def test_a_filesystem_that_cannot_hold_an_overlay_is_named_and_nothing_is_left(
    workshop: Workshop, tmp_path: Path
) -> None:
    upper, work = tmp_path / "u", tmp_path / "w"
    upper.mkdir()
    work.mkdir()
    options = f"lowerdir={workshop.project},upperdir={upper},workdir={work}"
    with mounted(tmp_path / "over", "-t", "overlay", "-o", options, "none") as over:
        with pytest.raises(PlaceUnavailable) as raised:
            create(replace(workshop.spec, directory=str(over / "draft")))

        assert raised.value.reason == "an overlay cannot be kept on overlay, where the draft is"
        assert not (over / "draft").exists()


@needs_mounts
def test_a_draft_that_was_there_keeps_what_it_had_when_all_fails(workshop: Workshop) -> None:
    with workshop.place() as place:
        workshop.sh(place, "echo kept > kept")
    before = sorted(workshop.draft.rglob("*"))
    with mounted(workshop.project / "below", "-t", "tmpfs", "none"):
        with pytest.raises(PlaceUnavailable):
            create(workshop.spec)

    assert sorted(workshop.draft.rglob("*")) == before
    assert (workshop.draft / "upper" / "kept").read_text() == "kept\n"


_WITHOUT = """
import sys
from holdfast.confine.place.creation import create
from holdfast.confine.failures import PlaceUnavailable
from holdfast.confine.model import PlaceSpec
try:
    create(PlaceSpec(directory=sys.argv[1], project=sys.argv[2]))
except PlaceUnavailable as unavailable:
    print(unavailable.reason)
"""


def test_without_user_namespaces_it_is_said_so_and_nothing_is_left(workshop: Workshop) -> None:
    off = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", off, "sh"]
    done = subprocess.run(
        [*command, sys.executable, "-c", _WITHOUT, str(workshop.draft), str(workshop.project)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == ("user namespaces are switched off: user.max_user_namespaces is 0\n"), (
        done.stderr
    )
    assert not workshop.draft.exists()


@needs_mounts
def test_a_masked_proc_is_named_and_nothing_is_left(workshop: Workshop) -> None:
    mask = 'mount -t tmpfs none /proc/irq && exec "$@"'
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", mask, "sh"]
    done = subprocess.run(
        [*command, sys.executable, "-c", _WITHOUT, str(workshop.draft), str(workshop.project)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == "this is a container, and parts of its /proc are covered\n", done.stderr
    assert find(workshop.draft) is None
    assert not workshop.draft.exists()


def test_a_draft_is_nobody_elses_to_look_into(workshop: Workshop) -> None:
    with workshop.place():
        assert stat.S_IMODE(workshop.draft.stat().st_mode) == 0o700
