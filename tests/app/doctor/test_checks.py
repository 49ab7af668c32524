"""Every check, as it runs on this machine."""

from __future__ import annotations

import os
import re
from importlib import resources
from pathlib import Path

import anyio
import pytest

from holdfast.app.doctor.checks import checks
from holdfast.app.doctor.doctor import examine, this_machine
from holdfast.app.doctor.keyring import has_library
from holdfast.app.doctor.model import Machine, Result, Status
from holdfast.app.settings import Settings, parse

pytestmark = pytest.mark.anyio

IDS = (
    "python.version",
    "sqlite.usable",
    "settings.variables",
    "state.writable",
    "state.durable",
    "state.space",
    "clock.sane",
    "sandbox.strength",
    "sandbox.place",
    "sandbox.user",
    "sandbox.bubblewrap",
    "sandbox.namespaces",
    "sandbox.landlock",
    "sandbox.overlay",
    "sandbox.openat2",
    "sandbox.cgroup",
    "sandbox.setpriv",
    "network.loopback",
    "network.socket",
    "program.codex",
    "program.node",
    "program.git",
    "program.rg",
    "program.keyring",
)


def settings(home: Path) -> Settings:
    return parse({"HOLDFAST_HOME": str(home)}, person=home)


async def visit(home: Path, machine: Machine) -> dict[str, Result]:
    wanted = checks(settings(home), machine)
    hand_over, results = anyio.create_memory_object_stream[Result](len(wanted))
    async with results, anyio.create_task_group() as tasks:
        tasks.start_soon(examine, wanted, machine, hand_over)
        return {result.id: result async for result in results}


def test_ids_are_stable() -> None:
    """Programs look checks up by their ids: add to the list, never rename."""
    found = checks(settings(Path("/home")), Machine(system="Linux"))

    assert tuple(check.id for check in found) == IDS


async def test_every_check_answers_here_and_leaves_nothing_behind(tmp_path: Path) -> None:
    found = await visit(tmp_path, this_machine())

    assert found.keys() == set(IDS)
    texts = [result.finding.text for result in found.values()]
    assert [text for text in texts if re.search("check itself|ended with status", text)] == []
    assert found["state.writable"].finding.status is Status.OK
    assert found["sqlite.usable"].finding.status is Status.OK
    assert os.listdir(tmp_path) == []


async def test_what_only_linux_has_is_skipped_elsewhere(tmp_path: Path) -> None:
    found = await visit(tmp_path, Machine(system="Darwin"))

    skipped = {name for name, result in found.items() if result.finding.status is Status.SKIPPED}
    without_library = set[str]() if has_library() else {"program.keyring"}
    assert skipped == {name for name in IDS if name.startswith("sandbox.")} | without_library


def test_the_profile_of_apparmor_comes_with_us() -> None:
    found = resources.files("holdfast.app.doctor").joinpath("apparmor/holdfast")

    text = found.read_text(encoding="utf-8")
    assert text.count("@HOLDFAST@") == 1
    assert "userns," in text
