"""Who cannot change a file inside is told before, with one example."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from holdfast.confine.failures import ForeignOwners
from holdfast.confine.ownership import foreign_owner, refuse_foreign_owners
from tests.parts.ordinary_user import (
    GID,
    UID,
    as_ordinary_user,
    ordinary_directory,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces")

LOOK = "import sys; from holdfast.confine.ownership import *; print(foreign_owner(sys.argv[1]))"


def test_what_is_ours_is_not_foreign(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "file").touch()
    (tmp_path / "nowhere").symlink_to("nothing")

    assert foreign_owner(tmp_path) is None
    refuse_foreign_owners(tmp_path)


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
