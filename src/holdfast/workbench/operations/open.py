"""Workbench of one project: locking, opening, and recovery.

On every opening, transactions that a kill or power loss interrupted are finished or undone before
anything else, and the caller receives the list of them.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple, Self

import msgspec
from blake3 import blake3

from holdfast.workbench.draft.drafts import Drafts
from holdfast.workbench.failures import ProjectRefused
from holdfast.workbench.handle import WorkbenchContext, WorkbenchHandle
from holdfast.workbench.model import ProgressCallback, ignore_progress
from holdfast.workbench.operations.recovery import Recovered, recover_all
from holdfast.workbench.records import WorkbenchRecords
from holdfast.workbench.store.store import Ports, Store
from holdfast.world import IdMaker, disk_failure, remove_leftovers, replace_file

PATIENCE: Final = 10.0
_ID_DIGITS: Final = 16
_RECORD: Final = "project.json"
_VERSION: Final = 1


@contextmanager
def _translate_os_errors(path: Path) -> Generator[None]:
    """Raise remaining OSErrors, mostly EMFILE, as failures of the disk."""
    try:
        yield
    except OSError as error:
        raise disk_failure(error, path=error.filename or str(path)) from error


class OpenedWorkbench(NamedTuple):
    """Handle of a locked workbench, and what was recovered on opening."""

    handle: WorkbenchHandle
    recovered: tuple[Recovered, ...]


class Workbench:
    """Workbench of one project; opens nothing before it is locked."""

    def __init__(self, context: WorkbenchContext) -> None:
        self._bench = context
        self._held: WorkbenchHandle | None = None
        self._records = WorkbenchRecords.open(context.directory / "meta", context.ports)

    @classmethod
    def at(
        cls,
        project: Path,
        state: Path,
        *,
        ports: Ports | None = None,
        on_progress: ProgressCallback = ignore_progress,
    ) -> Self:
        """Return the workbench of a project below a state directory.

        All spellings of the path give the same one; raises ProjectRefused.
        """
        try:
            real = project.resolve(strict=True)
        except (OSError, RuntimeError) as error:
            reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
            raise ProjectRefused(path=str(project), reason=reason) from error
        if not real.is_dir():
            raise ProjectRefused(path=str(project), reason="it is not a directory")
        id = blake3(os.fsencode(real)).hexdigest()[:_ID_DIGITS]
        directory = state.resolve() / "workbench" / id
        if directory.is_relative_to(real):
            reason = (
                f"Holdfast keeps its own state inside of it, in {state}. Change to the directory "
                "of a project, or name one with -C DIR; to work on all of it, set HOLDFAST_HOME "
                "to a directory outside of it"
            )
            raise ProjectRefused(path=str(project), reason=reason)
        return cls(
            WorkbenchContext(
                id=id,
                project=real,
                directory=directory,
                ports=ports or Ports(),
                on_progress=on_progress,
            )
        )

    @property
    def id(self) -> str:
        """Hash of the project path."""
        return self._bench.id

    @property
    def project(self) -> Path:
        """Project path without links."""
        return self._bench.project

    @property
    def directory(self) -> Path:
        """Directory of all workbench data of the project."""
        return self._bench.directory

    @property
    def is_used(self) -> bool:
        """Whether workbench data exist; locking creates them."""
        return self.directory.is_dir()

    @contextmanager
    def locked(self, patience: float = PATIENCE) -> Generator[OpenedWorkbench]:
        """Lock and open the workbench after recovery.

        Raises WorkbenchHeld after `patience` seconds.
        """
        context = self._bench
        with ExitStack() as stack:
            stack.enter_context(_translate_os_errors(context.directory))
            if self._held is not None:
                yield OpenedWorkbench(self._held, recover_all(self._held))
                return
            # The lock is taken by the store; everything after it, recovery included, runs
            # exclusively.
            store = Store.open(context.directory, context.ports, patience=patience)
            stack.callback(store.close)
            records = stack.enter_context(self._records)
            ids = IdMaker(context.ports.clock, context.ports.chance)
            drafts = Drafts(
                context.directory / "drafts",
                context.project,
                context.ports.disk,
                context.ports.clock,
                ids,
                hidden=(str(context.directory.parent.parent),),
            )
            handle = WorkbenchHandle(
                context=context, store=store, records=records, drafts=drafts, ids=ids
            )
            self._write_project_record()
            yield OpenedWorkbench(handle, recover_all(handle))

    @contextmanager
    def kept_open(self, patience: float = PATIENCE) -> Generator[Workbench]:
        """Open the workbench once for several operations, with the lock held in between.

        The result belongs to this thread; after the block it locks and opens as usual.
        """
        with self.locked(patience) as (handle, _):
            mine = Workbench(self._bench)
            mine._held = handle
            try:
                yield mine
            finally:
                mine._held = None

    def _write_project_record(self) -> None:
        """Write the project path into the directory, for people who look there."""
        path = self.directory / _RECORD
        if not path.exists():
            said = {"version": _VERSION, "id": self.id, "project": self._bench.display_path}
            remove_leftovers(self._bench.ports.disk, path)
            replace_file(self._bench.ports.disk, path, (msgspec.json.encode(said) + b"\n",))
