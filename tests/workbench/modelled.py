"""A project, its stage, its marker and its store in memory, with a person who edits in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from holdfast.nouns import RelativePath
from holdfast.workbench.model import EntryKind, PathChange, PathEntry
from holdfast.workbench.transaction.machine import (
    Apply,
    DropStage,
    InspectPath,
    InspectSlot,
    MakeStage,
    Marker,
    PathAction,
    PathOperation,
    QuickCheckPath,
    ReportOutcome,
    Rescue,
    StageEntry,
    Step,
    StepGenerator,
    StepResult,
    SyncAll,
    TransactionOutcome,
    TransactionState,
    WriteMarker,
    recover,
)

KEY = "key"
Tree = Mapping[RelativePath, PathEntry]


def at(path: str) -> RelativePath:
    return RelativePath.of(path)


def file(content: str, mode: int = 0o644) -> PathEntry:
    return PathEntry(EntryKind.FILE, mode, content=content.encode())


def link(target: str) -> PathEntry:
    return PathEntry(EntryKind.LINK, 0o777, target=target.encode())


def directory(mode: int = 0o755) -> PathEntry:
    return PathEntry(EntryKind.DIRECTORY, mode)


def changes(before: Tree, after: Tree) -> list[PathChange]:
    return [
        PathChange(path, before.get(path), after.get(path))
        for path in sorted({*before, *after})
        if before.get(path) != after.get(path)
    ]


class Killed(BaseException):
    """The process is no more."""


@dataclass(eq=False)
class Inode:
    """What names lead to; whoever has it open can write to it under any name, or none."""

    entry: PathEntry
    is_durable: bool = True


Image = tuple[dict[RelativePath, Inode], dict[int, Inode]]


@dataclass
class ModelDisk:
    """Carries acts out as a file system would, and remembers what must not be lost."""

    names: dict[RelativePath, Inode]
    operations: tuple[PathOperation, ...]
    slots: dict[int, Inode] = field(default_factory=dict)
    marker: Marker | None = None
    store: set[PathEntry] = field(default_factory=set)
    told: list[TransactionOutcome] = field(default_factory=list)
    synced: list[Image] = field(default_factory=list)

    @classmethod
    def of(cls, tree: Tree, operations: tuple[PathOperation, ...]) -> ModelDisk:
        made = cls({path: Inode(entry) for path, entry in tree.items()}, operations)
        made.synced = [made.image()]
        return made

    @property
    def tree(self) -> dict[RelativePath, PathEntry]:
        return {path: inode.entry for path, inode in self.names.items()}

    def image(self) -> Image:
        return dict(self.names), dict(self.slots)

    def power_cut(self, surviving: int) -> None:
        """Fall back to one of the states since the last sync; the marker is on another disk."""
        names, slots = self.synced[min(surviving, len(self.synced) - 1)]
        self.names, self.slots = dict(names), dict(slots)
        for inode in [*names.values(), *slots.values()]:
            if not inode.is_durable:  # its name came before its bytes
                inode.entry = replace(inode.entry, content=b"")
        self.synced = [self.image()]

    def execute(self, act: Step, *, torn: bool = False) -> StepResult:
        answer = self._execute(act, torn)
        self.synced.append(self.image())
        if torn:
            raise Killed
        return answer

    def _execute(self, act: Step, torn: bool) -> StepResult:
        match act:
            case QuickCheckPath(operation) | InspectPath(operation):
                return self.look(operation.path)
            case InspectSlot(operation):
                return _entry(self.slots.get(operation.slot))
            case Apply(deed, operation):
                return self._do(deed, operation, torn)
            case _:
                self._execute_once(act, torn)
                return None

    def _execute_once(self, act: Step, torn: bool) -> None:
        match act:
            case MakeStage():
                assert self.marker is None, "dropped under a marker"
                self.slots.clear()
            case StageEntry(operation):
                assert operation.after is not None
                assert self.marker is None, "staged under a marker"
                entry = replace(operation.after, content=b"torn") if torn else operation.after
                self.slots[operation.slot] = Inode(entry, is_durable=False)
            case SyncAll():
                self._sync()
            case WriteMarker(state):
                self.marker = Marker(KEY, state, self.operations) if state else None
            case Rescue(operation):
                self.store.add(self.slots[operation.slot].entry)
            case ReportOutcome(outcome):
                self.told.append(outcome)
            case DropStage():
                assert self.marker is None or self.marker.state is not TransactionState.PREPARED
                for slot in list(self.slots)[: len(self.slots) // 2 if torn else None]:
                    del self.slots[slot]
            case _:
                raise AssertionError(f"{act} has an answer")

    def _without(self, slot: int, torn: bool) -> dict[int, Inode]:
        """Torn, what a second name was given to still has the first one, too."""
        return {each: inode for each, inode in self.slots.items() if torn or each != slot}

    def _sync(self) -> None:
        self.synced = []
        for inode in [*self.names.values(), *self.slots.values()]:
            inode.is_durable = True

    def look(self, path: RelativePath) -> PathEntry | None:
        return _entry(self.names.get(path))

    def has_room(self, path: RelativePath) -> bool:
        """Whether a name can be made there: nothing is there, and its parent is a directory."""
        parent = path.parent
        below = parent is None or ((found := self.look(parent)) is not None and found.is_directory)
        return below and path not in self.names

    def is_empty(self, path: RelativePath) -> bool:
        return not any(other.within(path) and other != path for other in self.names)

    def _do(self, deed: PathAction, operation: PathOperation, torn: bool) -> bool:
        path, slot = operation.path, operation.slot
        there, staged = self.names.get(path), self.slots.get(slot)
        if deed is PathAction.TAKE and there and there is staged:
            del self.names[path]
            return True
        match deed:
            case PathAction.EXCHANGE if there and staged and not there.entry.is_directory:
                self.names[path], self.slots[slot] = staged, there
            case PathAction.PUT if staged and self.has_room(path):
                self.names[path] = staged
                self.slots = self._without(slot, torn)
            case PathAction.TAKE if there and not staged and not there.entry.is_directory:
                self.slots[slot] = self.names.pop(path)
            case PathAction.REMOVE_DIRECTORY if there and there.entry.is_directory:
                if not self.is_empty(path):
                    return False
                del self.names[path]
            case PathAction.REMAKE_DIRECTORY if self.has_room(path) and torn:
                self.slots[slot] = Inode(directory(0o700))
            case PathAction.REMAKE_DIRECTORY if self.has_room(path):
                assert operation.before is not None
                self.slots.pop(slot, None)
                self.names[path] = Inode(operation.before)
            case PathAction.ADJUST | PathAction.READJUST if there and there.entry.is_directory:
                entry = operation.after if deed is PathAction.ADJUST else operation.before
                assert entry is not None
                self.names[path] = Inode(entry)  # images share what is not replaced
            case _:
                return False
        return True


@dataclass
class Person:
    """Somebody who edits the project whenever they like, and must not lose a word."""

    disk: ModelDisk
    live: dict[Inode, RelativePath] = field(default_factory=dict)
    last: dict[RelativePath, Inode] = field(default_factory=dict)  # what they saved by its name
    wrote: dict[RelativePath, set[PathEntry | None]] = field(default_factory=dict)
    open: dict[RelativePath, Inode] = field(default_factory=dict)
    count: int = 0

    def act(self, what: str, path: RelativePath) -> None:
        there = self.disk.names.get(path)
        is_file = there is not None and not there.entry.is_directory
        match what:
            case "save" if is_file or self.disk.has_room(path):
                self._forget(path)
                self._wrote(path, Inode(self._fresh()))
            case "write" if there is not None and is_file:
                there.entry = self._fresh()
                self._wrote(path, there)
            case "open" if there is not None and is_file:
                self.open[path] = there
            case "type" if path in self.open and self._may_still_type(self.open[path]):
                self.open[path].entry = self._fresh()
                self._note(path, self.open[path])
                if self.last.get(path) is not self.open[path]:
                    self.last.pop(path, None)  # of two writers, either may be the one that stays
            case "delete" if there is not None:
                # What is in the stage at that moment was in there for them, too.
                known = {*self.disk.names, *(step.path for step in self.disk.operations)}
                for below in [one for one in known if one.within(path)]:
                    self._forget(below)
                    self.last.pop(below, None)
                    self.wrote.setdefault(below, set()).add(None)
            case "mkdir" if self.disk.has_room(path):
                self._wrote(path, Inode(directory(0o711)))
                self.last.pop(path, None)
            case "chmod" if there is not None and there.entry.is_directory:
                there.entry = directory(0o750)
                self.wrote.setdefault(path, set()).add(there.entry)
            case _:
                pass

    def nothing_is_lost(self) -> bool:
        return all(
            self.disk.look(path) == inode.entry or inode.entry in self.disk.store
            for inode, path in self.live.items()
        )

    def what_they_saved_is_there(self) -> bool:
        return all(self.disk.look(path) == inode.entry for path, inode in self.last.items())

    def _fresh(self) -> PathEntry:
        self.count += 1
        return replace(file(f"person {self.count}"), mtime_ns=self.count)

    def _wrote(self, path: RelativePath, inode: Inode) -> None:
        self.disk.names[path] = inode
        if not inode.entry.is_directory:
            self.last[path] = inode
        self._note(path, inode)

    def _note(self, path: RelativePath, inode: Inode) -> None:
        self.wrote.setdefault(path, set()).add(inode.entry)
        # A directory of ours in which they put something must stay, as it is or as we made it.
        for step in self.disk.operations:
            if path.within(step.path) and step.after and step.after.is_directory:
                self.wrote.setdefault(step.path, set()).add(step.after)
            if step.path.within(path) and step.path != path and not inode.entry.is_directory:
                self.wrote.setdefault(step.path, set()).add(None)  # a file has nothing below it
        if not inode.entry.is_directory:
            self.live[inode] = path

    def _forget(self, path: RelativePath) -> None:
        inode = self.disk.names.pop(path, None)
        if inode is not None:
            self.live.pop(inode, None)

    def _may_still_type(self, inode: Inode) -> bool:
        """What is typed into a file that is about to be dropped nobody can keep."""
        marker = self.disk.marker
        is_over = marker is not None and marker.state is not TransactionState.PREPARED
        known = [*self.disk.names.values(), *self.disk.slots.values()]
        return not is_over and any(inode is one for one in known)


def _entry(inode: Inode | None) -> PathEntry | None:
    return inode.entry if inode is not None else None


def drive(
    run: StepGenerator,
    disk: ModelDisk,
    *,
    killed_before: int | None = None,
    torn_at: int | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> TransactionOutcome:
    """Carry a run out to its end, or raise `Killed` before or inside the nth act."""
    answer: StepResult = None
    for count in range(10_000):
        try:
            act = run.send(answer)
        except StopIteration as end:
            outcome = end.value
            assert isinstance(outcome, TransactionOutcome)
            return outcome
        meanwhile()
        if count == killed_before:
            raise Killed
        answer = disk.execute(act, torn=count == torn_at)
    raise AssertionError("it never ends")


def reopened(disk: ModelDisk) -> TransactionOutcome:
    """What the next open makes of it."""
    return drive(recover(disk.marker), disk)
