"""Do one thing to a workbench again and again, each time with another harm, and judge the end."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from holdfast.failures import Failure
from holdfast.workbench.failures import RevisionUnwritten
from holdfast.workbench.model import STAGE_PREFIX
from tests.faults.workbench_scene import Home, end_places, held_below
from tests.faults.workbench_scenes import SCENES
from tests.faults.workbench_sights import Kept, Views
from tests.faults.workbench_tracing import NO_HARM, Call, Harm, Ran, killed_at, traced
from tests.faults.workbench_worker import heard, main_when_told
from tests.workbench.benches import MARKERS


@dataclass(slots=True)
class Tally:
    """How many harms were done, and what was wrong after which."""

    cases: int = 0
    missed: list[str] = field(default_factory=list[str])
    wrong: dict[str, list[str]] = field(default_factory=dict[str, list[str]])


class Ground:
    """A world that is laid out once and copied for each case; always at the same paths.

    It knows how the world was before, and how it is when the thing was done undisturbed.
    """

    def __init__(self, base: Path, scene: str) -> None:
        self.base, self.name, self.scene = base, scene, SCENES[scene]
        self.home = Home(self.prepare())
        self.home.root.mkdir()
        self.kept: Kept = self.scene.plan_operations(self.home)
        self.before: Views = self.scene.views(self.home)
        self.keep("template")
        self.dry = self.run(NO_HARM)
        said = self.said()
        assert "done" in said, said
        assert said["loaded"] == [], f"loaded too late, so its calls were traced: {said}"
        self.after: Views = self.scene.views(self.home)

    @property
    def calls(self) -> list[Call]:
        """The calls that an undisturbed run makes."""
        return self.dry.calls

    def run(self, harm: Harm, *, deed: str = "act", since: str | None = "template") -> Ran:
        """Do it once, harmed, in the world as it was laid out or as it was kept."""
        self.leave()
        if since is not None:
            self.bring(since)
        order = (self.name, deed, self.home, self.base / "output")
        return traced(main_when_told, order, self.base / "trace", harm)

    def prepare(self) -> Path:
        """Have a place for the world; return where it is to be."""
        self.base.mkdir(parents=True)
        return self.base / "home"

    def keep(self, name: str) -> None:
        """Remember the world as it is, to begin there again."""
        copy_tree(self.home.root, self.base / name)

    def bring(self, name: str) -> None:
        """Have the world again as it was when it was remembered."""
        copy_tree(self.base / name, self.home.root)

    def leave(self) -> None:
        """End what runs there."""
        if self.scene.is_layered:
            end_places(self.home)

    def said(self) -> dict[str, object]:
        """What was said in the last run."""
        return heard(self.base / "output")

    def judge(self, said: dict[str, object]) -> list[str]:
        """What is wrong now that somebody who said this was harmed, and another opens it."""
        if "crashed" in said:
            return [str(said["crashed"])]
        marked = list(self.home.root.rglob("marker*.json"))
        try:
            told = self.scene.reopen(self.home)
            found = self.scene.views(self.home)
            wrong = self._mixed(found, said) + self._untold(found, told, marked)
            wrong += self.scene.read_back(self.home, {**self.kept, **self._made(said)})
            wrong += left_behind(self.home) + self._left_running()
            if self.scene.is_repeatable or ("done" not in said and found == self.before):
                self.scene.act(self.home)
                if self.scene.views(self.home) != self.after:
                    wrong.append("done again, it came to something else")
                wrong += left_behind(self.home)
        except Failure as failure:
            return [f"nobody can go on: {failure.code} {failure}"]
        return wrong

    def _mixed(self, found: Views, said: dict[str, object]) -> list[str]:
        failed = said.get("failed")
        if "done" in said or failed == RevisionUnwritten.code:
            ends = {"after": self.after}
        elif failed is not None and failed not in self.scene.undecided:
            ends = {"before": self.before}
        else:
            ends = {"before": self.before, "after": self.after}
        if found in ends.values():
            return []
        difference = _difference(found, self.before, self.after)
        return [f"not as {' or '.join(ends)} {failed or ''}: {difference}"]

    def _untold(self, found: Views, told: list[str], marked: list[Path]) -> list[str]:
        ways = {"finished": self.after, "undone": self.before}
        if not told and any(marker.parent.exists() for marker in marked):
            return ["there was a marker, and nobody said which way it went"]
        return [f"said to be {result}, and is not" for result in told if found != ways[result]]

    def _left_running(self) -> list[str]:
        handle = held_below(self.home) if self.scene.is_layered else []
        gone = [place.holder for place in handle if not Path(place.holder.directory).exists()]
        return [f"left running: {holder}" for holder in gone]

    def _made(self, said: dict[str, object]) -> Kept:
        made = said.get("done") or {}
        assert isinstance(made, dict)
        return {str(id): self.before[str(view)] for id, view in made.items()}


def copy_tree(old: Path, new: Path) -> None:
    """Make one directory just as another one, with holes where there are zeros."""
    shutil.rmtree(new, ignore_errors=True)
    subprocess.run(["cp", "-a", "--sparse=always", old, new], check=True)


@contextmanager
def in_memory() -> Generator[Path]:
    """A directory in memory, if there is room for files: what is harmed is a call, not a disk."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as base:
        yield Path(base)


@contextmanager
def laid_out(scene: str) -> Generator[Ground]:
    """A ground; nothing of it goes on running."""
    with in_memory() as base:
        ground = Ground(base / "ground", scene)
        try:
            yield ground
        finally:
            ground.leave()


def left_behind(home: Home) -> list[str]:
    """Traces of a transaction that nobody needs any more; whoever writes next clears the rest."""
    mounts = Path("/proc/self/mountinfo").read_text()
    found = [
        str(path.relative_to(home.root))
        for path in home.root.rglob("*")
        if path.name.startswith((STAGE_PREFIX, ".gone-")) or path.name in MARKERS
    ]
    torn = list(home.state.rglob(".*.tmp"))
    left = [f"left behind: {name}" for name in found]
    left += [f"torn files pile up: {torn}"] if len(torn) > 1 else []
    return left + (["left mounted"] if str(home.root) in mounts else [])


def _difference(found: Views, before: Views, after: Views) -> list[str]:
    words: list[str] = []
    for view in sorted({*found, *before, *after}):
        sights = [views.get(view, {}) for views in (found, before, after)]
        for path in sorted({*sights[0], *sights[1], *sights[2]}):
            now, was, will = (sight.get(path) for sight in sights)
            if was != will or now != was:
                which = "before" if now == was else "after" if now == will else repr(now)[:100]
                words.append(f"{view}/{os.fsdecode(path)} is {which}")
    return words


def sweep(ground: Ground, chosen: list[Harm]) -> Tally:
    """Do every one of these harms, and judge each that was done."""
    tally = Tally()
    for harm in chosen:
        tally.cases += 1
        if not any(ground.run(each).has_suffered(harm) for each in harm.tries):
            tally.missed.append(str(harm))
        elif wrong := ground.judge(ground.said()):
            tally.wrong[str(harm)] = wrong
    return tally


def sweep_twice(ground: Ground, calls: list[Call], *, most: int | None = None) -> Tally:
    """Kill it at each of these calls, then the recovery at some or all of its own, and judge."""
    tally = Tally()
    chance = Random(len(calls))
    for call in calls:
        if not any(ground.run(each).was_harmed for each in killed_at(call).tries):
            tally.missed.append(str(call))
            continue
        ground.keep("killed")
        recovery = ground.run(NO_HARM, deed="reopen", since=None).calls
        again = [one for one in recovery if one.changes]
        for other in again if most is None else chance.sample(again, min(most, len(again))):
            ground.run(killed_at(other), deed="reopen", since="killed")
            tally.cases += 1
            # Nobody has acknowledged anything: what a recovery says, the next one says, too.
            crashed = {word: fact for word, fact in ground.said().items() if word == "crashed"}
            if wrong := ground.judge(crashed):
                tally.wrong[f"killed at {call}, then at {other}"] = wrong
    return tally
