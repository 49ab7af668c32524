"""What a draft shows, opened: its root to write to, and what was written since the project.

Of a layer everybody sees the same through its place: those inside by its namespaces, we by the
descriptor of its root. Whoever held the place may have died; then it is made anew over what was
written. Nothing is ever written to the layer itself.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

from holdfast.confine import MergedRootFiles, Place, PlaceSpec, end, remount
from holdfast.confine.failures import PlaceLost
from holdfast.failures import Failure
from holdfast.nouns import RelativePath
from holdfast.workbench.diff.tree_changes import LayerEntry, OverlayLayer, nearest, touched
from holdfast.workbench.draft.drafts import Drafts
from holdfast.workbench.draft.overlay_mount import (
    drop_layer,
    find_or_create_place,
    layer_of,
    processes_in,
    remove_old_layer,
)
from holdfast.workbench.model import Draft, DraftMode, TouchedPaths
from holdfast.workbench.scan.directory import is_dead
from holdfast.workbench.scan.file_content import raise_resource_error
from holdfast.workbench.scan.overlay_reader import copy_up, listed, make_opaque
from holdfast.workbench.scan.scanner import hides_mapped_writes
from holdfast.world import disk_failure

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES_MAX = 5
_LAYOUT = "layout"
_REMOVED = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE}  # while it was looked at
_NAMES_LARGE, _BYTES_LARGE = 1000, 64 * 2**20


class DraftView:
    """A draft that is open: `root` is a descriptor of the directory that stands for the project.

    `place` is where processes run that are to see it at the project's own path; None if it is a
    copy, which is seen by everyone where it is. The descriptor keeps its number until it is closed.
    """

    def __init__(
        self, root: int, place: Place | None = None, spec: PlaceSpec | None = None
    ) -> None:
        """Take over the descriptor and the place; `close` gives them back."""
        self.root = root
        self.place = place
        self._spec = spec
        self._seen: frozenset[LayerEntry] | None = None

    @property
    def processes(self) -> int:
        """How many processes are inside; of a copy nobody knows, so 0."""
        return 0 if self.place is None else processes_in(self.place)

    def touched(self) -> TouchedPaths | None:
        """Where the draft may differ from the project; None if everything must be looked at.

        It costs what was written. What sandboxes put in place of protected names is told, too. A
        directory that cannot be listed, because a process uses one that the person has replaced
        since, counts as one in which anything may differ.
        """
        if self._spec is None:
            return None
        self._seen = self._listed(self._spec)
        dead = self._dead(self._seen) if self.processes else frozenset[bytes]()
        return touched(
            each._replace(is_closed=True) if each.path in dead else each for each in self._seen
        )

    @property
    def has_dead(self) -> bool:
        """Whether a directory cannot be listed, because something uses one that was replaced."""
        return self._spec is not None and bool(self._dead(self._listed(self._spec)))

    @property
    def hides_mapped_writes(self) -> bool:
        """Whether a write through `mmap` leaves a file's times as they were.

        The type of an overlay does not tell: it depends on the file system of its upper layer.
        """
        if self._spec is None:
            return hides_mapped_writes(self.root)
        try:
            upper = os.open(layer_of(self._spec), _OPEN)
        except OSError as error:
            raise disk_failure(error, path=self._spec.project) from error
        try:
            return hides_mapped_writes(upper)
        finally:
            os.close(upper)

    def layer(self) -> OverlayLayer | None:
        """What the draft decides itself, as of now; None for a copy, which decides all."""
        return None if self._spec is None else OverlayLayer(self._listed(self._spec))

    def detach(self, directories: Iterable[RelativePath]) -> None:
        """Let these directories show only what the draft itself has there, which is all they show.

        What is seen in them of the project is copied into the layer first. Where the layer has no
        such directory, or it is detached already, nothing is done.
        """
        layer = self.layer()
        wanted = [] if layer is None else sorted(filter(layer.is_merged, directories))
        if not wanted or self._spec is None:
            return
        try:
            below = os.open(layer_of(self._spec), _OPEN)
            try:
                for path in wanted:
                    try:
                        copy_up(self.root, path.raw)
                        make_opaque(below, path.raw)
                    except OSError as error:
                        if error.errno not in _REMOVED:
                            raise
            finally:
                os.close(below)
        except OSError as error:
            raise disk_failure(error, path=self._spec.project) from error

    def is_current(self, layout: bytes) -> bool:
        """Whether the overlay was refreshed when the project had these directories."""
        if self._spec is None:
            return True
        try:
            return bool(layout) and Path(self._spec.directory, _LAYOUT).read_bytes() == layout
        except OSError:
            return False

    def note_current(self, layout: bytes) -> None:
        """Note that the overlay was refreshed; without a note it is merely refreshed once more."""
        # Not synced: it describes a mount, and no mount outlives a power cut. A torn note matches
        # no layout.
        if self._spec is not None:
            with suppress(OSError):
                Path(self._spec.directory, _LAYOUT).write_bytes(layout)

    def refresh(self) -> None:
        """Let everyone inside see what the person has made, replaced and removed in the project.

        What somebody has open, or works in, keeps its name: `stale` tells.
        """
        if self.place is None or self._spec is None:
            return
        try:
            with ExitStack() as undo:
                covered = [self.root]
                for path in self._spec.also:
                    flags = os.O_PATH | os.O_DIRECTORY
                    covered.append(self.place.files.open(os.fsencode(path), flags))
                    undo.callback(os.close, covered[-1])
                remount(self.place.namespaces[:2], tuple(covered))
            self._reopen()
        except OSError as error:
            if self.place.is_lost:
                raise PlaceLost(directory=self._spec.directory) from error
            raise disk_failure(error, path=self._spec.project) from error

    def stale(self, paths: Iterable[RelativePath]) -> frozenset[RelativePath]:
        """Those of the paths at which something other is seen than in the project.

        After `refresh` these are what was written, and what somebody inside holds on to.
        """
        if self._spec is None:
            return frozenset()
        below = os.open(self._spec.project, _OPEN)
        try:
            return frozenset(
                path
                for path in paths
                if _stat_identity(self.root, path) != _stat_identity(below, path)
            )
        finally:
            os.close(below)

    @property
    def is_large(self) -> bool:
        """Whether what was written, when `touched` was last asked, is worth to be forgotten.

        To forget it ends the place, and the kernel then syncs the whole file system below it.
        """
        seen = self._seen or frozenset()
        return len(seen) >= _NAMES_LARGE or sum(each.stamp[2] for each in seen) >= _BYTES_LARGE

    def clear(self) -> bool:
        """Forget all that was written, for whoever knows that the project has it; say if it is so.

        It is not while somebody is inside, nor if anything was written since `touched` was last
        asked; nor if anything goes wrong, for it is no loss. What was written outside of the
        project stays. Nothing is left to do then but to close: the place is made anew by whoever
        opens the draft next.
        """
        if self._spec is None or self._seen is None:
            return False
        try:
            is_same = self._is_emptied(self._spec, self._seen)
            if is_same:
                remove_old_layer(self._spec)
        except Failure:
            return False
        return is_same

    def close(self) -> None:
        """Give all descriptors back; the draft lives on, and so does what runs in it."""
        os.close(self.root)
        if self.place is not None:
            self.place.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _is_emptied(self, spec: PlaceSpec, seen: frozenset[LayerEntry]) -> bool:
        """End the place and empty its layer, unless somebody is inside or something came."""
        if self.place is not None and not self.place.is_lost and self.processes:
            return False
        end(spec.directory)
        is_same = self._listed(spec) == seen
        if is_same:
            drop_layer(spec)
        return is_same

    def _dead(self, seen: frozenset[LayerEntry]) -> frozenset[bytes]:
        """Directories of the layer that cannot be listed; only such that the project has, too."""
        layer = OverlayLayer(seen)
        return frozenset(
            each.path
            for each in seen
            if stat.S_ISDIR(each.mode) and layer.is_merged(nearest(each.path))
            if self._is_dead(each.path)
        )

    def _is_dead(self, path: bytes) -> bool:
        try:
            directory = MergedRootFiles(self.root).open_without_links(path, _OPEN)
        except OSError as error:
            raise_resource_error(error, path)
            return error.errno == errno.ESTALE
        try:
            return is_dead(directory)
        finally:
            os.close(directory)

    def _reopen(self) -> None:
        """Open the root again under the same number: an open one remembers which names it had."""
        if self.place is None or self._spec is None:
            return
        fresh = _opened(self.place, self._spec)
        os.dup2(fresh, self.root, inheritable=False)
        os.close(fresh)

    @staticmethod
    def _listed(spec: PlaceSpec) -> frozenset[LayerEntry]:
        try:
            layer = os.open(layer_of(spec), _OPEN)
            try:
                return frozenset(listed(layer))
            finally:
                os.close(layer)
        except OSError as error:
            raise disk_failure(error, path=spec.directory) from error


def open_view(drafts: Drafts, draft: Draft) -> DraftView:
    """Open a draft; its place is found, or made if nobody holds it any more."""
    if draft.mode is not DraftMode.OVERLAY:
        copy = drafts.copy_of(draft)
        try:
            return DraftView(os.open(copy, _OPEN))
        except OSError as error:
            raise disk_failure(error, path=str(copy)) from error
    spec = drafts.spec(draft)
    for _ in range(_TRIES_MAX):
        with ExitStack() as undo, suppress(PlaceLost):  # who was about to hold it died with us
            place = find_or_create_place(spec)
            undo.callback(place.close)
            root = _opened(place, spec)
            undo.pop_all()
            return DraftView(root, place, spec)
    raise PlaceLost(directory=spec.directory)


def _opened(place: Place, spec: PlaceSpec) -> int:
    try:
        return place.files.open(os.fsencode(spec.project), _OPEN)
    except OSError as error:
        raise disk_failure(error, path=spec.project) from error


def _stat_identity(root: int, path: RelativePath) -> tuple[int, int, int, int] | None:
    """What tells one state of a name from another; None if no such name is there."""
    try:
        named = MergedRootFiles(root).open_without_links(path.raw, os.O_PATH)
    except OSError as error:
        raise_resource_error(error, path.raw)
        return None
    try:
        found = os.fstat(named)
    finally:
        os.close(named)
    return found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns
