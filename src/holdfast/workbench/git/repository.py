"""Run git on the user's repository without its configuration taking effect; locate git data.

Hooks, filters, fsmonitor, credential and signing helpers are all named by configuration. Git reads
it from the *common directory* of a repository, so it is given one of ours:

    GIT_DIR         the repository itself: HEAD, the index, the log of HEAD, their lock files
    GIT_COMMON_DIR  a temporary directory: a clean `config`, no `hooks`, and links to the
                    objects, refs, packed-refs and logs of the repository

Locks and compare-and-swap work as ever, because they are taken on the real files. The system's and
the person's configuration and every GIT_* variable are left out. Decision 180 has the reasons.

Git data of a project can lie outside of it. A worktree shares the data of its repository, and a
submodule has it in the one that it is part of; both say so in a file. Only such files are read,
each beneath the project. What they name is believed only if it looks like what it is said to be:
the file may be anybody's.

A linked worktree has HEAD and its index in a directory of the repository it belongs to, and shares
objects and refs with it. A draft covers these directories, so what is written there stays in it.

Decision: docs/decisions/0180-git-by-plumbing.md
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from holdfast.confine import MergedRootFiles, is_within
from holdfast.failures import Failure
from holdfast.nouns import PathInvalid, RelativePath
from holdfast.workbench.failures import (
    GitFailed,
    GitRepositoryMissing,
    GitRepositoryRefused,
    GitUnavailable,
    WorktreeUncovered,
)
from holdfast.workbench.git.plans import clean_config, has_logs, settings_in, unknown_extension
from holdfast.world import disk_failure

_GITDIR: Final = b"gitdir: "
_SECTION: Final = re.compile(rb"\s*\[\s*([\w.-]+)")
_PATH: Final = re.compile(rb"\s*path\s*=\s*(.*?)\s*$", re.IGNORECASE)


def pointed_to(content: bytes) -> bytes | None:
    """Git directory named by a `.git` file; None if it names none."""
    if not content.startswith(_GITDIR):
        return None
    return _path(content.removeprefix(_GITDIR))


def common_directory(content: bytes) -> bytes | None:
    """Common directory named by a `commondir` file."""
    return _path(content)


def submodules(content: bytes) -> tuple[RelativePath, ...]:
    """Paths of submodules in a `.gitmodules`; invalid paths are skipped."""
    found: list[RelativePath] = []
    is_inside = False
    for line in content.splitlines():
        section = _SECTION.match(line)
        if section is not None:
            is_inside = section[1].lower() == b"submodule"
            continue
        spelled = _PATH.match(line) if is_inside else None
        if spelled is not None:
            try:
                found.append(RelativePath.of(_unquoted(spelled[1])))
            except PathInvalid:
                continue
    return tuple(found)


def _path(content: bytes) -> bytes | None:
    path = content.rstrip(b"\r\n")
    return path if path and b"\0" not in path else None


def _unquoted(value: bytes) -> bytes:
    if len(value) > 1 and value.startswith(b'"') and value.endswith(b'"'):
        return re.sub(rb"\\(.)", rb"\1", value[1:-1])
    return value


SCRATCH_PREFIX: Final = "git-"
_TIMEOUT_SECONDS: Final = 600.0
_REASON_CHARS_MAX: Final = 500
_FILE_BYTES_MAX: Final = 1 << 20
_LINKED: Final = ("objects", "refs", "packed-refs", "shallow")
_REFTABLE: Final = b"reftable"


@dataclass(frozen=True, slots=True)
class Repository:
    """Git directory, common directory and working tree."""

    directory: Path
    common: Path
    top: Path

    @property
    def is_linked_worktree(self) -> bool:
        return self.directory != self.common


def find_repository(project: Path) -> Repository:
    """Find the repository of a directory without running git; raises GitRepositoryMissing."""
    for top in (project, *project.parents):
        directory = _git_directory(top)
        if directory is not None:
            found = Repository(directory, common_of(directory), top)
            if (found.common / "objects").is_dir():
                return found
    raise GitRepositoryMissing(project=str(project))


def common_of(directory: Path) -> Path:
    """Common directory of a git directory."""
    with suppress(OSError), open(directory / "commondir", "rb") as file:
        shared = common_directory(file.read(_FILE_BYTES_MAX))
        if shared is not None:
            return Path(os.path.realpath(directory / os.fsdecode(shared)))
    return directory


def _git_directory(top: Path) -> Path | None:
    place = top / ".git"
    try:
        with open(place, "rb") as file:
            pointed = pointed_to(file.read(_FILE_BYTES_MAX))
    except IsADirectoryError:
        pointed = b".git"
    except OSError:
        return None
    if pointed is None:
        return None
    directory = Path(os.path.realpath(top / os.fsdecode(pointed)))
    return directory if os.path.lexists(directory / "HEAD") else None


@dataclass(frozen=True, slots=True)
class Git:
    """Git with a clean configuration; `scratch` is for temporary files."""

    program: str
    scratch: Path
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def run(
        self,
        *words: str | bytes,
        stdin: bytes | BinaryIO = b"",
        also: Mapping[str, str] | None = None,
        statuses: tuple[int, ...] = (0,),
    ) -> bytes:
        """Run a git command and return its stdout; raises GitFailed for other exit statuses."""
        return self.answer(*words, stdin=stdin, also=also, statuses=statuses).stdout

    def answer(
        self,
        *words: str | bytes,
        stdin: bytes | BinaryIO = b"",
        also: Mapping[str, str] | None = None,
        statuses: tuple[int, ...] = (0,),
    ) -> subprocess.CompletedProcess[bytes]:
        """Like `run`, with the exit status."""
        name = os.fsdecode(words[0])
        try:
            done = subprocess.run(
                [self.program, *words],
                env={**self.environment, **(also or {})},
                cwd=self.scratch,
                input=stdin if isinstance(stdin, bytes) else None,
                stdin=None if isinstance(stdin, bytes) else stdin,
                capture_output=True,
                timeout=_TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            reason = f"it did not end within {_TIMEOUT_SECONDS:g} seconds"
            raise GitFailed(command=name, reason=reason) from error
        except OSError as error:
            raise GitUnavailable(reason=error.strerror or str(error)) from error
        if done.returncode not in statuses:
            raise GitFailed(command=name, reason=reason_in(done))
        return done


def reason_in(done: subprocess.CompletedProcess[bytes]) -> str:
    """Error message of git, on one line."""
    said = " ".join(done.stderr.decode("utf-8", "backslashreplace").split())
    return said[:_REASON_CHARS_MAX] or f"exit status {done.returncode}"


def ask_git(
    repository: Repository, scratch: Path, *words: str
) -> subprocess.CompletedProcess[bytes]:
    """Run git with the user's configuration and environment.

    Only for commands that read settings, which run no programs.
    """
    command = [git_program(), f"--git-dir={repository.directory}", *words]
    try:
        return subprocess.run(
            command,
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitUnavailable(reason=str(error)) from error


def git_program() -> str:
    """Path of git; raises GitUnavailable."""
    found = shutil.which("git")
    if found is None:
        raise GitUnavailable(reason="git is not installed")
    return found


@contextmanager
def scratch_in(directory: Path) -> Generator[Path]:
    """Temporary directory; leftovers of killed processes are removed."""
    try:
        for each in directory.glob(f"{SCRATCH_PREFIX}*"):
            shutil.rmtree(each, ignore_errors=True)
        made = tempfile.mkdtemp(prefix=SCRATCH_PREFIX, dir=directory)
    except OSError as error:
        raise disk_failure(error, path=str(directory)) from error
    try:
        yield Path(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def clean_environment(scratch: Path) -> dict[str, str]:
    """Environment for git without the caller's variables and configuration."""
    return {
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(scratch.parent),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "HOME": str(scratch),
        "LC_ALL": "C",
        "PATH": os.defpath,
        "XDG_CONFIG_HOME": str(scratch),
    }


def repository_settings(program: str, scratch: Path, repository: Repository) -> dict[bytes, bytes]:
    """Settings of a repository itself, without includes; runs no program.

    Raises GitRepositoryRefused for an unknown format.
    """
    git = Git(program, scratch, clean_environment(scratch))
    where = repository.common / "config"
    if not where.exists():
        return {}
    words = ("config", "--file", str(where), "--no-includes", "--list", "-z")
    settings = settings_in(git.run(*words))
    extension = unknown_extension(settings)
    if extension is not None:
        reason = f"its format has the extension {extension}, which is not known here"
        raise GitRepositoryRefused(project=str(repository.top), reason=reason)
    return settings


def clean_git(repository: Repository, scratch: Path) -> Git:
    """Git on a repository with a clean configuration.

    Raises GitRepositoryRefused for an unknown format.
    """
    program = git_program()
    settings = repository_settings(program, scratch, repository)
    common = Path(tempfile.mkdtemp(prefix="common-", dir=scratch))
    is_reftable = settings.get(b"extensions.refstorage", b"").lower() == _REFTABLE
    try:
        _make_common(
            repository,
            common,
            clean_config(settings),
            is_reftable=is_reftable,
            has_logs=has_logs(settings),
        )
    except OSError as error:
        raise disk_failure(error, path=str(common)) from error
    # With reftable, worktree and common directory would open one stack twice.
    is_one = is_reftable and not repository.is_linked_worktree
    return Git(
        program,
        scratch,
        {
            **clean_environment(scratch),
            "GIT_DIR": str(common if is_one else repository.directory),
            "GIT_COMMON_DIR": str(common),
        },
    )


def _make_common(
    repository: Repository, common: Path, config: bytes, *, is_reftable: bool, has_logs: bool
) -> None:
    (common / "config").write_bytes(config)
    shutil.copyfile(repository.common / "HEAD", common / "HEAD")
    logs = repository.common / "logs" / "refs"
    if not is_reftable and has_logs:
        logs.mkdir(parents=True, exist_ok=True)
        (common / "logs").mkdir()
        (common / "logs" / "refs").symlink_to(logs)
    for name in (*_LINKED, "reftable") if is_reftable else _LINKED:
        (common / name).symlink_to(repository.common / name)


_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_BYTES_MAX = 1 << 20
_REPOSITORIES_MAX = 1000


def git_data_elsewhere(project: Path) -> tuple[str, ...]:
    """Directories outside of a project that hold its git data, sorted.

    Raises WorktreeUncovered if one cannot be covered.
    """
    within = os.path.realpath(project)
    found = {each for each in _repositories(within) if not is_within(each, (within,))}
    outermost = sorted(each for each in found if not is_within(each, tuple(found - {each})))
    for each in outermost:
        if is_within(within, (each,)):
            raise WorktreeUncovered(
                project=str(project), outside=each, reason="the project lies inside of it"
            )
    return tuple(outermost)


def _repositories(project: str) -> Iterator[str]:
    """Git directories of a project and its submodules."""
    try:
        root = os.open(project, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise disk_failure(error, path=project) from error
    try:
        for checkout in _checkouts(root):
            where = os.path.join(project, os.fsdecode(checkout))
            yield from _data_of(root, checkout, where)
    finally:
        os.close(root)


def _checkouts(root: int) -> Iterator[bytes]:
    """Paths of checkouts: the top, and its submodules."""
    ahead = [b""]
    for _ in range(_REPOSITORIES_MAX):
        if not ahead:
            return
        checkout = ahead.pop()
        yield checkout
        said = _read(root, _joined(checkout, b".gitmodules")) or b""
        ahead += [_joined(checkout, path.raw) for path in submodules(said)]


def _data_of(root: int, checkout: bytes, where: str) -> Iterator[str]:
    name = _joined(checkout, b".git")
    content = _read(root, name)
    if content is None:
        if _is_link(root, name):
            yield from _repository(os.path.realpath(os.path.join(where, ".git")))
        return
    pointed = pointed_to(content)
    if pointed is not None:
        yield from _repository(os.path.realpath(os.path.join(where, os.fsdecode(pointed))))


def _repository(directory: str) -> Iterator[str]:
    """A git directory and its common directory."""
    if not os.path.isfile(os.path.join(directory, "HEAD")):
        return
    yield directory
    with suppress(OSError), open(os.path.join(directory, "commondir"), "rb") as file:
        shared = common_directory(file.read(_BYTES_MAX))
        if shared is not None:
            common = os.path.realpath(os.path.join(directory, os.fsdecode(shared)))
            if os.path.isdir(os.path.join(common, "objects")):
                yield common


def _read(root: int, path: bytes) -> bytes | None:
    """What is in a small file below the root, if it is one and no link leads there."""
    try:
        descriptor = MergedRootFiles(root).open_without_links(path, _OPEN)
    except OSError:
        return None
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return os.read(descriptor, _BYTES_MAX) if is_file else None
    finally:
        os.close(descriptor)


def _is_link(root: int, path: bytes) -> bool:
    try:
        descriptor = MergedRootFiles(root).open_without_links(
            path, getattr(os, "O_PATH", os.O_RDONLY)
        )
    except OSError:
        return False
    try:
        return stat.S_ISLNK(os.fstat(descriptor).st_mode)
    finally:
        os.close(descriptor)


def _joined(directory: bytes, name: bytes) -> bytes:
    return directory + b"/" + name if directory else name


_SHARED: Final = ("objects", "refs", "logs")
_OBEYED: Final = ("commondir", "config.worktree")


@dataclass(frozen=True, slots=True)
class GitAccess:
    """Paths outside of a project that git in it reads, and directories that a commit writes to.

    What is readable inside of something writable stays as it is.
    """

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()


def git_access_for(project: Path) -> GitAccess:
    """What git in a draft of a project needs; nothing if all of it is inside of the project.

    Hooks and configuration are only readable. So is all of a repository that has them beside its
    HEAD, as that of a submodule: there git can look and not commit.
    """
    try:
        elsewhere = git_data_elsewhere(project)
        if not elsewhere:
            return GitAccess()
        repository = find_repository(project)
    except Failure:
        # Then there is no draft of it either.
        return GitAccess()
    if not repository.is_linked_worktree or repository.top != project:
        return GitAccess(elsewhere)
    shared = (repository.common / name for name in _SHARED)
    writable = [str(each) for each in (*shared, repository.directory) if each.is_dir()]
    # Whoever changes these lets git read another configuration.
    obeyed = (str(repository.directory / name) for name in _OBEYED)
    return GitAccess((*elsewhere, *obeyed), tuple(writable))
