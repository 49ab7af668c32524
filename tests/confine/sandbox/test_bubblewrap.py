"""An entry through bubblewrap, and the limits of what goes through it."""

from __future__ import annotations

import os
import resource
from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast.confine.failures import SandboxUnavailable
from holdfast.confine.policy import Strength
from holdfast.confine.sandbox.bubblewrap import Wrapping, find_bubblewrap, limits_of_each, wrapped
from holdfast.confine.sandbox.preflight import preflight
from tests.confine.shutting import PATH, Stage, plain, run_to_end, stage

pytestmark = pytest.mark.skipif(
    preflight().strength is not Strength.FULL,
    reason=f"no full sandbox on this machine: {'; '.join(preflight().reasons)}",
)


@pytest.fixture
def here(tmp_path: Path) -> Stage:
    return stage(tmp_path)


def _run(here: Stage, script: str, *, is_counted: bool) -> str:
    told = here.state / "told"
    with ExitStack() as undo:
        alive = os.memfd_create("alive")
        undo.callback(os.close, alive)
        wrapping = Wrapping(find_bubblewrap(), PATH, (), alive, is_counted, None)
        entry = plain(["sh", "-c", script], here.workspace, {})
        shut = wrapped(entry, here.policy, wrapping, undo)
        out = os.open(told, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        undo.callback(os.close, out)
        run_to_end(shut, {out: 1})
    return told.read_text()


def test_processes_are_counted_by_a_limit_where_no_group_does(here: Stage) -> None:
    most = here.policy.limits.processes
    assert _run(here, "ulimit -p", is_counted=False) == f"{most}\n"
    assert _run(here, "ulimit -p", is_counted=True) != f"{most}\n"


def test_each_process_has_its_limits(here: Stage) -> None:
    limits = dict(limits_of_each(here.policy))
    assert limits[resource.RLIMIT_CORE] == 0
    said = _run(here, "ulimit -n; ulimit -c", is_counted=True)
    assert said == f"{limits[resource.RLIMIT_NOFILE]}\n0\n"


def test_its_variables_are_not_on_the_command_line(here: Stage) -> None:
    with ExitStack() as undo:
        wrapping = Wrapping(find_bubblewrap(), {"NAME": "value"}, (), 0, True, None)
        shut = wrapped(plain(["true"], "/", {}), here.policy, wrapping, undo)
    assert (shut.argv, shut.env, shut.cwd) == (["bwrap", "--args", "3", "--", "true"], {}, "/")


def test_a_bubblewrap_that_is_missing_is_said_to_be() -> None:
    with pytest.raises(SandboxUnavailable, match="not installed"):
        find_bubblewrap(("/nowhere/bwrap",))
