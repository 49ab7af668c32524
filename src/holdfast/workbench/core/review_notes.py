"""Say what of a change does not show in its lines: types, link targets, modes, attributes.

Notes are plain text, one line each, and may hold names that were chosen by anybody: views escape
them before a terminal gets them.
"""

from __future__ import annotations

from posixpath import normpath
from typing import Final

from holdfast.nouns import RelativePath, escaped
from holdfast.workbench.model import Entry, Note, Sort

_SETUID: Final = 0o4000
_SETGID: Final = 0o2000
_USUAL: Final = {
    Sort.FILE: (0o644, 0o755, 0o664, 0o775, 0o600, 0o640, 0o700, 0o750),
    Sort.DIRECTORY: (0o755, 0o775, 0o700, 0o750),
    Sort.LINK: (0o777,),
}
_WORDS: Final = {
    Sort.FILE: "file",
    Sort.DIRECTORY: "directory",
    Sort.LINK: "link",
    Sort.SPECIAL: "special file",
}


def notes_of(
    path: RelativePath, before: Entry | None, after: Entry | None, runs: str = ""
) -> tuple[Note, ...]:
    """What is to be said of a change beside its lines; `runs` is why it runs by itself, if so."""
    found: list[Note] = []
    if runs and after is not None:
        found.append(Note(f"runs by itself: {runs}", is_loud=True))
    if before is not None and after is not None and before.sort is not after.sort:
        found.append(
            Note(f"was a {_WORDS[before.sort]}, becomes a {_WORDS[after.sort]}", is_loud=True)
        )
    found += _target_notes(path, before, after)
    found += _mode_notes(before, after)
    found += _attribute_notes(before, after)
    return tuple(found)


def special_bits(entry: Entry | None) -> tuple[str, ...]:
    """Which of setuid and setgid an entry has; on a directory they give nobody any power."""
    if entry is None or entry.sort is not Sort.FILE:
        return ()
    bits = (("setuid", _SETUID), ("setgid", _SETGID))
    return tuple(word for word, bit in bits if entry.mode & bit)


def _target_notes(path: RelativePath, before: Entry | None, after: Entry | None) -> list[Note]:
    old = before.target if before and before.sort is Sort.LINK else None
    new = after.target if after and after.sort is Sort.LINK else None
    if old == new:
        return []
    if new is None:
        return [Note(f"was a link to {escaped(old or b'')}")]
    is_outside = _leads_outside(path, new)
    text = f"link to {escaped(new)}"
    if old is not None:
        text += f", was to {escaped(old)}"
    return [Note(text + (" (outside of the project)" if is_outside else ""), is_loud=is_outside)]


def _leads_outside(path: RelativePath, target: bytes) -> bool:
    """Whether a link leads out of the project by its spelling."""
    if target.startswith(b"/"):
        return True
    end = normpath(b"/".join((*path.parts[:-1], target)))
    return end == b".." or end.startswith(b"../")


def _mode_notes(before: Entry | None, after: Entry | None) -> list[Note]:
    if after is None:
        return []
    special = special_bits(after)
    suffix = f" {' and '.join(word.upper() for word in special)}" if special else ""
    if before is not None and before.sort is after.sort:
        if before.mode != after.mode:
            return [Note(f"mode {before.mode:o} to {after.mode:o}{suffix}", is_loud=bool(special))]
        return [Note(f"mode {after.mode:o}{suffix}", is_loud=True)] if special else []
    if special or after.mode not in _USUAL.get(after.sort, ()):
        return [Note(f"mode {after.mode:o}{suffix}", is_loud=bool(special))]
    return []


def _attribute_notes(before: Entry | None, after: Entry | None) -> list[Note]:
    if after is None:
        return []
    old, new = dict(before.xattrs if before else ()), dict(after.xattrs)
    words = [f"sets {escaped(name)}" for name in sorted(new) if new[name] != old.get(name)]
    words += [f"removes {escaped(name)}" for name in sorted(old.keys() - new.keys())]
    return [Note(f"extended attributes: {', '.join(words)}")] if words else []
