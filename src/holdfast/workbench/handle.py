"""Handle of an open workbench: store, records and drafts, while its lock is held.

A draft that a process is about to enter looks unused until then. Such a process holds a shared
flock on the draft's `visitors` file, which the kernel releases if it dies; `is_draft_in_use` tests
it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Final

from holdfast.nouns import Id
from holdfast.workbench.draft.drafts import Drafts
from holdfast.workbench.draft.view import DraftView
from holdfast.workbench.failures import DraftDamaged, ProjectRefused
from holdfast.workbench.model import STAGE_PREFIX, Checkpoint, Draft, Occasion, ProgressCallback
from holdfast.workbench.records import WorkbenchRecords
from holdfast.workbench.store.store import CheckpointSource, Ports, Store
from holdfast.workbench.store.tree_queries import latest
from holdfast.workbench.transaction.site import TransactionSite, committed_name
from holdfast.world import IdMaker, disk_failure

PUBLISHED: Final = "published"
MARKER: Final = "marker.json"
_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@lru_cache(maxsize=64)
def joined_path(directory: Path, name: str) -> Path:
    """Join a path, cached: pathlib is slow and every operation needs the same few."""
    return directory / name


def encodable(text: str) -> str:
    """Escape surrogates, so that text from arbitrary bytes can be encoded as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkbenchContext:
    """Identity, directories and effects of a workbench."""

    id: str
    project: Path
    directory: Path
    ports: Ports
    on_progress: ProgressCallback

    @property
    def display_path(self) -> str:
        """The project path as text, with undecodable bytes escaped."""
        return encodable(str(self.project))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkbenchHandle:
    """An open workbench whose lock this process holds.

    `operation_numbers` counts its operations.
    """

    context: WorkbenchContext
    store: Store
    records: WorkbenchRecords
    drafts: Drafts
    ids: IdMaker
    operation_numbers: Iterator[int] = field(default_factory=count)

    def in_use(self) -> frozenset[Id]:
        """Return the checkpoints that drafts depend on.

        Raises DraftDamaged if one is unreadable.
        """
        every: set[Id | None] = set()
        for draft in self.drafts.each():
            if isinstance(draft, DraftDamaged):
                raise draft
            every.add(draft.base)
            every |= {id for each in draft.revisions for id in (each.checkpoint, each.base)}
        return frozenset(id for id in every if id is not None)

    def look(self) -> Checkpoint:
        """Make a checkpoint of the project; the latest one is returned if nothing changed."""
        return self.store.transaction(self._looked)

    def seen(self) -> Checkpoint:
        """Scan the project; `Store.record_checkpoint` makes the result a checkpoint."""
        return self.store.look(
            CheckpointSource(self.context.project, PUBLISHED, on_progress=self.context.on_progress)
        )

    @contextmanager
    def project_site(self) -> Generator[TransactionSite]:
        """Open the project for a transaction."""
        try:
            root = os.open(self.context.project, _OPEN)
        except OSError as error:
            raise ProjectRefused(
                path=str(self.context.project), reason=os.strerror(error.errno or 0)
            ) from error
        try:
            yield self._site(
                root, str(self.context.project), joined_path(self.context.directory, MARKER)
            )
        finally:
            os.close(root)

    def draft_site(self, draft: Draft, view: DraftView) -> TransactionSite:
        """Return an open draft as the site of a transaction."""
        return self._site(view.root, f"draft {draft.id}", self.marker_of(draft))

    def marker_of(self, draft: Draft) -> Path:
        """Path of a draft's transaction marker."""
        return self.drafts.home(draft) / MARKER

    def is_interrupted(self, draft: Draft) -> bool:
        """Whether a draft has a transaction that a dead process left."""
        stage = self.drafts.written(draft) / self._stage
        marker = self.marker_of(draft)
        return any(map(os.path.lexists, (marker, committed_name(marker), stage)))

    def _looked(self) -> Checkpoint:
        subject = CheckpointSource(
            self.context.project,
            PUBLISHED,
            on_progress=self.context.on_progress,
            like=latest(self.store, PUBLISHED),
        )
        return self.store.checkpoint(subject, Occasion.AUTO)

    @property
    def _stage(self) -> str:
        return f"{STAGE_PREFIX}{self.context.id}"

    def _site(self, root: int, name: str, marker: Path) -> TransactionSite:
        return TransactionSite(
            root=root,
            name=name,
            stage=self._stage,
            marker=marker,
            disk=self.context.ports.disk,
            release_reserve=self.store.object_store.reserve.release,
        )


_LOCK: Final = "visitors"
_OPEN_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def draft_in_use(home: Path) -> Generator[None]:
    """Hold the shared lock that keeps a draft from being removed as unused."""
    lock = _opened(home)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
        except OSError as error:
            raise disk_failure(error, path=str(home / _LOCK)) from error
        yield
    finally:
        os.close(lock)


def is_draft_in_use(home: Path) -> bool:
    """Whether the shared lock is held; no new holder can appear while the workbench is locked."""
    lock = _opened(home)
    try:
        # Succeeds only without shared holders; closing the descriptor releases it at once.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


def _opened(home: Path) -> int:
    try:
        return os.open(home / _LOCK, _OPEN_FLAGS, 0o600)
    except OSError as error:
        raise disk_failure(error, path=str(home / _LOCK)) from error
