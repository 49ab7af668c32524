"""What facts about sandboxes mean."""

from __future__ import annotations

import pytest

from holdfast.app.doctor.confinement import (
    Cgroup,
    Landlock,
    Namespaces,
    OpenBeneath,
    Overlay,
    Place,
    Ran,
    Sandbox,
    judge_bubblewrap,
    judge_cgroup,
    judge_deaths,
    judge_landlock,
    judge_namespaces,
    judge_open_beneath,
    judge_overlay,
    judge_place,
    judge_sandbox,
    judge_user,
)
from holdfast.app.doctor.model import Finding, Machine, Refused, Status

PERSON = Machine(system="Linux", family="debian")
ROOT = Machine(system="Linux", family="debian", is_root=True)
OK, WARNING, SKIPPED = Status.OK, Status.WARNING, Status.SKIPPED
PROFILE = "sudo install-the-profile"
NOWHERE = Refused("Permission denied", "EACCES", is_nowhere=True)


def test_root_is_warned() -> None:
    assert judge_user(PERSON).status is OK
    assert judge_user(ROOT) == Finding(
        WARNING,
        "you are root: what runs without a sandbox, even in a place, rules the machine",
        "Run Holdfast as an ordinary user.",
    )


@pytest.mark.parametrize(
    ("facts", "finding"),
    [
        (Sandbox("full"), Finding(OK, "shut a command in, at full strength")),
        (
            Sandbox("reduced", ("bubblewrap is not installed",)),
            Finding(
                WARNING,
                "only a lesser one can be made, without a network (bubblewrap is not installed)",
                "See the remedies below.",
            ),
        ),
        (
            Sandbox("none", ("no bubblewrap", "no Landlock")),
            Finding(
                WARNING,
                "none can be made, and nothing that needs one is run (no bubblewrap; no Landlock)",
                "See the remedies below.",
            ),
        ),
        (Refused("no answer"), Finding(WARNING, "could not be tried (no answer)")),
    ],
)
def test_sandbox(facts: Sandbox | Refused, finding: Finding) -> None:
    assert judge_sandbox(facts) == finding


@pytest.mark.parametrize(
    ("facts", "status", "remedy"),
    [
        (Place(is_made=True), OK, None),
        (Place(is_made=False, reason="no overlay"), WARNING, "See the remedies below."),
        (Refused("no answer"), WARNING, None),
    ],
)
def test_place(facts: Place | Refused, status: Status, remedy: str | None) -> None:
    finding = judge_place(facts)

    assert (finding.status, finding.remedy) == (status, remedy)


def test_a_place_that_could_not_be_tried() -> None:
    assert judge_place(NOWHERE).status is SKIPPED


@pytest.mark.parametrize(
    ("facts", "status", "remedy"),
    [
        (Ran(0, ""), OK, None),
        (Ran(1, "bwrap: no permissions"), WARNING, "See the remedy for user namespaces."),
        (Refused("not found", "ENOENT"), WARNING, "sudo apt install bubblewrap"),
        (Refused("no answer within 2.5 s"), WARNING, None),
    ],
)
def test_bubblewrap(facts: Ran | Refused, status: Status, remedy: str | None) -> None:
    finding = judge_bubblewrap(facts, PERSON)

    assert (finding.status, finding.remedy) == (status, remedy)


@pytest.mark.parametrize(
    ("facts", "finding"),
    [
        (Ran(0, ""), Finding(OK, "what we start dies with us (setpriv)")),
        (
            Ran(1, "unrecognized option"),
            Finding(
                WARNING,
                "setpriv cannot bind a child to us (unrecognized option)",
                "sudo apt install util-linux",
            ),
        ),
        (
            Refused("not found", "ENOENT"),
            Finding(
                WARNING,
                "setpriv was not found; what we start may outlive us when we are killed",
                "sudo apt install util-linux",
            ),
        ),
    ],
)
def test_deaths(facts: Ran | Refused, finding: Finding) -> None:
    assert judge_deaths(facts, PERSON) == finding


def refused_by(switch: str) -> Namespaces:
    return Namespaces(is_allowed=False, reason="Operation not permitted", switch=switch)


@pytest.mark.parametrize(
    ("facts", "machine", "remedy"),
    [
        (Namespaces(is_allowed=True), PERSON, None),
        (refused_by("apparmor"), PERSON, PROFILE),
        (refused_by("clone"), ROOT, "sysctl -w kernel.unprivileged_userns_clone=1"),
        (refused_by("count"), ROOT, "sysctl -w user.max_user_namespaces=10000"),
        (
            refused_by(""),
            ROOT,
            "In a container, start it with user namespaces allowed (see its seccomp profile).",
        ),
    ],
)
def test_namespaces(facts: Namespaces, machine: Machine, remedy: str | None) -> None:
    finding = judge_namespaces(facts, machine, profile=PROFILE)

    assert (finding.status, finding.remedy) == (WARNING if remedy else OK, remedy)


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        (Landlock(4), OK),
        (Landlock(3), WARNING),
        (Landlock(0), WARNING),
        (Refused("no answer within 2.5 s"), WARNING),
    ],
)
def test_landlock(facts: Landlock | Refused, status: Status) -> None:
    assert judge_landlock(facts).status is status


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        (Overlay(lower_kept=True, upper_holds=True), OK),
        (Overlay(lower_kept=False, upper_holds=True), WARNING),
        (Overlay(lower_kept=True, upper_holds=False), WARNING),
        (Refused("Operation not permitted", "EPERM"), WARNING),
        (NOWHERE, SKIPPED),
    ],
)
def test_overlay(facts: Overlay | Refused, status: Status) -> None:
    assert judge_overlay(facts).status is status


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        (OpenBeneath(is_enforced=True), OK),
        (OpenBeneath(is_enforced=False), WARNING),
        (Refused("Function not implemented", "ENOSYS"), WARNING),
    ],
)
def test_open_beneath(facts: OpenBeneath | Refused, status: Status) -> None:
    assert judge_open_beneath(facts).status is status


@pytest.mark.parametrize(
    ("facts", "machine", "expected"),
    [
        (Cgroup(is_killed=True), PERSON, Finding(OK, "cgroup.kill ended a group of processes")),
        (
            Refused("Permission denied", "EACCES"),
            PERSON,
            Finding(
                WARNING,
                "no group of our own (Permission denied); killing is done one by one",
                "systemd-run --user --scope -p Delegate=yes holdfast ...",
            ),
        ),
        (
            Cgroup(is_killed=False),
            ROOT,
            Finding(
                WARNING,
                "no group of our own (cgroup.kill had no effect); killing is done one by one",
            ),
        ),
    ],
)
def test_cgroup(facts: Cgroup | Refused, machine: Machine, expected: Finding) -> None:
    assert judge_cgroup(facts, machine) == expected
