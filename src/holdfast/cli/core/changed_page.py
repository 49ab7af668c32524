"""Lay out what changed in files, for a person and for a program."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.cli.core.look import Look, Tone
from holdfast.nouns import RelativePath, cut, printable
from holdfast.workbench.model import Entry, Sort, deed_of

_PATH_LEAST = 20
_SIGNS = {"added": "A", "deleted": "D", "changed": "M", "mode": "P"}
_TONES = {"A": Tone.GOOD, "D": Tone.BAD, "M": Tone.CAREFUL, "P": Tone.CAREFUL}
_BARS_MOST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """One path, what stood there and what stands there now; lines where it is text."""

    path: RelativePath
    before: Entry | None
    after: Entry | None
    added: int = 0
    removed: int = 0
    hunks: int = 0
    text: bytes = b""
    lines_left_out: int = 0
    is_binary: bool = False

    @property
    def deed(self) -> str:
        """What became of it."""
        return deed_of(self.before, self.after)


def diff_page(files: Sequence[ChangedFile], look: Look) -> str:
    """The lines of every change; nothing in them can steer a terminal."""
    return "".join(line for each in files for line in _shown(each, look))


def stat_page(files: Sequence[ChangedFile], look: Look) -> str:
    """A line for each file, and one for all."""
    most = max((each.added + each.removed for each in files), default=0)
    lines = [_stat(each, most, look) for each in files]
    return "".join(f"{line}\n" for line in lines) + (f"{totals(files)}\n" if files else "")


def totals(files: Sequence[ChangedFile]) -> str:
    """How much all of it is, in a few words."""
    count, added, removed = len(files), 0, 0
    for each in files:
        added, removed = added + each.added, removed + each.removed
    paths = f"{count:,} path{'' if count == 1 else 's'}"
    return f"{paths}, +{added:,} -{removed:,}" if added + removed else paths


def raw_diff(files: Sequence[ChangedFile]) -> bytes:
    """The changes as bytes, for a program that applies them."""
    return b"".join(_patch(each) for each in files)


def changed_record(each: ChangedFile, *, has_text: bool) -> dict[str, object]:
    """One change for a program."""
    record: dict[str, object] = {
        "path": str(each.path),
        "deed": each.deed,
        "before": _entry(each.before),
        "after": _entry(each.after),
        "added": each.added,
        "removed": each.removed,
        "hunks": each.hunks,
        "binary": each.is_binary,
        "linesLeftOut": each.lines_left_out,
    }
    if has_text:
        record["diffBase64"] = b64encode(each.text).decode()
    return record


def path_lines(
    paths: Sequence[RelativePath], look: Look, *, count: int | None = None, most: int = 10
) -> str:
    """Paths, one in a line, of many only the first; `count` is of how many these are the first."""
    shown = [f"    {printable(str(path))}\n" for path in paths[:most]]
    left_out = (count or len(paths)) - len(shown)
    more = f"    {look.signs.more} and {left_out:,} more\n" if left_out > 0 else ""
    return "".join(shown) + more


def _shown(each: ChangedFile, look: Look) -> Iterator[str]:
    for line in _patch(each).split(b"\n")[:-1]:
        text = printable(line.decode("utf-8", "backslashreplace"), keep="\t")
        tone = _line_tone(line)
        yield f"{look.paint(text, tone) if tone else text}\n"
    if each.lines_left_out:
        yield f"{look.signs.more} and {each.lines_left_out:,} more lines, which are not shown\n"


def _line_tone(line: bytes) -> Tone | None:
    if line.startswith((b"--- ", b"+++ ")):
        return Tone.STRONG
    if line.startswith(b"@@"):
        return Tone.QUIET
    return Tone.GOOD if line[:1] == b"+" else Tone.BAD if line[:1] == b"-" else None


def _patch(each: ChangedFile) -> bytes:
    """Its diff; what has no lines is told in words that `patch` passes over."""
    if each.text:
        return each.text if each.text.endswith(b"\n") else each.text + b"\n"
    return f"{each.deed} {each.path}{_more(each)}\n".encode()


def _more(each: ChangedFile) -> str:
    old, new = each.before, each.after
    if old is not None and new is not None and old.mode != new.mode:
        return f" ({old.mode:o} to {new.mode:o})"
    one = new or old
    if one is None or one.sort is Sort.FILE:
        return "" if one is None or one.size else " (empty)"
    return f" ({one.sort.value})"


def _stat(each: ChangedFile, most: int, look: Look) -> str:
    sign = _SIGNS[each.deed]
    count = "binary" if each.is_binary else f"+{each.added} -{each.removed}"
    if not each.is_binary and not each.added and not each.removed:
        count = _more(each).strip(" ()")
    room = max(look.width - len(count) - 6, _PATH_LEAST)
    name = cut(printable(str(each.path)), room, more=look.signs.more)
    left = room - len(name)
    bars = _bars(each, most, min(left - 2, _BARS_MOST), look)
    return (
        f" {look.paint(sign, _TONES[sign])} {name}  {look.paint(count, Tone.QUIET)}{bars}".rstrip()
    )


def _bars(each: ChangedFile, most: int, room: int, look: Look) -> str:
    total = each.added + each.removed
    if not total or room < _BARS_MOST // 2:
        return ""
    length = max(1, min(total, round(total / most * room)) if most > room else total)
    plus = round(length * each.added / total)
    return "  " + look.paint("+" * plus, Tone.GOOD) + look.paint("-" * (length - plus), Tone.BAD)


def _entry(entry: Entry | None) -> dict[str, object] | None:
    if entry is None:
        return None
    return {
        "kind": entry.sort.value,
        "mode": f"{entry.mode:o}",
        "size": entry.size,
        "content": entry.content.hex() or None,
    }
