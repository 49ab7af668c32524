"""A process that publishes, while a person saves just before the first file is exchanged."""

from __future__ import annotations

from pathlib import Path

from holdfast.failures import Failure
from holdfast.nouns import RelativePath
from holdfast.workbench import (
    DraftMode,
    NewContent,
    PublishOrder,
    Workbench,
    apply,
    open_draft,
    publish,
)
from holdfast.workbench.model import WorkProgress
from tests.faults.workbench_habits import take_up
from tests.faults.workbench_sights import make_project

SAVED = "src/file1"
BY_PERSON = b"saved by the person\n"


def publish_while_saving(base: Path, habits: tuple[str, ...]) -> None:
    """Publish with these habits, and write down how it ended."""
    take_up(habits)
    project = base / "project"
    make_project(project)

    def save(progress: WorkProgress) -> None:
        if progress.what == "change":
            (project / SAVED).write_bytes(BY_PERSON)

    workbench = Workbench.at(project, base / "state", on_progress=save)
    draft = open_draft(Workbench.at(project, base / "state"), DraftMode.COPY).id
    steps = [NewContent(RelativePath.of(SAVED), b"written by the agent\n")]
    apply(Workbench.at(project, base / "state"), draft, steps)
    try:
        publish(workbench, PublishOrder(draft=draft))
        result = "published"
    except Failure as failure:
        result = failure.code
    (base / "ended").write_text(result)
