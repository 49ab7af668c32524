"""Protected names, there or not, against everything that could change or make them."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest

from holdfast.confine.failures import SandboxRequestUnfit
from holdfast.confine.policy import PROTECTED, Strength
from holdfast.confine.sandbox.preflight import preflight
from tests.confine.shutting import stage

pytestmark = [
    pytest.mark.promise("C9"),
    pytest.mark.skipif(
        preflight().strength is not Strength.FULL,
        reason=f"no full sandbox on this machine: {'; '.join(preflight().reasons)}",
    ),
]
DIRECTORIES = {
    name
    for name in PROTECTED
    if name not in (".envrc", ".mcp.json", ".pre-commit-config.yaml")
    and not name.startswith((".git/co",))
}
EXCHANGE = {"x86_64": "316", "aarch64": "276"}.get(platform.machine(), "0")  # renameat2
# Each gets the name as its first argument, and says what it did if it could.
HARM = {
    "made": 'mkdir "$1" || echo x > "$1"',
    "written": 'echo x > "$1"',
    "written in": 'echo x > "$1/new"',
    "added to": 'echo x >> "$1" || echo x >> "$1/file"',
    "removed": 'rm -r "$1"',
    "renamed": 'mv "$1" moved',
    "replaced": 'mkdir other; echo x > other/new; mv -T other "$1"',
    # With RENAME_EXCHANGE, for which there is no command.
    "exchanged": "mkdir other; "
    f"perl -e 'exit !!syscall({EXCHANGE}, -100, $ARGV[0], -100, $ARGV[1], 2)' other \"$1\"",
    "linked from": 'ln "$1" second && echo x > second',
    "linked from inside": 'ln "$1/file" second && echo x > second',
    "linked to": 'ln -sfn /etc "$1"',
    "linked through": 'ln -s "$1" way; echo x > way || echo x > way/new',
    "parent renamed": 'case "$1" in */*) mv "${1%/*}" moved;; *) false;; esac',
    "parent replaced": 'case "$1" in */*) rm -r "${1%/*}";; *) false;; esac',
    "mode changed": 'chmod 777 "$1"',
    "cut": 'truncate -s 0 "$1" || truncate -s 0 "$1/file"',
    "copied over": 'cp -rT --remove-destination file "$1"',
}


def _harm() -> str:
    tries = [
        f"(set -- '{name}'; {act}) 2>/dev/null && echo '{name}: {what}'; rm -rf second way other"
        for name in PROTECTED
        for what, act in HARM.items()
    ]
    return "\n".join([*tries, "touch works && echo ended"])


def _seen(workspace: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for name in sorted({*PROTECTED, ".git"}):
        path = workspace / name
        for each in (path, *sorted(path.rglob("*"))):
            if os.path.lexists(each) and ".git/objects" not in str(each):
                content = each.read_text() if each.is_file() else each.is_symlink()
                found[str(each.relative_to(workspace))] = (each.lstat().st_mode, content)
    return found


@pytest.mark.parametrize("are_there", [True, False])
def test_nothing_changes_and_nothing_is_made(tmp_path: Path, are_there: bool) -> None:
    here = stage(tmp_path)
    if are_there:
        for name in PROTECTED:
            path = here.workspace / name
            path.parent.mkdir(exist_ok=True)
            if name in DIRECTORIES:
                path.mkdir(exist_ok=True)
                (path / "file").write_text(name)
            else:
                path.write_text(name)
    before = _seen(here.workspace)
    done = here.shell(_harm())
    assert done.said.splitlines() == ["ended"]
    assert _seen(here.workspace) == before
    assert (here.workspace / "works").exists()


@pytest.mark.parametrize("what", HARM)
def test_without_protection_each_way_harms(tmp_path: Path, what: str) -> None:
    succeeded: list[str] = []
    for name in (".git/config", ".claude", ".absent"):
        here = stage(tmp_path / name.replace("/", "-"))
        (here.workspace / ".claude").mkdir()
        (here.workspace / ".claude" / "file").touch()
        script = f"set -- '{name}'; {HARM[what]}"
        done = subprocess.run(["sh", "-c", script], cwd=here.workspace, capture_output=True)
        succeeded += [name] if done.returncode == 0 else []
    assert succeeded


def test_where_there_is_no_repository_none_can_be_made(tmp_path: Path) -> None:
    here = stage(tmp_path)
    for path in sorted((here.workspace / ".git").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (here.workspace / ".git").rmdir()
    done = here.shell(
        "git init -q . && echo made; mkdir .git/hooks && echo made; rm -r .git; ls -A"
    )
    assert "made" not in done.said
    assert sorted(path.name for path in here.workspace.iterdir()) == ["file"]


def test_the_file_that_stands_for_a_repository_elsewhere_stays(tmp_path: Path) -> None:
    here = stage(tmp_path)
    (here.workspace / ".git").rename(tmp_path / "elsewhere")
    (here.workspace / ".git").write_text(f"gitdir: {tmp_path}/elsewhere\n")
    done = here.shell("(echo x > .git || rm .git || mv .git x || mkdir .git) && echo harmed")
    assert (done.said, (here.workspace / ".git").is_file()) == ("", True)


@pytest.mark.parametrize("name", [".git", ".codex", ".git/hooks", ".mcp.json"])
def test_a_link_that_could_be_replaced_is_refused(tmp_path: Path, name: str) -> None:
    here = stage(tmp_path)
    path = here.workspace / name
    if path.exists():
        path.rename(here.outside / "moved")
    path.symlink_to(here.outside)
    with pytest.raises(SandboxRequestUnfit, match="link"):
        here.shell("true")


def test_git_works_beside_what_stands_in(tmp_path: Path) -> None:
    here = stage(tmp_path)
    for path in sorted((here.workspace / ".git").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (here.workspace / ".git").rmdir()
    os.spawnlp(os.P_WAIT, "git", "git", "-C", str(here.workspace), "init", "-q")
    who = "-c user.name=n -c user.email=e@e"
    done = here.shell(
        f"git add -A && git {who} commit -qm first && git status --short && git branch other && "
        "git log --format=%s && git ls-files; git config core.fsmonitor evil || echo refused"
    )
    assert done.said.splitlines() == ["first", "file", "refused"], done.complained
    left = {path.name for path in (here.workspace / ".git").iterdir()}
    assert left & {"commondir", "config.worktree", "modules", "worktrees"} == set()


NESTED_HARM = """
mkdir lib/other && touch lib/own/works && cd lib/own && git add works && git -c user.name=u \\
    -c user.email=u@u commit -q -m works && git log --format=%s; cd ../..
for name in .git/hooks/pre-commit .git/config .git/commondir .git/config.worktree .envrc; do
    echo harmed > lib/own/$name || rm -rf lib/own/$name || mv lib/own/$name x
done
rm lib/sub/.git || mv lib/sub/.git moved || echo harmed > lib/sub/.git
mv -T lib/own moved; mv -T lib moved; mv -T lib/own/.git moved; rm -rf lib/own/.git lib/own lib
mkdir -p lib/own/.git && echo harmed > lib/own/.git/config
true
"""


def test_repositories_further_down_are_kept_too(tmp_path: Path) -> None:
    here = stage(tmp_path)
    own = here.workspace / "lib/own"
    subprocess.run(["git", "init", "-q", own], check=True)
    (own / ".git/hooks").mkdir(exist_ok=True)
    (own / ".git/hooks/pre-commit").write_text("#!/bin/sh\n")
    (own / ".envrc").write_text("mine")
    (here.workspace / "lib/sub").mkdir()
    (here.workspace / "lib/sub/.git").write_text("gitdir: ../../.git/modules/sub\n")
    kept = [own / ".git/config", own / ".git/hooks/pre-commit", own / ".envrc"]
    before = [path.read_text() for path in (*kept, here.workspace / "lib/sub/.git")]
    done = here.shell(NESTED_HARM)

    assert (done.status, done.said) == (0, "works\n"), done.complained
    assert [path.read_text() for path in (*kept, here.workspace / "lib/sub/.git")] == before
    assert not (own / ".git/commondir").exists()
