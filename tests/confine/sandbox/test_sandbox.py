"""Processes that are shut in: what they cannot do, as root and as an ordinary user."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.confine.failures import SandboxRequestUnfit
from holdfast.confine.policy import SandboxPolicy, Strength
from holdfast.confine.sandbox.placeholder_sweeper import clean
from holdfast.confine.sandbox.preflight import preflight
from holdfast.confine.sandbox.sandbox import prepare_sandbox
from tests.confine.shutting import PATH, PYTHON, Stage, plain, stage
from tests.confine.test_policy import CANARIES
from tests.parts.ordinary_user import run_tests_as_ordinary_user

pytestmark = pytest.mark.skipif(
    preflight().strength is not Strength.FULL,
    reason=f"no full sandbox on this machine: {'; '.join(preflight().reasons)}",
)


@pytest.fixture
def here(tmp_path: Path) -> Stage:
    return stage(tmp_path)


def test_it_writes_the_workspace_and_nothing_else(here: Stage) -> None:
    done = here.shell(
        f"echo new > made; echo x > {here.outside}/target; cat {here.outside}/secret; "
        "ls -A /home /root /run /var; id -u; cat /proc/self/status"
    )
    assert (here.workspace / "made").read_text() == "new\n"
    assert (here.outside / "target").read_text() == "target"
    assert "a secret" not in done.said
    assert "\n1000\n" in done.said
    assert "CapEff:\t0000000000000000" in done.said
    assert "CapBnd:\t0000000000000000" in done.said
    assert "NoNewPrivs:\t1" in done.said
    assert "Seccomp:\t2" in done.said


def test_the_status_of_the_command_is_its_own(here: Stage) -> None:
    assert [here.shell(f"exit {n}").status for n in (0, 3)] == [0, 3]


@pytest.mark.promise("C6")
def test_the_environment_holds_no_secret(here: Stage) -> None:
    secrets = dict.fromkeys(CANARIES, "canary") | {"LD_PRELOAD": "canary.so"}
    done = here.run("sh", "-c", "env; cat /proc/*/environ /proc/*/cmdline", env=secrets)
    assert done.status == 0
    assert "canary" not in done.said
    assert {line.partition("=")[0] for line in done.said.splitlines()[:6]} >= {"PATH", "HOME"}


def test_no_variable_of_the_process_reaches_bubblewrap(here: Stage) -> None:
    policy = replace(here.policy, environment=("LD_PRELOAD",))
    entry = plain(["true"], here.workspace, PATH | {"LD_PRELOAD": "/evil.so"})
    with prepare_sandbox(entry, policy, state=here.state) as shut:
        assert shut.entry.env == {}
        assert "evil" not in " ".join(shut.entry.argv)


@pytest.mark.promise("C7")
@pytest.mark.parametrize("cwd", ["/", "..", "link", "/etc", "nowhere"])
def test_a_chosen_directory_changes_nothing_that_can_be_written(here: Stage, cwd: str) -> None:
    (here.workspace / "link").symlink_to(here.outside)
    chosen = str(here.workspace / cwd)
    done = here.run("sh", "-c", f"touch here ../there {here.outside}/harmed; :", cwd=chosen)
    changed = [path.name for path in here.outside.iterdir()]
    assert sorted(changed) == ["secret", "target"]
    assert not (here.workspace.parent / "here").exists()
    assert not (here.workspace.parent / "there").exists()
    assert done.status in (0, 1)


def test_what_is_hidden_is_not_seen(here: Stage) -> None:
    (here.workspace / "keys").mkdir()
    for name in ("keys/one", "token"):
        (here.workspace / name).write_text("hidden words")
    hidden = (str(here.workspace / "keys"), str(here.workspace / "token"))
    done = here.shell("cat keys/* token; ls keys", replace(here.policy, hidden=hidden))
    assert "hidden words" not in done.said


def test_our_own_state_is_out_of_sight_and_reach(tmp_path: Path) -> None:
    here = stage(tmp_path)
    inside = Stage(tmp_path, here.outside, here.state)
    done = inside.shell(f"ls -A {here.state}/placeholders; rm -rf {here.state}/*")
    assert "made.json" not in done.said
    assert (here.state / "placeholders" / "lock").exists()
    with pytest.raises(SandboxRequestUnfit):
        Stage(here.state, here.outside, here.state).shell(":")


def test_root_has_no_power_over_the_kernel_or_its_devices(here: Stage) -> None:
    settings = ("vm/swappiness", "kernel/core_pattern")
    tries = [f"cat /proc/sys/{name} > /proc/sys/{name} && echo set" for name in settings]
    tries += ["chmod 666 /dev/null && echo chmod", "touch -d @1 /dev/zero && echo touch"]
    tries += ["echo x > /dev/null && echo usable"]
    done = here.shell("; ".join(tries))
    assert done.said == "usable\n"


def test_a_toolchain_is_seen_on_request(here: Stage) -> None:
    script = "import sys, ssl, json; print(sys.version_info[:2])"
    shown = replace(here.policy, readable=PYTHON)
    done = here.run(sys.executable, "-c", script, policy=shown)
    assert (done.said, done.status) == (f"{sys.version_info[:2]}\n", 0), done.complained


def test_what_cannot_be_seen_of_the_path_is_named(here: Stage) -> None:
    entry = plain(["true"], here.workspace, {"PATH": "/home/somebody/bin:/usr/bin"})
    with prepare_sandbox(entry, here.policy, state=here.state) as shut:
        assert shut.unseen == ("/home/somebody/bin",)


@pytest.mark.parametrize(
    "policy",
    [
        SandboxPolicy(writable=("/nowhere/at/all",)),
        SandboxPolicy(readable=("/nowhere/at/all",)),
        SandboxPolicy(writable=("/usr/share",)),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(here: Stage, policy: SandboxPolicy) -> None:
    with pytest.raises(SandboxRequestUnfit):
        here.run("true", policy=policy)


def test_a_workspace_that_is_a_link_is_the_one_it_leads_to(here: Stage, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(here.workspace)
    linked = Stage(tmp_path / "link", here.outside, here.state)
    assert linked.shell("pwd; touch made").said == f"{os.path.realpath(here.workspace)}\n"
    assert (here.workspace / "made").exists()


def test_no_path_is_too_odd(tmp_path: Path) -> None:
    """Whoever is shut in could otherwise see to it that nobody ever is again."""
    here = stage(tmp_path / os.fsdecode(b"odd \xff\n"))
    odd = here.workspace / os.fsdecode(b"\xfe") / ".git"
    odd.mkdir(parents=True)
    done = here.shell("echo new > made; cd */ && echo x > .git/config")

    assert (here.workspace / "made").read_text() == "new\n"
    assert "Read-only file system" in done.complained
    assert os.listdir(odd) == []


def test_descriptors_that_nobody_named_are_not_inherited(here: Stage) -> None:
    leaked = os.open(here.outside, os.O_RDONLY)
    os.set_inheritable(leaked, True)
    try:
        done = here.shell("ls /proc/self/fd; ls /proc/1/fd")
    finally:
        os.close(leaked)
    assert done.said.splitlines()[:4] == ["0", "1", "2", "3"]  # the last is that of `ls`


def test_a_socket_in_the_workspace_is_reached_only_on_request(here: Stage) -> None:
    reach = "import socket; socket.socket(socket.AF_UNIX).connect('socket'); print('reached')"
    said: list[str] = []
    with socket.socket(socket.AF_UNIX) as listener:
        directory = os.open(here.workspace, os.O_PATH)
        listener.bind(f"/proc/self/fd/{directory}/socket")
        os.close(directory)
        listener.listen()
        for is_asked_for in (False, True):
            policy = replace(here.policy, has_unix_sockets=is_asked_for, readable=PYTHON)
            said.append(here.run(sys.executable, "-c", reach, policy=policy).said)
    assert said == ["", "reached\n"]


def test_two_at_once_in_one_workspace_do_not_disturb_each_other(here: Stage) -> None:
    entry = plain(["sh", "-c", "mkdir .codex/x; echo $?"], here.workspace, PATH)
    with prepare_sandbox(entry, here.policy, state=here.state) as first:
        with prepare_sandbox(entry, here.policy, state=here.state) as second:
            assert here.ended(second).said != "0\n"
        assert (here.workspace / ".codex").is_dir()
        assert here.ended(first).said != "0\n"
    assert sorted(path.name for path in here.workspace.iterdir()) == [".git", "file"]
    clean(here.state)
    assert sorted(path.name for path in (here.workspace / ".git").iterdir()) == ["config", "hooks"]


@pytest.mark.skipif(os.geteuid() != 0, reason="whoever is not root has run them all already")
def test_all_of_this_holds_for_an_ordinary_user_too() -> None:
    assert run_tests_as_ordinary_user(__file__) is None
