"""The drafts of one project: made, found, saved and removed, each whole or not at all.

A draft becomes one when its directory gets its name, and ceases to be one when it loses it: what a
kill leaves under another name is removed when the drafts are opened next.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from holdfast.confine import PlaceSpec, end
from holdfast.confine.failures import ForeignOwners, PlaceUnavailable
from holdfast.failures import Failure
from holdfast.nouns import Id, IdInvalid, check_id
from holdfast.workbench.contents import refuse_shortage
from holdfast.workbench.copying import copy_project
from holdfast.workbench.core.draft_record import PREFIX, decode_draft, encode_draft
from holdfast.workbench.failures import (
    DraftDamaged,
    DraftMissing,
    ReflinkUnavailable,
    WorktreeUncovered,
)
from holdfast.workbench.model import Draft, Mode, News, quiet
from holdfast.workbench.placing import held_place
from holdfast.workbench.premises import refuse_unfit_project
from holdfast.workbench.removing import remove_whole
from holdfast.workbench.worktrees import git_data_elsewhere
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

_NEW, _GONE = ".new-", ".gone-"
_RECORD, _PLACE, _COPY = "draft.json", "place", "copy"
_UPPER = Path(_PLACE, "upper")
_OTHERWISE = (PlaceUnavailable, ForeignOwners, ReflinkUnavailable)  # then another mode may do


class Drafts:
    """The drafts of one project, for the one who holds its workbench.

    `directory` is theirs alone; `hidden` are further directories of which nothing is to be seen in
    a draft's place: what we keep ourselves. What a kill left half made or half removed is removed.
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
                with suppress(Failure):  # it takes space, and does no harm until the next time
                    remove_whole(directory / name)

    def make(self, mode: Mode | None = None, *, id: Id | None = None, news: News = quiet) -> Draft:
        """Make a draft that shows the project as it is; durable when it returns.

        Without an id it gets a new one. Without a mode the best that is possible is taken, and the
        draft says what stood in the way of a better one. Raises ProjectRefused or
        WorktreeUncovered if there can be no draft, and what stands in its way if the mode was
        asked for.
        """
        refuse_unfit_project(self.project, kept_in=self.directory)
        elsewhere = git_data_elsewhere(self.project)
        reasons: list[str] = []
        for each in (mode,) if mode is not None else Mode:
            draft = Draft(
                id=id or self._ids.make(PREFIX),
                project=str(self.project),
                mode=each,
                at_ms=int(self._clock.now() * 1000),
                also=elsewhere,
                reason="; ".join(reasons),
            )
            try:
                return self._made(draft, news)
            except _OTHERWISE as failure:
                if mode is not None:
                    raise
                reasons.append(f"{each}: {_obstacle(failure)}")
        raise AssertionError("a copy is always possible, or raises something else")

    def all(self) -> tuple[Draft, ...]:
        """Every draft that can be read, the oldest first."""
        return tuple(each for each in self.each() if isinstance(each, Draft))

    def damaged(self) -> tuple[DraftDamaged, ...]:
        """What is wrong with the drafts that cannot be read; nothing of theirs is ever removed."""
        return tuple(each for each in self.each() if isinstance(each, DraftDamaged))

    def each(self) -> Iterator[Draft | DraftDamaged]:
        """Every draft, the oldest first; of one that cannot be read, what is wrong with it."""
        for name in self._ids_known():
            try:
                yield self._read(name)
            except DraftDamaged as failure:
                yield failure

    def find(self, id: str | None = None) -> Draft:
        """The draft of an id, or of the beginning of just one; without it, the newest."""
        wanted = "" if id is None else id.removeprefix(f"{PREFIX}_")
        names = [name for name in self._ids_known() if name.startswith(f"{PREFIX}_{wanted}")]
        chosen = names[-1:] if id is None else names
        if len(chosen) != 1 or id == "":
            raise DraftMissing(draft=id or "", project=str(self.project))
        return self._read(chosen[0])

    def save(self, draft: Draft) -> None:
        """Write down what is known of a draft; durable when it returns."""
        record = self.home(draft) / _RECORD
        remove_leftovers(self._disk, record)
        replace_file(self._disk, record, (encode_draft(draft),))

    def remove(self, draft: Draft) -> None:
        """End all that runs in a draft, and remove it; it is gone when it returns.

        Only that some of its space is not free yet may come later, if something cannot be removed.
        """
        home = self.home(draft)
        end(home / _PLACE)
        gone = home.with_name(f"{_GONE}{draft.id}")
        try:
            self._disk.rename(home, gone)
        except DiskMissing:
            return
        self._disk.sync_directory(self.directory)
        with suppress(Failure):  # what is left goes when the drafts are opened next
            remove_whole(gone)

    def home(self, draft: Draft) -> Path:
        """The directory of a draft."""
        return self.directory / draft.id

    def copy_of(self, draft: Draft) -> Path:
        """Where a draft that is a copy has it."""
        return self.home(draft) / _COPY

    def written(self, draft: Draft) -> Path:
        """Where all that was written in a draft lies, whether anybody holds it or not."""
        return self.home(draft) / _UPPER if draft.mode is Mode.OVERLAY else self.copy_of(draft)

    def spec(self, draft: Draft) -> PlaceSpec:
        """The place of a draft that is a layer."""
        return PlaceSpec(
            directory=str(self.home(draft) / _PLACE),
            project=draft.project,
            also=draft.also,
            hidden=self._hidden,
        )

    def _made(self, draft: Draft, news: News) -> Draft:
        new = self.directory / f"{_NEW}{draft.id}"
        with ExitStack() as undo:
            undo.callback(remove_whole, new)
            self._make_directory(new)
            if draft.mode is not Mode.OVERLAY:
                draft = self._copied(draft, new / _COPY, news)
            replace_file(self._disk, new / _RECORD, (encode_draft(draft),))
            self._disk.rename(new, self.home(draft))
            undo.pop_all()
            undo.callback(self.remove, draft)
            self._disk.sync_directory(self.directory)
            if draft.mode is Mode.OVERLAY:
                held_place(self.spec(draft)).close()
            undo.pop_all()
        return draft

    def _copied(self, draft: Draft, copy: Path, news: News) -> Draft:
        if draft.also:
            reason = draft.reason or f"a {draft.mode} does not cover it"
            raise WorktreeUncovered(
                project=draft.project, outside=", ".join(draft.also), reason=reason
            )
        shares = draft.mode is Mode.REFLINK
        left_out = copy_project(self.project, copy, shares=shares, news=news)
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
                raise ValueError(f"it tells of {draft.id}")
        except (OSError, ValueError) as error:
            if isinstance(error, OSError):
                refuse_shortage(error, bytes(path))
            reason = str(error)
            raise DraftDamaged(draft=name, path=str(path.parent), reason=reason) from error
        return draft

    def _ids_known(self) -> list[Id]:
        """The ids of all drafts, the oldest first."""
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
    """What stood in the way of a mode, in a few words."""
    match failure:
        case PlaceUnavailable(reason=reason) | ReflinkUnavailable(reason=reason):
            return reason
        case ForeignOwners(example=example):
            return f"it holds files of other users, such as {example}"
        case _:
            return failure.user_message
