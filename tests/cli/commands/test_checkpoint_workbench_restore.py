"""Restoring at the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from holdfast.cli.failures import RestoreUnconfirmed, UsageWrong
from tests.cli.pretending import on_terminal
from tests.cli.workbenches import Bench, at_bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        (made.project / "d").mkdir()
        (made.project / "a").write_text("one\n")
        (made.project / "d" / "b").write_text("one\n")
        yield made


@pytest.fixture
def first(bench: Bench) -> str:
    made = json.loads(bench.asked("checkpoint", "create", "--json").answer)["id"]
    for name in ("a", "d/b"):
        (bench.project / name).write_text("two\n")
    return str(made)


@pytest.mark.promise("W3")
def test_a_restore_can_be_restored_from(bench: Bench, first: str) -> None:
    done = json.loads(bench.asked("restore", first, "--yes", "--json").answer)
    assert bench.files() == {"a": "one\n", "d/b": "one\n"}
    assert (done["type"], done["paths"], done["restored"]) == ("restore", ["a", "d/b"], first)
    page = bench.asked("restore", done["checkpointBefore"], "--yes").answer

    assert bench.files() == {"a": "two\n", "d/b": "two\n"}
    assert page.splitlines()[0] == "✓ Restored 2 paths"


def test_only_some_paths_are(bench: Bench, first: str) -> None:
    bench.asked("restore", first, "--yes", "--only", "d")
    assert bench.files() == {"a": "two\n", "d/b": "one\n"}


def test_what_is_as_it_was_is_left_alone(bench: Bench, first: str) -> None:
    bench.asked("restore", first, "--yes")
    assert bench.asked("restore", first).answer.startswith("✓ Nothing to restore\n")


def test_a_checkpoint_must_be_named(bench: Bench) -> None:
    with pytest.raises(UsageWrong):
        bench.asked("restore")


@pytest.mark.promise("W3")
def test_without_a_yes_nothing_is_restored(
    bench: Bench, first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (bench.project / "new").write_text("new\n")
    (bench.project / "d" / "b").unlink()
    before = bench.files()
    with pytest.raises(RestoreUnconfirmed):
        bench.asked("restore", first)
    shown = capsys.readouterr().err
    with pytest.raises(RestoreUnconfirmed) as raised:
        bench.asked("restore", first, "--json")

    assert shown.splitlines() == [
        "Comes back:",
        " A d/b  +1 -0  +",
        "1 path, +1 -0",
        "Changes:",
        " M a  +1 -1  +-",
        "1 path, +1 -1",
        "Goes, because it was made since (--keep-new keeps it):",
        " D new  +0 -1  -",
        "1 path, +0 -1",
    ]
    told = raised.value.details
    assert (told["comes"], told["changes"], told["goes"]) == (("d/b",), ("a",), ("new",))
    assert bench.files() == before


@pytest.mark.promise("W3")
@pytest.mark.parametrize("typed", ["y\n", "\n"])
def test_a_person_is_shown_what_goes_and_asked(bench: Bench, first: str, typed: str) -> None:
    (bench.project / "new").write_text("new\n")
    with on_terminal("restore", first, "-C", str(bench.project), home=bench.home) as screen:
        screen.expect("Restore this? [y/N] ")
        screen.type(typed)
        status, shown = screen.end()
    is_done = bool(typed.strip())
    assert " D new" in shown
    assert (status, "new" in bench.files()) == ((0, False) if is_done else (3, True))


@pytest.mark.promise("W3")
def test_what_was_made_since_can_stay(bench: Bench, first: str) -> None:
    (bench.project / "new").write_text("new\n")
    done = json.loads(bench.asked("restore", first, "--keep-new", "--yes", "--json").answer)
    assert bench.files() == {"a": "one\n", "d/b": "one\n", "new": "new\n"}
    assert done["notTouched"] == ["new"]


@pytest.mark.promise("W3")
def test_what_goes_is_counted(bench: Bench, first: str) -> None:
    (bench.project / "new").write_text("new\n")
    done = json.loads(bench.asked("restore", first, "--yes", "--json").answer)
    assert (done["paths"], done["count"], done["removed"]) == (["a", "d/b", "new"], 3, 1)
