"""A project, a draft of it whose place is held, and a server's state that is hidden in there."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.confine import Place, PlaceSpec, create, end
from holdfast.confine.failures import PlaceUnavailable
from tests.confine.workshop import fingerprint


@dataclass(frozen=True)
class Draft:
    """Where all of it is."""

    base: Path

    @property
    def project(self) -> Path:
        return self.base / "project"

    @property
    def upper(self) -> Path:
        return self.base / "draft" / "upper"

    @property
    def name(self) -> str:
        return str(self.base / "draft")

    @property
    def state(self) -> Path:
        return self.base / "state"

    def uri(self, name: str = "") -> str:
        return (self.project / name).as_uri()

    def hold(self, *hidden: Path) -> Place:
        spec = PlaceSpec(
            directory=self.name, project=str(self.project), hidden=tuple(map(str, hidden))
        )
        return create(spec)


@contextmanager
def drafted(base: Path) -> Generator[Draft]:
    """A draft in an empty directory, of which nothing that is Published may change."""
    made = Draft(base.resolve())
    made.project.mkdir()
    made.state.mkdir(mode=0o700)
    (made.project / "old").write_text("published")
    before = fingerprint(made.project)
    try:
        made.hold(made.state).close()
    except PlaceUnavailable as unavailable:
        pytest.skip(f"no place can be made here: {unavailable}")
    try:
        yield made
        end(made.name)
        assert fingerprint(made.project) == before, "Published was changed"
    finally:
        end(made.name)
