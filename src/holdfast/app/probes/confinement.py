"""Try what this kernel lets us do to shut a process in."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable

from holdfast.app.doctor.storage import cgroup_directory
from holdfast.app.probes.answer import answer
from holdfast.app.probes.scratch import Facts, read_file, scratch, write_file
from holdfast.confine import kernel, restrict

_SWITCHES = (
    ("apparmor", "kernel/apparmor_restrict_unprivileged_userns", "1"),
    ("clone", "kernel/unprivileged_userns_clone", "0"),
    ("count", "user/max_user_namespaces", "0"),
)
_INSIDE = 1000  # drafts, too, run as someone who is not root inside


def namespaces(_: str) -> Facts:
    """Become someone else in a child, and change its view of the mounts."""
    number = _in_child(_enter)
    if number == 0:
        return {"is_allowed": True}
    return {"is_allowed": False, "reason": os.strerror(number), "switch": _switch()}


def landlock(_: str) -> Facts:
    """Ask the kernel for its version of Landlock."""
    return {"abi": restrict.landlock_version()}


def overlay(directory: str) -> Facts:
    """Mount an overlay in a child and change a file through it."""
    with scratch(directory) as place:
        for name in ("lower", "upper", "work", "merged"):
            os.mkdir(f"{place}/{name}")
        write_file(f"{place}/lower/file", b"published")
        number = _in_child(lambda: _write_through(place))
        if number:
            raise OSError(number, os.strerror(number))
        upper = f"{place}/upper/file"
        return {
            "lower_kept": read_file(f"{place}/lower/file") == b"published",
            "upper_holds": os.path.exists(upper) and read_file(upper) == b"draft",
        }


def cgroup(_: str) -> Facts:
    """Put a child into a control group of its own and kill the group."""
    own = cgroup_directory(_text("/proc/self/cgroup"), _text("/proc/self/mountinfo"))
    if own is None:
        raise OSError(errno.ENOENT, "no cgroup v2")
    group = f"{own}/holdfast-doctor-{os.getpid()}"
    os.mkdir(group)
    try:
        child = os.fork()
        if child == 0:
            signal.pause()
        try:
            write_file(f"{group}/cgroup.procs", b"%d" % child)
            write_file(f"{group}/cgroup.kill", b"1")
        except OSError:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        _pid, status = os.waitpid(child, 0)
        return {"is_killed": os.WIFSIGNALED(status)}
    finally:
        os.rmdir(group)


def _enter() -> None:
    """Take on a user, mounts and process ids of our own."""
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS | kernel.CLONE_NEWPID)
    write_file("/proc/self/setgroups", b"deny")
    write_file("/proc/self/uid_map", b"%d %d 1" % (_INSIDE, uid))
    write_file("/proc/self/gid_map", b"%d %d 1" % (_INSIDE, gid))
    kernel.mount(None, b"/", flags=kernel.MS_REC | kernel.MS_PRIVATE)


def _write_through(place: str) -> None:
    _enter()
    os.chdir(place)  # option values then need no escaping, whatever the path holds
    options = b"lowerdir=lower,upperdir=upper,workdir=work,userxattr"
    kernel.mount(b"overlay", b"merged", b"overlay", options=options)
    write_file("merged/file", b"draft")


def _in_child(act: Callable[[], None]) -> int:
    """Do it in a child, and return the error number that stopped it, or 0."""
    child = os.fork()
    if child == 0:
        number = errno.EIO
        try:
            act()
            number = 0
        except OSError as error:
            number = error.errno or errno.EIO
        finally:
            os._exit(number)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _switch() -> str:
    """Which switch of the kernel forbids namespaces, if one does."""
    for name, path, forbidding in _SWITCHES:
        file = f"/proc/sys/{path}"
        if os.path.exists(file) and _text(file).strip() == forbidding:
            return name
    return ""


def _text(path: str) -> str:
    return os.fsdecode(read_file(path))


if __name__ == "__main__":
    answer(namespaces, landlock, overlay, cgroup)
