"""Decide what a commit of published changes holds.

A commit has files and links. Directories, owners and times are not in it; what lies in `.git`, in a
submodule or in a nested repository cannot be.

Decide what may be read of a draft's repository, and what git's answers about it say.

What is in a draft was written by an agent: names of files in its repository are matched against
what git itself writes, and everything else is passed over.

Choose which settings of a repository git may see when Holdfast runs it.

Only settings that are data get through: the format of the repository, how files are shared, whether
refs have logs. Everything else in a git configuration can name a program.
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

    changes: tuple[PathChange, ...]
    left_out: tuple[RelativePath, ...]


def select(changes: Iterable[PathChange], repositories: Collection[RelativePath]) -> Selected:
    """Split changes by whether a commit can hold them.

    `repositories` are directories that are repositories of their own, submodules among them.
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
    """The mode of what is there afterwards; one that was not changed stays as it is committed."""
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
    return result.content if isinstance(result, MergedText) else None


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


def _is_recorded(entry: PathEntry | None) -> bool:
    return entry is not None and entry.kind in {EntryKind.FILE, EntryKind.LINK}


def _runs(entry: PathEntry) -> bool:
    return bool(entry.mode & 0o100)


_LOOSE_DIRECTORY: Final = re.compile(r"[0-9a-f]{2}")
_LOOSE_OBJECT: Final = re.compile(r"[0-9a-f]{38}|[0-9a-f]{62}")
_PACK: Final = re.compile(r"pack-[0-9a-f]{40,64}\.pack")
_TABLE: Final = re.compile(r"tables\.list|[0-9A-Za-z-]+\.ref")


class CommitLine(NamedTuple):
    """One commit in a list."""

    id: str
    author: str
    subject: str


class FileCount(NamedTuple):
    """How many lines of a file commits add and remove; None for a file that is not text.

    `notes` say what the lines do not.
    """

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
    """Whether a file holds refs in the format reftable."""
    return _TABLE.fullmatch(name) is not None


def alternates(directory: bytes) -> bytes:
    """The content of `objects/info/alternates` for one directory, whatever is in its name."""
    quoted = directory.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"%s"\n' % quoted


def without(tips: Iterable[str], known: Iterable[str]) -> bytes:
    """Input of `git rev-list --stdin`: what can be reached from tips and not from what is known."""
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
    """The last value of each key in the output of `git config --list -z`."""
    found: dict[bytes, bytes] = {}
    for item in listing.split(b"\0"):
        key, _, value = item.partition(b"\n")
        if key:
            found[key.lower()] = value
    return found


def unknown_extension(settings: dict[bytes, bytes]) -> str | None:
    """A repository extension whose meaning is not known here; None if there is none."""
    for key in sorted(settings):
        if key.startswith(b"extensions.") and key not in _KEPT | _IGNORED_EXTENSIONS:
            return key.partition(b".")[2].decode("utf-8", "backslashreplace")
    return None


def has_logs(settings: dict[bytes, bytes]) -> bool:
    """Whether updates of refs are logged; git does so unless it is told otherwise."""
    said = settings.get(b"core.logallrefupdates", b"true").lower()
    return said not in {b"false", b"no", b"off", b"0"}


def clean_config(settings: dict[bytes, bytes]) -> bytes:
    """A configuration with the data of this one and none of its programs."""
    return _OWN + b"".join(_lines(settings))


def _lines(settings: dict[bytes, bytes]) -> Iterator[bytes]:
    for key in sorted(_KEPT & settings.keys()):
        section, _, name = key.partition(b".")
        value = settings[key].replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
        yield b'[%s]\n\t%s = "%s"\n' % (section, name, value)
