"""`holdfast sandbox probe`, where the sandbox is whole, lesser, or none."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.sandboxes import held_back, needs_sandbox, shut


def test_every_way_out_is_closed_here(tmp_path: Path) -> None:
    needs_sandbox()
    done = shut("probe", "--json", home=tmp_path / "home", cwd=tmp_path)
    answer = json.loads(done.stdout)

    assert [each for each in answer["probes"] if each["contained"] is False] == []
    assert (done.returncode, answer["strength"], done.stderr) == (0, "full", b"")
    assert len(answer["probes"]) == 24


def test_the_page_says_how_many(tmp_path: Path) -> None:
    needs_sandbox()
    done = shut("probe", home=tmp_path / "home", cwd=tmp_path)

    assert done.returncode == 0
    assert " of 24 contained" in done.stdout.decode().splitlines()[-1]


def test_a_lesser_sandbox_lets_something_out_and_that_is_no_success(tmp_path: Path) -> None:
    needs_sandbox()
    done = held_back("reduced", "sandbox", "probe", "--json", home=tmp_path / "home", cwd=tmp_path)
    answer = json.loads(done.stdout)
    out = {each["id"] for each in answer["probes"] if each["contained"] is False}

    assert (done.returncode, answer["strength"]) == (1, "reduced")
    assert out == {"change_mode_outside", "change_times_outside"}


def test_where_there_is_no_sandbox_there_is_nothing_to_try(tmp_path: Path) -> None:
    done = held_back("none", "sandbox", "probe", home=tmp_path / "home", cwd=tmp_path)

    assert (done.returncode, done.stdout) == (126, "")
