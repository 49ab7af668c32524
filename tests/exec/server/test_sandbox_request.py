"""What Codex asks for becomes a policy that is at least as strict, or is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.confine.failures import SandboxRequestUnfit
from holdfast.exec.server.sandbox_request import (
    RequestedSandbox,
    SandboxSurroundings,
    confinement,
    may_read,
    may_write,
)

PROTECTED = (".git/hooks", ".envrc")
HERE = SandboxSurroundings(
    system=("/usr",),
    protected=PROTECTED,
    shown=("/home/me", "/work"),
    temporary="/var/tmp/own",
    hidden=("/home/me/state",),
    exists=lambda path: "missing" not in path,
)
DEFAULT = RequestedSandbox(hidden=HERE.hidden, protected=PROTECTED)


def entry(path: Any, access: str = "read", **more: Any) -> dict[str, Any]:
    if isinstance(path, str) and not path.startswith("/"):
        path = {"type": "special", "value": {"kind": path, **more.pop("value", {})}}
    elif isinstance(path, str):
        path = {"type": "path", "path": path}
    return {"path": path, "access": access, **more}


def asked(*entries: dict[str, Any], network: str = "restricted", **more: Any) -> dict[str, Any]:
    files = {"type": "restricted", "entries": list(entries)}
    permissions = {"type": "managed", "file_system": files, "network": network}
    return {"permissions": permissions, "workspaceRoots": ["file:///work/p"], **more}


ROOTS = entry("project_roots", "write")
GIT = entry("project_roots", value={"subpath": ".git"}, missing_path_behavior="skip")


@pytest.mark.parametrize(
    "sandbox",
    [
        None,
        {"permissions": {"type": "disabled"}},
        {"permissions": {"type": "external", "network": "enabled"}},
        {
            "permissions": {
                "type": "managed",
                "file_system": {"type": "unrestricted"},
                "network": "enabled",
            }
        },
    ],
)
def test_what_is_not_to_be_shut_in_by_us(sandbox: dict[str, Any] | None) -> None:
    assert confinement(sandbox, HERE) is None


def words(**more: Any) -> RequestedSandbox:
    return replace(DEFAULT, **more)


@pytest.mark.parametrize(
    ("sandbox", "expected"),
    [
        (asked(), DEFAULT),
        (asked(entry("minimal")), DEFAULT),
        (asked(network="enabled"), words(has_network=True)),
        (asked(entry("root")), words(readable=HERE.shown, reads_all=True)),
        (asked(entry("/opt/x")), words(readable=("/opt/x",))),
        (
            asked(entry({"type": "path", "path": "file:///a%20b"})),
            words(readable=("/a b",)),
        ),
        (asked(entry("/missing", missing_path_behavior="skip")), DEFAULT),
        (asked(ROOTS), words(writable=("/work/p",))),
        (
            asked(ROOTS, GIT),
            words(writable=("/work/p",), protected=(*PROTECTED, ".git")),
        ),
        (
            asked(ROOTS, entry("/work/p/docs")),
            words(writable=("/work/p",), protected=(*PROTECTED, "docs")),
        ),
        (
            asked(ROOTS, entry("/work/p/secret", "deny"), entry("/etc/x", "none")),
            words(
                writable=("/work/p",),
                hidden=("/work/p/secret", "/etc/x", "/home/me/state"),
            ),
        ),
        (
            asked(ROOTS, entry("slash_tmp", "write"), entry("tmpdir", "write")),
            words(
                writable=("/tmp", "/var/tmp/own", "/work/p"),
                unguarded=("/tmp", "/var/tmp/own"),
            ),
        ),
        # The way to a root that lies in what may be written cannot be moved aside.
        (
            asked(ROOTS, entry("slash_tmp", "write"), workspaceRoots=["file:///tmp/a/b/c"]),
            words(
                writable=("/tmp", "/tmp/a", "/tmp/a/b", "/tmp/a/b/c"),
                unguarded=("/tmp", "/tmp/a", "/tmp/a/b"),
            ),
        ),
        (
            asked(ROOTS, workspaceRoots=["file:///w", "file:///w/a/b"]),
            words(writable=("/w", "/w/a", "/w/a/b"), unguarded=("/w/a",)),
        ),
    ],
)
def test_what_can_be_said_in_our_words(sandbox: dict[str, Any], expected: RequestedSandbox) -> None:
    assert confinement(sandbox, HERE) == expected


@pytest.mark.promise("C7")
def test_neither_the_directory_nor_anything_else_widens_what_can_be_written() -> None:
    plain = confinement(asked(ROOTS), HERE)
    assert confinement(asked(ROOTS, cwd="file:///"), HERE) == plain
    assert confinement(asked(ROOTS, cwd="file:///work/p/.."), HERE) == plain


@pytest.mark.parametrize(
    "sandbox",
    [
        {},
        {"permissions": {}},
        {"permissions": {"type": "new"}},
        asked(entry("root", "write")),
        asked(entry("root", "execute")),
        asked(entry("unheard_of")),
        asked(entry({"type": "glob_pattern", "pattern": "**/.env"}, "deny")),
        asked(entry("/a", only_on="mondays")),
        asked(entry("/a/../b")),
        asked(entry({"type": "path", "path": "relative"})),
        asked(entry("project_roots", "write", value={"subpath": "../.."})),
        asked(ROOTS, workspaceRoots=[]),
        asked(ROOTS, workspaceRoots=["file:///"]),
        asked(entry("/a", "deny"), entry("/a/b")),
        asked(network="some"),
        {
            "permissions": {
                "type": "managed",
                "file_system": {"type": "unrestricted"},
                "network": "restricted",
            }
        },
    ],
)
def test_what_cannot_be_kept_is_refused(sandbox: dict[str, Any]) -> None:
    with pytest.raises(SandboxRequestUnfit):
        confinement(sandbox, HERE)


@pytest.mark.parametrize("temporary", ["/", "", "tmp", "/tmp/..", "//"])
def test_a_directory_for_temporary_files_that_is_none_lets_nobody_write_anywhere(
    temporary: str,
) -> None:
    with pytest.raises(SandboxRequestUnfit):
        confinement(asked(entry("tmpdir", "write")), replace(HERE, temporary=temporary))


@pytest.mark.parametrize(
    ("path", "reads", "writes"),
    [
        ("/work/p/file", True, True),
        ("/work/p/.git/objects/x", True, True),
        ("/work/p/.git/hooks/x", True, False),
        ("/work/p/.git", True, False),
        ("/work/p/.envrc", True, False),
        ("/work/p/lib/.git/hooks/x", True, False),
        ("/work/p/lib/.git", True, False),
        ("/work/p/lib/.git/index", True, True),
        ("/work/p/lib/.envrc", True, True),
        ("/work/p", True, False),
        ("/work/other", True, False),
        ("/work", True, False),
        ("/tmp/.envrc", True, True),
        ("/tmp/lib/.git/hooks/x", True, True),
        ("/usr/bin/x", True, False),
        ("/etc/passwd", False, False),
        ("/home/me/state", False, False),
        ("/home/me/state/keeper.sock", False, False),
        ("/home/me/statement", True, False),
    ],
)
def test_which_files_may_be_used(path: str, reads: bool, writes: bool) -> None:
    sandbox = asked(ROOTS, entry("slash_tmp", "write"), entry("/work"), entry("/home/me"))
    confined = confinement(sandbox, HERE)
    assert confined is not None
    assert (may_read(confined, path, HERE), may_write(confined, path)) == (reads, writes)
    everything = confinement(asked(entry("root")), HERE)
    assert everything is not None
    assert may_read(everything, path, HERE) == (not f"{path}/".startswith("/home/me/state/"))
    assert not may_write(everything, path)
