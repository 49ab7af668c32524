"""A sandbox inside a place: every way out is closed there, too, and drafts keep what is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from holdfast.confine.failures import PlaceUnavailable, SandboxRequestUnfit
from holdfast.confine.model import PlaceSpec
from holdfast.confine.place.creation import create
from holdfast.confine.place.locations import remember_layers
from holdfast.confine.place.place import Place, end
from holdfast.confine.policy import SandboxPolicy, Strength
from holdfast.confine.probes.probe import (
    ProbeVerdict,
    attempted,
    findings,
    readable_for_python,
    staged,
    trying,
)
from holdfast.confine.sandbox.placeholder_sweeper import clean
from holdfast.confine.sandbox.preflight import preflight
from holdfast.confine.sandbox.sandbox import prepare_sandbox
from tests.confine.shutting import PATH, SMALL, plain, run_to_end
from tests.parts.ordinary_user import run_tests_as_ordinary_user

pytestmark = pytest.mark.skipif(
    preflight().strength is not Strength.FULL,
    reason=f"no full sandbox on this machine: {'; '.join(preflight().reasons)}",
)


@dataclass(frozen=True)
class Draft:
    """A place over a project, and where it is."""

    place: Place
    root: int
    project: Path
    state: Path

    def run(self, script: str) -> tuple[Strength, str]:
        """Run a script in a sandbox in the place."""
        entry = replace(
            plain(["sh", "-c", script], self.project, PATH), namespaces=self.place.namespaces
        )
        policy = SandboxPolicy(writable=(str(self.project),), limits=SMALL)
        told = self.state / "told"
        out = os.open(told, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        try:
            with prepare_sandbox(entry, policy, state=self.state, root=self.root) as shut:
                run_to_end(shut.entry, {out: 1})
                return shut.strength, told.read_text()
        finally:
            os.close(out)


def _drafted(directory: Path) -> Iterator[Draft]:
    draft, state = directory / "draft", directory / "state"
    draft.mkdir()
    state.mkdir()
    project = directory / "workspace"
    project.mkdir(exist_ok=True)
    try:
        place = create(PlaceSpec(directory=str(draft), project=str(project)))
    except PlaceUnavailable as unavailable:
        pytest.skip(f"no place can be made here: {unavailable}")
    assert place.holder is not None
    remember_layers(state, place.holder)
    root = os.open(f"/proc/{place.holder.pid}/root", os.O_PATH | os.O_DIRECTORY)
    try:
        yield Draft(place, root, project, state)
    finally:
        os.close(root)
        place.close()
        end(draft)


@pytest.fixture
def draft(tmp_path: Path) -> Iterator[Draft]:
    yield from _drafted(tmp_path)


def test_what_it_writes_lands_in_the_draft(draft: Draft) -> None:
    script = "echo new > made; mkdir .codex || id -u; cat made; unshare -U true || echo refused"
    assert draft.run(script) == (Strength.FULL, "1000\nnew\nrefused\n")
    assert list(draft.project.iterdir()) == []
    upper = draft.state.parent / "draft" / "upper"
    assert [path.name for path in upper.iterdir()] == ["made"]


def test_root_has_no_power_over_devices_there_either(draft: Draft) -> None:
    tries = ["chmod 666 /dev/null && echo chmod", "touch -d @1 /dev/zero && echo touch"]
    script = "; ".join([*tries, "echo x > /dev/null && echo usable"])
    assert draft.run(script) == (Strength.FULL, "usable\n")


def test_what_was_killed_is_cleaned_up_in_the_place(draft: Draft) -> None:
    draft.run("kill -9 1; kill -9 -1")
    clean(draft.state)
    assert draft.run("ls -A | wc -l")[0] is Strength.FULL
    assert os.listdir(f"/proc/self/fd/{draft.root}{draft.project}") == []


def test_a_link_in_the_place_is_not_taken_for_one_of_ours(draft: Draft) -> None:
    draft.run("ln -s /etc way")
    entry = replace(plain(["true"], "/", PATH), namespaces=draft.place.namespaces)
    policy = SandboxPolicy(writable=(str(draft.project / "way"),))
    with pytest.raises(SandboxRequestUnfit):
        prepare_sandbox(entry, policy, state=draft.state, root=draft.root)


def test_every_way_out_is_closed(tmp_path: Path) -> None:
    for name in ("plain", "shut"):
        (tmp_path / name).mkdir()
    with staged(tmp_path / "plain") as scene:
        without = attempted(trying(scene), scene)
    with staged(tmp_path / "shut") as scene:
        for draft in _drafted(tmp_path / "shut"):
            entry = replace(trying(scene), namespaces=draft.place.namespaces)
            policy = SandboxPolicy(
                readable=tuple(readable_for_python()), writable=(scene.workspace,)
            )
            with prepare_sandbox(entry, policy, state=draft.state, root=draft.root) as shut:
                within = attempted(shut, scene)
    found = findings(without, within)
    assert {each.verdict for each in found} == {ProbeVerdict.CONTAINED}, found


@pytest.mark.skipif(os.geteuid() != 0, reason="whoever is not root has run them all already")
def test_all_of_this_holds_for_an_ordinary_user_too() -> None:
    assert run_tests_as_ordinary_user(__file__) is None
