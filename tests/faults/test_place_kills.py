"""Kill whoever makes, holds or uses a place, at any moment: nothing of it is left behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.confine.place.place import end, find, places, recorded_holder
from holdfast.world import environment_of, system_processes
from tests.confine.workshop import Workshop, fingerprint, opened
from tests.parts.ordinary_user import run_tests_as_ordinary_user
from tests.shape.source import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces")

BEFORE_A_KILL_LONGEST = 0.12
WEIGHTS = {"maker": 1, "holder": 2, "child": 8}  # a maker is always there, a child rarely


def victims(maker: int, draft: Path) -> dict[str, list[int]]:
    """Who can be killed now: the maker, its children, the holder; found quickly, or it is gone."""
    children = Path(f"/proc/{maker}/task/{maker}/children")
    holder = recorded_holder(str(draft))
    return {
        "maker": [maker],
        "child": [int(pid) for pid in children.read_text().split()] if children.exists() else [],
        "holder": [] if holder is None else [holder.pid],
    }


def remains(workshop: Workshop) -> list[str]:
    """All that is left of a place that has ended."""
    directory = os.fsencode(workshop.draft.parent)
    found = [f"place {each}" for each in places() if each.holder.directory == str(workshop.draft)]
    for process in system_processes():
        words = Path(f"/proc/{process.pid}/mountinfo")
        try:
            mounted = not process.is_dead and directory in words.read_bytes()
        except OSError:
            continue
        if mounted or directory in b"".join(environment_of(process.pid)):
            found.append(f"process {process}")
    record = workshop.draft / "holder.json"
    return found + [str(path) for path in (record, record.with_suffix(".new")) if path.exists()]


def killed_at_random(workshop: Workshop, *, kills: int, seed: int) -> Counter[str]:
    """Kill somebody again and again; say who was killed how often."""
    chance, killed = random.Random(seed), Counter[str]()
    command = [sys.executable, "-m", "tests.faults.placing"]
    words = [str(workshop.draft), str(workshop.project)]
    while killed.total() < kills:
        with subprocess.Popen([*command, *words], stdout=subprocess.PIPE, cwd=ROOT) as maker:
            assert maker.stdout is not None
            while maker.stdout.readline() and killed.total() < kills:
                with suppress(subprocess.TimeoutExpired):
                    maker.wait(chance.uniform(0.0, BEFORE_A_KILL_LONGEST))
                there = [each for each in victims(maker.pid, workshop.draft).items() if each[1]]
                weights = [WEIGHTS[who] for who, _ in there]
                who, pids = chance.choices(there, weights)[0]
                with suppress(ProcessLookupError):
                    os.kill(chance.choice(pids), signal.SIGKILL)
                    killed[who] += 1
            maker.kill()
    return killed


def survived(base: Path, *, kills: int, seed: int) -> Counter[str]:
    with opened(base) as workshop:
        before = fingerprint(workshop.project)
        killed = killed_at_random(workshop, kills=kills, seed=seed)
        with_holder = find(workshop.draft)
        if with_holder is not None:
            with with_holder:  # it is whole: it can be joined, and shows what was written
                assert with_holder.files.names(os.fsencode(workshop.project))
        end(workshop.draft)

        assert remains(workshop) == []
        assert fingerprint(workshop.project) == before
        with workshop.place() as place:  # and it can be opened again
            place.files.names(os.fsencode(workshop.project))
    return killed


def test_fifty_kills_leave_nothing_behind(tmp_path: Path) -> None:
    killed = survived(tmp_path, kills=50, seed=7)

    assert {"maker", "child", "holder"} <= killed.keys(), killed


@pytest.mark.skipif(os.geteuid() != 0, reason="these tests are run by an ordinary user already")
@pytest.mark.long
def test_nor_do_those_of_an_ordinary_user() -> None:
    complaint = run_tests_as_ordinary_user("tests/faults/test_place_kills.py")

    assert complaint is None, complaint


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_four_hundred_kills_leave_nothing_behind(tmp_path: Path, seed: int) -> None:
    survived(tmp_path, kills=50, seed=seed)
