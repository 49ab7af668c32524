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
and added again, as git has it. Git knows no other modes than 644 and 755, no directories, and no
paths below a `.git`: those are told in comments, which begin with `# ` and which `git apply` and
`patch` pass over.

Say what of a change does not show in its lines: types, link targets, modes, attributes.

Notes are plain text, one line each, and may hold names that were chosen by anybody: views escape
them before a terminal gets them.
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
_LINE_BYTES: Final = 52  # of deflated data in one line of a binary patch
_MODULES: Final = b".gitmodules"


@dataclass(frozen=True, slots=True)
class PatchSide:
    """One side of a patch: what git knows of a file or link. `blob` is the id of its content."""

    mode: int
    blob: bytes = b""


def git_mode(entry: PathEntry | None) -> int | None:
    """The mode that git gives to an entry; None for what git does not know."""
    if entry is None or entry.kind not in (EntryKind.FILE, EntryKind.LINK):
        return None
    if entry.kind is EntryKind.LINK:
        return _LINK
    return _EXECUTABLE if entry.mode & 0o100 else _FILE


def is_same_type(old: int, new: int) -> bool:
    """Whether a patch can lead from one mode to the other, without deleting the path first."""
    return (old == _LINK) == (new == _LINK)


def is_accepted(path: RelativePath, mode: int | None) -> bool:
    """Whether `git apply` takes a patch of this path; one that it refuses spoils all others."""
    parts = [part.lower() for part in path.parts]
    if any(_is_repository(part) for part in parts):
        return False
    return not (mode == _LINK and parts[-1].rstrip(b". ") == _MODULES)


def _is_repository(part: bytes) -> bool:
    """Whether git takes a name for `.git` on some file system: also NTFS, as it does by default."""
    # NTFS ends a name at a colon or backslash, and ignores dots and spaces at its end.
    for each in part.split(b"\\"):
        if each.split(b":")[0].rstrip(b". ") in (b".git", b"git~1"):
            return True
    return False


def quoted(name: bytes, *, is_forced: bool = False) -> bytes:
    """A name as git quotes it: in C style, where it could not be told from something else.

    Names in UTF-8 stay as they are, as with `core.quotePath=false`.
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
    """The lines before the content, up to the blob ids; those are left out where none are given."""
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
    """The two lines before the hunks of a text."""
    return b"--- %s\n+++ %s\n" % (
        b"/dev/null" if is_new else _with_end(b"a/" + path.raw),
        b"/dev/null" if is_gone else _with_end(b"b/" + path.raw),
    )


def differ(path: RelativePath, *, is_new: bool, is_gone: bool) -> bytes:
    """What stands for content that has no lines, where only people read it."""
    return b"Binary files %s and %s differ\n" % (
        b"/dev/null" if is_new else quoted(b"a/" + path.raw),
        b"/dev/null" if is_gone else quoted(b"b/" + path.raw),
    )


def blob_id(size: int, chunks: Iterable[bytes]) -> bytes:
    """The id that git gives to a content, in hexadecimal digits."""
    digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest().encode()


def literal(size: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """One content in a binary patch, as lines."""
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
    """Lines that people read and that no program applies."""
    return b"".join(b"# " + line + b"\n" for line in text.removesuffix(b"\n").split(b"\n"))


def _lines(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), _LINE_BYTES):
        part = data[start : start + _LINE_BYTES]
        count = ord("A") + len(part) - 1 if len(part) <= 26 else ord("a") + len(part) - 27
        yield b"%c%s\n" % (count, b85encode(part, pad=True))


def _with_end(name: bytes) -> bytes:
    """A name with spaces ends with a tab: else it would end at the first of them."""
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
    """What is to be said of a change beside its lines; `runs` is why it runs by itself, if so."""
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
    """Which of setuid and setgid an entry has; on a directory they give nobody any power."""
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
    """Whether a link leads out of the project by its spelling."""
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
