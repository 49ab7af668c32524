"""The workbench of one project: whoever holds it may change the project and its drafts.

What a kill or a power loss interrupted is finished or undone when it is held next, before anything
else happens, and whoever holds it is told which.
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
    """Name what the system refused and nobody below has named: mostly that files run short."""
    try:
        yield
    except OSError as error:
        raise disk_failure(error, path=error.filename or str(path)) from error


class OpenedWorkbench(NamedTuple):
    """A workbench that is held, and what was finished or undone when it was opened."""

    handle: WorkbenchHandle
    recovered: tuple[Recovered, ...]


class Workbench:
    """The workbench of one project; it opens nothing until it is held."""

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
        """The workbench of a project, below the directory in which state is kept.

        However the project is spelled, it is the same workbench; ProjectRefused if it is none.
        """
        try:
            real = project.resolve(strict=True)
        except (OSError, RuntimeError) as error:
            reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
            raise ProjectRefused(path=str(project), reason=reason) from error
        if not real.is_dir():
            raise ProjectRefused(path=str(project), reason="it is no directory")
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
        """A word for the project, made from where it is."""
        return self._bench.id

    @property
    def project(self) -> Path:
        """Where the project is, without links."""
        return self._bench.project

    @property
    def directory(self) -> Path:
        """Where all that is kept of the project is."""
        return self._bench.directory

    @property
    def is_used(self) -> bool:
        """Whether anything was ever kept of the project; to hold it makes a place for that."""
        return self.directory.is_dir()

    @contextmanager
    def locked(self, patience: float = PATIENCE) -> Generator[OpenedWorkbench]:
        """Have the workbench alone, with nothing in it half done; WorkbenchHeld after a while."""
        context = self._bench
        with ExitStack() as stack:
            stack.enter_context(_translate_os_errors(context.directory))
            if self._held is not None:
                yield OpenedWorkbench(self._held, recover_all(self._held))
                return
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
        """The workbench for several deeds: opened once, and nobody comes between them.

        What it gives belongs to this thread, and is an ordinary workbench again afterwards.
        """
        with self.locked(patience) as (handle, _):
            mine = Workbench(self._bench)
            mine._held = handle
            try:
                yield mine
            finally:
                mine._held = None

    def _write_project_record(self) -> None:
        """Write down of which project this is, for people who look into the directory."""
        path = self.directory / _RECORD
        if not path.exists():
            said = {"version": _VERSION, "id": self.id, "project": self._bench.display_path}
            remove_leftovers(self._bench.ports.disk, path)
            replace_file(self._bench.ports.disk, path, (msgspec.json.encode(said) + b"\n",))
