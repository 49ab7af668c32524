"""Commit published changes to the project's repository.

    before the publish    blobs, tree and commit are written; no ref points to them yet
    in its marker         commit id, ref and old value are recorded
    after the publish     the ref moves by compare-and-swap, then index entries follow

Whatever can fail on its own (no identity, a merge in progress, a full disk) fails before a file
changes. After a kill the next command moves the ref, from the marker. If the ref moved meanwhile
the files stay published, and GitCommitNotMade is raised.

The tree is that of HEAD with the published changes, built in a temporary index. Contents are
written to git without filters.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from holdfast.failures import Failure
from holdfast.nouns import RelativePath
from holdfast.workbench.diff.merge import MERGE_BYTES_MAX
from holdfast.workbench.diff.three_way import above_of
from holdfast.workbench.failures import GitIdentityMissing, GitRepositoryRefused
from holdfast.workbench.git.plans import (
    GITLINK,
    TreeEntry,
    combined_content,
    default_message,
    differences,
    following,
    index_lines,
    is_removed,
    listed_index,
    mode_of,
    select,
)
from holdfast.workbench.git.repository import (
    Git,
    Repository,
    ask_git,
    clean_git,
    find_repository,
    reason_in,
    scratch_in,
)
from holdfast.workbench.handle import WorkbenchHandle, encodable
from holdfast.workbench.model import Committed, EntryKind, PathChange, PathEntry
from holdfast.workbench.store.tree_queries import text_of
from holdfast.workbench.transaction.machine import Facts
from holdfast.world import disk_failure

_BATCH: Final = 500
_SHA1_DIGITS: Final = 40


class Entries(NamedTuple):
    """Tree entries by path, and files that include uncommitted changes."""

    by_path: dict[bytes, TreeEntry | None]
    whole: tuple[RelativePath, ...]


class HeadTree:
    """Tree of a commit, as base of the next."""

    def __init__(
        self, handle: WorkbenchHandle, repository: Repository, git: Git, commit: str | None
    ) -> None:
        self._held, self._git = handle, git
        self._prefix = _prefix(handle, repository)
        self._index = {"GIT_INDEX_FILE": str(git.scratch / "index")}
        git.run("read-tree", *([commit] if commit else ["--empty"]), also=self._index)
        self.tree = self.written({})
        listing = git.run("ls-files", "--stage", "-z", also=self._index)
        self._known = dict(listed_index(listing))

    def written(self, entries: Mapping[bytes, TreeEntry | None]) -> str:
        """Write the tree with these entries; return its id."""
        if entries:
            lines = index_lines(entries, object_digits=len(self.tree))
            self._git.run("update-index", "-z", "--index-info", stdin=lines, also=self._index)
        return self._git.run("write-tree", "--missing-ok", also=self._index).decode().strip()

    def repositories_above(self, changes: Iterable[PathChange]) -> frozenset[RelativePath]:
        """Directories above these changes that are repositories of their own."""
        changes = tuple(changes)
        above = {each for change in changes for each in above_of(change.path)}
        project = os.fsencode(self._held.context.project)
        links = {path for path, entry in self._known.items() if entry and entry.mode == GITLINK}
        coming = {change.path.parent for change in changes if change.path.name == b".git"}
        return frozenset(
            each
            for each in above
            if each in coming
            or self._prefix + each.raw in links
            or os.path.lexists(os.path.join(project, each.raw, b".git"))
        )

    def entries(self, changes: Iterable[PathChange]) -> Entries:
        """Tree entries of a commit of these changes; new contents are written."""
        found: dict[bytes, TreeEntry | None] = {}
        sources: dict[bytes, PathEntry | bytes] = {}
        mixed: dict[bytes, PathChange] = {}
        for change in changes:
            path = self._prefix + change.path.raw
            after = change.after
            if is_removed(change) or after is None:
                found[path] = None
                continue
            known = self._file(path)
            found[path] = TreeEntry(mode_of(change, known), known.object if known else b"")
            if after.kind is EntryKind.LINK:
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
        whole = (
            change.path for path, change in mixed.items() if isinstance(sources[path], PathEntry)
        )
        return Entries(found, tuple(whole))

    def _file(self, path: bytes) -> TreeEntry | None:
        known = self._known.get(path)
        return known if known is not None and known.mode.startswith(b"100") else None

    def _was_changed(self, change: PathChange, known: TreeEntry | None) -> bool:
        """Whether a file had uncommitted changes before the publish."""
        before = change.before
        if before is None or before.kind is not EntryKind.FILE:
            return False
        return known is None or self._blob_id(before) != known.object

    def _blob_id(self, entry: PathEntry) -> bytes:
        name = "sha1" if len(self.tree) == _SHA1_DIGITS else "sha256"
        digest = hashlib.new(name, b"blob %d\0" % entry.size, usedforsecurity=False)
        for piece in self._held.store.content(entry.content):
            digest.update(piece)
        return digest.hexdigest().encode()

    def _committed(self, changes: Iterable[bytes]) -> dict[bytes, bytes]:
        """Committed contents, except large or missing ones."""
        wanted = {path: known.object for path in changes if (known := self._file(path))}
        found: dict[bytes, bytes] = {}
        for path, object in wanted.items():
            asked = self._git.run("cat-file", "--batch-check", stdin=object + b"\n").split()
            if len(asked) == 3 and int(asked[2]) <= MERGE_BYTES_MAX:
                # Else it is missing.
                found[path] = self._git.run("cat-file", "blob", object)
        return found

    def _told_apart(
        self, changes: Mapping[bytes, PathChange], committed: Mapping[bytes, bytes]
    ) -> dict[bytes, PathEntry | bytes]:
        """Committed contents with only the published changes, where these can be separated."""
        found: dict[bytes, PathEntry | bytes] = {}
        for path, change in changes.items():
            texts = (text_of(self._held.store, each) for each in (change.before, change.after))
            before, after = texts
            last = committed.get(path)
            if before is not None and after is not None and last is not None:
                content = combined_content(before, last, after)
                if content is not None:
                    found[path] = content
        return found

    def _objects(self, contents: Iterable[PathEntry | bytes]) -> Iterator[bytes]:
        """Write contents as blobs; yield their ids."""
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
            # Relative names: the directory may contain a newline, which would end a line of stdin.
            listed = b"".join(b"contents/%d\n" % number for number in range(len(batch)))
            said = self._git.run("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=listed)
            yield from said.split()

    def _pieces(self, content: PathEntry | bytes) -> Iterable[bytes]:
        if isinstance(content, bytes):
            return (content,)
        return self._held.store.content(content.content)


def _is_mode_alone(change: PathChange) -> bool:
    """Whether only the mode changed."""
    before, after = change.before, change.after
    is_file = before is not None and before.kind is EntryKind.FILE
    return is_file and after is not None and before is not None and before.content == after.content


def _prefix(handle: WorkbenchHandle, repository: Repository) -> bytes:
    """Path of the project in its working tree."""
    inside = os.fsencode(handle.context.project.relative_to(repository.top))
    return b"" if inside == b"." else inside + b"/"


HEAD: Final = b"HEAD"
BRANCHES: Final = b"refs/heads/"
_LISTED_MAX: Final = 100
_IDENTITY: Final = re.compile(rb"(.*) <(.*)> (\d+ [+-]\d+)")
_LOG_IDENTITY: Final = {
    "GIT_COMMITTER_NAME": "holdfast",
    "GIT_COMMITTER_EMAIL": "holdfast@localhost",
}
_UNFINISHED: Final = {
    "MERGE_HEAD": "a merge is not finished",
    "CHERRY_PICK_HEAD": "a cherry-pick is not finished",
    "REVERT_HEAD": "a revert is not finished",
    "rebase-merge": "a rebase is not finished",
    "rebase-apply": "a rebase is not finished",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOrder:
    """A requested commit; the default message names the changed files."""

    message: str | None = None


def prepare_commit(
    handle: WorkbenchHandle, changes: tuple[PathChange, ...], order: CommitOrder
) -> Facts:
    """Write a commit on top of HEAD, without moving a ref.

    Returns the JSON facts for `finish_commit`.
    """
    repository = find_repository(handle.context.project)
    for name, reason in _UNFINISHED.items():
        if (repository.directory / name).exists():
            raise GitRepositoryRefused(project=handle.context.display_path, reason=reason)
    with scratch_in(handle.context.directory) as scratch:
        git = clean_git(repository, scratch)
        identity = _identity(repository, scratch)
        ref, old = head_of(git)
        head = HeadTree(handle, repository, git, old)
        selected = select(changes, head.repositories_above(changes))
        entries, whole = head.entries(selected.changes)
        tree = head.written(entries)
        facts: dict[str, object] = {
            "id": None,
            "ref": str(RelativePath.of(ref)),
            "old": old,
            "leftOut": _listed(selected.left_out),
            "whole": _listed(whole),
        }
        if tree == head.tree:
            return facts
        paths = [change.path for change in selected.changes]
        message = order.message or default_message(paths)
        words = ["commit-tree", tree, *(["-p", old] if old else []), "-F", "-"]
        text = message.encode("utf-8", "surrogateescape").rstrip(b"\n") + b"\n"
        made = git.run(*words, stdin=text, also=identity).decode().strip()
        return {**facts, "id": made}


def finish_commit(handle: WorkbenchHandle, facts: Facts) -> Facts:
    """Move the branch to a prepared commit if it is unchanged; idempotent.

    Does not raise, as the files are published; errors are in `problem`.
    """
    made, ref, old = facts.get("id"), str(facts.get("ref")), str(facts.get("old") or "")
    if made is None:
        return facts
    try:
        repository = find_repository(handle.context.project)
        with scratch_in(handle.context.directory) as scratch:
            git = clean_git(repository, scratch)
            name = RelativePath.from_text(ref).raw
            problem = _moved(git, name, str(made), old)
            if not problem:
                # The commit is made; a stale index shows in `git status` and does no harm.
                with suppress(Failure, OSError):
                    follow_index(git, repository, old or None, str(made))
    except (Failure, OSError) as error:
        problem = encodable(str(error))
    return {**facts, "problem": problem}


def committed_in(facts: Facts) -> Committed | None:
    """Decode the commit of an event; None if none was requested."""
    said = facts.get("commit")
    if said is None:
        return None
    known = msgspec.convert(said, dict[str, object])
    ref, id, parent = str(known.get("ref")), known.get("id"), known.get("old")
    branches = BRANCHES.decode()
    return Committed(
        id=None if id is None else str(id),
        parent=None if parent is None else str(parent),
        branch=ref.removeprefix(branches) if ref.startswith(branches) else None,
        problem=str(known.get("problem") or ""),
        left_out=_paths(known.get("leftOut")),
        whole=_paths(known.get("whole")),
    )


def head_of(git: Git) -> tuple[bytes, str | None]:
    """Ref that a commit moves, HEAD itself if detached, and its commit."""
    symbolic = git.answer("symbolic-ref", "-q", "HEAD", statuses=(0, 1))
    ref = symbolic.stdout.strip() if symbolic.returncode == 0 else HEAD
    return ref, commit_at(git, ref)


def commit_at(git: Git, name: str | bytes) -> str | None:
    """Resolve a name to a commit; None if it does not exist."""
    word = os.fsencode(name) + b"^{commit}"
    found = git.answer("rev-parse", "-q", "--verify", "--end-of-options", word, statuses=(0, 1))
    return found.stdout.decode().strip() or None


def move_ref(git: Git, ref: bytes, new: str, *, old: str | None, note: str) -> str:
    """Compare-and-swap a ref; return git's error, empty on success."""
    expected = old or "0" * len(new)
    done = git.answer(
        "update-ref",
        "--no-deref",
        "-m",
        note,
        ref,
        new,
        expected,
        also=_LOG_IDENTITY,
        statuses=(0, 1, 128),
    )
    return "" if done.returncode == 0 else reason_in(done)


def follow_index(git: Git, repository: Repository, old: str | None, new: str) -> None:
    """Update index entries that equalled the old commit; all others stay.

    The index is replaced under git's own lock; raises FileExistsError if that is held.
    """
    index, lock = repository.directory / "index", repository.directory / "index.lock"
    words = ("diff-tree", "-r", "-z", "--no-renames", "--no-commit-id", "--no-ext-diff")
    listing = git.run(*words, *((old, new) if old else ("--root", new)))
    locked = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        copy = git.scratch / "index-copy"
        with suppress(FileNotFoundError):
            shutil.copyfile(index, copy)
            os.fchmod(locked, os.stat(index).st_mode & 0o777)
        also = {"GIT_INDEX_FILE": str(copy)}
        staged = dict(listed_index(git.run("ls-files", "--stage", "-z", also=also)))
        wanted = following(staged, differences(listing))
        if not wanted:
            return
        lines = index_lines(wanted, object_digits=len(new))
        git.run("update-index", "-z", "--index-info", stdin=lines, also=also)
        with open(copy, "rb") as source, open(locked, "wb", closefd=False) as target:
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(locked)
        os.rename(lock, index)
    finally:
        os.close(locked)
        with suppress(FileNotFoundError):
            os.unlink(lock)


def _moved(git: Git, ref: bytes, new: str, old: str) -> str:
    """Move a ref unless that is done; return the error."""
    now_on, now = head_of(git)
    if now_on != ref:
        return "another branch was checked out meanwhile"
    if now is not None and _is_ancestor(git, new, now):
        return ""
    name = ref.removeprefix(BRANCHES).decode("utf-8", "backslashreplace")
    if (now or "") != old:
        return f"{name} moved meanwhile"
    said = move_ref(git, ref, new, old=old or None, note="holdfast: publish")
    return f"{name} cannot be moved ({said})" if said else ""


def _is_ancestor(git: Git, one: str, other: str) -> bool:
    done = git.answer("merge-base", "--is-ancestor", one, other, statuses=(0, 1, 128))
    return done.returncode == 0


def _identity(repository: Repository, scratch: Path) -> dict[str, str]:
    """Author and committer from the user's configuration; reading it runs no program."""
    found: dict[str, str] = {}
    for who in ("AUTHOR", "COMMITTER"):
        words = ("-c", "user.useConfigOnly=true", "var", f"GIT_{who}_IDENT")
        done = ask_git(repository, scratch, *words)
        said = _IDENTITY.fullmatch(done.stdout.strip())
        if said is None:
            raise GitIdentityMissing(reason=reason_in(done))
        name, email, date = (os.fsdecode(each) for each in said.groups())
        found |= {f"GIT_{who}_NAME": name, f"GIT_{who}_EMAIL": email, f"GIT_{who}_DATE": date}
    return found


def _listed(paths: Iterable[RelativePath]) -> list[str]:
    return [str(path) for path in tuple(paths)[:_LISTED_MAX]]


def _paths(listed: object) -> tuple[RelativePath, ...]:
    return tuple(map(RelativePath.from_text, msgspec.convert(listed or (), tuple[str, ...])))
