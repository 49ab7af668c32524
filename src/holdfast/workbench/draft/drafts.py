"""Drafts of one project: create, find, save and remove, each atomically.

A draft exists once its directory is renamed to its final name, and is gone once it is renamed away;
leftovers of a kill have other names and are removed when the drafts are opened next.
"""

from __future__ import annotations

import json
import os
import pwd
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast.confine import PlaceSpec, end, is_within
from holdfast.confine.failures import ForeignOwners, PlaceUnavailable
from holdfast.failures import Failure
from holdfast.nouns import Id, IdInvalid, PathInvalid, RelativePath, check_id
from holdfast.workbench.draft.overlay_mount import find_or_create_place
from holdfast.workbench.draft.project_copy import copy_project
from holdfast.workbench.failures import (
    DraftDamaged,
    DraftMissing,
    ProjectRefused,
    ReflinkUnavailable,
    WorktreeUncovered,
)
from holdfast.workbench.git.repository import git_data_elsewhere
from holdfast.workbench.model import (
    Draft,
    DraftMode,
    ProgressCallback,
    Revision,
    UncoveredPath,
    UncoveredReason,
    ignore_progress,
)
from holdfast.workbench.scan.directory import mount_points
from holdfast.workbench.scan.file_content import raise_resource_error
from holdfast.workbench.tree_removal import remove_whole
from holdfast.world import (
    Clock,
    Disk,
    IdMaker,
    disk_failure,
    make_private,
    remove_leftovers,
    replace_file,
)
from holdfast.world.failures import DiskMissing

# Type and source of our overlay mounts.
_OURS = b"overlay holdfast"


def refuse_unfit_project(project: Path, *, kept_in: Path) -> None:
    """Raise ProjectRefused, with the reason, if no draft of a project is possible.

    `kept_in` is the directory for drafts.
    """
    reason = _reason(os.path.realpath(project), os.path.realpath(kept_in))
    if reason is not None:
        raise ProjectRefused(path=str(project), reason=reason)


def _reason(project: str, kept_in: str) -> str | None:
    if not os.path.isdir(project):
        return "it is not a directory"
    if project in {"/", _home()}:
        return "it is the root or a home directory; choose a directory in it"
    if is_within(kept_in, (project,)):
        return f"its own state would lie inside of it, in {kept_in}"
    if any(_is_draft(above) for above in (Path(project), *Path(project).parents)):
        return "it is part of a draft itself"
    return "it is seen through a draft already" if is_within(project, _covered()) else None


def _home() -> str | None:
    with suppress(KeyError):
        return os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir)
    return None


def _is_draft(directory: Path) -> bool:
    return directory.name in {"copy", "place"} and (directory.parent / "draft.json").exists()


def _covered() -> tuple[str, ...]:
    """Mount points of our overlays in this process."""
    return tuple(map(os.fsdecode, mount_points(_OURS)))


PREFIX: Final = "draft"
VERSION: Final = 1


def encode_draft(draft: Draft) -> bytes:
    """Encode the record of a draft as ASCII JSON: paths may hold arbitrary bytes."""
    revisions = [
        {
            "number": each.number,
            "checkpoint": each.checkpoint,
            "at_ms": each.at_ms,
            "cause": each.cause,
            "base": each.base,
            "back_to": each.back_to,
        }
        for each in draft.revisions
    ]
    said: dict[str, object] = {
        "version": VERSION,
        "id": draft.id,
        "project": draft.project,
        "mode": draft.mode,
        "at_ms": draft.at_ms,
        "base": draft.base,
        "also": list(draft.also),
        "reason": draft.reason,
        "left_out": [[str(each.path), each.reason] for each in draft.left_out],
        "revisions": revisions,
    }
    return _written({**said, "check": _check(said)})


def decode_draft(raw: bytes) -> Draft:
    """Decode a record; raises ValueError with the reason."""
    try:
        said: Any = json.loads(raw)  # Any: it may be anything
        if said["version"] != VERSION:
            raise ValueError(f"its version is {said['version']}, and {VERSION} is known")
        if said.pop("check") != _check(said):
            raise ValueError("its checksum does not match")
        return Draft(
            id=Id(_text(said["id"])),
            project=_text(said["project"]),
            mode=DraftMode(said["mode"]),
            at_ms=_number(said["at_ms"]),
            base=_id(said["base"]),
            also=tuple(map(_text, said["also"])),
            reason=_text(said["reason"]),
            left_out=tuple(
                UncoveredPath(RelativePath.from_text(_text(path)), UncoveredReason(reason))
                for path, reason in said["left_out"]
            ),
            revisions=tuple(map(_revision, said["revisions"])),
        )
    except (KeyError, TypeError, RecursionError, PathInvalid) as error:
        raise ValueError(f"a field is missing or has the wrong type: {error}") from error


def _written(said: Mapping[str, object]) -> bytes:
    """Encode with msgspec, ten times faster, where it gives the same ASCII bytes as json."""
    with suppress(ValueError, OverflowError):
        # A surrogate, or a number out of range.
        data = msgspec.json.encode(said)
        if data.isascii() and b"\x7f" not in data:
            return msgspec.json.format(data, indent=1) + b"\n"
    return json.dumps(said, indent=1).encode("ascii") + b"\n"


def _check(said: Mapping[str, object]) -> str:
    return f"{zlib.crc32(_written(said)):08x}"


def _revision(said: Mapping[str, object]) -> Revision:
    return Revision(
        number=_number(said["number"]),
        checkpoint=Id(_text(said["checkpoint"])),
        at_ms=_number(said["at_ms"]),
        cause=_text(said["cause"]),
        base=_id(said["base"]),
        back_to=None if said["back_to"] is None else _number(said["back_to"]),
    )


def _text(said: object) -> str:
    if not isinstance(said, str):
        raise TypeError(f"{said!r} is not text")
    return said


def _id(said: object) -> Id | None:
    return None if said is None else Id(_text(said))


def _number(said: object) -> int:
    if not isinstance(said, int) or isinstance(said, bool):
        raise TypeError(f"{said!r} is not a number")
    return said


_NEW, _GONE = ".new-", ".gone-"
_RECORD, _PLACE, _COPY = "draft.json", "place", "copy"
_UPPER = Path(_PLACE, "upper")
# Another mode may be possible.
_OTHERWISE = (PlaceUnavailable, ForeignOwners, ReflinkUnavailable)


class Drafts:
    """Drafts of one project; the caller holds the workbench lock.

    `hidden` are directories of our own state that must not be visible in a draft. Leftovers of
    killed processes are removed on construction.
    """

    def __init__(
        self,
        directory: Path,
        project: Path,
        disk: Disk,
        clock: Clock,
        ids: IdMaker,
        *,
        hidden: tuple[str, ...] = (),
    ) -> None:
        self.directory = directory
        self.project = Path(os.path.realpath(project))
        self._disk = disk
        self._clock = clock
        self._ids = ids
        self._hidden = hidden
        for name in self._names():
            if name.startswith((_NEW, _GONE)):
                with suppress(Failure):
                    # Retried on the next opening.
                    remove_whole(directory / name)

    def make(
        self,
        mode: DraftMode | None = None,
        *,
        id: Id | None = None,
        on_progress: ProgressCallback = ignore_progress,
    ) -> Draft:
        """Create a draft that shows the project as it is; durable on return.

        Without a mode the best possible one is chosen, and `Draft.reason` says why better ones
        failed. Raises ProjectRefused or WorktreeUncovered, and with a mode the failure of that
        mode.
        """
        refuse_unfit_project(self.project, kept_in=self.directory)
        elsewhere = git_data_elsewhere(self.project)
        reasons: list[str] = []
        for each in (mode,) if mode is not None else DraftMode:
            draft = Draft(
                id=id or self._ids.make(PREFIX),
                project=str(self.project),
                mode=each,
                at_ms=int(self._clock.now() * 1000),
                also=elsewhere,
                reason="; ".join(reasons),
            )
            try:
                return self._made(draft, on_progress)
            except _OTHERWISE as failure:
                if mode is not None:
                    raise
                reasons.append(f"{each}: {_obstacle(failure)}")
        raise AssertionError("a copy is always possible, or raises something else")

    def all(self) -> tuple[Draft, ...]:
        """All readable drafts, oldest first."""
        return tuple(each for each in self.each() if isinstance(each, Draft))

    def damaged(self) -> tuple[DraftDamaged, ...]:
        """Failures of unreadable drafts; their files are never removed."""
        return tuple(each for each in self.each() if isinstance(each, DraftDamaged))

    def each(self) -> Iterator[Draft | DraftDamaged]:
        """Yield every draft, oldest first, or the failure of an unreadable one."""
        for name in self._ids_known():
            try:
                yield self._read(name)
            except DraftDamaged as failure:
                yield failure

    def find(self, id: str | None = None) -> Draft:
        """Return the draft with an id or unique prefix; without id, the newest.

        Raises DraftMissing.
        """
        wanted = "" if id is None else id.removeprefix(f"{PREFIX}_")
        names = [name for name in self._ids_known() if name.startswith(f"{PREFIX}_{wanted}")]
        chosen = names[-1:] if id is None else names
        if len(chosen) != 1 or id == "":
            raise DraftMissing(draft=id or "", project=str(self.project))
        return self._read(chosen[0])

    def save(self, draft: Draft) -> None:
        """Write the record of a draft durably."""
        record = self.home(draft) / _RECORD
        remove_leftovers(self._disk, record)
        replace_file(self._disk, record, (encode_draft(draft),))

    def remove(self, draft: Draft) -> None:
        """End all processes of a draft and remove it durably; its space may be reclaimed later."""
        home = self.home(draft)
        end(home / _PLACE)
        gone = home.with_name(f"{_GONE}{draft.id}")
        try:
            self._disk.rename(home, gone)
        except DiskMissing:
            return
        self._disk.sync_directory(self.directory)
        with suppress(Failure):
            # Retried on the next opening.
            remove_whole(gone)

    def home(self, draft: Draft) -> Path:
        """Directory of a draft."""
        return self.directory / draft.id

    def copy_of(self, draft: Draft) -> Path:
        """Directory of the copy, for modes other than overlay."""
        return self.home(draft) / _COPY

    def written(self, draft: Draft) -> Path:
        """Directory with all written files: the upper layer, or the copy."""
        return self.home(draft) / _UPPER if draft.mode is DraftMode.OVERLAY else self.copy_of(draft)

    def spec(self, draft: Draft) -> PlaceSpec:
        """Place of an overlay draft."""
        return PlaceSpec(
            directory=str(self.home(draft) / _PLACE),
            project=draft.project,
            also=draft.also,
            hidden=self._hidden,
        )

    def _made(self, draft: Draft, on_progress: ProgressCallback) -> Draft:
        new = self.directory / f"{_NEW}{draft.id}"
        with ExitStack() as undo:
            undo.callback(remove_whole, new)
            self._make_directory(new)
            if draft.mode is not DraftMode.OVERLAY:
                draft = self._copied(draft, new / _COPY, on_progress)
            replace_file(self._disk, new / _RECORD, (encode_draft(draft),))
            # The rename makes the draft visible, after its record is durable.
            self._disk.rename(new, self.home(draft))
            undo.pop_all()
            undo.callback(self.remove, draft)
            self._disk.sync_directory(self.directory)
            if draft.mode is DraftMode.OVERLAY:
                find_or_create_place(self.spec(draft)).close()
            undo.pop_all()
        return draft

    def _copied(self, draft: Draft, copy: Path, on_progress: ProgressCallback) -> Draft:
        if draft.also:
            reason = draft.reason or f"a {draft.mode} does not cover it"
            raise WorktreeUncovered(
                project=draft.project, outside=", ".join(draft.also), reason=reason
            )
        shares = draft.mode is DraftMode.REFLINK
        left_out = copy_project(self.project, copy, shares=shares, on_progress=on_progress)
        return replace(draft, left_out=left_out)

    def _make_directory(self, new: Path) -> None:
        try:
            is_first = not self.directory.exists()
            make_private(new)
        except OSError as error:
            raise disk_failure(error, path=str(new)) from error
        if is_first:
            self._disk.sync_directory(self.directory.parent)

    def _read(self, name: str) -> Draft:
        path = self.directory / name / _RECORD
        try:
            draft = decode_draft(path.read_bytes())
            if draft.id != name:
                raise ValueError(f"it is the record of {draft.id}")
        except (OSError, ValueError) as error:
            if isinstance(error, OSError):
                raise_resource_error(error, bytes(path))
            reason = str(error)
            raise DraftDamaged(draft=name, path=str(path.parent), reason=reason) from error
        return draft

    def _ids_known(self) -> list[Id]:
        """Ids of all drafts, oldest first."""
        known: list[Id] = []
        for name in self._names():
            with suppress(IdInvalid):
                known.append(check_id(name, PREFIX))
        return known

    def _names(self) -> list[str]:
        try:
            return self._disk.names(self.directory)
        except DiskMissing:
            return []


def _obstacle(failure: Failure) -> str:
    """Why a mode was not possible, in a few words."""
    match failure:
        case PlaceUnavailable(reason=reason) | ReflinkUnavailable(reason=reason):
            return reason
        case ForeignOwners(example=example):
            return f"it holds files of other users, such as {example}"
        case _:
            return failure.user_message
