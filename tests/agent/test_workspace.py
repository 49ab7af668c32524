"""A draft shows what commands have done, leaves revisions, and nothing leads out of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from holdfast.agent.model import FileKind, FileWrite
from holdfast.agent.ports import FileTree
from holdfast.agent.workspace import DraftWorkspace
from holdfast.failures import Failure
from holdfast.workbench import list_drafts
from holdfast.workbench.model import DraftMode
from holdfast.world import WriterThread
from holdfast.world.failures import PathEscapes
from tests.contracts.test_workspaces import at, filled
from tests.workbench.benches import Bench

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[DraftMode.OVERLAY, DraftMode.COPY])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with filled(tmp_path, request.param) as made:
        yield made


@pytest.fixture
def draft(bench: Bench) -> str:
    return bench.draft()


@pytest.fixture
def workspace(bench: Bench, draft: str) -> Iterator[DraftWorkspace]:
    with WriterThread() as thread:
        yield DraftWorkspace(bench.workbench, draft, str(bench.project), thread)


async def test_what_a_command_did_is_seen_at_once(
    bench: Bench, draft: str, workspace: DraftWorkspace
) -> None:
    await workspace.within(lambda tree: tree.look(at("a")))

    bench.run("echo more >> a; rm d/b; mkdir new; echo x > new/x", draft)

    assert await workspace.within(lambda tree: tree.read(at("a"), 99)) == b"1\n2\nmore\n"
    assert await workspace.within(lambda tree: tree.look(at("d/b"))) is None
    assert await workspace.within(lambda tree: tree.read(at("new/x"), 99)) == b"x\n"


@pytest.mark.promise("A1")
async def test_a_revision_is_another_one_after_a_change_only(
    bench: Bench, draft: str, workspace: DraftWorkspace
) -> None:
    seen = [await workspace.revision(), await workspace.revision()]
    for line in ("echo 3 >> a", "true", "cat a", "chmod 755 a", "rm d/b"):
        bench.run(line, draft)
        seen.append(await workspace.revision())
    await workspace.write([FileWrite(at("new"), b"x", None)], "call_1")
    seen.append(await workspace.revision())

    assert [one != other for one, other in pairwise(seen)] == [
        *(False, True, False, False, True, True, True)
    ]


@pytest.mark.promise("W2")
async def test_every_change_leaves_a_revision_and_the_project_alone(
    bench: Bench, draft: str, workspace: DraftWorkspace
) -> None:
    before = bench.sight()

    await workspace.write([FileWrite(at("a"), b"x", b"1\n2\n")], "call_1")
    await workspace.write([FileWrite(at("a"), b"y", b"x")], "call_2")

    (found,) = list_drafts(bench.workbench)
    causes = [each.cause.split()[:2] for each in found.revisions]
    assert causes == [["batch", "call_1"], ["batch", "call_2"]]
    assert bench.sight() == before


@pytest.mark.promise("C8")
async def test_no_link_leads_out(bench: Bench, tmp_path: Path, workspace: DraftWorkspace) -> None:
    (tmp_path / "secret").write_text("secret")
    for name, target in {
        "out": tmp_path / "secret",
        "up": Path("../../secret"),
        "above": tmp_path,
        "in": Path("d/b"),
    }.items():
        os.symlink(target, bench.project / name)

    for path in ("out", "up", "above/secret"):
        with pytest.raises(PathEscapes):
            await workspace.within(reading(path))
    with pytest.raises(Failure):
        await workspace.write([FileWrite(at("above/new"), b"x", None)], "one")
    assert not (tmp_path / "new").exists()
    assert await workspace.within(lambda tree: tree.read(at("in"), 9)) == b"b\n"
    seen = await workspace.within(lambda tree: tree.look(at("in")))
    assert seen is not None and seen.sort is FileKind.LINK


def reading(path: str) -> Callable[[FileTree], bytes]:
    return lambda tree: tree.read(at(path), 9)
