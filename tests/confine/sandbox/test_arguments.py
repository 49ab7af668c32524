"""What bubblewrap is told."""

from __future__ import annotations

from holdfast.confine.policy import (
    Network,
    PathInfo,
    PathType,
    ProtectedPath,
    Protection,
    ResourceLimits,
    SandboxPolicy,
    SystemPaths,
)
from holdfast.confine.sandbox.arguments import Descriptors, arguments, told_of_process

SYSTEM_PATHS = SystemPaths(
    paths=("/usr", "/bin", "/etc/hosts", "/etc/resolv.conf"), links={"/bin": "usr/bin"}
)
KNOWN = frozenset({"--size", "--disable-userns"})
DESCRIPTORS = Descriptors(arguments=3, filter=4, alive=5, accounts=6, groups=7)


def _told(
    policy: SandboxPolicy,
    *kept: ProtectedPath,
    hidden: dict[str, PathInfo] | None = None,
    known: frozenset[str] = KNOWN,
) -> str:
    words = arguments(
        policy, kept, hidden or {}, system_paths=SYSTEM_PATHS, descriptors=DESCRIPTORS, known=known
    )
    return " ".join(words)


def test_without_a_wish_it_is_the_system_read_only_and_nothing_else() -> None:
    size = "--size 5"
    assert _told(SandboxPolicy(limits=ResourceLimits(temporary_bytes=5))) == " ".join(
        (
            "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try",
            "--hostname sandbox --unshare-net --disable-userns --uid 1000 --gid 1000",
            "--cap-drop ALL --die-with-parent --seccomp 4 --sync-fd 5",
            "--ro-bind /usr /usr --symlink usr/bin /bin --proc /proc --dev /dev",
            "--perms 0755 --dir /etc --perms 0755 --dir /home --perms 0755 --dir /run",
            f"--perms 0755 --dir /var --perms 1777 {size} --tmpfs /tmp",
            f"--perms 1777 {size} --tmpfs /var/tmp --perms 0700 {size} --tmpfs /home/user",
            f"--perms 1777 {size} --tmpfs /dev/shm",
            "--ro-bind-data 6 /etc/passwd --ro-bind-data 7 /etc/group",
            "--remount-ro /proc --remount-ro /dev --remount-ro /",
        )
    )


def test_what_is_shared_is_not_made_anew_beneath() -> None:
    told = _told(SandboxPolicy(readable=("/var/tmp/x",), writable=("/tmp",)))
    assert ("--tmpfs /tmp " in told, "--tmpfs /var/tmp " in told) == (False, True)
    assert "--bind /tmp /tmp" in told


def test_parents_are_mounted_before_what_is_in_them_and_guards_after_what_they_guard() -> None:
    policy = SandboxPolicy(
        readable=("/r", "/w/sub/r", "/usr/x"), writable=("/w",), hidden=("/w/.git/s",)
    )
    told = _told(
        policy,
        ProtectedPath("/w/.git", Protection.PINNED),
        ProtectedPath("/w/.git/hooks", Protection.READ_ONLY),
        ProtectedPath("/w/.codex", Protection.ABSENT),
        hidden={
            "/w/.git/s": PathInfo(PathType.DIRECTORY),
            "/w/f": PathInfo(PathType.FILE),
            "/o": PathInfo(PathType.FILE),
        },
    )
    assert told.partition("/etc/group ")[2] == (
        "--ro-bind /r /r --bind /w /w --ro-bind /w/.codex /w/.codex --bind /w/.git /w/.git "
        "--ro-bind /w/.git/hooks /w/.git/hooks "
        "--perms 0000 --tmpfs /w/.git/s --remount-ro /w/.git/s "
        "--ro-bind /dev/null /w/f --ro-bind /w/sub/r /w/sub/r "
        "--remount-ro /proc --remount-ro /dev --remount-ro /"
    )


def test_a_network_is_shared_only_on_request_and_with_what_finds_addresses() -> None:
    for network, is_shared in ((Network.NONE, False), (Network.HOST, True)):
        told = _told(SandboxPolicy(network=network))
        assert ("--unshare-net" not in told, "/etc/resolv.conf" in told) == (is_shared, is_shared)


def test_an_older_version_is_not_told_what_it_does_not_know() -> None:
    told = _told(SandboxPolicy(), known=frozenset())
    assert "--size" not in told
    assert "--disable-userns" not in told


def test_variables_and_directory() -> None:
    words = ["--clearenv", "--setenv", "A", "1", "--setenv", "B", "x y", "--chdir", "/w"]
    assert told_of_process({"B": "x y", "A": "1"}, "/w") == words


def test_what_is_hidden_inside_of_what_is_hidden_is_hidden_once() -> None:
    policy = SandboxPolicy(readable=("/r",), hidden=("/r/h", "/r/h/i"))
    directory = PathInfo(PathType.DIRECTORY)
    told = _told(policy, hidden={"/r/h": directory, "/r/h/i": directory})
    assert "--tmpfs /r/h --remount-ro /r/h" in told
    assert "/r/h/i" not in told
