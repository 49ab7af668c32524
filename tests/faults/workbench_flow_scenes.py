"""What a person and an agent can do with a workbench, by its face."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from holdfast.nouns import RelativePath
from holdfast.workbench import (
    Chmod,
    DeletePath,
    DraftMode,
    FileStep,
    NewContent,
    NewDirectory,
    NewFile,
    PublishOrder,
    Rename,
    RestoreOrder,
    Workbench,
    apply,
    checkpoint,
    checkpoints,
    discard,
    list_drafts,
    open_draft,
    prune_checkpoints,
    publish,
    recover,
    restore,
    undo,
)
from holdfast.workbench.draft.view import open_view
from holdfast.workbench.failures import TransactionUnsettled
from holdfast.world import disk_failure
from holdfast.world.failures import DiskFull, DiskIo, DiskQuota, DiskUnusable
from tests.faults.workbench_scene import Home, Scene, end_places
from tests.faults.workbench_sights import (
    Kept,
    Views,
    edit_project,
    make_project,
    missing_from,
)
from tests.workbench.benches import sight

_QUOTA_BYTES = 1  # whatever may go, goes
# A draft is gone, but its directory was not synced: it might come back.
_NAME_NOT_SYNCED = frozenset({DiskIo.code, DiskFull.code, DiskQuota.code, DiskUnusable.code})


def _at(home: Home) -> Workbench:
    return Workbench.at(home.project, home.state)


def _path(spelling: str) -> RelativePath:
    return RelativePath.of(spelling)


STEPS: tuple[FileStep, ...] = (
    NewContent(_path("src/file1"), b"by the agent\n" * 20),
    NewFile(_path("made/by/agent"), b"new\n" * 9, 0o755),
    NewDirectory(_path("void")),
    DeletePath(_path("src/deep/old")),
    Rename(_path("src/file2"), _path("src/file9")),
    Chmod(_path("src/tool"), 0o700),
)
FURTHER: tuple[FileStep, ...] = (
    NewContent(_path("readme"), b"written further\n"),
    DeletePath(_path("src/file0")),
    NewFile(_path("more"), b"more\n"),
)


# How the world is before.


def _lay_out(home: Home) -> Kept:
    """A project with one checkpoint, edited since."""
    make_project(home.project)
    made = checkpoint(_at(home))
    kept = {str(made.id): sight(home.project)}
    edit_project(home.project)
    return kept


def _lay_out_draft(home: Home, mode: DraftMode = DraftMode.COPY) -> Kept:
    """A draft with one revision."""
    make_project(home.project)
    made = checkpoint(_at(home))
    draft = open_draft(_at(home), mode)
    applied = apply(_at(home), draft.id, STEPS, "first")
    kept = {str(made.id): sight(home.project)}
    kept[str(applied.revision.checkpoint)] = _views(home)["draft 0"]
    end_places(home)
    return kept


def _lay_out_layer(home: Home) -> Kept:
    return _lay_out_draft(home, DraftMode.OVERLAY)


def _lay_out_undone(home: Home) -> Kept:
    """A draft with two revisions."""
    kept = _lay_out_draft(home)
    applied = apply(_at(home), list_drafts(_at(home))[0].id, FURTHER, "further")
    kept[str(applied.revision.checkpoint)] = _views(home)["draft 0"]
    return kept


def _lay_out_many(home: Home) -> Kept:
    """Many checkpoints, of which most may go, and a draft that builds on one."""
    kept = _lay_out_draft(home)
    for number in range(6):
        (home.project / "changing").write_bytes(b"%d" % number * 9000)
        kept[str(checkpoint(_at(home)).id)] = sight(home.project)
    going = prune_checkpoints(
        _at(home), quota_bytes=_QUOTA_BYTES, with_manual=True, is_trial=True
    ).checkpoints
    assert len(going) > 3, going
    return {id: seen for id, seen in kept.items() if id not in going}


# What is done.


def _checkpoint(home: Home) -> dict[str, str]:
    return {checkpoint(_at(home)).id: "project"}


def _batch(home: Home) -> dict[str, str]:
    apply(_at(home), list_drafts(_at(home))[0].id, FURTHER, "further")
    return {}


def _first_batch(home: Home) -> dict[str, str]:
    apply(_at(home), None, FURTHER, "further")
    return {}


def _publish(home: Home) -> dict[str, str]:
    published = publish(_at(home), PublishOrder(key="publish"))
    assert published.checkpoint is not None
    return {published.checkpoint: "project"}


def _restore(home: Home) -> dict[str, str]:
    first = checkpoints(_at(home))[-1].id
    return {restore(_at(home), RestoreOrder(checkpoint=first, key="restore")).before: "project"}


def _undo(home: Home) -> dict[str, str]:
    undo(_at(home))
    return {}


def _discard(home: Home) -> dict[str, str]:
    discard(_at(home))
    return {}


def _prune(home: Home) -> dict[str, str]:
    prune_checkpoints(_at(home), quota_bytes=_QUOTA_BYTES, with_manual=True)
    return {}


def _rebuild(home: Home) -> dict[str, str]:
    index = _at(home).directory / "wb.db"
    try:
        index.write_bytes(b"no database")
    except OSError as error:
        raise disk_failure(error, path=str(index)) from error
    recover(_at(home))
    return {}


# How it is looked at.


def _reopen(home: Home) -> list[str]:
    return [found.result for found in recover(_at(home))]


def _views(home: Home) -> Views:
    """The project and every draft, as one sees it who is in it."""
    views = {"project": sight(home.project)}
    with _at(home).locked() as (handle, _), ExitStack() as stack:
        for number, draft in enumerate(handle.drafts.all()):
            view = stack.enter_context(open_view(handle.drafts, draft))
            views[f"draft {number}"] = sight(Path(f"/proc/self/fd/{view.root}/."))
    return views


def _read_back(home: Home, kept: Kept) -> list[str]:
    with _at(home).locked() as (handle, _):
        return missing_from(handle.store, kept)


def _scene(
    plan_operations: Callable[[Home], Kept],
    act: Callable[[Home], dict[str, str]],
    *,
    is_repeatable: bool = True,
    is_layered: bool = False,
    undecided: frozenset[str] = frozenset({TransactionUnsettled.code}),
) -> Scene:
    return Scene(
        plan_operations, act, _reopen, _views, _read_back, is_repeatable, undecided, is_layered
    )


FLOW_SCENES: dict[str, Scene] = {
    "checkpoint": _scene(_lay_out, _checkpoint),
    "first batch": _scene(_lay_out, _first_batch, is_layered=True),
    "batch": _scene(_lay_out_draft, _batch),
    "batch in a layer": _scene(_lay_out_layer, _batch, is_layered=True),
    "publish": _scene(_lay_out_draft, _publish),
    "publish a layer": _scene(_lay_out_layer, _publish, is_layered=True),
    "restore": _scene(_lay_out, _restore),
    "undo": _scene(_lay_out_undone, _undo, is_repeatable=False),
    "discard": _scene(_lay_out_draft, _discard, is_repeatable=False, undecided=_NAME_NOT_SYNCED),
    "discard a layer": _scene(
        _lay_out_layer, _discard, is_repeatable=False, is_layered=True, undecided=_NAME_NOT_SYNCED
    ),
    "prune": _scene(_lay_out_many, _prune),
    "rebuild": _scene(_lay_out_draft, _rebuild),
}
