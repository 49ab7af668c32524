"""Decide what a commit of published changes holds.

A commit has files and links. Directories, owners and times are not in it; what lies in `.git`, in a
submodule or in a nested repository cannot be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from holdfast.nouns import RelativePath
from holdfast.workbench.core.merge import Merged, is_text, merge
from holdfast.workbench.core.three_way import above_of
from holdfast.workbench.model import Change, Entry, Sort

GITLINK: Final = b"160000"
LINK: Final = b"120000"
_FILE: Final = b"100644"
_EXECUTABLE: Final = b"100755"
_ABSENT: Final = b"000000"
_NAMED_MAX: Final = 3
_REPOSITORY: Final = b".git"


class TreeEntry(NamedTuple):
    """What git records at one path: a mode and the id of an object."""

    mode: bytes
    object: bytes


class Difference(NamedTuple):
    """One path that two commits have differently; None where one of them lacks it."""

    path: bytes
    before: TreeEntry | None
    after: TreeEntry | None


@dataclass(frozen=True, slots=True)
class Selected:
    """What of some changes a commit holds, and what it cannot hold."""

    changes: tuple[Change, ...]
    left_out: tuple[RelativePath, ...]


def select(changes: Iterable[Change], repositories: Collection[RelativePath]) -> Selected:
    """Split changes by whether a commit can hold them.

    `repositories` are directories that are repositories of their own, submodules among them.
    """
    held: list[Change] = []
    left_out: list[RelativePath] = []
    for change in changes:
        path = change.path
        is_git = any(part.lower() == _REPOSITORY for part in path.parts)
        if is_git or any(above in repositories for above in above_of(path)):
            left_out.append(path)
        elif _is_recorded(change.before) or _is_recorded(change.after) or change.after is None:
            held.append(change)
    return Selected(tuple(held), tuple(left_out))


def mode_of(change: Change, known: TreeEntry | None) -> bytes:
    """The mode of what is there afterwards; one that was not changed stays as it is committed."""
    after = change.after
    assert after is not None
    if after.sort is Sort.LINK:
        return LINK
    before = change.before
    is_same = before is not None and before.sort is Sort.FILE and _runs(before) == _runs(after)
    if is_same and known is not None and known.mode in {_FILE, _EXECUTABLE}:
        return known.mode
    return _EXECUTABLE if _runs(after) else _FILE


def is_removed(change: Change) -> bool:
    """Whether a commit of this change has nothing at the path, or only what is below it."""
    return not _is_recorded(change.after)


def combined_content(before: bytes, committed: bytes, after: bytes) -> bytes | None:
    """What is committed of a file with uncommitted changes: what was published and no more.

    `before` and `after` are the file around the publication, `committed` is the last commit's.
    None if the two changes cannot be told apart.
    """
    if not all(map(is_text, (before, committed, after))):
        return None
    result = merge(before, committed, after)
    return result.content if isinstance(result, Merged) else None


def index_lines(entries: Mapping[bytes, TreeEntry | None], *, object_digits: int) -> bytes:
    """Input of `git update-index -z --index-info`; removals come first, to make room."""
    nothing = b"0" * object_digits
    gone = (path for path, entry in entries.items() if entry is None)
    there = ((path, entry) for path, entry in entries.items() if entry is not None)
    return b"".join(
        [
            *(b"0 %s\t%s\0" % (nothing, path) for path in sorted(gone)),
            *(b"%s %s\t%s\0" % (*entry, path) for path, entry in sorted(there)),
        ]
    )


def listed_index(listing: bytes) -> Iterator[tuple[bytes, TreeEntry | None]]:
    """Paths and entries in the output of `git ls-files --stage -z`; None for an unmerged path."""
    for item in listing.split(b"\0"):
        head, _, path = item.partition(b"\t")
        if path:
            mode, object, stage = head.split(b" ")
            yield path, TreeEntry(mode, object) if stage == b"0" else None


def differences(listing: bytes) -> Iterator[Difference]:
    """What the output of `git diff-tree -r -z --no-renames` says."""
    fields = listing.split(b"\0")
    for head, path in zip(fields[::2], fields[1::2], strict=False):
        if not head.startswith(b":"):
            continue
        old_mode, mode, old, new, _ = head[1:].split(b" ")
        yield Difference(
            path,
            None if old_mode == _ABSENT else TreeEntry(old_mode, old),
            None if mode == _ABSENT else TreeEntry(mode, new),
        )


def following(
    staged: Mapping[bytes, TreeEntry | None], changes: Iterable[Difference]
) -> dict[bytes, TreeEntry | None]:
    """The index entries that go along with a commit: those that were as the last commit had them.

    A path at which something else is staged, or that is unmerged, keeps what it has.
    """
    return {
        each.path: each.after
        for each in changes
        if (each.path in staged) == (each.before is not None)
        and staged.get(each.path) == each.before
    }


def default_message(paths: Sequence[RelativePath]) -> str:
    """What a commit is called if nobody says: the first files that it changes."""
    named = ", ".join(str(path) for path in paths[:_NAMED_MAX])
    more = len(paths) - _NAMED_MAX
    return f"Publish {named}" + (f" and {more:,} more" if more > 0 else "")


def _is_recorded(entry: Entry | None) -> bool:
    return entry is not None and entry.sort in {Sort.FILE, Sort.LINK}


def _runs(entry: Entry) -> bool:
    return bool(entry.mode & 0o100)
