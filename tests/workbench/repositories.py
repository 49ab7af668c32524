"""Real git repositories for tests, also one in which everything that git can run is a tripwire."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

HOOKS = """
applypatch-msg commit-msg fsmonitor-watchman post-applypatch post-checkout post-commit
post-index-change post-merge post-receive post-rewrite post-update pre-applypatch pre-auto-gc
pre-commit pre-merge-commit pre-push pre-rebase pre-receive prepare-commit-msg push-to-checkout
reference-transaction sendemail-validate update
"""
_CONFIG = """
[core]
    hooksPath = {hooks}
    fsmonitor = {trip} fsmonitor
    editor = {trip} editor
    pager = {trip} pager
    sshCommand = {trip} ssh
    askPass = {trip} askpass
    gitProxy = {trip} proxy
    alternateRefsCommand = {trip} alternate-refs
    attributesFile = {attributes}
[commit]
    gpgSign = true
[tag]
    gpgSign = true
[gpg]
    program = {trip} gpg
[gpg "ssh"]
    program = {trip} gpg
    defaultKeyCommand = {trip} gpg-key
[credential]
    helper = !{trip} credential
[diff]
    external = {trip} diff-external
[diff "wire"]
    command = {trip} diff-command
    textconv = {trip} textconv
[filter "wire"]
    clean = {trip} clean
    smudge = {trip} smudge
    process = {trip} process
    required = true
[merge "wire"]
    driver = {trip} merge
[uploadpack]
    packObjectsHook = {trip} pack-objects
[hook "wire"]
    command = {trip} config-hook
    event = reference-transaction
[gc]
    auto = 1
[maintenance]
    auto = true
[pager]
    config = {trip} pager
    var = {trip} pager
[i18n]
    commitEncoding = ISO-8859-1
"""
_ENV = {
    "PATH": os.environ["PATH"],
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "HOME": "/nonexistent",
}


def git(where: Path, *words: str, stdin: str | None = None, **more: str) -> str:
    """What git says, which must succeed; with no configuration but the repository's."""
    done = subprocess.run(
        ["git", *words],
        cwd=where,
        env={**_ENV, **more},
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def begin(project: Path, *, format: str = "sha1", commit: bool = True) -> None:
    """Make a directory a repository on the branch main, with all that is in it in one commit."""
    shutil.rmtree(project / ".git", ignore_errors=True)
    git(project, "init", "-q", "-b", "main", f"--object-format={format}")
    identify(project)
    if commit:
        git(project, "add", "-A")
        git(project, "commit", "-qm", "first")


def identify(project: Path) -> None:
    """Tell a repository who commits."""
    git(project, "config", "user.name", "Ada Person")
    git(project, "config", "user.email", "ada@example.org")


def arm(project: Path, beside: Path) -> Path:
    """Let everything that git could run leave a file in a directory, which is returned."""
    fired, hooks = beside / "fired", beside / "hooks"
    trip = beside / "trip"
    for made in (fired, hooks):
        made.mkdir(parents=True)
    trip.write_text(f'#!/bin/sh\n: > "{fired}/$1"\nexec cat\n')
    trip.chmod(0o755)
    common = Path(git(project, "rev-parse", "--path-format=absolute", "--git-common-dir").strip())
    for directory in (common / "hooks", hooks):
        directory.mkdir(exist_ok=True)
        for name in HOOKS.split():
            (directory / name).write_text(f"#!/bin/sh\n: > '{fired}/hook-{name}'\n")
            (directory / name).chmod(0o755)
    (common / "info").mkdir(exist_ok=True)
    for attributes in (common / "info" / "attributes", beside / "attributes"):
        attributes.write_text("* filter=wire diff=wire merge=wire\n")
    text = _CONFIG.format(hooks=hooks, trip=trip, attributes=beside / "attributes")
    included = beside / "included"
    included.write_text(text)
    with open(common / "config", "a", encoding="utf-8") as config:
        config.write(f'{text}[includeIf "gitdir:**"]\n    path = {included}\n')
        config.write(f"[include]\n    path = {included}\n[extensions]\n    worktreeConfig = true\n")
    (common / "config.worktree").write_text(text)
    return fired


def tripped(fired: Path) -> set[str]:
    """What was run."""
    return {each.name for each in fired.iterdir()}
