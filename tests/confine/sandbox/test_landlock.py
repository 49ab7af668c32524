"""An entry with a fence of Landlock."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.confine.filesystem import path_info
from holdfast.confine.policy import Network, candidates, protected_paths
from holdfast.confine.restrict import landlock_version
from holdfast.confine.sandbox.landlock import fenced
from tests.confine.shutting import PATH, Stage, plain, run_to_end, stage

pytestmark = pytest.mark.skipif(
    landlock_version() < 4, reason="Landlock is missing or too old on this machine"
)


@pytest.fixture
def here(tmp_path: Path) -> Stage:
    return stage(tmp_path)


def _run(here: Stage, script: str, *, network: Network = Network.NONE) -> str:
    workspace, told = str(here.workspace), here.state / "told"
    policy = replace(here.policy, network=network)
    paths = candidates(workspace, policy.protected)
    found = {path: path_info(path, root=None) for path in paths}
    kept = protected_paths(workspace, policy.protected, found)
    entry = plain(["sh", "-c", script], workspace, {})
    shut, undo = fenced(entry, policy, PATH, kept, here.state)
    out = os.open(told, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    with undo:
        run_to_end(shut, {out: 1})
    os.close(out)
    return told.read_text()


def test_it_reaches_what_is_granted_and_nothing_else(here: Stage) -> None:
    script = (
        f"cat {here.outside}/secret; cat file; echo; echo x > {here.outside}/target; "
        "cat /etc/shadow; echo t > $TMPDIR/t; cat $TMPDIR/t; echo $HOME"
    )
    said = _run(here, script).splitlines()
    assert said[:2] == ["file", "t"]
    assert said[2].startswith(str(here.state / "scratch-"))
    assert (here.outside / "target").read_text() == "target"
    assert list(here.state.glob("scratch-*")) == []


def test_without_a_network_it_can_make_no_socket(here: Stage) -> None:
    families = "for f in AF_INET AF_INET6 AF_UNIX AF_NETLINK AF_VSOCK; do perl -MSocket -e"
    script = families + " 'socket(my $s, eval(shift) // 40, 1, 0) and print \"made\\n\"' $f; done"
    assert _run(here, script) == ""
    assert _run(here, script, network=Network.HOST) == "made\nmade\n"
