"""Take random steps with a draft, its project and its processes, and compare each with the model.

A step is a word and a seed of its own, so that a sequence can be shortened and taken again.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

from holdfast.nouns import RelativePath
from holdfast.workbench import (
    DeletePath,
    NewFile,
    PublishOrder,
    RestoreOrder,
    Workbench,
    apply,
    checkpoint,
    discard,
    open_draft,
    publish,
    restore,
    review,
    revise,
    undo,
)
from holdfast.workbench.diff.three_way import above_of, seal_of
from holdfast.workbench.draft.view import DraftView, open_view
from holdfast.workbench.failures import BatchStale, DraftMerged, PublishedChanged
from holdfast.workbench.model import EntryKind
from holdfast.workbench.operations.draft_state import draft_state
from tests.faults.draft_files import Files, tree_of
from tests.faults.draft_model import (
    CONTENTS,
    MergedInstead,
    Model,
    Refused,
    Tree,
    below,
    difference,
    file_of,
)
from tests.workbench.benches import Bench, killed

STEPS = (
    *["draft"] * 10,
    *["person"] * 5,
    *["publish"] * 4,
    *["publish_some"] * 2,
    *["publish_hunks"] * 2,
    "publish_by_force",
    "publish_killed",
    "checkpoint",
    *["restore"] * 2,
    "restore_killed",
    "server_dies",
    *["undo"] * 2,
    "batch",
    *["hold"] * 3,
    "let_go",
    *["holder_dies"] * 2,
)


class Step(NamedTuple):
    """One step: what is done, and the seed of everything that is left to chance in it."""

    kind: str
    seed: int


class Diverged(AssertionError):
    """The workbench and the model do not agree."""


def steps_of(seed: int, length: int) -> list[Step]:
    chance = Random(seed)
    return [Step(chance.choice(STEPS), chance.randrange(2**32)) for _ in range(length)]


class Hold(NamedTuple):
    """A directory that something inside uses, and which one the project had there."""

    descriptor: int
    path: RelativePath
    below: tuple[int | None, ...]


@dataclass
class Trial:
    """A draft, its project and the model of both."""

    bench: Bench
    workbench: Workbench
    model: Model
    draft: str = ""
    log: list[str] = field(default_factory=list[str])
    holds: list[Hold] = field(default_factory=list[Hold])
    view: DraftView | None = None
    released: ExitStack = field(default_factory=ExitStack)

    # What is done

    def take(self, step: Step) -> None:
        chance = Random(step.seed)
        said = getattr(self, f"_{step.kind}")(chance)
        self.log.append(f"{step.kind}: {said}")
        self.check(chance)

    def _draft(self, chance: Random) -> str:
        files = Files(self.root, lambda: self.model.draft)
        said = ", ".join(files.change(chance) for _ in range(chance.randrange(1, 4)))
        for each in list(self.holds):  # what was moved is not followed
            if _inode(self.root() / str(each.path)) != os.fstat(each.descriptor).st_ino:
                os.close(each.descriptor)
                self.holds.remove(each)
        return said

    def _person(self, chance: Random) -> str:
        files = Files(lambda: self.bench.project, lambda: self.model.project)
        said = ", ".join(files.change(chance) for _ in range(chance.randrange(1, 3)))
        self._let_go_of_removed()
        return said

    def _publish(self, _: Random) -> str:
        return self._published(PublishOrder(draft=self.draft))

    def _publish_some(self, chance: Random) -> str:
        changes = self.model.changes()
        if not changes:
            return "nothing"
        only = tuple(change.path for change in chance.sample(changes, min(len(changes), 2)))
        return self._published(PublishOrder(draft=self.draft, only=only))

    def _publish_hunks(self, chance: Random) -> str:
        files = {each.path: each.hunks for each in review(self.workbench, self.draft).files}
        changed = sorted(path for path, count in files.items() if count)
        if not changed:
            return "nothing"
        path = chance.choice(changed)
        numbers = frozenset(chance.sample(range(1, files[path] + 1), 1))
        after = self.model.draft.get(path)
        if after is None or after.kind is not EntryKind.FILE:
            return "nothing"
        return self._published(PublishOrder(draft=self.draft, hunks={path: numbers}))

    def _publish_by_force(self, _: Random) -> str:
        force = self.model.conflicts()
        return self._published(PublishOrder(draft=self.draft, force=force))

    def _published(self, order: PublishOrder) -> str:
        self.model.synchronize()
        before = dict(self.model.project)
        expected = ""
        try:
            self.model.publish(order.only, order.hunks, order.force)
        except (Refused, MergedInstead) as error:
            expected = type(error).__name__
        try:
            done = publish(self.workbench, order)
            got = ""
            if done.checkpoint is not None:
                self.model.checkpoints[done.checkpoint] = before
        except PublishedChanged:
            got = "Refused"
        except DraftMerged:
            got = "MergedInstead"
        self._agree("how the publication ended", got, expected)
        paths = None if order.only is None else list(map(str, order.only))
        return f"only {paths} hunks {order.hunks} force {order.force} {got}"

    def _publish_killed(self, chance: Random) -> str:
        """Whoever publishes is killed: all of it is there afterwards, or nothing."""
        self.model.synchronize()
        with suppress(Refused, MergedInstead):
            after = Model(self.model.project)
            after.base, after.draft = dict(self.model.base), dict(self.model.draft)
            after.publish()
            order, markers = PublishOrder(draft=self.draft), chance.randrange(1, 3)
            is_before = chance.random() < 0.5
            with self.workbench_released():
                is_dead = killed(
                    self.bench,
                    markers,
                    lambda workbench: publish(workbench, order),
                    is_before=is_before,
                )
            with self.workbench.locked():
                pass
            if tree_of(self.bench.project) == after.project:
                self.model.project, self.model.base = after.project, after.base
                return f"finished, killed {is_dead} at {markers}"
            return f"undone, killed {is_dead} at {markers}"
        return "nothing"

    def _checkpoint(self, _: Random) -> str:
        made = checkpoint(self.workbench).id
        self.model.checkpoints[made] = dict(self.model.project)
        return made

    def _restore(self, chance: Random) -> str:
        if not self.model.checkpoints:
            return "nothing"
        id = chance.choice(list(self.model.checkpoints))
        before = dict(self.model.project)
        done = restore(self.workbench, RestoreOrder(checkpoint=id))
        if done.before is not None:
            self.model.checkpoints[done.before] = before
        self.model.restore(id)
        self._let_go_of_removed()
        return f"{id}: {list(map(str, done.paths))}"

    def _restore_killed(self, chance: Random) -> str:
        """The process that restores is killed: all of it is there afterwards, or nothing."""
        if not self.model.checkpoints:
            return "nothing"
        order = RestoreOrder(checkpoint=chance.choice(list(self.model.checkpoints)))
        markers, is_before = chance.randrange(1, 3), chance.random() < 0.5
        with self.workbench_released():
            is_dead = killed(
                self.bench,
                markers,
                lambda workbench: restore(workbench, order),
                is_before=is_before,
            )
        with self.workbench.locked():
            pass
        is_finished = tree_of(self.bench.project) == self.model.checkpoints[order.checkpoint]
        if is_finished:
            self.model.restore(order.checkpoint)
        self._let_go_of_removed()
        return f"{order.checkpoint} finished {is_finished}, killed {is_dead} at {markers}"

    def _server_dies(self, _: Random) -> str:
        """The process that serves the draft dies with all that it knows, and another one begins."""
        self.let_go()
        self.close_view()
        with self.workbench_released():
            is_dead = killed(
                self.bench,
                1,
                self._die_at_work,
                is_before=True,
            )
        self.open_view()
        return f"killed {is_dead}"

    def _die_at_work(self, workbench: Workbench) -> None:
        with workbench.locked() as (handle, _):
            view = open_view(handle.drafts, handle.drafts.find(self.draft))
            draft_state(handle, view, handle.drafts.find(self.draft))
            os._exit(0)

    def _undo(self, chance: Random) -> str:
        if not self.model.revisions:
            return "nothing"
        number = chance.choice([0, *self.model.revisions])
        self.model.synchronize()
        expected = ""
        try:
            self.model.undo(number)
        except Refused:
            expected = "Refused"
        try:
            undo(self.workbench, self.draft, to=number)
            got = ""
        except BatchStale:
            got = "Refused"
        self._agree("how going back ended", got, expected)
        return f"to {number} {got}"

    def _batch(self, chance: Random) -> str:
        self.model.synchronize()
        files = Files(self.root, lambda: self.model.draft)
        path = files.place(chance)
        tree = self.model.draft
        steps: list[DeletePath | NewFile] = []
        for each in reversed(below(tree, path)):
            steps.append(DeletePath(each))
            del tree[each]
        if chance.random() < 0.7:
            entry = file_of(b"of a batch\n")
            steps.append(NewFile(path, CONTENTS[entry.content]))
            tree[path] = entry
        if steps:
            apply(self.workbench, self.draft, steps)
        return f"{[type(each).__name__ for each in steps]} {path}"

    def _hold(self, chance: Random) -> str:
        """Something inside works in a directory, or has it open."""
        homes = [path for path, entry in self.model.draft.items() if entry.is_directory]
        if not homes:
            return "nothing"
        path = chance.choice(sorted(homes))
        flags = os.O_RDONLY if chance.random() < 0.5 else os.O_PATH
        handle = os.open(self.root() / str(path), flags | os.O_DIRECTORY)
        self.holds.append(Hold(handle, path, self._below(path)))
        return str(path)

    def _below(self, path: RelativePath) -> tuple[int | None, ...]:
        """The directories of the project at a path and above it; a used one keeps those in use."""
        return tuple(_inode(self.bench.project / str(each)) for each in (path, *above_of(path)))

    def _let_go_of_removed(self) -> None:
        """A directory that is gone from the project is dead for a process that works in it."""
        for each in list(self.holds):
            pairs = zip(each.below, self._below(each.path), strict=True)
            if any(was is not None and was != now for was, now in pairs):
                os.close(each.descriptor)
                self.holds.remove(each)

    def _let_go(self, _: Random) -> str:
        self.let_go()
        return ""

    def let_go(self) -> None:
        for handle in self.holds:
            os.close(handle.descriptor)
        self.holds.clear()

    def _holder_dies(self, chance: Random) -> str:
        self.let_go()
        assert self.view is not None
        place = self.view.place
        if place is None or place.holder is None:
            return "nothing"
        life = os.pidfd_open(place.holder.pid)
        try:
            os.kill(place.holder.pid, signal.SIGKILL)
            select.select([life], [], [], 30)
        finally:
            os.close(life)
        self.close_view()
        self.open_view()
        return "killed"

    # What is compared

    def check(self, chance: Random) -> None:
        """Compare all that anybody can see with the model."""
        is_revised_first = chance.random() < 0.3
        if is_revised_first:
            self._revise()
        self.model.synchronize()
        found = review(self.workbench, self.draft)
        shown = {each.path: (each.before, each.after) for each in found.files}
        changes = {each.path: (each.before, each.after) for each in self.model.changes()}
        self._agree_on("the project", tree_of(self.bench.project), self.model.project)
        self._agree_on("the draft", tree_of(self.root()), self.model.draft)
        self._agree("the changes", shown, changes)
        self._agree("the seal", found.seal, seal_of(self.model.changes()))
        conflicts = tuple(each.path for each in found.conflicts)
        self._agree("the conflicts", conflicts, tuple(sorted(self.model.conflicts())))
        self._revise()

    def _revise(self) -> None:
        self.model.synchronize()  # as every look does, also the one that an undo ends with
        revise(self.workbench, self.draft, "step")
        with self.workbench.locked() as (handle, _):
            for each in handle.drafts.find(self.draft).revisions:
                if each.number not in self.model.revisions:
                    self.model.revisions[each.number] = (
                        dict(self.model.base),
                        dict(self.model.draft),
                    )

    def _agree_on(self, what: str, got: Tree, expected: Tree) -> None:
        changes = difference(expected, got)
        if changes:
            said = "\n".join(f"  {each.path}: {each.before} -> {each.after}" for each in changes)
            raise Diverged(f"{what} differs from the model (-> is):\n{said}")

    def _agree(self, what: str, got: object, expected: object) -> None:
        if got != expected:
            raise Diverged(f"{what}: {got}, expected {expected}")

    # How it is reached

    def root(self) -> Path:
        """The draft, as a process inside of it sees it."""
        assert self.view is not None
        return Path(f"/proc/self/fd/{self.view.root}")

    def open_view(self) -> None:
        with self.workbench.locked() as (handle, _):
            self.view = open_view(handle.drafts, handle.drafts.find(self.draft))

    def close_view(self) -> None:
        if self.view is not None:
            self.view.close()
            self.view = None

    @contextmanager
    def workbench_released(self) -> Generator[None]:
        """Let another process hold the workbench meanwhile."""
        self.released.close()
        try:
            yield
        finally:
            self.workbench = self.released.enter_context(self.bench.workbench.kept_open())


def _inode(path: Path) -> int | None:
    try:
        return os.lstat(path).st_ino
    except OSError:
        return None


def run(bench: Bench, steps: Sequence[Step], seed: int) -> list[str]:
    """Take all steps with a new draft; raises Diverged with what was done before."""
    chance = Random(seed)
    project = tree_of(bench.project)
    files = Files(lambda: bench.project, lambda: project)
    for path in sorted(path for path in project if path.parent is None):
        files.remove(path)
    for _ in range(chance.randrange(2, 8)):
        files.change(chance)
    model = Model(project)
    with ExitStack() as stack:
        released = stack.enter_context(ExitStack())
        workbench = released.enter_context(bench.workbench.kept_open())
        one = Trial(bench, workbench, model, released=released)
        one.draft = open_draft(workbench, bench.mode).id
        stack.callback(lambda: discard(one.workbench, one.draft))
        stack.callback(one.close_view)
        stack.callback(one.let_go)
        one.open_view()
        one.log.append("project: " + " ".join(map(str, sorted(project))))
        try:
            one.check(chance)
            for step in steps:
                one.take(step)
        except OSError as error:
            raise Diverged("\n".join((str(error), *one.log))) from error
        except Exception as error:
            error.add_note("\n".join(one.log))
            raise
        return one.log


def shortest(fails: Callable[[Sequence[Step]], bool], steps: list[Step]) -> list[Step]:
    """The same failure with as few steps as leaving some out one by one gives."""
    at = 0
    while at < len(steps):
        fewer = [*steps[:at], *steps[at + 1 :]]
        if fails(fewer):
            steps = fewer
        else:
            at += 1
    return steps
