"""What the base, the project and the view of a draft must be after any sequence of steps.

Three flat trees, path to entry. Which path is followed, published, merged or refused is decided by
the same pure functions as in the workbench (`core.three_way`, which has a suite of its own); that
files, overlay, records and transactions come out as decided is what this model is for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from holdfast.nouns import RelativePath
from holdfast.workbench.diff.merge import MergedText, merge
from holdfast.workbench.diff.three_way import (
    Decisions,
    PathVerdict,
    above_of,
    changes_of,
    chosen_of,
    decide_all,
    forced,
    merged_entry,
)
from holdfast.workbench.diff.unified import picked
from holdfast.workbench.model import EntryKind, PathChange, PathEntry
from holdfast.workbench.objects.formats import name_of, split_content

Tree = dict[RelativePath, PathEntry]
Hunks = Mapping[RelativePath, frozenset[int]]
CONTENTS: dict[bytes, bytes] = {}


def file_of(data: bytes, mode: int = 0o644) -> PathEntry:
    content, size = split_content([data], name_of)
    CONTENTS[content] = data
    return PathEntry(EntryKind.FILE, mode, content=content, size=size)


def link_to(target: bytes) -> PathEntry:
    return PathEntry(EntryKind.LINK, 0o777, target=target)


def directory(mode: int = 0o755) -> PathEntry:
    return PathEntry(EntryKind.DIRECTORY, mode)


def below(tree: Tree, path: RelativePath) -> list[RelativePath]:
    """A path and all that is below it, parents first."""
    return sorted(each for each in tree if each.within(path))


def is_tree(tree: Tree) -> bool:
    return all(path.parent is None or _is_directory(tree.get(path.parent)) for path in tree)


def difference(before: Tree, after: Tree) -> tuple[PathChange, ...]:
    return tuple(
        PathChange(path, before.get(path), after.get(path))
        for path in sorted({*before, *after})
        if before.get(path) != after.get(path)
    )


class Refused(Exception):
    """The step must fail and change nothing."""


class MergedInstead(Exception):
    """The publication must merge into the draft instead, to be reviewed again."""


@dataclass
class Model:
    """The three trees, the revisions of the draft and the checkpoints of the project."""

    project: Tree
    base: Tree = field(default_factory=dict[RelativePath, PathEntry])
    draft: Tree = field(default_factory=dict[RelativePath, PathEntry])
    revisions: dict[int, tuple[Tree, Tree]] = field(default_factory=dict[int, tuple[Tree, Tree]])
    checkpoints: dict[str, Tree] = field(default_factory=dict[str, Tree])

    def __post_init__(self) -> None:
        self.base, self.draft = dict(self.project), dict(self.project)

    def changes(self) -> tuple[PathChange, ...]:
        """What a review must show."""
        return difference(self.base, self.draft)

    def synchronize(self) -> None:
        """What the person changed reaches the draft where that changed nothing itself."""
        decided = decide_all(self.base, self.draft, self.project, publishes_repository=True)
        self.draft = applied(self.draft, changes_of(decided, self.draft, self.project))
        moved = {change.path for change in difference(self.base, self.project)}
        kept = {path for path in moved if self.project.get(path) != self.draft.get(path)}
        self.base = combined(self.project, self.base, kept)

    def decided(
        self,
        only: Collection[RelativePath] | None,
        hunks: Hunks,
        force: Collection[RelativePath],
    ) -> Decisions:
        found = decide_all(self.base, self.project, self.draft)
        found = forced(found, force, self.project, self.draft)
        is_all = only is None and not hunks
        chosen = None if is_all else frozenset((*(only or ()), *hunks))
        return chosen_of(found, self.draft, chosen)

    def conflicts(self) -> tuple[RelativePath, ...]:
        decided = decide_all(self.base, self.project, self.draft)
        merged = self._merged(decided)
        return tuple(path for path in _stops(decided) if path not in merged)

    def publish(
        self,
        only: Collection[RelativePath] | None = None,
        hunks: Hunks | None = None,
        force: Collection[RelativePath] = (),
    ) -> None:
        """Publish what was chosen; raises Refused, or MergedInstead with that done."""
        decided = self.decided(only, hunks or {}, force)
        merged = self._merged(decided)
        if any(path not in merged for path in _stops(decided)):
            raise Refused
        if merged:
            self.draft |= merged
            self.base = combined(self.base, self.project, merged)
            raise MergedInstead
        wanted = {
            change.path: self._part(change, (hunks or {}).get(change.path))
            for change in changes_of(decided, self.project, self.draft)
        }
        if any(path not in wanted for path in hunks or {}):
            raise Refused
        self.project = _with(self.project, wanted)
        self.base = _with(self.base, wanted)

    def restore(self, checkpoint: str) -> None:
        self.project = dict(self.checkpoints[checkpoint])

    def undo(self, number: int) -> None:
        """Have the changes of a revision and no others; raises Refused if they do not fit."""
        base, draft = self.revisions.get(number, ({}, {}))
        then = difference(base, draft)
        wanted = {change.path: change.before for change in self.changes()}
        wanted |= {change.path: change.after for change in then}
        found = dict(self.draft)
        for path, entry in wanted.items():
            found.pop(path, None)
            if entry is not None:
                found[path] = entry
        if not is_tree(found):
            raise Refused
        self.draft = found
        self.base = combined(self.base, base, {change.path for change in then})

    def _merged(self, decided: Decisions) -> Tree:
        found: Tree = {}
        for path, decision in decided.items():
            if decision.verdict is not PathVerdict.MERGE:
                continue
            three = self.base[path], self.project[path], self.draft[path]
            result = merge(*(CONTENTS[each.content] for each in three))
            if isinstance(result, MergedText):
                made = file_of(result.content)
                found[path] = merged_entry(*three, made.content, made.size)
        return found

    def _part(self, change: PathChange, numbers: frozenset[int] | None) -> PathEntry | None:
        after = change.after
        if numbers is None or after is None:
            return after
        before = change.before
        is_file = before is not None and before.kind is EntryKind.FILE
        old = CONTENTS[before.content] if before is not None and is_file else b""
        text = picked(change.path, old, CONTENTS[after.content], numbers)
        if text == CONTENTS[after.content]:
            return after
        made = file_of(text)
        kept = before if before is not None and is_file else after
        return replace(kept, content=made.content, size=made.size)


def applied(tree: Tree, changes: Collection[PathChange]) -> Tree:
    return _with(tree, {change.path: change.after for change in changes})


def combined(now: Tree, kept: Tree, paths: Collection[RelativePath]) -> Tree:
    """`now`, but at these paths as in `kept`, with the directories that those need."""
    found = _with(now, {path: kept.get(path) for path in paths})
    for path in paths:
        if path in kept:
            for above in above_of(path):
                if not _is_directory(found.get(above)):
                    found[above] = kept[above]
            found[path] = kept[path]
    return {path: entry for path, entry in found.items() if _is_held(found, path)}


def _with(tree: Tree, wanted: Mapping[RelativePath, PathEntry | None]) -> Tree:
    found = {path: entry for path, entry in tree.items() if path not in wanted}
    found |= {path: entry for path, entry in wanted.items() if entry is not None}
    return found


def _stops(decided: Decisions) -> Iterator[RelativePath]:
    for path, found in decided.items():
        if found.verdict in {PathVerdict.MERGE, PathVerdict.CONFLICT}:
            yield path


def _is_held(tree: Tree, path: RelativePath) -> bool:
    return all(_is_directory(tree.get(above)) for above in above_of(path))


def _is_directory(entry: PathEntry | None) -> bool:
    return entry is not None and entry.is_directory
