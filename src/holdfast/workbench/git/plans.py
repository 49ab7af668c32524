"""Plan commits, filter git settings and names, and parse git output. Pure.

A commit holds files and links; directories, owners and times are not recorded. Paths in `.git`,
submodules and nested repositories cannot be committed.

Names in a draft's repository were written by an agent: only names that git itself writes are
accepted.

Of a repository's settings only data get through: its format, sharing, reflogs. All others can name
a program.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from holdfast.nouns import RelativePath
from holdfast.workbench.diff.merge import MergedText, is_text, merge
from holdfast.workbench.diff.three_way import above_of
from holdfast.workbench.model import ChangeNote, EntryKind, PathChange, PathEntry

GITLINK: Final = b"160000"
LINK: Final = b"120000"
_FILE: Final = b"100644"
_EXECUTABLE: Final = b"100755"
_ABSENT: Final = b"000000"
_NAMED_MAX: Final = 3
_REPOSITORY: Final = b".git"


class TreeEntry(NamedTuple):
    """Mode and object id that git records at a path."""

    mode: bytes
    object: bytes


class Difference(NamedTuple):
    """Path that differs between two commits."""

    path: bytes
    before: TreeEntry | None
    after: TreeEntry | None


@dataclass(frozen=True, slots=True)
class Selected:
    """Changes that a commit can hold, and paths that it cannot."""

    changes: tuple[PathChange, ...]
    left_out: tuple[RelativePath, ...]


def select(changes: Iterable[PathChange], repositories: Collection[RelativePath]) -> Selected:
    """Split changes by whether a commit can hold them.

    `repositories` are nested repositories and submodules.
    """
    held: list[PathChange] = []
    left_out: list[RelativePath] = []
    for change in changes:
        path = change.path
        is_git = any(part.lower() == _REPOSITORY for part in path.parts)
        if is_git or any(above in repositories for above in above_of(path)):
            left_out.append(path)
        elif _is_recorded(change.before) or _is_recorded(change.after) or change.after is None:
            held.append(change)
    return Selected(tuple(held), tuple(left_out))


def mode_of(change: PathChange, known: TreeEntry | None) -> bytes:
    """Git mode after a change; an unchanged one stays as committed."""
    after = change.after
    assert after is not None
    if after.kind is EntryKind.LINK:
        return LINK
    before = change.before
    is_same = before is not None and before.kind is EntryKind.FILE and _runs(before) == _runs(after)
    if is_same and known is not None and known.mode in {_FILE, _EXECUTABLE}:
        return known.mode
    return _EXECUTABLE if _runs(after) else _FILE


def is_removed(change: PathChange) -> bool:
    """Whether a commit of this change removes the path."""
    return not _is_recorded(change.after)


def combined_content(before: bytes, committed: bytes, after: bytes) -> bytes | None:
    """Committed content of a file with uncommitted changes: only the published part is added.

    `before` and `after` surround the publish. None if the changes cannot be separated.
    """
    if not all(map(is_text, (before, committed, after))):
        return None
    result = merge(before, committed, after)
    return result.content if isinstance(result, MergedText) else None


def index_lines(entries: Mapping[bytes, TreeEntry | None], *, object_digits: int) -> bytes:
    """Input of `git update-index -z --index-info`.

    Removals come first, so that a file can become a directory.
    """
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
    """Parse `git ls-files --stage -z`; None for an unmerged path."""
    for item in listing.split(b"\0"):
        head, _, path = item.partition(b"\t")
        if path:
            mode, object, stage = head.split(b" ")
            yield path, TreeEntry(mode, object) if stage == b"0" else None


def differences(listing: bytes) -> Iterator[Difference]:
    """Parse `git diff-tree -r -z --no-renames`."""
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
    """Index entries to update with a commit: those that equalled the old one.

    Staged and unmerged paths stay.
    """
    return {
        each.path: each.after
        for each in changes
        if (each.path in staged) == (each.before is not None)
        and staged.get(each.path) == each.before
    }


def default_message(paths: Sequence[RelativePath]) -> str:
    """Default commit message: the first changed files."""
    named = ", ".join(str(path) for path in paths[:_NAMED_MAX])
    more = len(paths) - _NAMED_MAX
    return f"Publish {named}" + (f" and {more:,} more" if more > 0 else "")


def _is_recorded(entry: PathEntry | None) -> bool:
    return entry is not None and entry.kind in {EntryKind.FILE, EntryKind.LINK}


def _runs(entry: PathEntry) -> bool:
    return bool(entry.mode & 0o100)


_LOOSE_DIRECTORY: Final = re.compile(r"[0-9a-f]{2}")
_LOOSE_OBJECT: Final = re.compile(r"[0-9a-f]{38}|[0-9a-f]{62}")
_PACK: Final = re.compile(r"pack-[0-9a-f]{40,64}\.pack")
_TABLE: Final = re.compile(r"tables\.list|[0-9A-Za-z-]+\.ref")


class CommitLine(NamedTuple):
    id: str
    author: str
    subject: str


class FileCount(NamedTuple):
    """Added and removed lines of a file; None for binary files."""

    path: bytes
    added: int | None
    removed: int | None
    notes: tuple[ChangeNote, ...] = ()


def is_loose_directory(name: str) -> bool:
    return _LOOSE_DIRECTORY.fullmatch(name) is not None


def is_loose_object(name: str) -> bool:
    return _LOOSE_OBJECT.fullmatch(name) is not None


def is_pack(name: str) -> bool:
    return _PACK.fullmatch(name) is not None


def is_table(name: str) -> bool:
    """Whether a name is of the reftable format."""
    return _TABLE.fullmatch(name) is not None


def alternates(directory: bytes) -> bytes:
    """Content of `objects/info/alternates`, quoted."""
    quoted = directory.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"%s"\n' % quoted


def without(tips: Iterable[str], known: Iterable[str]) -> bytes:
    """Input of `git rev-list --stdin`: reachable from tips but not from known commits."""
    return "".join([*(f"{tip}\n" for tip in tips), *(f"^{one}\n" for one in known)]).encode()


def commit_lines(listing: bytes) -> tuple[CommitLine, ...]:
    """Commits in the output of `git log -z --format=%H%n%an%n%s`."""
    found: list[CommitLine] = []
    for item in listing.decode("utf-8", "backslashreplace").split("\0"):
        id, _, rest = item.strip("\n").partition("\n")
        author, _, subject = rest.partition("\n")
        if id:
            found.append(CommitLine(id, author, subject))
    return tuple(found)


def file_counts(listing: bytes) -> tuple[FileCount, ...]:
    """Files in the output of `git diff-tree -r -z --numstat --no-renames`."""
    found: list[FileCount] = []
    for item in filter(None, listing.split(b"\0")):
        added, removed, path = item.split(b"\t", 2)
        found.append(FileCount(path, _number(added), _number(removed)))
    return tuple(found)


def _number(text: bytes) -> int | None:
    return int(text) if text.isdigit() else None


_KEPT: Final = frozenset(
    {
        b"core.repositoryformatversion",
        b"core.sharedrepository",
        b"core.logallrefupdates",
        b"core.compression",
        b"core.loosecompression",
        b"extensions.objectformat",
        b"extensions.refstorage",
        b"extensions.preciousobjects",
    }
)
# Extensions that make no difference to objects, refs and a temporary index.
_IGNORED_EXTENSIONS: Final = frozenset(
    {
        b"extensions.noop",
        b"extensions.noop-v1",
        b"extensions.partialclone",
        b"extensions.relativeworktrees",
        b"extensions.submodulepathconfig",
        b"extensions.worktreeconfig",
    }
)
_OWN: Final = b"""\
[core]
\tbare = true
\thooksPath = /dev/null
\tfsmonitor = false
\tfsync = all
\tlogAllRefUpdates = true
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""


def settings_in(listing: bytes) -> dict[bytes, bytes]:
    """Parse `git config --list -z`; the last value of a key wins."""
    found: dict[bytes, bytes] = {}
    for item in listing.split(b"\0"):
        key, _, value = item.partition(b"\n")
        if key:
            found[key.lower()] = value
    return found


def unknown_extension(settings: dict[bytes, bytes]) -> str | None:
    """First repository extension that is not known here."""
    for key in sorted(settings):
        if key.startswith(b"extensions.") and key not in _KEPT | _IGNORED_EXTENSIONS:
            return key.partition(b".")[2].decode("utf-8", "backslashreplace")
    return None


def has_logs(settings: dict[bytes, bytes]) -> bool:
    """Whether reflogs are enabled, which is the default."""
    said = settings.get(b"core.logallrefupdates", b"true").lower()
    return said not in {b"false", b"no", b"off", b"0"}


def clean_config(settings: dict[bytes, bytes]) -> bytes:
    """Configuration with only the data settings."""
    return _OWN + b"".join(_lines(settings))


def _lines(settings: dict[bytes, bytes]) -> Iterator[bytes]:
    for key in sorted(_KEPT & settings.keys()):
        section, _, name = key.partition(b".")
        value = settings[key].replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
        yield b'[%s]\n\t%s = "%s"\n' % (section, name, value)
