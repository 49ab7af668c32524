"""What tests of the workbench may ask for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.workbench.model import DraftMode
from holdfast.workbench.objects.index import Index
from holdfast.workbench.objects.segments import Segments
from holdfast.world import SystemDisk
from holdfast.world.testing import SeededRandomSource
from tests.workbench.benches import Bench, bench_at


@pytest.fixture
def segments(tmp_path: Path) -> Iterator[Segments]:
    """Segments on the disk of this machine."""
    (tmp_path / "seg").mkdir()
    opened = Segments(SystemDisk(), tmp_path / "seg", SeededRandomSource(1))
    yield opened
    opened.close()


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An empty index on the disk of this machine."""
    opened = Index.open(tmp_path / "wb.db", SystemDisk())
    yield opened
    opened.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty directory to look at."""
    made = tmp_path / "project"
    made.mkdir()
    return made


@pytest.fixture(params=[DraftMode.OVERLAY, DraftMode.COPY])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A workbench whose drafts are layers, and one whose drafts are copies."""
    with bench_at(tmp_path / "bench", request.param) as made:
        yield made


@pytest.fixture
def layered(tmp_path: Path) -> Iterator[Bench]:
    """A workbench whose drafts are layers, for what does not depend on it."""
    with bench_at(tmp_path / "bench", DraftMode.OVERLAY) as made:
        yield made
