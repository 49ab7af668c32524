"""Who cannot change a file inside is told before, with one example."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.confine.failures import ForeignOwners
from holdfast.confine.place.creation import foreign_owner, refuse_foreign_owners
from tests.confine.workshop import Workshop
from tests.parts.ordinary_user import (
    GID,
    UID,
    as_ordinary_user,
    ordinary_directory,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces")

CREATE = """
import sys
from holdfast.confine import PlaceSpec, create, end
from holdfast.confine.failures import ForeignOwners
base = sys.argv[1]
try:
    create(PlaceSpec(directory=f"{base}/draft", project=f"{base}/project")).close()
except ForeignOwners as foreign:
    print(foreign.code, foreign.example)
end(f"{base}/draft")
"""
LOOK = (
    "import sys; from holdfast.confine.place.creation import *; print(foreign_owner(sys.argv[1]))"
)


def test_what_is_ours_is_not_foreign(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "file").touch()
    (tmp_path / "nowhere").symlink_to("nothing")

    assert foreign_owner(tmp_path) is None
    refuse_foreign_owners(tmp_path)


def test_what_is_too_long_for_a_path_is_left_out(tmp_path: Path) -> None:
    name = "n" * 250
    half = "/".join([name] * 9)
    deeper = f"mkdir -p {half} m/{half}; mv m/{name} {half}"
    subprocess.run(["/bin/sh", "-c", deeper], cwd=tmp_path, check=True, timeout=60)

    assert foreign_owner(tmp_path) is None
    subprocess.run(["rm", "-r", name], cwd=tmp_path, check=True, timeout=60)


@pytest.mark.skipif(os.geteuid() == 0, reason="root knows everyone")
def test_files_of_others_are_refused_with_an_example() -> None:
    with pytest.raises(ForeignOwners) as raised:
        refuse_foreign_owners("/etc")

    assert raised.value.example == "/etc"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize(
    ("owner", "group", "is_foreign"),
    [(UID, GID, False), (0, GID, True), (UID, 0, True), (4_000_000_000, GID, True)],
)
def test_a_user_or_a_group_that_is_nobody_inside_is_foreign(
    owner: int, group: int, is_foreign: bool
) -> None:
    with ordinary_directory() as directory:
        file = directory / "below" / "file"
        file.parent.mkdir()
        file.touch()
        os.chown(file.parent, UID, GID)
        os.chown(file, owner, group)

        said = as_ordinary_user(sys.executable, "-c", LOOK, directory).stdout

        assert said == f"{file if is_foreign else None}\n"
        assert foreign_owner(directory) is None, "root maps everyone"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_who_would_make_a_place_over_files_of_others_is_told_to_copy() -> None:
    with ordinary_directory() as directory:
        project = directory / "project"
        project.mkdir()
        os.chown(project, UID, GID)
        (project / "root").touch()

        done = as_ordinary_user(sys.executable, "-c", CREATE, directory)

        assert (done.stdout, done.stderr) == (f"PLACE_FOREIGN_OWNERS {project}/root\n", "")
        assert not (directory / "draft").exists()


def test_only_so_many_files_are_looked_at_as_was_asked() -> None:
    if os.geteuid() == 0:
        pytest.skip("root knows everyone")
    assert foreign_owner("/", looks_most=0) is None
    assert foreign_owner("/", looks_most=1) == "/"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_root_sees_every_owner_and_what_is_changed_keeps_its_own(workshop: Workshop) -> None:
    others = workshop.project / "others"
    others.write_text("theirs")
    others.chmod(0o666)
    os.chown(others, UID, GID)
    before = others.stat()
    with workshop.place() as place:
        assert workshop.sh(place, "stat -c %u:%g others; echo ours >>others") == f"{UID}:{GID}\n"

    changed = workshop.draft / "upper" / "others"
    assert changed.read_text() == "theirsours\n"
    assert (changed.stat().st_uid, changed.stat().st_gid) == (UID, GID)
    assert (others.read_text(), others.stat().st_mtime_ns) == ("theirs", before.st_mtime_ns)
    others.unlink()
