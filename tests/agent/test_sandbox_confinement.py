"""What is asked of the plane means what we think: the project, and nobody else."""

from __future__ import annotations

import pytest

from holdfast.agent.sandbox import SandboxStrength, sandbox_for
from holdfast.exec.server.sandbox_request import RequestedSandbox as Asked
from holdfast.exec.server.sandbox_request import SandboxSurroundings, confinement

HERE = SandboxSurroundings(
    system=("/usr",),
    shown=("/home",),
    protected=(".envrc",),
    temporary="/tmp",
    hidden=("/state",),
    exists=lambda _: True,
)


@pytest.mark.promise("C22")
@pytest.mark.parametrize("has_network", [False, True])
def test_what_a_command_may_touch(has_network: bool) -> None:
    asked = sandbox_for("/project", "/scratch", ("/opt/tools",), has_network=has_network)

    assert confinement(asked, HERE) == Asked(
        readable=("/opt/tools",),
        writable=("/project", "/scratch"),
        hidden=("/state",),
        protected=(".envrc",),
        has_network=has_network,
    )


@pytest.mark.parametrize(
    ("strength", "model", "person"),
    [
        ("reduced", "less well than it should. A command still", "less well than they should be"),
        ("none", "cannot shut commands in (it leaks; it drips)", "you are asked about each"),
    ],
)
def test_a_sandbox_that_is_not_whole_is_told_to_both(
    strength: str, model: str, person: str
) -> None:
    found = SandboxStrength(strength, ("it leaks", "it drips"))

    assert model in found.for_model()
    assert person in found.for_person()
    assert all("it leaks; it drips" in each for each in (found.for_model(), found.for_person()))


@pytest.mark.parametrize("strength", ["full", ""])  # a server of another kind says nothing of it
def test_of_a_whole_one_nothing_is_told(strength: str) -> None:
    found = SandboxStrength(strength, ("its memory is limited for each process",))

    assert (found.for_model(), found.for_person()) == ("", "")
