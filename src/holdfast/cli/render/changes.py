"""Lay out what changed in files, for a person and for a program."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from holdfast.cli.render.drafts import SCHEMA
from holdfast.cli.render.style import Look, Tone
from holdfast.nouns import RelativePath, cut, escaped, printable
from holdfast.workbench.model import ChangeNote, EntryKind, PathEntry, change_kind

_PATH_LEAST = 20
_SIGNS = {"added": "A", "deleted": "D", "changed": "M", "mode": "P"}
_TONES = {"A": Tone.GOOD, "D": Tone.BAD}
_NOTE_INDENT = 6
_BARS_MOST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """One path, what stood there and what stands there now; lines where it is text.

    `notes` say what no line shows; `runs` is why it runs by itself, if it does.
    """

    path: RelativePath
    before: PathEntry | None
    after: PathEntry | None
    added: int = 0
    removed: int = 0
    hunks: int = 0
    text: bytes = b""
    lines_left_out: int = 0
    is_binary: bool = False
    notes: tuple[ChangeNote, ...] = ()
    runs: str = ""

    @property
    def deed(self) -> str:
        """What became of it."""
        return change_kind(self.before, self.after)


def diff_page(files: Sequence[ChangedFile], look: Look) -> str:
    """The lines of every change; nothing in them can steer a terminal."""
    return "".join(line for each in files for line in _shown(each, look))


def stat_page(files: Sequence[ChangedFile], look: Look) -> str:
    """A line for each file, and one for all."""
    most = max((each.added + each.removed for each in files), default=0)
    lines = [
        line for each in files for line in (_stat(each, most, look), *note_lines(each.notes, look))
    ]
    return "".join(f"{line}\n" for line in lines) + (f"{totals(files)}\n" if files else "")


def repository_page(files: Sequence[ChangedFile], look: Look) -> str:
    """The content of all that changes in the project's own repository, what runs first."""
    if not files:
        return ""
    sign = look.paint(look.signs.careful, Tone.BAD)
    words = "Changes in the project's own .git. Git obeys these files and runs hooks by itself:"
    first = sorted(files, key=lambda each: not each.runs)
    return f"{sign} {look.paint(words, Tone.BAD)}\n{diff_page(first, look)}"


def ignored_page(ignored: Mapping[str, int], look: Look) -> str:
    """A line for each directory with files that git ignores, and how to have them all the same."""
    lines = ""
    for top, count in ignored.items():
        name = "in the top directory" if top == "." else f"{printable(top)}/"
        paths = f"{count:,} path{'' if count == 1 else 's'}"
        lines += look.paint(f" I {name}  {paths}, ignored by git", Tone.QUIET) + "\n"
    return f"{lines}Not published unless asked for (--ignored).\n" if lines else ""


def totals(files: Sequence[ChangedFile]) -> str:
    """How much all of it is, in a few words."""
    count, added, removed = len(files), 0, 0
    for each in files:
        added, removed = added + each.added, removed + each.removed
    paths = f"{count:,} path{'' if count == 1 else 's'}"
    return f"{paths}, +{added:,} -{removed:,}" if added + removed else paths


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
        "notes": [{"text": note.text, "loud": note.is_loud} for note in each.notes],
        "runsByItself": each.runs or None,
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
    for note in each.notes:
        sign, tone = _manner(note, look)
        said = f"{sign} {printable(str(each.path))}: {printable(note.text)}"
        yield f"{look.paint(said, tone)}\n"
    if not each.text and not each.notes:
        yield f"{each.deed} {printable(str(each.path))} ({_kind(each) or each.deed})\n"
    for line in each.text.split(b"\n")[:-1]:
        text = printable(line.decode("utf-8", "backslashreplace"), keep="\t")
        meant = _line_tone(line)
        yield f"{look.paint(text, meant) if meant else text}\n"
    if each.lines_left_out:
        yield f"{look.signs.more} and {each.lines_left_out:,} more lines, which are not shown\n"


def note_lines(notes: Iterable[ChangeNote], look: Look) -> Iterator[str]:
    """The notes below the line of a file, whole: nothing of them is cut off."""
    for note in notes:
        sign, tone = _manner(note, look)
        for line in look.wrap(f"{sign} {printable(note.text)}", indent=_NOTE_INDENT):
            yield look.paint(line, tone)


def _manner(note: ChangeNote, look: Look) -> tuple[str, Tone]:
    return (look.signs.careful, Tone.BAD) if note.is_loud else (look.signs.none, Tone.CAREFUL)


def _line_tone(line: bytes) -> Tone | None:
    if line.startswith((b"diff --git ", b"--- ", b"+++ ")):
        return Tone.STRONG
    if line.startswith(b"@@"):
        return Tone.QUIET
    return Tone.GOOD if line[:1] == b"+" else Tone.BAD if line[:1] == b"-" else None


def _kind(each: ChangedFile) -> str:
    """What it is, where no lines were added or removed."""
    old, new = each.before, each.after
    one = new or old
    if one is None or one.kind is not EntryKind.FILE:
        return "" if one is None else one.kind.value
    return each.deed if old and new else "" if one.size else "empty"


def _stat(each: ChangedFile, most: int, look: Look) -> str:
    is_other = each.before and each.after and each.before.kind is not each.after.kind
    sign = "T" if is_other else _SIGNS[each.deed]
    count = "binary" if each.is_binary else f"+{each.added} -{each.removed}"
    if not each.is_binary and not each.added and not each.removed:
        count = _kind(each)
    room = max(look.width - len(count) - 6, _PATH_LEAST)
    name = cut(printable(str(each.path)), room, more=look.signs.more)
    left = room - len(name)
    bars = _bars(each, most, min(left - 2, _BARS_MOST), look)
    letter = look.paint(sign, _TONES.get(sign, Tone.CAREFUL))
    return f" {letter} {name}  {look.paint(count, Tone.QUIET)}{bars}".rstrip()


def _bars(each: ChangedFile, most: int, room: int, look: Look) -> str:
    total = each.added + each.removed
    if not total or room < _BARS_MOST // 2:
        return ""
    length = max(1, min(total, round(total / most * room)) if most > room else total)
    plus = round(length * each.added / total)
    return "  " + look.paint("+" * plus, Tone.GOOD) + look.paint("-" * (length - plus), Tone.BAD)


def _entry(entry: PathEntry | None) -> dict[str, object] | None:
    if entry is None:
        return None
    return {
        "kind": entry.kind.value,
        "mode": f"{entry.mode:o}",
        "size": entry.size,
        "content": entry.content.hex() or None,
        "target": escaped(entry.target) if entry.kind is EntryKind.LINK else None,
        "xattrs": [escaped(name) for name, _ in entry.xattrs],
    }


# Lay out what a restore would do: what comes back, what changes, what goes.

ASK_RESTORE: Final = "Restore this? [y/N] "
_SHOWN_MAX: Final = 200


class Sorted(NamedTuple):
    """Changes by what becomes of a path."""

    comes: tuple[ChangedFile, ...]
    changes: tuple[ChangedFile, ...]
    goes: tuple[ChangedFile, ...]


def sorted_changes(files: Sequence[ChangedFile]) -> Sorted:
    return Sorted(
        comes=tuple(each for each in files if each.before is None),
        changes=tuple(each for each in files if each.before and each.after),
        goes=tuple(each for each in files if each.after is None),
    )


def restore_page(
    files: Sequence[ChangedFile], left: Sequence[RelativePath], checkpoint: str, look: Look
) -> str:
    """What a person is asked about."""
    found = sorted_changes(files)
    page = ""
    for words, part, tone in (
        ("Comes back:", found.comes, Tone.GOOD),
        ("Changes:", found.changes, Tone.CAREFUL),
        ("Goes, because it was made since (--keep-new keeps it):", found.goes, Tone.BAD),
    ):
        if part:
            page += f"{look.paint(words, tone)}\n{_listed(part, checkpoint, look)}"
    if left:
        page += f"Stays as it is:\n{path_lines(left, look)}"
    return page


def _listed(files: Sequence[ChangedFile], checkpoint: str, look: Look) -> str:
    page = stat_page(files[:_SHOWN_MAX], look)
    more = len(files) - _SHOWN_MAX
    if more <= 0:
        return page
    command = f"holdfast checkpoint diff {printable(checkpoint)}"
    return f"{page}{look.signs.more} and {more:,} more; {command} shows all\n"


# Lay out what became of conflicts between a draft and its project.


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMerge:
    """The paths of a draft by what became of their conflicts."""

    draft: str
    merged: tuple[RelativePath, ...] = ()
    marked: tuple[RelativePath, ...] = ()
    taken: tuple[RelativePath, ...] = ()
    unresolved: tuple[RelativePath, ...] = ()


def merge_page(shown: ShownMerge, look: Look) -> str:
    """What was resolved, what is to be edited, what is still open, and what to do next."""
    return "".join(_lines(shown, look))


def merge_record(shown: ShownMerge) -> dict[str, object]:
    """The same for a program."""
    return {
        "schema": SCHEMA,
        "type": "merge",
        "draft": shown.draft,
        "merged": list(map(str, shown.merged)),
        "marked": list(map(str, shown.marked)),
        "taken": list(map(str, shown.taken)),
        "unresolved": list(map(str, shown.unresolved)),
    }


def _lines(shown: ShownMerge, look: Look) -> Iterator[str]:
    good, careful = look.paint(look.signs.good, Tone.GOOD), look.paint(look.signs.careful, Tone.BAD)
    if not (shown.merged or shown.marked or shown.taken or shown.unresolved):
        yield f"{good} Nothing to merge: no file was changed on both sides\n"
        return
    for sign, paths, words in (
        (good, shown.merged, "Merged in the draft"),
        (good, shown.taken, "Resolved"),
        (careful, shown.marked, "Merged with conflict markers, which must be edited"),
        (careful, shown.unresolved, "Not merged: choose one version, with --ours or --theirs"),
    ):
        if paths:
            yield f"{sign} {words}:\n{path_lines(paths, look)}"
    yield from _next(shown, look)


def _next(shown: ShownMerge, look: Look) -> Iterator[str]:
    draft = printable(shown.draft)
    yield f"  {look.signs.leads_to} Next:\n"
    if shown.marked:
        yield f"    holdfast draft run --draft {draft} --tty -- $EDITOR PATH\n"
        yield f'    holdfast ask --draft {draft} "Resolve the conflict markers"\n'
    if shown.unresolved:
        yield f"    holdfast draft merge --draft {draft} --theirs PATH\n"
    yield f"    holdfast draft diff --draft {draft}, then holdfast publish --draft {draft}\n"
