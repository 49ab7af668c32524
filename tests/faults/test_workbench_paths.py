"""Whatever paths and links an agent makes, nothing outside of project and draft is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.confine import end, places
from holdfast.failures import Failure
from holdfast.nouns import PathInvalid, RelativePath
from holdfast.workbench import (
    Chmod,
    DeletePath,
    DraftMode,
    FileStep,
    NewContent,
    NewDirectory,
    NewFile,
    NewLink,
    PublishOrder,
    Rename,
    RestoreOrder,
    Workbench,
    apply,
    checkpoint,
    open_draft,
    publish,
    restore,
)
from tests.workbench.benches import sight

pytestmark = pytest.mark.promise("W10")


def at(spelling: str) -> RelativePath:
    return RelativePath.of(spelling)


@dataclass(frozen=True, slots=True)
class Ground:
    """A project with links that lead out of it, and what is outside."""

    base: Path

    @property
    def project(self) -> Path:
        return self.base / "project"

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    @property
    def bench(self) -> Workbench:
        return Workbench.at(self.project, self.base / "state")


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    made = Ground(tmp_path)
    (made.outside / "deep").mkdir(parents=True)
    (made.outside / "file").write_text("secret")
    (made.outside / "deep" / "file").write_text("deep secret")
    (made.project / "inside").mkdir(parents=True)
    (made.project / "inside" / "file").write_text("inside")
    (made.project / "out").symlink_to(made.outside)
    (made.project / "near").symlink_to("../outside")
    (made.project / "file").symlink_to(made.outside / "file")
    (made.project / "dangling").symlink_to(made.outside / "new")
    yield made
    for each in list(places()):
        if Path(each.holder.directory).is_relative_to(tmp_path):
            end(each.holder.directory)


@pytest.mark.parametrize(
    "spelling",
    ["..", "../outside/file", "a/../../outside/file", "/etc/passwd", "a//b", ".", "", "a\0b"],
)
def test_no_path_is_spelled_that_leads_out(spelling: str) -> None:
    with pytest.raises(PathInvalid):
        at(spelling)


STEPS: list[tuple[FileStep, ...]] = [
    *((NewFile(at(f"{link}/new"), b"x"),) for link in ("out", "near", "out/deep")),
    *((NewContent(at(f"{link}/file"), b"x"),) for link in ("out", "near", "out/deep")),
    *((DeletePath(at(f"{link}/file")),) for link in ("out", "near")),
    *((Chmod(at(f"{link}/file"), 0o777),) for link in ("out", "near")),
    (Chmod(at("out"), 0o700),),
    (NewDirectory(at("out/made")),),
    (NewLink(at("out/link"), b"x"),),
    (Rename(at("inside/file"), at("out/file2")),),
    (Rename(at("out/file"), at("inside/taken")),),
    (NewContent(at("file"), b"through a link"),),
    (NewFile(at("dangling"), b"through a link"),),
    (DeletePath(at("out")),),
    (DeletePath(at("file")),),
    (NewLink(at("fresh"), b"../outside"), NewFile(at("fresh/new"), b"x")),
    (
        DeletePath(at("inside")),
        NewLink(at("inside"), b"../outside"),
        NewFile(at("inside/new"), b"x"),
    ),
    (Rename(at("out"), at("renamed")), NewFile(at("renamed/new"), b"x")),
]


@pytest.mark.parametrize("mode", [DraftMode.COPY, DraftMode.OVERLAY])
def test_no_batch_and_no_publication_leads_out(ground: Ground, mode: DraftMode) -> None:
    before, landed = sight(ground.outside), 0
    for steps in STEPS:
        draft = open_draft(ground.bench, mode).id
        try:
            apply(ground.bench, draft, steps)
            publish(ground.bench, PublishOrder(draft=draft))
            landed += 1
        except Failure as failure:
            assert failure.code in {"BATCH_REFUSED", "CONFLICT_PUBLISHED_CHANGED"}, (steps, failure)
        assert sight(ground.outside) == before, steps

    assert landed >= 2, "what is no step outside is possible"


def swap_inside(ground: Ground) -> None:
    """Make a directory of the project a link that leads out."""
    (ground.project / "inside").rename(ground.base / "moved")
    (ground.project / "inside").symlink_to(ground.outside)


def swap_file(ground: Ground) -> None:
    """Make a file of the project a link that leads out."""
    (ground.project / "inside" / "file").unlink()
    (ground.project / "inside" / "file").symlink_to(ground.outside / "file")


@pytest.mark.parametrize("swap", [swap_inside, swap_file])
def test_no_restore_follows_a_link_that_came_later(
    ground: Ground, swap: Callable[[Ground], None]
) -> None:
    made, was = checkpoint(ground.bench), sight(ground.project)
    before = sight(ground.outside)
    swap(ground)
    restore(ground.bench, RestoreOrder(checkpoint=made.id))

    assert sight(ground.project) == was
    assert sight(ground.outside) == before
