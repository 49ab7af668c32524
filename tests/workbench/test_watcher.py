"""A watcher tells what changed, and says so when it does not know."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from holdfast.nouns import RelativePath
from holdfast.workbench import watcher as watching
from holdfast.workbench.model import STAGE_PREFIX
from holdfast.workbench.store.store import Store, Subject
from holdfast.workbench.watcher import Watcher


@pytest.fixture
def watcher(project: Path) -> Iterator[Watcher]:
    (project / "d" / "e").mkdir(parents=True)
    (project / "d" / "e" / "f").write_bytes(b"first")
    watching = Watcher.at(project)
    if watching is None:
        pytest.skip("this system cannot watch directories")
    with watching:
        yield watching


def told(watcher: Watcher) -> set[str] | None:
    dirty = watcher.dirty()
    return None if dirty is None else set(map(str, dirty))


def test_at_first_anything_may_have_changed(watcher: Watcher) -> None:
    assert [told(watcher), told(watcher)] == [None, set()]


ACTS: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "an edit": (lambda project: (project / "d/e/f").write_bytes(b"x"), {"d/e/f"}),
    "a mode": (lambda project: (project / "d/e/f").chmod(0o600), {"d/e/f"}),
    "a time": (lambda project: os.utime(project / "d/e/f", (5, 5)), {"d/e/f"}),
    "a new file": (lambda project: (project / "d/new").touch(), {"d/new"}),
    "a deletion": (lambda project: (project / "d/e/f").unlink(), {"d/e/f"}),
    "a rename": (lambda project: (project / "d/e/f").rename(project / "g"), {"d/e/f", "g"}),
    "a link": (lambda project: (project / "link").symlink_to("d"), {"link"}),
    "a stage": (lambda project: (project / f"{STAGE_PREFIX}1").mkdir(), set()),
    "reading": (lambda project: (project / "d/e/f").read_bytes(), set()),
}


@pytest.mark.parametrize("act", ACTS)
def test_what_changed_is_told_once(watcher: Watcher, project: Path, act: str) -> None:
    do, expected = ACTS[act]
    watcher.dirty()
    do(project)

    assert [told(watcher), told(watcher)] == [expected, set()]


def test_a_new_directory_is_watched_with_all_that_is_in_it(watcher: Watcher, project: Path) -> None:
    watcher.dirty()
    shutil.copytree(project / "d", project / "copy")
    (project / "d").rename(project / "moved")
    watcher.dirty()
    (project / "copy" / "e" / "f").write_bytes(b"x")
    (project / "moved" / "e" / "f").write_bytes(b"x")

    assert told(watcher) == {"copy/e/f", "moved/e/f"}


def test_what_is_given_back_is_told_again(watcher: Watcher, project: Path) -> None:
    watcher.dirty()
    (project / "a").touch()
    taken = watcher.dirty()
    (project / "b").touch()
    watcher.give_back(taken)
    assert told(watcher) == {"a", "b"}
    watcher.give_back(None)
    watcher.give_back([RelativePath.of("a")])
    assert [told(watcher), told(watcher)] == [None, set()]


def test_too_much_is_anything(
    watcher: Watcher, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "DIRTY_MAX", 5)
    watcher.dirty()
    for number in range(10):
        (project / f"f{number}").touch()

    assert [told(watcher), told(watcher)] == [None, set()]


def test_when_notices_were_lost_all_is_watched_anew(watcher: Watcher, project: Path) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 50_000:
        pytest.skip(f"it takes {limit} changes here before any is lost")
    watcher.dirty()
    names = [project / "d" / f"f{number}" for number in range(2)]
    for number in range(limit + 10):
        names[number % 2].touch()
    (project / "late").mkdir()
    assert told(watcher) is None
    (project / "late" / "f").touch()
    assert told(watcher) == {"late/f"}


def test_what_cannot_be_watched_is_not(project: Path) -> None:
    assert Watcher.at(project / "nowhere") is None


@pytest.mark.parametrize("seed", range(3))
def test_a_look_with_hints_sees_what_a_full_look_sees(
    watcher: Watcher, project: Path, tmp_path: Path, seed: int
) -> None:
    chance = Random(seed)
    with Store.open(tmp_path / "store") as store:
        for turn in range(12):
            hinted = store.checkpoint(Subject(project, "watched", dirty=watcher.dirty()))
            anew = store.checkpoint(Subject(project, f"anew {turn}"))
            assert (hinted.tree, hinted.files) == (anew.tree, anew.files)
            for _ in range(chance.randint(0, 4)):
                _disturb(project, chance)


def _disturb(project: Path, chance: Random) -> None:
    everything = sorted(project.rglob("*"))
    path = chance.choice([*everything, project / "a", project / "b"])
    place = path if path.is_dir() else path.parent
    fresh = place / f"n{chance.randint(0, 9)}"
    if path.is_file():
        chance.choice([path.unlink, lambda: path.write_bytes(chance.randbytes(5))])()
    elif path.is_dir() and chance.random() < 0.3:
        shutil.rmtree(path)
    elif path.is_dir() and chance.random() < 0.3 and not fresh.exists():
        path.rename(project / f"moved{chance.randint(0, 10**6)}")
    elif not fresh.exists() and place.is_dir():
        chance.choice([fresh.mkdir, fresh.touch])()
