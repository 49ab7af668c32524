"""Show changes to people, and write them as patches for `git apply`.

The view for people is bounded: long diffs are cut and counted, binary content is only named. A
patch is complete and written to a file, because it may exceed memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from holdfast.nouns import RelativePath, autorun_reason, printable
from holdfast.workbench.diff.git_patch import (
    PatchSide,
    blob_id,
    comment,
    differ,
    git_mode,
    header,
    is_accepted,
    is_same_type,
    literal,
    names,
    notes_of,
)
from holdfast.workbench.diff.merge import is_text
from holdfast.workbench.diff.unified import LINES_MAX, UnifiedDiff, unified
from holdfast.workbench.model import ChangeNote, EntryKind, PathChange, PathEntry
from holdfast.workbench.store.store import Store
from holdfast.workbench.store.tree_queries import text_of

Marker = Callable[[PathChange], str]
"""Returns why a changed file runs by itself; empty if it does not."""


def marked_by_name(change: PathChange) -> str:
    """Return the reason that follows from the name alone."""
    after = change.after
    if after is None or after.kind not in (EntryKind.FILE, EntryKind.LINK):
        return ""
    return autorun_reason(change.path, is_link=after.kind is EntryKind.LINK)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """Change of one path, with a line diff for texts.

    Hunks are numbered from 1 to `hunks`. `text` is the bounded patch, empty for what git does not
    track. `notes` describe what lines do not show; `runs` is why the file runs by itself.
    """

    path: RelativePath
    before: PathEntry | None
    after: PathEntry | None
    text: bytes = b""
    added: int = 0
    removed: int = 0
    hunks: int = 0
    lines_left_out: int = 0
    is_binary: bool = False
    notes: tuple[ChangeNote, ...] = ()
    runs: str = ""


def file_diffs(
    store: Store, changes: Iterable[PathChange], marker: Marker = marked_by_name
) -> tuple[FileDiff, ...]:
    """Changes for people."""
    return tuple(_file_diff(store, change, marker(change)) for change in changes)


def write_patch(
    store: Store, changes: Iterable[PathChange], out: BinaryIO, marker: Marker = marked_by_name
) -> None:
    """Write changes as one patch for `git apply`; others become comments."""
    for change in changes:
        name = printable(str(change.path))
        for note in _all_notes(change, marker(change)):
            out.write(comment(f"{name}: {printable(note)}".encode()))
        if _is_applied(change):
            for part in _parts(change):
                out.writelines(_whole(store, part))
        elif text := _file_diff(store, change, "").text:
            out.write(comment(text))


def _all_notes(change: PathChange, runs: str) -> Iterator[str]:
    """Notes on a change, including what a patch cannot represent."""
    before, after = change.before, change.after
    for word, one, other in (("added", after, before), ("deleted", before, after)):
        if one is not None and git_mode(one) is None and (other is None or one.kind != other.kind):
            yield f"{one.kind.value} {word}"
    if not _is_applied(change):
        yield "git applies no patch of such a path; this is what changes"
    yield from (note.text for note in notes_of(change.path, before, after, runs))


def _is_applied(change: PathChange) -> bool:
    """Whether `git apply` accepts a patch of this change."""
    return all(is_accepted(change.path, git_mode(one)) for one in (change.before, change.after))


def _parts(change: PathChange) -> Iterator[PathChange]:
    """Split a change of type into a deletion and an addition."""
    old, new = git_mode(change.before), git_mode(change.after)
    if old is not None and new is not None and is_same_type(old, new):
        if old != new or _content(change.before) != _content(change.after):
            yield change
        return
    if old is not None:
        yield PathChange(change.path, change.before, None)
    if new is not None:
        yield PathChange(change.path, None, change.after)


def _content(entry: PathEntry | None) -> bytes:
    return b"" if entry is None else entry.content + entry.target


def _file_diff(store: Store, change: PathChange, runs: str) -> FileDiff:
    """A change, bounded for people."""
    before, after = change.before, change.after
    text, total, is_binary = b"", UnifiedDiff(b""), False
    for part in _parts(change):
        old, new = _lines_of(store, part.before), _lines_of(store, part.after)
        text += header(part.path, _side(part.before), _side(part.after))
        ends = {"is_new": part.before is None, "is_gone": part.after is None}
        if old is None or new is None or not (is_text(old) and is_text(new)):
            is_binary = True
            text += differ(part.path, **ends)
            continue
        shown = unified(old, new, lines_max=LINES_MAX)
        text += (names(part.path, **ends) if shown.text else b"") + shown.text
        total = UnifiedDiff(
            b"",
            total.added + shown.added,
            total.removed + shown.removed,
            total.lines_left_out + shown.lines_left_out,
            # Hunks are chosen of files: a link, or what a link replaces, is taken whole.
            total.hunks + (shown.hunks if _is_file(part, change) else 0),
        )
    return FileDiff(
        path=change.path,
        before=before,
        after=after,
        text=text,
        added=total.added,
        removed=total.removed,
        hunks=total.hunks,
        lines_left_out=total.lines_left_out,
        is_binary=is_binary,
        notes=notes_of(change.path, before, after, runs),
        runs=runs if after is not None else "",
    )


def _is_file(part: PathChange, change: PathChange) -> bool:
    one = part.after or part.before
    return one is not None and one.kind is EntryKind.FILE and part == change


def _side(entry: PathEntry | None, blob: bytes = b"") -> PatchSide | None:
    mode = git_mode(entry)
    return None if mode is None else PatchSide(mode, blob)


def _lines_of(store: Store, entry: PathEntry | None) -> bytes | None:
    """Content as git sees it; None if it is too large for a line diff."""
    if entry is None:
        return b""
    return entry.target if entry.kind is EntryKind.LINK else text_of(store, entry)


def _whole(store: Store, part: PathChange) -> Iterator[bytes]:
    """Complete patch of one path."""
    sides = [
        _side(one, blob_id(_size(one), _chunks(store, one)) if one else b"")
        for one in (part.before, part.after)
    ]
    yield header(part.path, *sides)
    if _content(part.before) == _content(part.after):
        return
    old, new = _lines_of(store, part.before), _lines_of(store, part.after)
    if old is not None and new is not None and is_text(old) and is_text(new):
        shown = unified(old, new, lines_max=None)
        if shown.text:
            yield names(part.path, is_new=part.before is None, is_gone=part.after is None)
            yield shown.text
        return
    yield b"GIT binary patch\n"
    for one in (part.after, part.before):
        yield from literal(_size(one), _chunks(store, one))


def _size(entry: PathEntry | None) -> int:
    if entry is None:
        return 0
    return len(entry.target) if entry.kind is EntryKind.LINK else entry.size


def _chunks(store: Store, entry: PathEntry | None) -> Iterable[bytes]:
    if entry is None:
        return ()
    return (entry.target,) if entry.kind is EntryKind.LINK else store.content(entry.content)
