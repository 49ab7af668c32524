"""Draft, diff, seal and project agree with a model after any sequence of steps."""

from __future__ import annotations

import os
import shutil
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from holdfast.workbench import DraftMode
from tests.faults.draft_sequence import Diverged, run, shortest, steps_of
from tests.faults.forking import FORKS, ended, start
from tests.workbench.benches import Bench, bench_at

STEPS = 10
OVERLAYS, COPIES, BATCH = 320, 180, 20  # 500 sequences, spread over the workers in batches
PATIENCE = 280.0
LONG_SECONDS = 900.0  # for each of the two modes
_MEMORY = Path("/dev/shm")


@pytest.fixture
def memory() -> Iterator[Path]:
    """A directory of which syncs cost nothing; the long run is on the disk."""
    is_there = os.access(_MEMORY, os.W_OK)
    made = Path(mkdtemp(prefix="draft-model-", dir=_MEMORY if is_there else None))
    yield made
    shutil.rmtree(made, ignore_errors=True)


def agree(bench: Bench, seed: int, steps: int) -> None:
    """Take a sequence; if it diverges, tell the shortest one that does."""
    sequence = steps_of(seed, steps)
    try:
        run(bench, sequence, seed)
    except Diverged as diverged:

        def diverges(fewer: object) -> bool:
            try:
                run(bench, fewer, seed)  # type: ignore[arg-type]  # a part of the sequence
            except Diverged:
                return True
            return False

        diverged.add_note(f"seed {seed}, shortest: {shortest(diverges, sequence)}")
        raise


def batch(home: Path, mode: DraftMode, first: int) -> None:
    """Take the sequences of a batch; what diverges is written down."""
    try:
        with bench_at(home / "bench", mode) as bench:
            for seed in range(first, first + BATCH):
                agree(bench, seed, STEPS)
    except BaseException:
        (home / "diverged").write_text(traceback.format_exc())
        raise


def taken(home: Path, mode: DraftMode, first: int) -> str:
    """What diverged in a batch, which is taken in a process of one thread.

    There the overlay is mounted again by a fork, without an interpreter of its own.
    """
    child = FORKS.Process(target=batch, args=(home, mode, first))
    start(child)
    status = ended(child, patience=PATIENCE)
    diverged = home / "diverged"
    return diverged.read_text() if diverged.exists() else "" if status == 0 else f"exit {status}"


@pytest.mark.promise("W1", "W5", "W6", "W13")
@pytest.mark.parametrize("first", range(0, OVERLAYS, BATCH))
def test_an_overlay_draft_agrees_with_the_model(memory: Path, first: int) -> None:
    assert taken(memory, DraftMode.OVERLAY, first) == ""


@pytest.mark.promise("W1", "W5", "W6", "W13")
@pytest.mark.parametrize("first", range(OVERLAYS, OVERLAYS + COPIES, BATCH))
def test_a_copied_draft_agrees_with_the_model(memory: Path, first: int) -> None:
    assert taken(memory, DraftMode.COPY, first) == ""


@pytest.mark.long
@pytest.mark.timeout(LONG_SECONDS + 300)
@pytest.mark.promise("W1", "W5", "W6", "W13")
@pytest.mark.parametrize("mode", [DraftMode.OVERLAY, DraftMode.COPY])
def test_drafts_agree_with_the_model_for_long(tmp_path: Path, mode: DraftMode) -> None:
    ends = time.monotonic() + LONG_SECONDS
    seed = time.time_ns()
    with bench_at(tmp_path / "bench", mode) as bench:
        while time.monotonic() < ends:
            agree(bench, seed, 2 * STEPS)
            seed += 1
