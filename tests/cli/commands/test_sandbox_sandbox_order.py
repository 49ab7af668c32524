"""What a command may touch, read from the arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.commands.sandbox import PROXIED, Order, read_order
from holdfast.cli.declarations import Request
from holdfast.cli.failures import UsageWrong
from holdfast.confine.failures import SandboxRequestUnfit
from holdfast.confine.policy import ENVIRONMENT, SandboxPolicy, Strength
from holdfast.confine.proxy.rules import AllowList, allow_list


def asked(*given: tuple[str, str], words: tuple[str, ...] = ("make",)) -> Request:
    return Request("sandbox", given=given, words=words)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in which the command is asked for, with another below it."""
    (tmp_path / "project" / "below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def test_by_default_the_current_directory_is_seen_and_nothing_can_be_changed(
    project: Path,
) -> None:
    assert read_order(asked(), home=project.parent / "me") == Order(
        argv=("make",),
        cwd=str(project),
        policy=SandboxPolicy(readable=(str(project),)),
        hosts=(),
        allowed=AllowList(),
    )


def test_what_is_named_is_seen_or_changed_and_links_are_followed(project: Path) -> None:
    (project / "link").symlink_to("below")
    file = project.parent / "file"
    file.write_text("")
    order = read_order(asked(("--write", "link"), ("--read", str(file))), home=Path("/home/me"))

    assert order.policy.writable == (str(project / "below"),)
    assert order.policy.readable == (str(project), str(file))


def test_a_writable_directory_is_seen_already(project: Path) -> None:
    assert read_order(asked(("--write", ".")), home=Path("/home/me")).policy == SandboxPolicy(
        writable=(str(project),)
    )


def test_hosts_need_a_whole_sandbox_and_bring_the_way_to_the_proxy(project: Path) -> None:
    order = read_order(asked(("--net", "a.org"), ("--net", "b.org")), home=Path("/home/me"))

    assert order.hosts == ("a.org", "b.org")
    assert order.allowed == allow_list("a.org", "b.org")
    assert order.policy.strength_least is Strength.FULL
    assert order.policy.environment == (*ENVIRONMENT, *PROXIED)


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (asked(words=()), "Missing command: put it after --, as in: holdfast sandbox -- make"),
        (asked(("--write", "nowhere")), "--write: nowhere is not a directory"),
        (asked(("--read", "nowhere")), "--read: there is no nowhere"),
    ],
)
def test_wrong_usage(request_: Request, problem: str, project: Path) -> None:
    with pytest.raises(UsageWrong) as refused:
        read_order(request_, home=Path("/home/me"))

    assert refused.value.problem == problem


def test_a_home_is_not_shown_without_being_named(project: Path) -> None:
    for home in (project, project / "below"):
        with pytest.raises(UsageWrong, match="holds everything of yours"):
            read_order(asked(), home=home)

    assert read_order(asked(("--read", ".")), home=project).policy.readable == (str(project),)


def test_a_host_that_is_none_is_refused(project: Path) -> None:
    with pytest.raises(SandboxRequestUnfit):
        read_order(asked(("--net", "https://a.org/")), home=Path("/home/me"))
