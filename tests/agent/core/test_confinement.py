"""What is asked of the plane means what we think: the project, and nobody else."""

from __future__ import annotations

import pytest

from holdfast.agent.core.confinement import sandbox_for
from holdfast.exec.core.sandbox_request import Confinement, Surroundings, confinement

HERE = Surroundings(
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

    assert confinement(asked, HERE) == Confinement(
        readable=("/opt/tools",),
        writable=("/project", "/scratch"),
        hidden=("/state",),
        protected=(".envrc",),
        has_network=has_network,
    )
