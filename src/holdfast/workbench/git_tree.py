"""Write the tree of a commit: the one of HEAD with published changes, in a temporary index.

Contents come from the store and go to git as they are, without filters.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from holdfast.nouns import RelativePath
from holdfast.workbench.core.git_commit import (
    GITLINK,
    TreeEntry,
    combined_content,
    index_lines,
    is_removed,
    listed_index,
    mode_of,
)
from holdfast.workbench.core.merge import MERGE_BYTES_MAX
from holdfast.workbench.core.three_way import above_of
from holdfast.workbench.git_repository import Git, Repository
from holdfast.workbench.holding import Held
from holdfast.workbench.knowing import text_of
from holdfast.workbench.model import Change, Entry, Sort
from holdfast.world import disk_failure

_BATCH: Final = 500
_SHA1_DIGITS: Final = 40


class Entries(NamedTuple):
    """What becomes of paths of a tree, and the files whose uncommitted changes are in it, too."""

    by_path: dict[bytes, TreeEntry | None]
    whole: tuple[RelativePath, ...]


class HeadTree:
    """The tree of a commit, or an empty one, as a base for the next."""

    def __init__(self, held: Held, repository: Repository, git: Git, commit: str | None) -> None:
        self._held, self._git = held, git
        self._prefix = _prefix(held, repository)
        self._index = {"GIT_INDEX_FILE": str(git.scratch / "index")}
        git.run("read-tree", *([commit] if commit else ["--empty"]), also=self._index)
        self.tree = self.written({})
        listing = git.run("ls-files", "--stage", "-z", also=self._index)
        self._known = dict(listed_index(listing))

    def written(self, entries: Mapping[bytes, TreeEntry | None]) -> str:
        """The id of the tree with these entries."""
        if entries:
            lines = index_lines(entries, object_digits=len(self.tree))
            self._git.run("update-index", "-z", "--index-info", stdin=lines, also=self._index)
        return self._git.run("write-tree", "--missing-ok", also=self._index).decode().strip()

    def repositories_above(self, changes: Iterable[Change]) -> frozenset[RelativePath]:
        """Directories above these changes that are repositories of their own."""
        changes = tuple(changes)
        above = {each for change in changes for each in above_of(change.path)}
        project = os.fsencode(self._held.bench.project)
        links = {path for path, entry in self._known.items() if entry and entry.mode == GITLINK}
        coming = {change.path.parent for change in changes if change.path.name == b".git"}
        return frozenset(
            each
            for each in above
            if each in coming
            or self._prefix + each.raw in links
            or os.path.lexists(os.path.join(project, each.raw, b".git"))
        )

    def entries(self, changes: Iterable[Change]) -> Entries:
        """What a commit of these changes has at their paths; new contents are written."""
        found: dict[bytes, TreeEntry | None] = {}
        sources: dict[bytes, Entry | bytes] = {}
        mixed: dict[bytes, Change] = {}
        for change in changes:
            path = self._prefix + change.path.raw
            after = change.after
            if is_removed(change) or after is None:
                found[path] = None
                continue
            known = self._file(path)
            found[path] = TreeEntry(mode_of(change, known), known.object if known else b"")
            if after.sort is Sort.LINK:
                sources[path] = after.target
            elif known is None or not _is_mode_alone(change):
                sources[path] = after
                if self._was_changed(change, known):
                    mixed[path] = change
        committed = self._committed(mixed)
        sources |= self._told_apart(mixed, committed)
        for path, object in zip(sources, self._objects(sources.values()), strict=True):
            entry = found[path]
            assert entry is not None
            found[path] = entry._replace(object=object)
        whole = (change.path for path, change in mixed.items() if isinstance(sources[path], Entry))
        return Entries(found, tuple(whole))

    def _file(self, path: bytes) -> TreeEntry | None:
        known = self._known.get(path)
        return known if known is not None and known.mode.startswith(b"100") else None

    def _was_changed(self, change: Change, known: TreeEntry | None) -> bool:
        """Whether the person had changes in this file that they had not committed."""
        before = change.before
        if before is None or before.sort is not Sort.FILE:
            return False
        return known is None or self._blob_id(before) != known.object

    def _blob_id(self, entry: Entry) -> bytes:
        """The id that git gives the content of a file."""
        name = "sha1" if len(self.tree) == _SHA1_DIGITS else "sha256"
        digest = hashlib.new(name, b"blob %d\0" % entry.size, usedforsecurity=False)
        for piece in self._held.store.content(entry.content):
            digest.update(piece)
        return digest.hexdigest().encode()

    def _committed(self, changes: Iterable[bytes]) -> dict[bytes, bytes]:
        """The committed contents of files, unless they are large or not there."""
        wanted = {path: known.object for path in changes if (known := self._file(path))}
        found: dict[bytes, bytes] = {}
        for path, object in wanted.items():
            asked = self._git.run("cat-file", "--batch-check", stdin=object + b"\n").split()
            if len(asked) == 3 and int(asked[2]) <= MERGE_BYTES_MAX:  # else it is missing
                found[path] = self._git.run("cat-file", "blob", object)
        return found

    def _told_apart(
        self, changes: Mapping[bytes, Change], committed: Mapping[bytes, bytes]
    ) -> dict[bytes, Entry | bytes]:
        """The committed contents with only what is published, where that can be told apart."""
        found: dict[bytes, Entry | bytes] = {}
        for path, change in changes.items():
            texts = (text_of(self._held.store, each) for each in (change.before, change.after))
            before, after = texts
            last = committed.get(path)
            if before is not None and after is not None and last is not None:
                content = combined_content(before, last, after)
                if content is not None:
                    found[path] = content
        return found

    def _objects(self, contents: Iterable[Entry | bytes]) -> Iterator[bytes]:
        """Write contents as blobs, without filters, and yield the id of each."""
        directory = self._git.scratch / "contents"
        directory.mkdir(exist_ok=True)
        left = iter(contents)
        while batch := list(islice(left, _BATCH)):
            for number, content in enumerate(batch):
                name = directory / str(number)
                try:
                    with open(name, "wb") as file:
                        file.writelines(self._pieces(content))
                except OSError as error:
                    raise disk_failure(error, path=str(name)) from error
            # Names without the directory: that may have any character in it, also a newline.
            listed = b"".join(b"contents/%d\n" % number for number in range(len(batch)))
            said = self._git.run("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=listed)
            yield from said.split()

    def _pieces(self, content: Entry | bytes) -> Iterable[bytes]:
        if isinstance(content, bytes):
            return (content,)
        return self._held.store.content(content.content)


def _is_mode_alone(change: Change) -> bool:
    """Whether a file keeps its content, so that the committed one stays, too."""
    before, after = change.before, change.after
    is_file = before is not None and before.sort is Sort.FILE
    return is_file and after is not None and before is not None and before.content == after.content


def _prefix(held: Held, repository: Repository) -> bytes:
    """Where the project lies in the working tree of its repository."""
    inside = os.fsencode(held.bench.project.relative_to(repository.top))
    return b"" if inside == b"." else inside + b"/"
