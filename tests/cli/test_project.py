"""Which project is meant, and which path in it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.declarations import Request
from holdfast.cli.failures import UsageWrong
from holdfast.cli.project import at_work, refuse
from holdfast.nouns import PathInvalid, RelativePath
from holdfast.workbench import Workbench
from holdfast.workbench.failures import ProjectRefused
from tests.cli.workbenches import Bench, at_bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        (made.project / "src").mkdir()
        (made.project / "src" / "a").write_text("a")
        yield made


def of(bench: Bench) -> Request:
    return Request("status", given=(("--project", str(bench.project)),))


def test_a_project_is_the_current_directory(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bench.project / "src")
    with at_work(Request("status"), bench.settings) as project:
        assert project.workbench.project == bench.project / "src"


def test_or_the_nearest_above_that_is_known(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.asked("checkpoint", "create")
    monkeypatch.chdir(bench.project / "src")
    with at_work(Request("status"), bench.settings) as project:
        assert project.workbench.project == bench.project
        assert project.path("a") == RelativePath.of("src/a")
        assert project.path("../b") == RelativePath.of("b")
        assert project.paths([".."]) == ()


def test_but_not_one_in_which_our_own_state_is(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.ran("checkpoint", "create", "-C", str(bench.home))
    monkeypatch.chdir(bench.project)
    with at_work(Request("status"), bench.settings) as project:
        assert project.workbench.project == bench.project


def test_what_a_path_means(bench: Bench) -> None:
    (bench.home / "link").symlink_to(bench.project)
    (bench.project / "out").symlink_to("/etc")
    with at_work(of(bench), bench.settings) as project:
        for word in ("src/a", "./src//a", f"{bench.project}/src/a", f"{bench.home}/link/src/a"):
            assert project.path(word) == RelativePath.of("src/a")
        assert project.path("out") == RelativePath.of("out")
        assert project.path(".") is None
        assert project.paths(["src", "."]) == ()
        assert project.paths(["src", "x"]) == (RelativePath.of("src"), RelativePath.of("x"))
        for word in ("..", "../other", "/etc/passwd", f"{bench.project}x"):
            with pytest.raises(PathInvalid):
                project.path(word)


def test_what_is_no_project_is_refused(bench: Bench) -> None:
    request = Request("status", given=(("--project", str(bench.project / "src" / "a")),))
    with pytest.raises(ProjectRefused), at_work(request, bench.settings):
        pass


def test_nothing_is_made_where_nothing_is_kept(bench: Bench) -> None:
    with at_work(of(bench), bench.settings) as project:
        assert project.righted == ()
    assert not (bench.home / "state").exists()


def test_who_interrupts_is_told_that_nothing_is_half_done(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(KeyboardInterrupt), at_work(of(bench), bench.settings):
        signal.raise_signal(signal.SIGINT)

    assert capsys.readouterr().err == "Interrupted. Nothing is left half done.\n"


def test_who_interrupts_while_we_hold_it_is_told_what_comes_next(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.asked("checkpoint", "create")
    handle = Workbench.at(bench.project, bench.settings.state).locked()
    with pytest.raises(KeyboardInterrupt), at_work(of(bench), bench.settings):
        handle.__enter__()  # and nobody lets go of it
        signal.raise_signal(signal.SIGINT)
    told = capsys.readouterr().err
    handle.__exit__(None, None, None)

    assert told.startswith("Interrupted. The next command finishes or undoes the operation")


def test_what_is_wrong_names_where_to_read_on() -> None:
    with pytest.raises(UsageWrong) as refused:
        refuse("no", Request("draft undo"))

    assert refused.value == UsageWrong(problem="no", read_on="holdfast draft undo --help")


def test_where_the_directory_is_gone_there_is_no_project(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(ProjectRefused), at_work(Request("status"), bench.settings):
        pass


@pytest.mark.parametrize("is_worktree", [False, True])
def test_an_unknown_directory_of_a_repository_means_all_of_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, is_worktree: bool
) -> None:
    inner = bench.project / "src" / "deep"
    inner.mkdir(parents=True)
    if is_worktree:
        (bench.project / ".git").write_text("gitdir: /elsewhere\n")
    else:
        (bench.project / ".git").mkdir()
    monkeypatch.chdir(inner)
    with at_work(Request("status"), bench.settings) as project:
        assert project.workbench.project == bench.project
        assert project.here == inner


def test_a_home_that_holds_our_state_is_refused_with_what_to_do(bench: Bench) -> None:
    done = bench.ran("draft", "list", "-C", str(bench.home))

    assert done.returncode == 2
    assert b"-C DIR" in done.stderr
    assert b"HOLDFAST_HOME" in done.stderr
