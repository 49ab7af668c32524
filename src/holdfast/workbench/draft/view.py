"""Open draft: a descriptor of its root, and what was written in it.

An overlay draft is visible through its place: to processes inside by namespaces, to us by the
descriptor of its root. If the holder of the place died, the place is mounted again over the same
upper layer. The upper layer is never written to directly, except to mark directories opaque.
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
# While it was looked at.
_REMOVED = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE}
_NAMES_LARGE, _BYTES_LARGE = 1000, 64 * 2**20


class DraftView:
    """An open draft; `root` is a descriptor of the directory that represents the project.

    `place` is where processes see the draft at the project's own path; None for a copy. The
    descriptor keeps its number until it is closed.
    """

    def __init__(
        self, root: int, place: Place | None = None, spec: PlaceSpec | None = None
    ) -> None:
        """Take ownership of the descriptor and the place; `close` releases them."""
        self.root = root
        self.place = place
        self._spec = spec
        self._seen: frozenset[LayerEntry] | None = None

    @property
    def processes(self) -> int:
        """Number of processes inside; 0 for a copy, where it is unknown."""
        return 0 if self.place is None else processes_in(self.place)

    def touched(self) -> TouchedPaths | None:
        """Return paths at which the draft may differ from the project; None if all must be scanned.

        Costs what was written. Sandbox placeholders are included. A directory that cannot be
        listed, because a process uses one that was replaced in the project, counts as touched with
        all below it.
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
        """Whether a directory cannot be listed, because a process uses a replaced one."""
        return self._spec is not None and bool(self._dead(self._listed(self._spec)))

    @property
    def hides_mapped_writes(self) -> bool:
        """Whether writes through mmap leave file times unchanged.

        The file system type of an overlay does not show it: it depends on the upper layer.
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
        """Return the upper layer as it is now; None for a copy."""
        return None if self._spec is None else OverlayLayer(self._listed(self._spec))

    def detach(self, directories: Iterable[RelativePath]) -> None:
        """Make merged directories opaque, so that project changes in them no longer show.

        Visible entries of the project are copied up first. Directories that are not merged are
        skipped.
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
        """Whether the overlay was refreshed since the project's directories last changed."""
        if self._spec is None:
            return True
        try:
            return bool(layout) and Path(self._spec.directory, _LAYOUT).read_bytes() == layout
        except OSError:
            return False

    def note_current(self, layout: bytes) -> None:
        """Record that the overlay was refreshed; if that is lost it is refreshed once more."""
        # Not synced: it describes a mount, and no mount outlives a power cut. A torn note matches
        # no layout.
        if self._spec is not None:
            with suppress(OSError):
                Path(self._spec.directory, _LAYOUT).write_bytes(layout)

    def refresh(self) -> None:
        """Remount the overlay, so that it shows directories replaced or removed in the project.

        Entries that processes use keep their state: see `stale`.
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
        """Return those paths at which the draft shows another inode state than the project.

        After `refresh` these are written files, and those that processes inside still use.
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
        """Whether the upper layer, as of the last `touched`, is worth clearing.

        Clearing ends the place, and unmounting makes the kernel sync the whole file system below.
        """
        seen = self._seen or frozenset()
        return len(seen) >= _NAMES_LARGE or sum(each.stamp[2] for each in seen) >= _BYTES_LARGE

    def clear(self) -> bool:
        """Drop the upper layer, whose content the project has; return whether it was dropped.

        It is not while processes are inside, nor if anything was written since `touched`, nor on an
        error. Only `close` may follow: the next opening mounts the place again.
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
        """Close all descriptors; the draft and its processes continue."""
        os.close(self.root)
        if self.place is not None:
            self.place.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _is_emptied(self, spec: PlaceSpec, seen: frozenset[LayerEntry]) -> bool:
        """End the place and drop its layer, unless it is in use or was written to."""
        if self.place is not None and not self.place.is_lost and self.processes:
            return False
        end(spec.directory)
        is_same = self._listed(spec) == seen
        if is_same:
            drop_layer(spec)
        return is_same

    def _dead(self, seen: frozenset[LayerEntry]) -> frozenset[bytes]:
        """Merged directories that cannot be listed."""
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
        """Reopen the root under the same number: an open directory caches its listing."""
        if self.place is None or self._spec is None:
            return
        fresh = _opened(self.place, self._spec)
        # dup2 keeps the number, which callers have stored.
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
    """Open a draft; its place is found, or mounted again."""
    if draft.mode is not DraftMode.OVERLAY:
        copy = drafts.copy_of(draft)
        try:
            return DraftView(os.open(copy, _OPEN))
        except OSError as error:
            raise disk_failure(error, path=str(copy)) from error
    spec = drafts.spec(draft)
    for _ in range(_TRIES_MAX):
        with ExitStack() as undo, suppress(PlaceLost):
            # The holder died while starting.
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
    """Stat fields that distinguish states of a path; None if it does not exist."""
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
