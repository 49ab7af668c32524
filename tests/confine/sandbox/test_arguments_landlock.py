"""Which rights a fence of Landlock leaves."""

from __future__ import annotations

import pytest

from holdfast.confine.failures import SandboxUnavailable
from holdfast.confine.fence import Fence
from holdfast.confine.policy import (
    DEVICES,
    Network,
    PathInfo,
    PathType,
    ProtectedPath,
    Protection,
    SandboxPolicy,
    SystemPaths,
)
from holdfast.confine.sandbox.arguments import fence

SYSTEM_PATHS = SystemPaths(paths=("/usr", "/etc/resolv.conf"))
READ, ON_FILE = 0b1101, 0b1100_0000_0000_0111
EVERY = (1 << 16) - 1
DIRECTORY, FILE, LINK = (
    PathInfo(PathType.DIRECTORY),
    PathInfo(PathType.FILE),
    PathInfo(PathType.LINK),
)


def _granted(made: Fence) -> dict[str, int]:
    return {path: rights for path, rights in made.grants if path not in DEVICES}


def test_a_directory_without_protected_names_is_granted_whole() -> None:
    made = fence(
        SandboxPolicy(readable=("/r",), writable=("/w",)), (), {}, system_paths=SYSTEM_PATHS, abi=6
    )
    assert (made.files, made.network, made.scopes) == (EVERY, 3, 3)
    assert _granted(made) == {"/usr": READ, "/proc": READ, "/r": READ, "/w": EVERY}


def test_beside_protected_names_each_entry_is_granted_by_itself() -> None:
    kept = (
        ProtectedPath("/w/.codex", Protection.ABSENT),
        ProtectedPath("/w/.git", Protection.PINNED),
        ProtectedPath("/w/.git/hooks", Protection.READ_ONLY),
    )
    children = {
        "/w": {"/w/.codex": DIRECTORY, "/w/.git": DIRECTORY, "/w/a": FILE, "/w/l": LINK},
        "/w/.git": {"/w/.git/hooks": DIRECTORY, "/w/.git/objects": DIRECTORY},
    }
    made = fence(SandboxPolicy(writable=("/w",)), kept, children, system_paths=SYSTEM_PATHS, abi=6)
    assert _granted(made) == {
        "/usr": READ,
        "/proc": READ,
        "/w": READ,
        "/w/.git": READ,
        "/w/.git/objects": EVERY,
        "/w/a": ON_FILE,
    }


def test_with_a_network_it_finds_its_way_there() -> None:
    made = fence(SandboxPolicy(network=Network.HOST), (), {}, system_paths=SYSTEM_PATHS, abi=4)
    assert (made.files, made.network, made.scopes) == (EVERY >> 1, 0, 0)
    assert _granted(made) == {"/usr": READ, "/proc": READ, "/etc/resolv.conf": READ}


@pytest.mark.parametrize(
    ("policy", "abi"),
    [(SandboxPolicy(), 3), (SandboxPolicy(readable=("/r",), hidden=("/r/secret",)), 7)],
)
def test_what_it_cannot_keep_it_does_not_promise(policy: SandboxPolicy, abi: int) -> None:
    with pytest.raises(SandboxUnavailable):
        fence(policy, (), {}, system_paths=SYSTEM_PATHS, abi=abi)
