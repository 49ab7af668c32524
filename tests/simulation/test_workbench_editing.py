"""A person and an agent go on saving while a draft is published."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from holdfast.confine import end, places
from holdfast.failures import Failure, Kind
from holdfast.nouns import RelativePath
from holdfast.workbench import (
    DraftMode,
    PublishOrder,
    Store,
    Workbench,
    checkpoint,
    enter_draft,
    open_draft,
    publish,
    recover,
)
from holdfast.workbench.failures import ObjectMissing
from holdfast.workbench.model import STAGE_PREFIX
from holdfast.workbench.objects.formats import ObjectKind, name_of
from tests.faults.workbench_ground import in_memory
from tests.simulation.workbench_people import PATHS, Editor, content

PUBLICATIONS = 12


@contextmanager
def busy() -> Iterator[Path]:
    """A place in memory, with threads that take turns often; nothing of it is left."""
    often = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    with in_memory() as base:
        try:
            yield base
        finally:
            sys.setswitchinterval(often)
            for each in list(places()):
                if Path(each.holder.directory).is_relative_to(base):
                    end(each.holder.directory)


def make_project(project: Path) -> dict[str, bytes]:
    """A small project; what each of its files holds."""
    base = {path: content("base", number) for number, path in enumerate(PATHS)}
    for path, data in base.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_bytes(data)
    return base


def below(directory: Path) -> dict[str, bytes]:
    """Every file below a directory, but not what an editor is just about to save."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and path.suffix not in {".person", ".agent"}
    }


def is_kept(store: Store, data: bytes) -> bool:
    """Whether the store has these bytes."""
    try:
        return b"".join(store.content(name_of(ObjectKind.BLOB, data))) == data
    except ObjectMissing:
        return False


def edited_while_publishing(seed: int, mode: DraftMode) -> tuple[list[str], Counter[str]]:
    """What is wrong in the end, and how the publications ended."""
    with busy() as place:
        project, chance = place / "project", Random(seed)
        base = make_project(project)
        workbench = Workbench.at(project, place / "state")
        checkpoint(workbench)
        draft = open_draft(workbench, mode).id
        ways: Counter[str] = Counter()
        with enter_draft(workbench, draft) as inside:
            root = Path(f"/proc/self/fd/{inside.view.root}/.")
            agent = Editor("agent", root, Random(chance.random()), is_careful=True)
            person = Editor("person", project, Random(chance.random()))
            with agent, person:
                for _ in range(PUBLICATIONS):
                    ways[published(workbench, ordered(draft, chance))] += 1
            wrong = [f"found unfinished: {found}" for found in recover(workbench)]
            in_draft = below(root)
        wrong += blends("project", below(project), person, agent, base)
        wrong += blends("draft", in_draft, person, agent, base)
        with workbench.locked() as (held, _):
            wrong += lost(held.store, person, below(project))
            wrong += lost(held.store, agent, in_draft)
        return wrong, ways


def ordered(draft: str, chance: Random) -> PublishOrder:
    """All of a draft, or a file or two of it, sometimes over whatever the person saved."""
    only = tuple(map(RelativePath.of, chance.sample(PATHS, chance.choice((1, 2)))))
    match chance.choice(("all", "some", "forced", "forced")):
        case "all":
            return PublishOrder(draft=draft)
        case "some":
            return PublishOrder(draft=draft, only=only)
        case _:
            return PublishOrder(draft=draft, only=only, force=only)


def published(workbench: Workbench, order: PublishOrder) -> str:
    """How one publication ended."""
    try:
        return "some" if publish(workbench, order).paths else "none"
    except Failure as failure:
        assert failure.kind in {Kind.CONFLICT, Kind.STALE}, failure
        return failure.code


def lost(store: Store, editor: Editor, found: dict[str, bytes]) -> list[str]:
    """What somebody saved last that is neither where it was saved nor in the store."""
    return [
        f"what the {editor.who} saved last in {path} is lost"
        for path, data in editor.last.items()
        if data is not None and found.get(path) != data and not is_kept(store, data)
    ]


def blends(
    where: str, found: dict[str, bytes], person: Editor, agent: Editor, base: dict[str, bytes]
) -> list[str]:
    """Files that are neither as they were, nor as the person, nor as the agent saved them."""
    wrong: list[str] = []
    for path, data in found.items():
        known = {base.get(path), *person.saved.get(path, ()), *agent.saved.get(path, ())}
        if STAGE_PREFIX in path:
            wrong.append(f"{path} was left in the {where}")
        elif data not in known:
            wrong.append(f"{path} in the {where} is a blend: {data[:40]!r}, {len(data)} bytes")
    return wrong


MODES = [DraftMode.COPY, DraftMode.OVERLAY]


@pytest.mark.promise("W1", "W5")
@pytest.mark.parametrize("mode", MODES)
def test_each_file_is_as_somebody_saved_it(mode: DraftMode) -> None:
    ways: Counter[str] = Counter()
    for seed in range(2):
        wrong, ended = edited_while_publishing(seed, mode)
        assert wrong == [], f"seed {seed}"
        ways += ended


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.promise("W1", "W5")
@pytest.mark.parametrize("mode", MODES)
def test_each_file_is_as_somebody_saved_it_whenever_they_did(mode: DraftMode) -> None:
    ways: Counter[str] = Counter()
    for seed in range(100, 160):
        wrong, ended = edited_while_publishing(seed, mode)
        assert wrong == [], f"seed {seed}"
        ways += ended

    assert ways["some"] > 0, ways
    assert ways["CONFLICT_PUBLISHED_CHANGED"] > 0, ways
