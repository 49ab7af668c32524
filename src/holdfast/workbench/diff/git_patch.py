"""Write changes in the format of `git diff --binary`, so that `git apply` takes them.

A patch of one path is, in this order:

    diff --git a/NAME b/NAME
    new file mode 100755 | deleted file mode 100644 | old mode 100644, new mode 100755
    index OLD..NEW [MODE]              blob ids in full: `git apply` wants them for binary content
    --- a/NAME                         texts: the two names, /dev/null for a side without a file,
    +++ b/NAME                         and the hunks
    GIT binary patch                   all else: both contents, each as `literal SIZE`, deflated,
                                       in base 85

A link is a file of mode 120000 whose content is its target. A path whose type changes is deleted
and added again, as in git. Git has no modes other than 644 and 755, no directories, and no paths
below a `.git`: such changes become comments (`# `), which `git apply` and `patch` ignore.

Notes describe what lines do not show: types, link targets, modes, attributes. They are untrusted
plain text, one line each; views escape them for the terminal.
"""

from __future__ import annotations

import hashlib
import zlib
from base64 import b85encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from posixpath import normpath
from typing import Final

from holdfast.nouns import RelativePath, escaped
from holdfast.workbench.model import ChangeNote, EntryKind, PathEntry

_LINK: Final = 0o120000
_FILE: Final = 0o100644
_EXECUTABLE: Final = 0o100755
_NO_BLOB: Final = b"0" * 40
_SHORT: Final = {
    0x07: b"\\a",
    0x08: b"\\b",
    0x09: b"\\t",
    0x0A: b"\\n",
    0x0B: b"\\v",
    0x0C: b"\\f",
    0x0D: b"\\r",
    0x22: b'\\"',
    0x5C: b"\\\\",
}
# Of deflated data in one line of a binary patch.
_LINE_BYTES: Final = 52
_MODULES: Final = b".gitmodules"


@dataclass(frozen=True, slots=True)
class PatchSide:
    """One side of a patch: git mode, and the blob id of its content."""

    mode: int
    blob: bytes = b""


def git_mode(entry: PathEntry | None) -> int | None:
    """Return the git mode of an entry; None for entries that git does not track."""
    if entry is None or entry.kind not in (EntryKind.FILE, EntryKind.LINK):
        return None
    if entry.kind is EntryKind.LINK:
        return _LINK
    return _EXECUTABLE if entry.mode & 0o100 else _FILE


def is_same_type(old: int, new: int) -> bool:
    """Whether one patch can change the mode without deleting the path first."""
    return (old == _LINK) == (new == _LINK)


def is_accepted(path: RelativePath, mode: int | None) -> bool:
    """Whether `git apply` accepts a patch of this path.

    A refused one would fail the whole patch.
    """
    parts = [part.lower() for part in path.parts]
    if any(_is_repository(part) for part in parts):
        return False
    return not (mode == _LINK and parts[-1].rstrip(b". ") == _MODULES)


def _is_repository(part: bytes) -> bool:
    """Whether git treats a name as `.git` on some file system, including NTFS."""
    # NTFS ends a name at a colon or backslash, and ignores dots and spaces at its end.
    for each in part.split(b"\\"):
        if each.split(b":")[0].rstrip(b". ") in (b".git", b"git~1"):
            return True
    return False


def quoted(name: bytes, *, is_forced: bool = False) -> bytes:
    """Quote a name in C style, as git does, where it would be ambiguous.

    UTF-8 is not quoted, as with `core.quotePath=false`.
    """
    try:
        name.decode()
        high = 0x100
    except UnicodeDecodeError:
        high = 0x80
    if not is_forced and not any(
        byte < 0x20 or byte in (0x22, 0x5C, 0x7F) or byte >= high for byte in name
    ):
        return name
    return b'"%s"' % b"".join(
        _SHORT[byte]
        if byte in _SHORT
        else b"\\%03o" % byte
        if byte < 0x20 or byte == 0x7F or byte >= high
        else bytes((byte,))
        for byte in name
    )


def header(path: RelativePath, before: PatchSide | None, after: PatchSide | None) -> bytes:
    """Return the lines before the content, with blob ids if both are given."""
    name = path.raw
    # Unquoted, git finds the end of some names with spaces only by the lines that follow, and an
    # empty file has none.
    ways = [quoted(way + name, is_forced=b" " in name) for way in (b"a/", b"b/")]
    lines = [b"diff --git %s %s" % (*ways,)]
    if before is None or after is None:
        word, side = (b"new", after) if before is None else (b"deleted", before)
        assert side is not None, "a patch has a side"
        lines.append(b"%s file mode %o" % (word, side.mode))
    elif before.mode != after.mode:
        lines += [b"old mode %o" % before.mode, b"new mode %o" % after.mode]
    blobs = [side.blob if side else _NO_BLOB for side in (before, after)]
    if all(blobs) and blobs[0] != blobs[1]:
        is_kept = before and after and before.mode == after.mode
        suffix = b" %o" % before.mode if before and is_kept else b""
        lines.append(b"index %s..%s%s" % (*blobs, suffix))
    return b"".join(line + b"\n" for line in lines)


def names(path: RelativePath, *, is_new: bool, is_gone: bool) -> bytes:
    """Return the `---` and `+++` lines."""
    return b"--- %s\n+++ %s\n" % (
        b"/dev/null" if is_new else _with_end(b"a/" + path.raw),
        b"/dev/null" if is_gone else _with_end(b"b/" + path.raw),
    )


def differ(path: RelativePath, *, is_new: bool, is_gone: bool) -> bytes:
    """Return the line that replaces binary content in diffs for people."""
    return b"Binary files %s and %s differ\n" % (
        b"/dev/null" if is_new else quoted(b"a/" + path.raw),
        b"/dev/null" if is_gone else quoted(b"b/" + path.raw),
    )


def blob_id(size: int, chunks: Iterable[bytes]) -> bytes:
    """Return the git blob id of a content, in hexadecimal."""
    digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest().encode()


def literal(size: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a content as the lines of a binary patch."""
    yield b"literal %d\n" % size
    deflate = zlib.compressobj()
    waiting = b""
    for chunk in chunks:
        waiting += deflate.compress(chunk)
        whole = len(waiting) - len(waiting) % _LINE_BYTES
        yield from _lines(waiting[:whole])
        waiting = waiting[whole:]
    yield from _lines(waiting + deflate.flush())
    yield b"\n"


def comment(text: bytes) -> bytes:
    """Prefix lines with `# `."""
    return b"".join(b"# " + line + b"\n" for line in text.removesuffix(b"\n").split(b"\n"))


def _lines(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), _LINE_BYTES):
        part = data[start : start + _LINE_BYTES]
        count = ord("A") + len(part) - 1 if len(part) <= 26 else ord("a") + len(part) - 27
        yield b"%c%s\n" % (count, b85encode(part, pad=True))


def _with_end(name: bytes) -> bytes:
    """Append a tab to a name with spaces: otherwise it would end at the first one."""
    shown = quoted(name)
    return shown + b"\t" if b" " in shown and not shown.startswith(b'"') else shown


_SETUID: Final = 0o4000
_SETGID: Final = 0o2000
_USUAL: Final = {
    EntryKind.FILE: (0o644, 0o755, 0o664, 0o775, 0o600, 0o640, 0o700, 0o750),
    EntryKind.DIRECTORY: (0o755, 0o775, 0o700, 0o750),
    EntryKind.LINK: (0o777,),
}
_WORDS: Final = {
    EntryKind.FILE: "file",
    EntryKind.DIRECTORY: "directory",
    EntryKind.LINK: "link",
    EntryKind.SPECIAL: "special file",
}


def notes_of(
    path: RelativePath, before: PathEntry | None, after: PathEntry | None, runs: str = ""
) -> tuple[ChangeNote, ...]:
    """Return notes on a change; `runs` is the reason why the file runs by itself, if it does."""
    found: list[ChangeNote] = []
    if runs and after is not None:
        found.append(ChangeNote(f"runs by itself: {runs}", is_loud=True))
    if before is not None and after is not None and before.kind is not after.kind:
        found.append(
            ChangeNote(f"was a {_WORDS[before.kind]}, becomes a {_WORDS[after.kind]}", is_loud=True)
        )
    found += _target_notes(path, before, after)
    found += _mode_notes(before, after)
    found += _attribute_notes(before, after)
    return tuple(found)


def special_bits(entry: PathEntry | None) -> tuple[str, ...]:
    """Return which of setuid and setgid a file has; on directories they grant nothing."""
    if entry is None or entry.kind is not EntryKind.FILE:
        return ()
    bits = (("setuid", _SETUID), ("setgid", _SETGID))
    return tuple(word for word, bit in bits if entry.mode & bit)


def _target_notes(
    path: RelativePath, before: PathEntry | None, after: PathEntry | None
) -> list[ChangeNote]:
    old = before.target if before and before.kind is EntryKind.LINK else None
    new = after.target if after and after.kind is EntryKind.LINK else None
    if old == new:
        return []
    if new is None:
        return [ChangeNote(f"was a link to {escaped(old or b'')}")]
    is_outside = _leads_outside(path, new)
    text = f"link to {escaped(new)}"
    if old is not None:
        text += f", was to {escaped(old)}"
    return [
        ChangeNote(text + (" (outside of the project)" if is_outside else ""), is_loud=is_outside)
    ]


def _leads_outside(path: RelativePath, target: bytes) -> bool:
    """Whether a link target points outside of the project, lexically."""
    if target.startswith(b"/"):
        return True
    end = normpath(b"/".join((*path.parts[:-1], target)))
    return end == b".." or end.startswith(b"../")


def _mode_notes(before: PathEntry | None, after: PathEntry | None) -> list[ChangeNote]:
    if after is None:
        return []
    special = special_bits(after)
    suffix = f" {' and '.join(word.upper() for word in special)}" if special else ""
    if before is not None and before.kind is after.kind:
        if before.mode != after.mode:
            return [
                ChangeNote(f"mode {before.mode:o} to {after.mode:o}{suffix}", is_loud=bool(special))
            ]
        return [ChangeNote(f"mode {after.mode:o}{suffix}", is_loud=True)] if special else []
    if special or after.mode not in _USUAL.get(after.kind, ()):
        return [ChangeNote(f"mode {after.mode:o}{suffix}", is_loud=bool(special))]
    return []


def _attribute_notes(before: PathEntry | None, after: PathEntry | None) -> list[ChangeNote]:
    if after is None:
        return []
    old, new = dict(before.xattrs if before else ()), dict(after.xattrs)
    words = [f"sets {escaped(name)}" for name in sorted(new) if new[name] != old.get(name)]
    words += [f"removes {escaped(name)}" for name in sorted(old.keys() - new.keys())]
    return [ChangeNote(f"extended attributes: {', '.join(words)}")] if words else []
