"""A project, a home for what is kept of it, and nobody left in its drafts afterwards."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

from holdfast.app.settings import Settings, parse
from holdfast.cli.declarations import Request
from holdfast.cli.invocation import HANDLERS
from holdfast.cli.model import Outcome
from holdfast.cli.parser import parse as read
from holdfast.confine import PlaceSpec, create, end, places
from holdfast.confine.failures import PlaceUnavailable
from tests.cli.planes import plane_home
from tests.cli.running import COMMAND, environment


@dataclass(frozen=True)
class Bench:
    """A person at work on a project."""

    home: Path
    project: Path

    @property
    def settings(self) -> Settings:
        return parse({"HOLDFAST_HOME": str(self.home)}, person=self.home)

    def asked(self, *words: str) -> Outcome:
        """What comes of words, carried out in this process."""
        request = read(["-C", str(self.project), *words])
        assert isinstance(request, Request), request
        module, function = HANDLERS[request.command]
        carry_out = getattr(import_module(f"holdfast.cli.{module}"), function)
        outcome = carry_out(request, self.settings)
        assert isinstance(outcome, Outcome)
        return outcome

    @property
    def draft(self) -> Path:
        """Where the newest draft is seen."""
        return Path(json.loads(self.asked("draft", "path", "--json").answer)["path"])

    def ran(
        self, *words: str, stdin: bytes = b"", **more: str
    ) -> subprocess.CompletedProcess[bytes]:
        """What comes of words as a command of its own, with the project as its directory."""
        return subprocess.run(
            [*COMMAND, *words],
            env=environment(self.home, **more),
            cwd=self.project,
            input=stdin,
            capture_output=True,
            timeout=100,
            check=False,
        )

    def files(self) -> dict[str, str]:
        """Every file of the project, by its path."""
        return {
            os.fsdecode(path.relative_to(self.project)): path.read_bytes().decode("latin-1")
            for path in sorted(self.project.rglob("*"))
            if path.is_file()
        }


@contextmanager
def at_bench() -> Generator[Bench]:
    """A bench with an empty project; what was started for it ends with the test."""
    with plane_home() as home:
        project = home / "project"
        project.mkdir()
        try:
            yield Bench(home, project.resolve())
        finally:
            for each in places():
                if each.holder.directory.startswith(f"{home.resolve()}/"):
                    end(each.holder.directory)


def needs_place(bench: Bench) -> None:
    """Skip a test where no place can be made."""
    spec = PlaceSpec(directory=str(bench.home / "try"), project=str(bench.project))
    try:
        create(spec).close()
    except PlaceUnavailable as unavailable:
        pytest.skip(f"no place can be made here: {unavailable}")
    end(spec.directory)
